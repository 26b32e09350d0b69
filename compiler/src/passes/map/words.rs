//! Words of narrow results: a short axis along which they lie side by side is one thread's, where what they are made of lies
//! otherwise, or is the same for all of them.
//!
//! ```text
//! forall i in 0..n, c in 0..4 { y[i, c] = x[c, i] }    →    forall i in 0..n { y[i, 0] = x[0, i]; …; y[i, 3] = x[3, i] }
//! ```
//!
//! Elements of a byte or two that lanes store one by one leave most of a sector unused. As straight code they are one vector, and
//! the other axis has the lanes, by which loads are neighbours. Three of them (colours) are words with those of other pixels.

use crate::analysis::{Affine, Stride, accesses};
use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::contiguous::{VECTOR_BYTES, WORD_BYTES};
use crate::passes::iterations::iteration;
use crate::passes::split_axes::split_axes;

/// Instructions of all elements of a word at most.
const MOST_CODE: usize = 256;

/// Gives a thread all elements along such an axis of a launch's loop; the loop that is spread over the grid then.
pub fn of_one_thread(kernel: &mut Kernel, launch: Launch, forall: Inst) -> Inst {
    let Some((at, count)) = axis_of_words(kernel, forall) else { return forall };
    let axis = kernel.insts[forall].payload.axes()[at];
    let name = kernel.axes[axis].name.clone();
    let body = kernel.launches[launch].body;
    let Some(place) = kernel.blocks[body].insts.iter().position(|inst| *inst == forall) else {
        return forall;
    };
    let (around, block) = split_axes(kernel, forall, |other| other != at);
    kernel.blocks[body].insts[place] = around;
    let Some(end) = kernel.blocks[block].insts.pop() else { return forall };
    kernel.blocks[block].insts.clear();
    let mut emit = Emit::new(kernel, block, kernel.insts[forall].span);
    for element in 0..count {
        let index = emit.int(mutant!("map: all elements of a word are the first", element, 0));
        iteration(&mut emit, forall, &[index], &[]);
    }
    kernel.blocks[block].insts.push(end);
    let launch = kernel.launches[launch].name.clone();
    let text =
        format!("the {count} elements along `{name}` are one thread's: what is stored of them is a word");
    kernel.schedule.remark(&launch, text);
    around
}

/// The place of an axis along which all results are narrow neighbours, and loads are not; with how many elements it has.
fn axis_of_words(kernel: &Kernel, forall: Inst) -> Option<(usize, i64)> {
    let region = kernel.insts[forall].regions[0];
    let mut size = 0;
    let mut is_plain = true;
    kernel.walk(region, &mut |_, inst| {
        let opcode = kernel.insts[inst].opcode;
        size += 1;
        is_plain &= !opcode.is_loop() && !matches!(opcode, Opcode::Atomic | Opcode::Check | Opcode::Print);
    });
    let bounds = kernel.loop_bounds(forall);
    if !is_plain || bounds.len() < 2 {
        return None;
    }
    let found = accesses(kernel, region);
    let axes = kernel.insts[forall].payload.axes();
    let params = &kernel.blocks[region].params;
    let mut affine = Affine::new(kernel);
    (0..bounds.len()).find_map(|at| {
        let (low, high) = bounds[at];
        let count = i64::try_from(kernel.int_of(high)?).ok()?;
        let fits = kernel.int_of(low) == Some(0) && matches!(count, 2 | 3 | 4 | 6 | 8 | 16);
        if !fits
            || kernel.schedule.speaks_of(&kernel.axes[axes[at]].name)
            || size * count as usize > MOST_CODE
        {
            return None;
        }
        let (mut stores, mut loads_lie_apart) = (0, false);
        for access in &found {
            let buffer = &kernel.buffers[access.buffer];
            let width = buffer.element.leaves[access.leaf as usize].scalar.size();
            let stride = affine.stride(access.inst, params[at]);
            let is_beside = stride == Stride::Bytes(width as i64);
            if !access.writes {
                // Neighbours of rows that are no whole words are no vector either.
                let word = width as i64 * count;
                let is_off =
                    |index| matches!(affine.stride(access.inst, index), Stride::Bytes(bytes) if bytes % word != 0);
                let cut = is_beside && params.iter().filter(|index| **index != params[at]).copied().any(is_off);
                let moves = params.iter().any(|index| affine.stride(access.inst, *index) != Stride::Bytes(0));
                loads_lie_apart |= cut || !is_beside && moves;
                continue;
            }
            let is_word = width < WORD_BYTES && width * count as u64 <= VECTOR_BYTES;
            if !is_beside || !is_word || buffer.kind == BufferKind::Private {
                return None;
            }
            stores += 1;
        }
        (stores > 0 && loads_lie_apart).then_some((at, count))
    })
}
