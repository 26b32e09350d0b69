//! Messages over standard input and output: headers, a blank line, JSON. What is no message is said to be none, and
//! reading goes on behind it.

use serde_json::{Value, json};
use std::io::{BufRead, Read, Write};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// No header line, and no message, is longer than that.
const LONGEST_LINE: u64 = 4096;
const LONGEST_MESSAGE: usize = 16 << 20;

/// What came.
pub enum Incoming {
    Message(Value),
    /// Something else, in words.
    Garbage(String),
    End,
}

/// Reads the next message.
pub fn read(input: &mut impl BufRead) -> Incoming {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return Incoming::End,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        let field = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if let Some((_, number)) = field {
            length = Some(number.trim().parse::<usize>().ok().filter(|length| *length <= LONGEST_MESSAGE));
        }
    }
    let length = match length {
        Some(Some(length)) => length,
        Some(None) => return Incoming::Garbage("a message without a length that makes sense".to_string()),
        None => return Incoming::Garbage("a header without `Content-Length`".to_string()),
    };
    let mut bytes = Vec::with_capacity(length);
    match input.by_ref().take(length as u64).read_to_end(&mut bytes) {
        Ok(read) if read == length => {}
        _ => return Incoming::End,
    }
    match serde_json::from_slice(&bytes) {
        Ok(message) => Incoming::Message(message),
        Err(error) => Incoming::Garbage(format!("a message that is no JSON: {error}")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_goes_on_behind_garbage() {
        let text = "rubbish\r\n\r\nContent-Length: 7\r\n\r\nnot {}!Content-Length: -3\r\n\r\n\
                    Content-Length: 99999999999\r\n\r\ncontent-length: 8\r\nX: y\r\n\r\n{\"a\": 1}Content-Length: 50\r\n\r\n{";
        let mut input = text.as_bytes();
        let mut found = Vec::new();
        loop {
            match read(&mut input) {
                Incoming::Message(message) => found.push(message.to_string()),
                Incoming::Garbage(words) => found.push(words.chars().take(24).collect()),
                Incoming::End => break,
            }
        }
        assert_eq!(
            found,
            [
                "a header without `Conten",
                "a message that is no JSO",
                "a message without a leng",
                "a message without a leng",
                "{\"a\":1}",
            ]
        );
    }
}
