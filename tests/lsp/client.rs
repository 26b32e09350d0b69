//! A client of `krn lsp`, over the real protocol: the process, its standard input and output.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

pub const URI: &str = "file:///t.krn";

/// How long an answer may take before the server counts as hung, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<(Instant, Value)>,
    /// When the last message was there that was looked at, before anybody read its JSON.
    pub arrived: Instant,
    next: i64,
    version: i64,
    /// The text as the client has it.
    pub text: String,
    /// The last diagnostics, with the version that they are of.
    pub diagnostics: Option<(i64, Vec<Value>)>,
    /// How often the server asked to be asked for hints again.
    pub refreshes: usize,
}

fn read(from: &mut impl BufRead) -> Option<(Instant, Value)> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(number) = line.strip_prefix("Content-Length: ") {
            length = number.trim().parse().ok()?;
        }
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).ok()?;
    let arrived = Instant::now();
    Some((arrived, serde_json::from_slice(&bytes).ok()?))
}

impl Client {
    /// A server that knows this text.
    pub fn open(text: &str) -> Self {
        Self::start(text, json!({ "inlayHint": { "refreshSupport": true } }))
    }

    /// The same for a client that does not ask for hints again.
    pub fn open_plain(text: &str) -> Self {
        Self::start(text, json!({}))
    }

