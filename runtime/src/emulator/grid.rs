//! Spreads the blocks of a launch over the host's cores, so that the outcome does not depend on the timing.
//!
//! Blocks are handed out in the order of their numbers ([`Turns`](super::turns::Turns)). Of several faults that of the
//! lowest block is reported: blocks below a faulting one still run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::exec::block::BlockFault;
use super::exec::runner::{Runner, Shared};
use super::launch::LaunchConfig;
use super::observe::Observer;
use super::turns::NO_BLOCK;

/// How a launch ended.
pub enum End<O> {
    Done { observer: O, executed: u64, lane_executed: u64 },
    Fault { block: u64, fault: BlockFault },
    Cancelled,
}

/// How many host threads a launch should use.
pub fn workers(config: &LaunchConfig<'_>) -> usize {
    let cores = rayon::current_num_threads().max(1);
    let most = if config.threads_at_most == 0 { cores } else { config.threads_at_most.min(cores) };
    most.min(usize::try_from(config.blocks()).unwrap_or(usize::MAX)).max(1)
}

/// Runs all blocks.
pub fn run<O: Observer>(shared: &Shared<'_>, workers: usize, observer: O) -> End<O> {
    let config = shared.config;
    let blocks = config.blocks();
    // Small enough for an even end, large enough that taking costs nothing.
    let chunk = (blocks / (workers as u64 * 16)).clamp(1, 64);
    let done = AtomicU64::new(0);
    let lowest: Mutex<Option<(u64, BlockFault)>> = Mutex::new(None);
    let totals = Mutex::new((None::<O>, 0u64, 0u64));
    let work = |worker: usize, observer: O| {
        let turns = shared.turns;
        let mut runner = Runner::new(shared, worker, observer);
        'taking: loop {
            let range = turns.take(worker, chunk, blocks);
            if range.is_empty() {
                break;
            }
            let taken = range.end - range.start;
            for block in range {
                if config.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                    turns.cancel();
                }
                if turns.is_over(block) {
                    break 'taking;
                }
                turns.at(worker, block);
                match runner.run_block(block) {
                    Ok(true) => {}
                    Ok(false) => break 'taking,
                    Err(fault) => {
                        turns.fail(block);
                        let mut lowest = lowest.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                        if lowest.as_ref().is_none_or(|(other, _)| block < *other) {
                            *lowest = Some((block, fault));
                        }
                        break 'taking;
                    }
                }
            }
            let so_far = done.fetch_add(taken, Ordering::Relaxed) + taken;
            if let Some(progress) = config.progress {
                progress(so_far);
            }
        }
        turns.at(worker, NO_BLOCK);
        let mut totals = totals.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        totals.1 += runner.executed;
        totals.2 += runner.lane_executed;
        match &mut totals.0 {
            Some(all) => all.merge(runner.observer),
            none => *none = Some(runner.observer),
        }
    };
    if workers == 1 {
        work(0, observer.fork());
    } else {
        let forks: Vec<O> = (1..workers).map(|_| observer.fork()).collect();
        let own = observer.fork();
        rayon::scope(|scope| {
            for (at, fork) in forks.into_iter().enumerate() {
                let work = &work;
                scope.spawn(move |_| work(at + 1, fork));
            }
            work(0, own);
        });
    }
    let (merged, executed, lane_executed) =
        totals.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let lowest = lowest.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((block, fault)) = lowest {
        return End::Fault { block, fault };
    }
    if shared.turns.is_cancelled() {
        return End::Cancelled;
    }
    End::Done { observer: merged.unwrap_or(observer), executed, lane_executed }
}
