//! Work that falls into independent jobs, done on the cores that there are.
//!
//! What comes out does not depend on how many those are: results are in the order of the jobs. All is done by the caller
//! where there is one core, or no threads (WebAssembly).

pub use workers::map;

#[cfg(not(target_family = "wasm"))]
mod workers {
    use rayon::prelude::*;
    use rayon::{ThreadPool, ThreadPoolBuilder};
    use std::sync::OnceLock;
    use std::thread;

    /// Threads, at most: starting more takes longer than compiling most files.
    const MOST_THREADS: usize = 16;

    /// Threads that are kept from the first call on; none where they cannot be had, or would be one.
    fn threads() -> Option<&'static ThreadPool> {
        static THREADS: OnceLock<Option<ThreadPool>> = OnceLock::new();
        let start = || {
            let cores = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
            (cores > 1).then(|| ThreadPoolBuilder::new().num_threads(cores).build().ok()).flatten()
        };
        THREADS.get_or_init(start).as_ref()
    }

    /// What the work on each job gives, in the order of the jobs. A worker of the caller's does all of it itself: it would
    /// begin other work of its own pool while it waits, on the same stack, and the others are busy anyway.
    pub fn map<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Send + Sync) -> Vec<R> {
        let is_ours = |threads: &&ThreadPool| {
            threads.current_thread_index().is_some() || rayon::current_thread_index().is_none()
        };
        match (jobs.len() > 1).then(threads).flatten().filter(is_ours) {
            Some(threads) => {
                threads.install(|| jobs.into_par_iter().with_max_len(1).map(work).collect::<Vec<R>>())
            }
            None => jobs.into_iter().map(work).collect(),
        }
    }
}

#[cfg(target_family = "wasm")]
mod workers {
    /// What the work on each job gives, in the order of the jobs: on the one thread that there is.
    pub fn map<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Send + Sync) -> Vec<R> {
        jobs.into_iter().map(work).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_are_in_the_order_of_the_jobs_each_of_which_is_done_once() {
        let done = AtomicUsize::new(0);
        let squares = map((0..1000).collect(), |job: usize| {
            done.fetch_add(1, Ordering::Relaxed);
            job * job
        });
        assert_eq!(squares, (0..1000).map(|job| job * job).collect::<Vec<_>>());
        assert_eq!(done.into_inner(), 1000);
        // Within the caller's own workers: each does one job at a time, however many there are.
        let depth = || {
            thread_local!(static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
            let depth = DEPTH.get() + 1;
            DEPTH.set(depth);
            map(vec![(); 4], |()| std::thread::yield_now());
            DEPTH.set(depth - 1);
            depth
        };
        let depths: Vec<usize> = (0..1000).into_par_iter().map(|_| depth()).collect();
        assert_eq!(depths, [1; 1000]);
    }

    #[test]
    fn jobs_have_jobs_of_their_own() {
        let sums = map((0..50usize).collect(), |job| {
            map((0..50).collect(), |inner: usize| job * inner).iter().sum::<usize>()
        });
        assert_eq!(sums, (0..50).map(|job| job * 1225).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "job 7")]
    fn a_panic_of_a_job_is_the_callers() {
        map((0..100).collect(), |job: usize| assert_ne!(job, 7, "job {job}"));
    }
}