    fn start(text: &str, workspace: Value) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_krn"))
            .arg("lsp")
            .env("KRN_PTXAS", "")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the tool can be started");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, messages) = channel();
        thread::spawn(move || {
            while let Some(message) = read(&mut stdout) {
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let mut client = Self {
            child,
            stdin,
            messages,
            arrived: Instant::now(),
            next: 0,
            version: 0,
            text: String::new(),
            diagnostics: None,
            refreshes: 0,
        };
        let capabilities = json!({
            "general": { "positionEncodings": ["utf-8", "utf-16"] },
            "workspace": workspace,
        });
        let answer = client.ask_with(
            "initialize",
            json!({ "processId": null, "rootUri": null, "capabilities": capabilities }),
        );
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-8");
        client.tell("initialized", json!({}));
        client.reopen(text);
        client
    }

    pub fn reopen(&mut self, text: &str) {
        self.version += 1;
        self.text = text.to_string();
        self.diagnostics = None;
        let document = json!({ "uri": URI, "languageId": "krn", "version": self.version, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let stdin = self.stdin.as_mut().expect("the server is there");
        write!(stdin, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        stdin.flush().expect("the server reads");
    }

    pub fn tell(&mut self, method: &str, parameters: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }));
    }

    /// Takes the next message; those that the server sends by itself are noted.
    fn receive(&mut self) -> Value {
        let received = self.messages.recv_timeout(PATIENCE).expect("the server is there and answers");
        let (arrived, message) = received;
        self.arrived = arrived;
        if message["method"] == "textDocument/publishDiagnostics" {
            let found = message["params"]["diagnostics"].as_array().expect("a list").clone();
            self.diagnostics = Some((message["params"]["version"].as_i64().unwrap_or(-1), found));
        } else if message["method"] == "workspace/inlayHint/refresh" {
            self.refreshes += 1;
            self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": null }));
        }
        message
    }

    fn answered(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        self.answer_to(id)
    }

    fn answer_to(&mut self, id: i64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub fn ask_with(&mut self, method: &str, parameters: Value) -> Value {
        let message = self.answered(method, parameters);
        assert!(message.get("error").is_none(), "{method}: {message}");
        message["result"].clone()
    }

    /// The message of an error.
    pub fn refused(&mut self, method: &str, parameters: Value) -> String {
        let message = self.answered(method, parameters);
        message["error"]["message"].as_str().unwrap_or_else(|| panic!("{method}: {message}")).to_string()
    }

    /// Parameters about the place where a text starts that stands in the file.
    pub fn at(&self, text: &str) -> Value {
        let offset = self.text.find(text).unwrap_or_else(|| panic!("there is no `{text}`"));
        self.at_offset(offset)
    }

    pub fn at_offset(&self, offset: usize) -> Value {
        json!({ "textDocument": { "uri": URI }, "position": self.position(offset) })
    }

    pub fn position(&self, offset: usize) -> Value {
        let before = &self.text[..offset];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        json!({ "line": before.matches('\n').count(), "character": offset - start })
    }

    /// Asks about the place where a text starts.
    pub fn ask(&mut self, method: &str, text: &str) -> Value {
        let parameters = self.at(text);
        self.ask_with(&format!("textDocument/{method}"), parameters)
    }

    /// Asks about the whole file and changes it before there is an answer; the message of the error.
    pub fn cut_off(&mut self, method: &str) -> String {
        let parameters = self.whole();
        self.next += 1;
        let id = self.next;
        let method = format!("textDocument/{method}");
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        let end = self.text.len();
        self.replace(end, end, "\n");
        let message = self.answer_to(id);
        message["error"]["message"].as_str().unwrap_or_else(|| panic!("{method}: {message}")).to_string()
    }

    /// Asks about the whole file.
    pub fn ask_all(&mut self, method: &str) -> Value {
        let parameters = self.whole();
        self.ask_with(&format!("textDocument/{method}"), parameters)
    }

    fn whole(&self) -> Value {
        let range = json!({ "start": self.position(0), "end": self.position(self.text.len()) });
        let options = json!({ "tabSize": 4, "insertSpaces": true });
        json!({
            "textDocument": { "uri": URI }, "range": range, "options": options,
            "context": { "diagnostics": [], "includeDeclaration": true },
        })
    }

    /// Asks about some lines.
    pub fn ask_lines(&mut self, method: &str, first: usize, last: usize) -> Value {
        let place = |line: usize| json!({ "line": line, "character": 0 });
        let range = json!({ "start": place(first), "end": place(last) });
        let parameters = json!({ "textDocument": { "uri": URI }, "range": range });
        self.ask_with(&format!("textDocument/{method}"), parameters)
    }

    /// Puts a text in the place of another one, as an editor would.
    pub fn replace(&mut self, start: usize, end: usize, text: &str) {
        let range = json!({ "start": self.position(start), "end": self.position(end) });
        self.text.replace_range(start..end, text);
        self.version += 1;
        self.tell(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": URI, "version": self.version },
                "contentChanges": [{ "range": range, "text": text }],
            }),
        );
    }

    /// The codes of the diagnostics of the text as it is, once they are there.
    pub fn codes(&mut self) -> Vec<String> {
        while self.diagnostics.as_ref().is_none_or(|(version, _)| *version != self.version) {
            self.receive();
        }
        let found = self.diagnostics.as_ref().map(|(_, found)| found.as_slice()).unwrap_or_default();
        found.iter().filter_map(|known| known["code"].as_str()).map(str::to_string).collect()
    }

    /// Waits until the server asks to be asked for hints again.
    pub fn refreshed(&mut self) {
        let before = self.refreshes;
        while self.refreshes == before {
            self.receive();
        }
    }

    pub fn offset(&self, position: &Value) -> usize {
        let line = position["line"].as_u64().expect("a line") as usize;
        let start: usize = self.text.split_inclusive('\n').take(line).map(str::len).sum();
        start + position["character"].as_u64().expect("a column") as usize
    }

    /// The text after edits.
    pub fn after(&self, edits: &Value) -> String {
        let mut list: Vec<(usize, usize, &str)> = edits
            .as_array()
            .expect("edits")
            .iter()
            .map(|edit| {
                let range = &edit["range"];
                (
                    self.offset(&range["start"]),
                    self.offset(&range["end"]),
                    edit["newText"].as_str().expect("a text"),
                )
            })
            .collect();
        list.sort_by(|a, b| b.cmp(a));
        let mut text = self.text.clone();
        for (start, end, new) in list {
            text.replace_range(start..end, new);
        }
        text
    }

    /// Says goodbye, and waits for the process to end.
    pub fn close(mut self) {
        self.ask_with("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        let status = self.child.wait().expect("the process ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // One that was closed has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
