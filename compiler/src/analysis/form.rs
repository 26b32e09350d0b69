//! How a launch spreads its work over threads, in words: read off the code itself, so that it is the same whatever pass
//! made it.
//!
//! A form is a few phrases, the first of which says who computes a result:
//!
//! - `one thread`: a single thread does all of it;
//! - `one element a thread`, `4 elements a thread`: each thread computes results of its own;
//! - `team of 32 threads`: neighbouring threads, or a whole block, compute a result together;
//! - `staged product`, `product in registers`: tiles of a matrix product, with operands in shared memory or without;
//! - `product by matrix instructions`: the same, by instructions of a warp;
//! - `staged, 4 elements a thread`: elements come to their threads by way of shared memory.
//!
//! Then what it costs: `in a loop`, `copy of the result in each block`, `atomics`, `checked`, and `16 bytes` for the widest access
//! of a thread to global memory.

use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use std::collections::BTreeMap;

/// What stands in the code of one thread.
#[derive(Default)]
struct Found {
    outer: bool,
    matrices: bool,
    shared: bool,
    shared_atomics: bool,
    atomics: bool,
    checks: bool,
    loops: bool,
    barriers: bool,
    /// Bits of the lane's number over which lanes exchange values.
    shuffled: u8,
    /// Bytes of the widest access to global memory.
    widest: u64,
}

/// The form of a launch after the last pass.
pub fn form(kernel: &Kernel, launch: Launch) -> String {
    let data = &kernel.launches[launch];
    let mut found = Found::default();
    kernel.walk(data.body, &mut |_, inst| look(kernel, inst, &mut found));
    let threads = data.threads.unwrap_or(1);
    let elements = match stored(kernel, data.body).values().copied().max().unwrap_or(0) {
        0 | 1 => "one element a thread".to_string(),
        count => format!("{count} elements a thread"),
    };
    let team = 1u32 << found.shuffled.count_ones();
    let mut phrases = vec![match &found {
        _ if threads == 1 && data.grid.is_none() => "one thread".to_string(),
        Found { matrices: true, .. } => "product by matrix instructions".to_string(),
        Found { outer: true, shared: true, .. } => "staged product".to_string(),
        Found { outer: true, .. } => "product in registers".to_string(),
        Found { shuffled: 1.., shared: true, barriers: true, .. } => format!("team of {threads} threads"),
        Found { shuffled: 1.., .. } => format!("team of {team} threads"),
        Found { shared_atomics: true, .. } => "copy of the result in each block".to_string(),
        Found { shared: true, .. } => format!("staged, {elements}"),
        _ => elements,
    }];
    let notes = [(found.loops, "in a loop"), (found.atomics, "atomics"), (found.checks, "checked")];
    phrases.extend(notes.iter().filter(|(is, _)| *is).map(|(_, note)| (*note).to_string()));
    if found.widest > 0 {
        phrases.push(format!("{} bytes", found.widest));
    }
    phrases.join(", ")
}

/// The forms of launches one after the other; equal neighbours are told once.
pub fn forms(kernel: &Kernel, launches: impl IntoIterator<Item = Launch>) -> String {
    let mut told: Vec<(String, usize)> = Vec::new();
    for launch in launches {
        let form = form(kernel, launch);
        match told.last_mut() {
            Some((last, count)) if *last == form => *count += 1,
            _ => told.push((form, 1)),
        }
    }
    let spell = |(form, count): &(String, usize)| match count {
        1 => form.clone(),
        count => format!("{count} times {form}"),
    };
    told.iter().map(spell).collect::<Vec<_>>().join("; then ")
}

fn look(kernel: &Kernel, inst: Inst, found: &mut Found) {
    let data = &kernel.insts[inst];
    match data.opcode {
        Opcode::Outer | Opcode::OuterFma => found.outer = true,
        Opcode::Mma => found.matrices = true,
        Opcode::Barrier => found.barriers = true,
        Opcode::Check => found.checks = true,
        Opcode::While | Opcode::Reduce => found.loops = true,
        Opcode::For => {
            found.loops |= !steps_over_grid(kernel, data.arguments[2], 8) && !is_short(kernel, inst);
        }
        _ => {}
    }
    match data.payload {
        Payload::Lanes(bits) if data.opcode == Opcode::ShuffleXor => found.shuffled |= bits,
        Payload::Access { buffer, leaf } => match kernel.buffers[buffer].kind {
            BufferKind::Shared => found.shared = true,
            BufferKind::Private | BufferKind::Constant(_) => {}
            _ if data.opcode == Opcode::Address => {}
            _ => {
                let scalar = kernel.buffers[buffer].element.leaves[leaf as usize].scalar.size();
                let count = if data.opcode == Opcode::StoreEach { 1 } else { kernel.width(data) as u64 };
                found.widest = found.widest.max(scalar * count);
            }
        },
        Payload::Atomic { buffer, .. } => match kernel.buffers[buffer].kind {
            BufferKind::Shared => (found.shared, found.shared_atomics) = (true, true),
            BufferKind::Private => {}
            _ => found.atomics = true,
        },
        _ => {}
    }
}

