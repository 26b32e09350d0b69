//! A client of `krn dap`: the process, its standard input and output.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long an answer may take before the adapter counts as hung, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Client {
    child: Child,
    pub stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Events that nobody has asked for yet.
    events: VecDeque<Value>,
    sequence: i64,
    /// What it said, without the line that says what runs.
    pub said: Vec<String>,
    folder: tempfile::TempDir,
    text: String,
}

fn read(from: &mut impl BufRead) -> Option<Value> {
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
    serde_json::from_slice(&bytes).ok()
}

impl Client {
    /// An adapter that has said what it can do, and a file with this text.
    pub fn start(text: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_krn"))
            .arg("dap")
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
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("t.krn"), text).expect("a file");
        let (events, said, text) = (VecDeque::new(), Vec::new(), text.to_string());
        let mut client = Self { child, stdin, messages, events, sequence: 0, said, folder, text };
        let can = client.ask("initialize", json!({ "adapterID": "krn", "linesStartAt1": true }));
        assert_eq!(can["supportsConfigurationDoneRequest"], true);
        client
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("t.krn")
    }

    pub fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let stdin = self.stdin.as_mut().expect("the adapter is there");
        write!(stdin, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the adapter reads");
        stdin.flush().expect("the adapter reads");
    }

    fn receive(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("the adapter is there and answers");
        if message["event"] == "output" {
            let text = message["body"]["output"].as_str().unwrap_or_default().trim_end().to_string();
            self.said.push(text);
        }
        message
    }

    fn answer(&mut self, command: &str, arguments: Value) -> Value {
        self.sequence += 1;
        let sequence = self.sequence;
        self.send(&json!({ "seq": sequence, "type": "request", "command": command, "arguments": arguments }));
        loop {
            let message = self.receive();
            if message["type"] == "response" && message["request_seq"] == sequence {
                return message;
            }
            self.events.push_back(message);
        }
    }

    pub fn ask(&mut self, command: &str, arguments: Value) -> Value {
        let answer = self.answer(command, arguments);
        assert_eq!(answer["success"], true, "{command}: {answer}");
        answer["body"].clone()
    }

    /// Why a request was refused.
    pub fn refused(&mut self, command: &str, arguments: Value) -> String {
        let answer = self.answer(command, arguments);
        assert_eq!(answer["success"], false, "{command}: {answer}");
        answer["message"].as_str().expect("a message").to_string()
    }

    /// Waits for an event.
    pub fn event(&mut self, name: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|event| event["event"] == name) {
                return self.events.remove(at).expect("it is there")["body"].clone();
            }
            let message = self.receive();
            self.events.push_back(message);
        }
    }

    /// The events of a name that have come, which are taken out.
    pub fn seen(&mut self, name: &str) -> Vec<Value> {
        let (found, rest): (VecDeque<Value>, _) =
            self.events.drain(..).partition(|event| event["event"] == name);
        self.events = rest;
        found.into_iter().map(|event| event["body"].clone()).collect()
    }

    /// The line, from 1 on, on which a text stands first.
    pub fn line(&self, text: &str) -> usize {
        let at = self.text.find(text).unwrap_or_else(|| panic!("there is no `{text}`"));
        self.text[..at].matches('\n').count() + 1
    }

    /// Says what is to be debugged.
    pub fn launch(&mut self, mut configuration: Value) {
        configuration["program"] = self.path().display().to_string().into();
        self.ask("launch", configuration);
        self.event("initialized");
    }

    /// Sets breakpoints; what became of them.
    pub fn set(&mut self, breakpoints: Value) -> Value {
        let path = self.path().display().to_string();
        let arguments = json!({ "source": { "path": path }, "breakpoints": breakpoints });
        self.ask("setBreakpoints", arguments)["breakpoints"].clone()
    }

    /// Starts the kernel.
    pub fn begin(&mut self) {
        self.ask("configurationDone", json!({}));
    }

    /// Goes on, by a step or to the next breakpoint, until it stops; the thread that is in focus then.
    pub fn go(&mut self, command: &str, thread: i64) -> i64 {
        self.ask(command, json!({ "threadId": thread }));
        self.stopped()["threadId"].as_i64().expect("a thread")
    }

    pub fn stopped(&mut self) -> Value {
        self.event("stopped")
    }

    /// The line at which a thread stands.
    pub fn at(&mut self, thread: i64) -> i64 {
        let stack = self.ask("stackTrace", json!({ "threadId": thread }));
        stack["stackFrames"][0]["line"].as_i64().expect("a line")
    }

    /// What a thread sees in a scope: names and values.
    pub fn see(&mut self, thread: i64, scope: &str) -> Vec<(String, String)> {
        let scopes = self.ask("scopes", json!({ "frameId": thread }));
        let scopes = scopes["scopes"].as_array().expect("scopes").clone();
        let found = scopes.iter().find(|known| known["name"] == scope).expect("the scope");
        self.inside(&found["variablesReference"], json!({}))
    }

    /// What is in a variable.
    pub fn inside(&mut self, reference: &Value, mut more: Value) -> Vec<(String, String)> {
        more["variablesReference"] = reference.clone();
        let found = self.ask("variables", more);
        let text = |value: &Value| value.as_str().expect("a text").to_string();
        let pair = |variable: &Value| (text(&variable["name"]), text(&variable["value"]));
        found["variables"].as_array().expect("variables").iter().map(pair).collect()
    }

    /// A name's value in a thread.
    pub fn name(&mut self, thread: i64, name: &str) -> String {
        let names = self.see(thread, "Names");
        let found = names.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no {name} in {names:?}")).1.clone()
    }

    /// An expression's value in a thread.
    pub fn watch(&mut self, thread: i64, expression: &str) -> String {
        let answer = self.ask("evaluate", json!({ "expression": expression, "frameId": thread }));
        answer["result"].as_str().expect("a text").to_string()
    }

    /// Runs to the end, past all breakpoints; the exit code.
    pub fn finish(&mut self) -> i64 {
        self.set(json!([]));
        self.ask("continue", json!({ "threadId": 1 }));
        self.ended()
    }

    pub fn ended(&mut self) -> i64 {
        let code = self.event("exited")["exitCode"].as_i64().expect("a code");
        self.event("terminated");
        code
    }

    /// Closes its input; how the process ends.
    pub fn hang_up(&mut self) -> ExitStatus {
        self.stdin = None;
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the process can be asked") {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the process does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
