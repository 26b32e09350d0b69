//! Standard input and output. An answer is written as the text that it was made as: a tree of JSON in between would take
//! longer than the answer itself.

use crate::framing::{self, Frame};
use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};
use lsp_server::{Connection, Message, RequestId};
use std::io::{self, Write, stdin, stdout};
use std::thread::{self, JoinHandle};

/// What is sent.
pub enum Outgoing {
    Message(Message),
    /// The result of a request, as JSON.
    Answer(RequestId, String),
}

pub struct Threads {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

/// A connection for what `lsp-server` does itself, and where everything else is sent.
pub fn stdio() -> io::Result<(Connection, Sender<Outgoing>, Threads)> {
    let (sender, messages) = unbounded();
    let (out, outgoing) = unbounded();
    let (received, receiver) = bounded(0);
    let writer =
        thread::Builder::new().name("writer".to_string()).spawn(move || write(&messages, &outgoing))?;
    let reader = thread::Builder::new().name("reader".to_string()).spawn(move || read(&received))?;
    Ok((Connection { sender, receiver }, out, Threads { reader, writer }))
}

impl Threads {
    /// Waits until all is written.
    ///
    /// # Errors
    /// The connection has broken.
    pub fn join(self) -> io::Result<()> {
        for thread in [self.reader, self.writer] {
            thread.join().map_err(|_| io::Error::other("a thread of the connection has panicked"))??;
        }
        Ok(())
    }
}

fn read(received: &Sender<Message>) -> io::Result<()> {
    let mut stdin = stdin().lock();
    loop {
        let text = match framing::read(&mut stdin) {
            Frame::Text(text) => text,
            Frame::Garbage(words) | Frame::Broken(words) => return Err(io::Error::other(words)),
            Frame::End => return Ok(()),
        };
        let message: Message = serde_json::from_slice(&text)?;
        let is_exit = matches!(&message, Message::Notification(known) if known.method == "exit");
        // Whoever listened is gone.
        if received.send(message).is_err() || is_exit {
            return Ok(());
        }
    }
}

fn write(messages: &Receiver<Message>, outgoing: &Receiver<Outgoing>) -> io::Result<()> {
    let mut stdout = stdout().lock();
    loop {
        select! {
            recv(messages) -> message => match message {
                Ok(message) => message.write(&mut stdout)?,
                Err(_) => return outgoing.iter().try_for_each(|known| known.write(&mut stdout)),
            },
            recv(outgoing) -> known => match known {
                Ok(known) => known.write(&mut stdout)?,
                Err(_) => return messages.iter().try_for_each(|message| message.write(&mut stdout)),
            },
        }
    }
}

impl Outgoing {
    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Outgoing::Message(message) => message.write(to),
            Outgoing::Answer(id, result) => {
                let id = serde_json::to_string(id)?;
                let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
                write!(to, "Content-Length: {}\r\n\r\n{text}", text.len())?;
                to.flush()
            }
        }
    }
}