/// Whether a loop's step is made from the number of blocks: it takes what is left over when all blocks have had their turn, which
/// is nothing but for the largest sizes.
pub(super) fn steps_over_grid(kernel: &Kernel, step: Value, depth: usize) -> bool {
    let Some(data) = kernel.definition_data(step) else { return false };
    data.opcode == Opcode::GridSize
        || depth > 0 && data.arguments.iter().any(|value| steps_over_grid(kernel, *value, depth - 1))
}

/// Whether a loop goes over a few elements of the thread's own.
pub(super) fn is_short(kernel: &Kernel, inst: Inst) -> bool {
    let rounds = |(low, high): (Value, Value)| Some(kernel.int_of(high)? - kernel.int_of(low)?);
    kernel.loop_bounds(inst).into_iter().all(|bounds| rounds(bounds).is_some_and(|rounds| rounds <= 16))
}

/// Elements of each array in global memory that a thread stores on the way with the most of them, a loop's body taken once.
fn stored(kernel: &Kernel, block: Block) -> BTreeMap<(Buffer, u32), usize> {
    let mut sums = BTreeMap::new();
    for inst in &kernel.blocks[block].insts {
        let data = &kernel.insts[*inst];
        let mut most: BTreeMap<(Buffer, u32), usize> = BTreeMap::new();
        for region in data.regions.iter() {
            for (place, count) in stored(kernel, *region) {
                let known = most.entry(place).or_default();
                *known = count.max(*known);
            }
        }
        if let Payload::Access { buffer, leaf } = data.payload
            && !matches!(kernel.buffers[buffer].kind, BufferKind::Shared | BufferKind::Private)
        {
            let count = match data.opcode {
                Opcode::Store | Opcode::StoreIf => 1,
                Opcode::StoreVector => kernel.width(data),
                Opcode::StoreEach => kernel.each_stored(data).map_or(1, |each| each.places.len()),
                _ => 0,
            };
            most.insert((buffer, leaf), count);
        }
        for (place, count) in most {
            *sums.entry(place).or_default() += count;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::text::parse_kernel;

    /// The form of a launch of 256 threads in which `v0` is the thread's number and `v1` an element of `x`.
    fn of(lines: &str) -> String {
        let text = format!(
            "kernel \"k\" {{
    symbol sym0 \"n\" i64 dim 0 0
    buffer buf0 \"x\" f32 [sym0] argument 0 in, aos
    buffer buf1 \"y\" f32 [sym0] argument 1 out, aos
    buffer buf2 \"tile\" f32 [256] shared, aos
    argument buf0
    argument buf1
    launch launch0 \"k\" staged threads 256 grid [4, 1, 1] {{
        v0: i64 = thread_index
        v1: f32 = load buf0[v0]
        {lines}
    }}
    plan {{ launch0 }}
}}"
        );
        let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        forms(&kernel, kernel.launches.keys())
    }

    #[test]
    fn the_first_phrase_says_who_computes_a_result() {
        assert_eq!(of("store buf1[v0], v1"), "one element a thread, 4 bytes");
        assert_eq!(of("store_vector buf1[v0], v1, v1, v1, v1"), "4 elements a thread, 16 bytes");
        assert_eq!(
            of("store buf2[v0], v1\n barrier\n v2: f32 = load buf2[v0]\n store buf1[v0], v2"),
            "staged, one element a thread, 4 bytes"
        );
        let shuffles = "v2: f32 = shuffle_xor 1: v1\n v3: f32 = shuffle_xor 2: v2\n store buf1[v0], v3";
        assert_eq!(of(shuffles), "team of 4 threads, 4 bytes");
        let block = format!("store buf2[v0], v1\n barrier\n {shuffles}");
        assert_eq!(of(&block), "team of 256 threads, 4 bytes");
    }

    #[test]
    fn what_combines_in_memory_is_told() {
        assert_eq!(of("atomic add buf1[v0], v1"), "one element a thread, atomics, 4 bytes");
        assert_eq!(of("atomic add buf2[v0], v1"), "copy of the result in each block, 4 bytes");
    }

    #[test]
    fn of_two_ways_the_one_with_more_stores_counts() {
        let lines = "v2: bool = lt v1, v1
        if v2 {
            store buf1[v0], v1
        } else {
            store_vector buf1[v0], v1, v1
        }";
        assert_eq!(of(lines), "2 elements a thread, 8 bytes");
    }
}
