//! What `tile`, `per_thread`, `warps` and `block` say about a loop that is spread over the grid.

use crate::ir::entities::Inst;
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::ir::schedule::{Directive, Refusal, RefusalKind, Schedule};
use crate::passes::pass::TargetFacts;

/// Threads along each axis of a loop, in the order in which the axes stand.
pub enum Requested {
    /// From `tile` and `per_thread`: threads.
    Threads(Vec<u32>),
    /// From `warps`: those along each axis; the lanes are chosen.
    Warps(Vec<u32>),
}

/// The names of a loop's axes.
pub fn names(kernel: &Kernel, forall: Inst) -> Vec<String> {
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return Vec::new() };
    axes.iter().map(|axis| kernel.axes[*axis].name.clone()).collect()
}

/// Whether the loop is a product that the schedule wants staged: what it says of tiles is then for `stage`.
pub fn is_staged_product(kernel: &Kernel, forall: Inst) -> bool {
    let mut staged = false;
    // Rows and columns.
    if names(kernel, forall).len() < 2 {
        return false;
    }
    kernel.walk(kernel.insts[forall].regions[0], &mut |_, reduce| {
        let data = &kernel.insts[reduce];
        if data.opcode != Opcode::Reduce {
            return;
        }
        kernel.walk(data.regions[0], &mut |_, inst| {
            if let (Opcode::Load, Payload::Access { buffer, .. }) =
                (kernel.insts[inst].opcode, &kernel.insts[inst].payload)
            {
                staged |= kernel.schedule.stage(&kernel.buffers[*buffer].name).is_some();
            }
        });
    });
    staged
}

/// What the schedule says of the loop's threads, if it does and if that can be; what cannot be is refused.
pub fn requested(kernel: &mut Kernel, forall: Inst, target: &TargetFacts) -> Option<Requested> {
    let names = names(kernel, forall);
    let schedule = &mut kernel.schedule;
    let tiled = |name: &String| schedule.tile(name).is_some();
    if names.iter().any(tiled) {
        let threads = tile_threads(schedule, &names)?;
        fits(schedule, &names, "tile", all(&threads), target)?;
        schedule.done(|directive| matches!(directive, Directive::Tile { axis, .. } if names.contains(axis)));
        let warps = shared(&threads, target.warp_size).1;
        agree_with_warps(schedule, &names, &warps);
        return Some(Requested::Threads(threads));
    }
    let said: Vec<Option<u32>> = names.iter().map(|name| schedule.warps(name)).collect();
    if said.iter().all(Option::is_none) {
        return None;
    }
    let warps: Vec<u32> = said.iter().map(|count| count.unwrap_or(1)).collect();
    fits(schedule, &names, "warps", all(&warps).saturating_mul(u64::from(target.warp_size)), target)?;
    schedule.done(|directive| matches!(directive, Directive::Warps { axis, .. } if names.contains(axis)));
    Some(Requested::Warps(warps))
}

/// How many there are of all axes together.
fn all(counts: &[u32]) -> u64 {
    counts.iter().fold(1, |all: u64, count| all.saturating_mul(u64::from(*count)))
}

/// Instructions that one thread runs side by side, at most.
const MOST_INSTS: u64 = 8192;

/// Whether the iterations that the schedule gives to one thread are not too much code; where they are, `per_thread` is
/// refused.
pub fn copies_fit(kernel: &mut Kernel, forall: Inst) -> bool {
    let names = names(kernel, forall);
    let counts: Vec<u32> = names.iter().filter_map(|name| kernel.schedule.per_thread(name)).collect();
    if counts.is_empty() {
        return true;
    }
    let mut insts: u64 = 0;
    kernel.walk(kernel.insts[forall].regions[0], &mut |_, _| insts += 1);
    let copies = all(&counts);
    if copies.saturating_mul(insts) <= MOST_INSTS {
        return true;
    }
    let reason = format!("{copies} copies of {insts} instructions are too many");
    let refusal = Refusal::new(RefusalKind::DoesNotFit, reason, "give a thread fewer iterations");
    let about =
        |known: &Directive| matches!(known, Directive::PerThread { axis, .. } if names.contains(axis));
    kernel.schedule.refuse(about, &refusal);
    false
}

