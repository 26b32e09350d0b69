//! The thread that checks a text as soon as there is a new one, while the main thread goes on answering.

use super::analysis::Analysis;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::Arc;
use std::thread;

/// A text to be checked.
pub struct Text {
    pub uri: String,
    pub version: i32,
    pub analysis: Arc<Analysis>,
    /// The text that it takes the place of: forgetting it takes some time as well.
    pub before: Option<Arc<Analysis>>,
}

pub struct Checking {
    texts: Sender<Text>,
    /// The texts that have been checked, with their versions.
    pub checked: Receiver<(String, i32)>,
}

impl Checking {
    pub fn start() -> Self {
        let (texts, to_do) = unbounded();
        let (done, checked) = unbounded();
        thread::spawn(move || work(&to_do, &done));
        Self { texts, checked }
    }

    pub fn check(&self, text: Text) {
        // The thread ends with the server.
        let _ = self.texts.send(text);
    }
}

fn work(to_do: &Receiver<Text>, done: &Sender<(String, i32)>) {
    while let Ok(first) = to_do.recv() {
        let mut texts = vec![first];
        texts.extend(to_do.try_iter());
        while !texts.is_empty() {
            let text = texts.remove(0);
            // Only the last version of a text is of interest.
            if texts.iter().any(|later| later.uri == text.uri) {
                continue;
            }
            text.analysis.checked();
            if done.send((text.uri, text.version)).is_err() {
                return;
            }
            drop(text.before);
        }
    }
}
