//! Work that falls into independent jobs, done on the cores that there are.
//!
//! What comes out does not depend on how many those are: results are in the order of the jobs. Little work is done where it
//! is, since a thread costs more than it saves; so is all of it where there is one core, or no threads (WebAssembly).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// Work that is worth a thread, in the unit of weights: microseconds.
const WORTH_A_THREAD: usize = 150;

/// Cores that this process may use; asked for once, for the system opens files to find out.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| match cfg!(target_family = "wasm") {
        true => 1,
        false => thread::available_parallelism().map_or(1, usize::from),
    })
}

/// What the work on each job gives, in the order of the jobs. `weight` says about how many microseconds a job takes. Each
/// worker has a state of its own, which it hands from job to job.
pub fn map<J: Send, S: Default, R: Send>(
    jobs: Vec<J>,
    weight: impl Fn(&J) -> usize,
    work: impl Fn(&mut S, J) -> R + Sync,
) -> Vec<R> {
    let weights: Vec<usize> = jobs.iter().map(weight).collect();
    let worth = weights.iter().fold(0usize, |sum, weight| sum.saturating_add(*weight)) / WORTH_A_THREAD;
    let workers = cores().min(jobs.len()).min(worth);
    if workers < 2 {
        let mut state = S::default();
        return jobs.into_iter().map(|job| work(&mut state, job)).collect();
    }
    // The heaviest first, so that none of them is left when the others are done.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(weights[*at]));
    let jobs: Vec<Mutex<Option<J>>> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let (mut state, mut done) = (S::default(), Vec::new());
        while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
            let job = jobs[at].lock().unwrap_or_else(PoisonError::into_inner).take();
            done.extend(job.map(|job| (at, work(&mut state, job))));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(worker)).collect();
        let mut done = worker();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        let jobs: Vec<usize> = (0..100).collect();
        for weight in [0, 10_000] {
            let squares = map(jobs.clone(), |_| weight, |_: &mut (), job| job * job);
            assert_eq!(squares, jobs.iter().map(|job| job * job).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_job_is_done_once() {
        let count = AtomicUsize::new(0);
        map((0..1000).collect(), |job| *job, |_: &mut (), _| count.fetch_add(1, Ordering::Relaxed));
        assert_eq!(count.into_inner(), 1000);
    }
}
