//! The other thread: compiles kernels of a text, one by one, and gives up as soon as there is another text.

use super::generated::{Chosen, chosen, reports};
use crossbeam_channel::{Receiver, Sender, unbounded};
use krn_compiler::diagnostic::Diagnostic;
use krn_compiler::source::SourceFile;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long there must have been no new job before one is begun after a time without any: what is asked about a new text
/// meanwhile is answered first.
const SHORT: Duration = Duration::from_millis(20);

/// What is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Schedules and costs: for what is in view, so first.
    Hints,
    /// Warnings and refusals.
    Reports,
}

pub struct Job {
    pub uri: String,
    pub version: i32,
    pub source: SourceFile,
    pub what: What,
    pub kernels: Vec<String>,
}

/// What has been made, of a kernel of a text.
pub struct Made {
    pub uri: String,
    pub version: i32,
    pub kernel: String,
    pub result: Outcome,
}

pub enum Outcome {
    Chosen(Option<Chosen>),
    Reports(Vec<Diagnostic>),
    /// All hints of a job are there.
    Done,
}

/// The version of each open text, as the main thread knows it.
type Versions = Arc<Mutex<HashMap<String, i32>>>;

pub struct Background {
    jobs: Sender<Job>,
    pub made: Receiver<Made>,
    versions: Versions,
}

impl Background {
    pub fn start() -> Self {
        let (jobs, to_do) = unbounded();
        let (send, made) = unbounded();
        let versions = Versions::default();
        let known = versions.clone();
        thread::spawn(move || work(&to_do, &send, &known));
        Self { jobs, made, versions }
    }

    /// Says that there is another text; none where the file was closed. What is made of an older one is given up.
    pub fn text(&self, uri: &str, version: Option<i32>) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        match version {
            Some(version) => versions.insert(uri.to_string(), version),
            None => versions.remove(uri),
        };
    }

    pub fn ask(&self, job: Job) {
        // The thread ends with the server.
        let _ = self.jobs.send(job);
    }
}

fn work(to_do: &Receiver<Job>, made: &Sender<Made>, versions: &Versions) {
    let current = |job: &Job| {
        versions.lock().unwrap_or_else(PoisonError::into_inner).get(&job.uri) == Some(&job.version)
    };
    let mut waiting: VecDeque<Job> = VecDeque::new();
    loop {
        if waiting.is_empty() {
            let Ok(job) = to_do.recv() else { return };
            waiting.push_back(job);
            while let Ok(job) = to_do.recv_timeout(SHORT) {
                waiting.push_back(job);
            }
        }
        waiting.extend(to_do.try_iter());
        waiting.retain(current);
        // What was asked for last is what is in view now.
        let hints = waiting.iter().rposition(|job| job.what == What::Hints);
        let Some(mut job) = waiting.remove(hints.unwrap_or(0)) else { continue };
        // One kernel at a time, so that what has become urgent meanwhile comes first.
        let (kernel, result) = match (job.kernels.is_empty(), job.what) {
            (true, What::Hints) => (String::new(), Outcome::Done),
            (true, What::Reports) => continue,
            (false, What::Hints) => {
                let kernel = job.kernels.remove(0);
                let result = chosen(&job.source, &kernel);
                (kernel, Outcome::Chosen(result))
            }
            (false, What::Reports) => {
                let kernel = job.kernels.remove(0);
                let result = reports(&job.source, &kernel).iter().cloned().collect();
                (kernel, Outcome::Reports(result))
            }
        };
        let is_done = matches!(result, Outcome::Done);
        let (uri, version) = (job.uri.clone(), job.version);
        if current(&job) && made.send(Made { uri, version, kernel, result }).is_err() {
            return;
        }
        if !is_done {
            waiting.push_front(job);
        }
    }
}
