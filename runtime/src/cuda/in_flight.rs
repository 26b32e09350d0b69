//! The launches of a context that are not known to be done, for messages: faults are told by a later call.

use crate::backend::{LaunchSpec, StreamNumber};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Launches of a stream that are kept, each as often as it was repeated.
const KEPT: usize = 4;
/// Numbers of streams.
const STREAMS: usize = 64;

/// Launches that are alike, one after the other: up to the next run, or to the last launch of all.
struct Run {
    launch: Arc<LaunchSpec>,
    /// How many launches the stream was given before them.
    start: u64,
}

#[derive(Default)]
struct Runs {
    /// The latest, each at its number modulo their count.
    latest: [Option<Run>; KEPT],
    /// How many there were.
    count: usize,
}

#[derive(Default)]
struct Queue {
    /// Launches so far.
    queued: AtomicU64,
    /// How many of them are done.
    done: AtomicU64,
    /// What the latest run repeats, which holds it: compared, never followed.
    last: AtomicPtr<LaunchSpec>,
    runs: Mutex<Runs>,
}

impl Queue {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        // A panic elsewhere leaves them whole.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By stream. Launches are added one at a time, for they are queued under the device's lock; who waits for a stream, or
/// asks what runs there, comes from anywhere.
pub(super) struct InFlight([Queue; STREAMS]);

impl InFlight {
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| Queue::default()))
    }

    fn queue(&self, stream: StreamNumber) -> &Queue {
        // There are no higher numbers.
        &self.0[usize::from(stream) % STREAMS]
    }

    /// A launch was queued.
    pub fn add(&self, stream: StreamNumber, launch: &Arc<LaunchSpec>) {
        let queue = self.queue(stream);
        let queued = queue.queued.load(Relaxed);
        // Most launches are like the one before, and are counted and no more.
        if !std::ptr::eq(queue.last.load(Relaxed), Arc::as_ptr(launch)) {
            let mut runs = queue.runs();
            let place = runs.count % KEPT;
            runs.latest[place] = Some(Run { launch: Arc::clone(launch), start: queued });
            runs.count += 1;
            queue.last.store(Arc::as_ptr(launch).cast_mut(), Relaxed);
        }
        queue.queued.store(queued + 1, Release);
    }

    /// How many launches the stream has been given.
    pub fn queued(&self, stream: StreamNumber) -> u64 {
        self.queue(stream).queued.load(Acquire)
    }

    /// So many of the stream's launches are done.
    pub fn mark_done(&self, stream: StreamNumber, launches: u64) {
        let queue = self.queue(stream);
        queue.done.fetch_max(launches.min(queue.queued.load(Acquire)), AcqRel);
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
            let runs = queue.runs();
            let (mut end, done) = (queue.queued.load(Acquire), queue.done.load(Acquire));
            let mut left = end.saturating_sub(done);
            let runs = (1..=runs.count.min(KEPT)).filter_map(|back| {
                let run = runs.latest[(runs.count - back) % KEPT].as_ref()?;
                let not_done = end.saturating_sub(run.start.max(done));
                end = run.start;
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
    use crate::backend::Described;

    fn launch(kernel: &str) -> Arc<LaunchSpec> {
        Arc::new(LaunchSpec {
            kernel: kernel.to_string(),
            arguments: Arc::new(Described { heads: ["x: f32".to_string()].into(), shapes: vec![vec![5]] }),
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
