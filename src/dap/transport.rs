//! Messages over standard input and output. What is no message is said to be none, and reading goes on behind it.

use crate::framing::{self, Frame};
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What came.
pub enum Incoming {
    Message(Value),
    /// Something else, in words.
    Garbage(String),
    End,
}

/// Reads the next message.
pub fn read(input: &mut impl BufRead) -> Incoming {
    match framing::read(input) {
        Frame::Text(bytes) => match serde_json::from_slice(&bytes) {
            Ok(message) => Incoming::Message(message),
            Err(error) => Incoming::Garbage(format!("a message that is no JSON: {error}")),
        },
        Frame::Garbage(words) => Incoming::Garbage(words),
        Frame::Broken(_) | Frame::End => Incoming::End,
    }
}

/// The other side.
pub struct Client {
    output: Mutex<Box<dyn Write + Send>>,
    sequence: AtomicI64,
}

impl Client {
    pub fn new(output: impl Write + Send + 'static) -> Self {
        Self { output: Mutex::new(Box::new(output)), sequence: AtomicI64::new(1) }
    }

    fn send(&self, mut message: Value) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // Numbered under the lock: numbers go up in the order in which messages are written.
        message["seq"] = self.sequence.fetch_add(1, Ordering::Relaxed).into();
        let text = message.to_string();
        // Where nobody reads any more, reading ends as well, and with it everything.
        let _ = write!(output, "Content-Length: {}\r\n\r\n{text}", text.len()).and_then(|()| output.flush());
    }

    pub fn event(&self, event: &str, body: Value) {
        self.send(json!({ "type": "event", "event": event, "body": body }));
    }

    pub fn respond(&self, request: &Value, answer: Result<Value, String>) {
        let (sequence, command) = (&request["seq"], &request["command"]);
        let mut response = json!({ "type": "response", "request_seq": sequence, "command": command });
        match answer {
            Ok(body) => {
                response["success"] = true.into();
                if !body.is_null() {
                    response["body"] = body;
                }
            }
            Err(message) => {
                response["success"] = false.into();
                response["message"] = message.clone().into();
                response["body"] = json!({ "error": { "id": 1, "format": message, "showUser": true } });
            }
        }
        self.send(response);
    }

    /// Something for a person to read.
    pub fn say(&self, category: &str, text: &str) {
        self.event("output", json!({ "category": category, "output": format!("{text}\n") }));
    }
}
