//! The launches of a context that are not known to be done, for messages: faults are told by a later call.

use crate::backend::{LaunchSpec, StreamNumber};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Launches of a stream that are kept, each as often as it was repeated.
const KEPT: usize = 4;
/// Numbers of streams.
const STREAMS: usize = 64;

/// Launches that are alike, one after the other.
struct Run {
    launch: Arc<LaunchSpec>,
    /// How many launches the stream was given by the last of them, and how many of them there are.
    end: u64,
    count: u64,
}

#[derive(Default)]
struct Queue {
    /// The latest, each at its number modulo their count.
    latest: [Option<Run>; KEPT],
    /// Runs so far.
    runs: usize,
    /// Launches so far, and how many of them are done.
    queued: u64,
    done: u64,
}

/// By stream.
pub(super) struct InFlight([Mutex<Queue>; STREAMS]);

impl InFlight {
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }

    fn queue(&self, stream: StreamNumber) -> MutexGuard<'_, Queue> {
        // A panic elsewhere leaves it whole. There are no higher numbers.
        self.0[usize::from(stream) % STREAMS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A launch was queued.
    pub fn add(&self, stream: StreamNumber, launch: &Arc<LaunchSpec>) {
        let mut queue = self.queue(stream);
        queue.queued += 1;
        let end = queue.queued;
        let last = queue.runs.wrapping_sub(1) % KEPT;
        // Most launches are like the one before: nothing is counted up or down for them.
        if let Some(run) = &mut queue.latest[last]
            && Arc::ptr_eq(&run.launch, launch)
        {
            (run.end, run.count) = (end, run.count + 1);
            return;
        }
        let place = queue.runs % KEPT;
        queue.latest[place] = Some(Run { launch: Arc::clone(launch), end, count: 1 });
        queue.runs += 1;
    }

    /// How many launches the stream has been given.
    pub fn queued(&self, stream: StreamNumber) -> u64 {
        self.queue(stream).queued
    }

    /// So many of the stream's launches are done.
    pub fn mark_done(&self, stream: StreamNumber, launches: u64) {
        let mut queue = self.queue(stream);
        queue.done = queue.done.max(launches.min(queue.queued));
    }

    /// Calls `wait`, which waits for the stream; what was queued before is done when it succeeds.
    pub fn waited<T, E>(&self, stream: StreamNumber, wait: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let queued = self.queued(stream);
        let found = wait()?;
        self.mark_done(stream, queued);
        Ok(found)
    }

    /// The same for all streams.
    pub fn waited_for_all<T, E>(&self, wait: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let queued: [u64; STREAMS] = std::array::from_fn(|stream| self.queued(stream as StreamNumber));
        let found = wait()?;
        (0..STREAMS).for_each(|stream| self.mark_done(stream as StreamNumber, queued[stream]));
        Ok(found)
    }

    /// The latest launches that are not known to be done, of one stream or of all, the latest of each stream first.
    pub fn describe(&self, stream: Option<StreamNumber>) -> Vec<String> {
        let mut lines = Vec::new();
        for number in 0..STREAMS as StreamNumber {
            if stream.is_some_and(|wanted| wanted != number) {
                continue;
            }
            let queue = self.queue(number);
            let name = stream_name(number);
            let mut left = queue.queued - queue.done;
            let runs = (1..=queue.runs.min(KEPT)).filter_map(|back| {
                let run = queue.latest[(queue.runs - back) % KEPT].as_ref()?;
                let not_done = run.count.min(run.end.saturating_sub(queue.done));
                (not_done > 0).then_some((&run.launch, not_done))
            });
            let runs: Vec<(&Arc<LaunchSpec>, u64)> = runs.collect();
            for alike in runs.chunk_by(|(left, _), (right, _)| left == right) {
                let count: u64 = alike.iter().map(|(_, count)| count).sum();
                left -= count;
                let times = if count > 1 { format!(", {count} times") } else { String::new() };
                lines.push(format!("on {name}{times}: {}", alike[0].0));
            }
            if left > 0 {
                lines.push(format!("on {name}: {left} earlier launches"));
            }
        }
        lines
    }
}

/// `the default stream`, `stream 3`.
pub(super) fn stream_name(stream: StreamNumber) -> String {
    match stream {
        0 => "the default stream".to_string(),
        number => format!("stream {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(kernel: &str) -> Arc<LaunchSpec> {
        Arc::new(LaunchSpec {
            kernel: kernel.to_string(),
            arguments: "x: f32[5]".into(),
            entry: kernel.to_string(),
            number: 0,
            grid: [2, 1, 1],
            block: [32, 1, 1],
            shared_bytes: 0,
        })
    }

    #[test]
    fn what_is_waited_for_is_forgotten() {
        let flight = InFlight::new();
        for kernel in ["a", "b", "c", "d", "e", "f"] {
            flight.add(3, &launch(kernel));
        }
        let again = launch("g");
        for launch in [&launch("g"), &again, &again] {
            flight.add(0, launch);
        }
        let lines = flight.describe(None);
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert!(
            lines[0].starts_with("on the default stream, 3 times: kernel `g` with (x: f32[5])"),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("on stream 3: kernel `f`") && lines[4].contains("`c`"), "{lines:?}");
        assert_eq!(lines[5], "on stream 3: 2 earlier launches");
        flight.mark_done(0, 2);
        let rest = flight.describe(Some(0));
        assert!(rest.len() == 1 && rest[0].starts_with("on the default stream: kernel `g`"), "{rest:?}");

        flight.mark_done(3, 5);
        assert_eq!(flight.describe(Some(3)).len(), 1);
        let refused: Result<(), ()> = flight.waited(3, || Err(()));
        assert!(refused.is_err() && flight.describe(Some(3)).len() == 1);
        // What is queued while somebody waits is not waited for.
        let waited: Result<(), ()> = flight.waited(3, || {
            flight.add(3, &launch("h"));
            Ok(())
        });
        assert!(waited.is_ok());
        let left = flight.describe(Some(3));
        assert!(left.len() == 1 && left[0].contains("`h`"), "{left:?}");
        let all: Result<(), ()> = flight.waited_for_all(|| Ok(()));
        assert!(all.is_ok() && flight.describe(None).is_empty());
    }
}