/// Threads along each axis: the tile's iterations by those of one thread; 1 where no tile is named.
fn tile_threads(schedule: &mut Schedule, names: &[String]) -> Option<Vec<u32>> {
    let mut threads = Vec::with_capacity(names.len());
    for name in names {
        let tile = schedule.tile(name);
        let each = if tile.is_some() { schedule.per_thread(name).unwrap_or(1) } else { 1 };
        let tile = tile.unwrap_or(1);
        if !tile.is_multiple_of(each) {
            let reason =
                format!("a tile of {tile} has fewer iterations over `{name}` than one thread's {each}");
            let help = format!("write `per_thread {name}: {tile}`, or a larger tile");
            let refusal = Refusal::new(RefusalKind::Contradiction, reason, help);
            schedule
                .refuse(|known| matches!(known, Directive::PerThread { axis, .. } if axis == name), &refusal);
            return None;
        }
        threads.push(tile / each);
    }
    Some(threads)
}

/// Whether a block can have so many threads, and `block` says nothing else.
fn fits(
    schedule: &mut Schedule,
    names: &[String],
    word: &str,
    threads: u64,
    target: &TargetFacts,
) -> Option<()> {
    let of_loop = |known: &Directive| {
        known.word() == word && known.subject().is_some_and(|name| names.iter().any(|known| known == name))
    };
    if threads > u64::from(target.max_threads) {
        let reason = format!("{threads} threads are more than the {} of a block", target.max_threads);
        let help = if word == "tile" {
            "give each thread several iterations with `per_thread`, or make the tile smaller"
        } else {
            "a block has at most 32 warps, over all axes"
        };
        schedule.refuse(of_loop, &Refusal::new(RefusalKind::TooManyThreads, reason, help));
        return None;
    }
    match schedule.block() {
        Some(block) if u64::from(block) != threads => {
            let reason = format!("`{word}` makes blocks of {threads} threads here, not of {block}");
            let help = format!("write `block {threads}`, or leave one of the two out");
            schedule.refuse(of_loop, &Refusal::new(RefusalKind::Contradiction, reason, help));
            None
        }
        _ => Some(()),
    }
}

/// `warps` beside `tile` has to say what follows from it.
fn agree_with_warps(schedule: &mut Schedule, names: &[String], warps: &[u32]) {
    for (name, warps) in names.iter().zip(warps) {
        match schedule.warps(name) {
            Some(said) if said == *warps => {
                schedule.done(|known| matches!(known, Directive::Warps { axis, .. } if axis == name));
            }
            Some(_) => {
                let reason = format!("the tile has {warps} warps along `{name}`");
                let help = format!("write `warps {name}: {warps}`, or leave it out");
                let refusal = Refusal::new(RefusalKind::Contradiction, reason, help);
                schedule
                    .refuse(|known| matches!(known, Directive::Warps { axis, .. } if axis == name), &refusal);
            }
            None => {}
        }
    }
}

/// Lanes and warps of so many threads along each axis, the last axis' lanes first.
pub fn shared(threads: &[u32], warp_size: u32) -> (Vec<u32>, Vec<u32>) {
    let mut left = warp_size;
    let mut lanes = vec![1; threads.len()];
    for (lanes, threads) in lanes.iter_mut().zip(threads).rev() {
        *lanes = left.min(*threads);
        left /= *lanes;
    }
    let warps = threads.iter().zip(&lanes).map(|(threads, lanes)| threads / lanes).collect();
    (lanes, warps)
}

#[cfg(test)]
mod tests {
    use super::shared;

    #[test]
    fn lanes_go_to_the_last_axes() {
        assert_eq!(shared(&[8, 32], 32), (vec![1, 32], vec![8, 1]));
        assert_eq!(shared(&[16, 4], 32), (vec![8, 4], vec![2, 1]));
        assert_eq!(shared(&[2, 2, 64], 32), (vec![1, 1, 32], vec![2, 2, 2]));
        assert_eq!(shared(&[2, 2], 32), (vec![2, 2], vec![1, 1]));
    }
}
