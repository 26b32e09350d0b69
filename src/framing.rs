//! How messages of language servers and debug adapters follow each other: lines of a header, a blank line, and as many bytes
//! as the header says.

use std::io::{BufRead, Read};

/// No line of a header, and no message, is longer than that.
const LONGEST_LINE: u64 = 4096;
const LONGEST_MESSAGE: usize = 1 << 28;

/// What comes next.
pub enum Frame {
    Text(Vec<u8>),
    /// No message, in words: what comes behind it can be one.
    Garbage(String),
    /// Nothing behind it can be made out, in words.
    Broken(String),
    End,
}

/// Reads the next message.
pub fn read(input: &mut impl BufRead) -> Frame {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => return Frame::End,
            Ok(_) => {}
            Err(error) => return Frame::Broken(error.to_string()),
        }
        if line.len() as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
            return Frame::Broken(format!("a line of a header has more than {LONGEST_LINE} bytes"));
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
        Some(None) => return Frame::Garbage("a message without a length that makes sense".to_string()),
        None => return Frame::Garbage("a header without `Content-Length`".to_string()),
    };
    let mut bytes = Vec::new();
    match input.by_ref().take(length as u64).read_to_end(&mut bytes) {
        Ok(read) if read == length => Frame::Text(bytes),
        Ok(_) => Frame::Broken("the input ends within a message".to_string()),
        Err(error) => Frame::Broken(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, repeat};

    fn all(mut input: impl BufRead) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            match read(&mut input) {
                Frame::Text(bytes) => found.push(String::from_utf8(bytes).unwrap()),
                Frame::Garbage(words) => found.push(words),
                Frame::Broken(words) => {
                    found.push(words);
                    return found;
                }
                Frame::End => return found,
            }
        }
    }

    #[test]
    fn reading_goes_on_behind_garbage() {
        let text = "rubbish\r\n\r\nContent-Length: 7\r\n\r\nnot {}!Content-Length: -3\r\n\r\n\
                    Content-Length: 99999999999\r\n\r\ncontent-length: 8\r\nX: y\r\n\r\n{\"a\": 1}Content-Length: 50\r\n\r\n{";
        assert_eq!(
            all(text.as_bytes()),
            [
                "a header without `Content-Length`",
                "not {}!",
                "a message without a length that makes sense",
                "a message without a length that makes sense",
                "{\"a\": 1}",
                "the input ends within a message",
            ]
        );
    }

    #[test]
    fn what_never_ends_is_broken() {
        assert_eq!(all(BufReader::new(repeat(0))), ["a line of a header has more than 4096 bytes"]);
    }
}
