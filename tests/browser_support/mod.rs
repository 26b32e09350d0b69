//! A Chromium without a window, driven over its DevTools protocol: JSON messages, each ended by a zero byte, on two pipes.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A machine with much else to do takes long to start a browser.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    /// Events that nobody has looked at yet.
    events: VecDeque<Value>,
    next: u64,
    session: Option<String>,
    /// Its profile: gone with it.
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts one, with one empty page.
    ///
    /// # Panics
    /// There is none; the message says how to get one.
    pub fn start() -> Self {
        let program = xtask::chromium::find().unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().expect("a temporary folder");
        // The protocol is spoken on the file descriptors 3 and 4; what else is printed goes with the errors.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>&2"]).arg(program);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
        ]);
        command.arg(format!("--user-data-dir={}", folder.path().display())).arg("about:blank");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the browser can be started");
        let to = process.stdin.take().expect("a pipe");
        let mut from = BufReader::new(process.stdout.take().expect("a pipe"));
        let (send, receive) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while from.read_until(0, &mut message).is_ok_and(|count| count > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if send.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let events = VecDeque::new();
        let mut browser =
            Browser { process, to, from: receive, events, next: 0, session: None, _folder: folder };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let asked = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", asked);
        browser.session = attached["sessionId"].as_str().map(str::to_string);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.call(domain, json!({}));
        }
        browser
    }

    fn receive(&mut self, deadline: Instant, what: &str) -> Value {
        let left = deadline.saturating_duration_since(Instant::now());
        self.from
            .recv_timeout(left)
            .unwrap_or_else(|error| panic!("{what}: the browser says nothing: {error}"))
    }

    /// Calls a method and waits for its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).and_then(|()| self.to.flush()).expect("the browser listens");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut answer = self.receive(deadline, method);
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push_back(answer);
        }
    }

    /// Waits for an event.
    fn wait_for(&mut self, method: &str) {
        let deadline = Instant::now() + PATIENCE;
        if let Some(at) = self.events.iter().position(|event| event["method"] == method) {
            self.events.remove(at);
            return;
        }
        loop {
            let event = self.receive(deadline, method);
            if event["method"] == method {
                return;
            }
            self.events.push_back(event);
        }
    }

    /// Opens a file in a window of that width, in `light` or `dark`.
    pub fn open(&mut self, page: &Path, (width, height): (u32, u32), scheme: &str) {
        self.resize(width, height);
        self.scheme(scheme);
        self.events.clear();
        self.call("Page.navigate", json!({ "url": format!("file://{}", page.display()) }));
        self.wait_for("Page.loadEventFired");
    }

    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    pub fn scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// The value of an expression on the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Presses and releases a key: `Tab`, `Enter`, ` `, `ArrowDown`, `Escape`.
    pub fn press(&mut self, key: &str) {
        let (code, number, text) = match key {
            "Tab" => ("Tab", 9, ""),
            "Enter" => ("Enter", 13, "\r"),
            " " => ("Space", 32, " "),
            "Escape" => ("Escape", 27, ""),
            "ArrowDown" => ("ArrowDown", 40, ""),
            "ArrowUp" => ("ArrowUp", 38, ""),
            other => panic!("the key {other} is not known here"),
        };
        let mut down = json!({
            "type": if text.is_empty() { "rawKeyDown" } else { "keyDown" },
            "key": key, "code": code, "windowsVirtualKeyCode": number, "nativeVirtualKeyCode": number,
        });
        if !text.is_empty() {
            down["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", down.clone());
        down["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", down);
    }

    /// Moves the pointer to a place of the window.
    pub fn point(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// What went wrong on the page since it was opened: messages on its console, exceptions, and what it asked the
    /// network for.
    pub fn complaints(&mut self) -> Vec<String> {
        // Whatever is under way comes before the answer.
        self.evaluate("1");
        let events = std::mem::take(&mut self.events);
        let mut complaints = Vec::new();
        for event in events {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled" => {
                    complaints.push(parameters.to_string());
                }
                "Network.requestWillBeSent" if parameters["type"] != "Document" => {
                    complaints.push(format!("asks for {}", parameters["request"]["url"]));
                }
                _ => {}
            }
        }
        complaints
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already: then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
