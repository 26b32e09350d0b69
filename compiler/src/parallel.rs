//! Work that falls into independent jobs, done on the cores that there are.
//!
//! What comes out does not depend on how many those are: results are in the order of the jobs. Little work is done where it
//! is, since another core costs more than it saves; so is all of it where there is one core, or no threads (WebAssembly).
//! Threads are kept for the next time: one that ends gives its memory back, and whoever waits for that loses time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use workers::{cores, with_helpers};

/// Work that is worth a core, in the unit of weights: microseconds.
const WORTH_A_CORE: usize = 150;

/// The cores that there are, and threads on them.
#[cfg(not(target_family = "wasm"))]
mod workers {
    use rayon::{ThreadPool, ThreadPoolBuilder};
    use std::sync::OnceLock;
    use std::thread;

    /// As many cores as the launches of one kernel keep busy: who compiles no more starts no more threads.
    const FEW: usize = 4;

    /// Cores that this process may use; asked for once, for the system opens files to find out.
    pub fn cores() -> usize {
        static CORES: OnceLock<usize> = OnceLock::new();
        *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
    }

    /// The threads that help one that has so many workers' work; none where they cannot be had.
    fn helpers(workers: usize) -> Option<&'static ThreadPool> {
        static POOLS: [OnceLock<Option<ThreadPool>>; 2] = [const { OnceLock::new() }; 2];
        let (pool, size) = match workers <= FEW {
            true => (&POOLS[0], cores().min(FEW)),
            false => (&POOLS[1], cores()),
        };
        pool.get_or_init(|| ThreadPoolBuilder::new().num_threads(size.max(2) - 1).build().ok()).as_ref()
    }

    /// Runs the work on so many workers at once, one of which is the caller.
    pub fn with_helpers(workers: usize, work: impl Fn() + Sync) {
        match (workers > 1).then(|| helpers(workers)).flatten() {
            Some(helpers) => helpers.in_place_scope(|scope| {
                (1..workers).for_each(|_| scope.spawn(|_| work()));
                work();
            }),
            None => work(),
        }
    }
}

/// One core, and no threads.
#[cfg(target_family = "wasm")]
mod workers {
    pub fn cores() -> usize {
        1
    }

    pub fn with_helpers(_: usize, work: impl Fn() + Sync) {
        work();
    }
}

/// Jobs that several workers take, each one once.
struct Queue<J> {
    jobs: Vec<Mutex<Option<J>>>,
    /// The heaviest first, so that none of them is left when the others are done.
    order: Vec<usize>,
    next: AtomicUsize,
    workers: usize,
}

impl<J: Send> Queue<J> {
    fn new(jobs: Vec<J>, weight: impl Fn(&J) -> usize) -> Self {
        let weights: Vec<usize> = jobs.iter().map(weight).collect();
        let worth = weights.iter().fold(0usize, |sum, weight| sum.saturating_add(*weight)) / WORTH_A_CORE;
        let workers = cores().min(jobs.len()).min(worth).max(1);
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        if workers > 1 {
            order.sort_by_key(|at| std::cmp::Reverse(weights[*at]));
        }
        let jobs = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
        Self { jobs, order, next: AtomicUsize::new(0), workers }
    }

    /// The next job and its number.
    fn take(&self) -> Option<(usize, J)> {
        let at = *self.order.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        locked(&self.jobs[at]).take().map(|job| (at, job))
    }

    /// What the workers give for each job, in the order of the jobs. A worker appends to a list what it has, by numbers.
    fn run<R: Send>(self, worker: impl Fn(&Self, &mut Vec<(usize, R)>) + Sync) -> Vec<R> {
        let all = Mutex::new(Vec::with_capacity(self.jobs.len()));
        let one = || {
            let mut done = Vec::new();
            worker(&self, &mut done);
            locked(&all).append(&mut done);
        };
        with_helpers(self.workers, one);
        let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.sort_unstable_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, result)| result).collect()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the work on each job gives, in the order of the jobs. `weight` says about how many microseconds a job takes. Each
/// worker has a state of its own, which it hands from job to job.
pub fn map<J: Send, S: Default, R: Send>(
    jobs: Vec<J>,
    weight: impl Fn(&J) -> usize,
    work: impl Fn(&mut S, J) -> R + Sync,
) -> Vec<R> {
    Queue::new(jobs, weight).run(|queue, done| {
        let mut state = S::default();
        while let Some((at, job)) = queue.take() {
            done.push((at, work(&mut state, job)));
        }
    })
}

/// As [`map`], for work in two halves, of which the second one may be done by another worker than the first: so the workers
/// are done at about the same time, even where the jobs are few.
pub fn map_halves<J: Send, M: Send, R: Send>(
    jobs: Vec<J>,
    weight: impl Fn(&J) -> usize,
    first: impl Fn(J) -> M + Sync,
    second: impl Fn(M) -> R + Sync,
) -> Vec<R> {
    let half_done = Mutex::new(Vec::new());
    Queue::new(jobs, weight).run(|queue, done| {
        loop {
            if let Some((at, job)) = queue.take() {
                let half = first(job);
                locked(&half_done).push((at, half));
                continue;
            }
            // The latest one first: the caches may have it still. Whoever works on a first half comes here after that.
            let Some((at, half)) = locked(&half_done).pop() else { break };
            done.push((at, second(half)));
        }
    })
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
            let halves = map_halves(jobs.clone(), |job| weight + job, |job| job * job, |square| square + 1);
            assert_eq!(halves, jobs.iter().map(|job| job * job + 1).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_job_is_done_once() {
        let count = AtomicUsize::new(0);
        let add = || count.fetch_add(1, Ordering::Relaxed);
        map((0..1000).collect(), |job| *job, |_: &mut (), _| add());
        map_halves((0..1000).collect(), |job| *job, |_| add(), |_| add());
        assert_eq!(count.into_inner(), 3000);
    }

    #[test]
    fn jobs_have_jobs_of_their_own() {
        let sums = map(
            (0..50usize).collect(),
            |_| 1000,
            |_: &mut (), job| {
                map((0..50).collect(), |_| 1000, |_: &mut (), inner| job * inner).iter().sum::<usize>()
            },
        );
        assert_eq!(sums, (0..50).map(|job| job * 1225).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "job 7")]
    fn a_panic_of_a_job_is_the_callers() {
        map((0..100).collect(), |_| 1000, |_: &mut (), job: usize| assert_ne!(job, 7, "job {job}"));
    }
}
