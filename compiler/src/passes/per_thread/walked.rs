//! Elements whose thread walks what neighbours walk as well, a filter, a window's weights, a signal at other shifts; or of which an
//! access brings several.

use super::plain::threads_of_row;
use crate::analysis::{Affine, Answer, Conditions, Stride, accesses, ask};
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::passes::contiguous::WORD_BYTES;
use crate::passes::distinct::distinct;
use crate::passes::pass::TargetFacts;
use crate::passes::unroll_and_jam::is_one_threads;
use crate::passes::weights::{SLOW, weighted, work};

/// Elements of a thread that has several: what all of them read is loaded once.
pub const ELEMENTS: u64 = 4;
/// 32-bit registers of their sums at most.
const MOST_SUMS: u64 = 64;
/// Different instructions of a body, at most: those that vary are there for each element.
const MOST_CODE: usize = 200;

/// Whether a thread shall have several elements along the last axis of a loop, of which each is a long reduction, or computes what
/// its neighbours compute as well. A load costs as
/// much as four additions and products: where one of two is the same for all elements, sums take 1.6 to 1.8 times as long one by
/// one (H200, f32: 14.7 M windows of 11 x 11, 872 us and 487; 10 M of 301 steps, 802 and 502; twelve filters of 11 x 11, 3150 and
/// 2280).
pub fn is_worth(kernel: &mut Kernel, launch: Launch, forall: Inst, target: &TargetFacts) -> bool {
    let shares_work = |kernel: &mut Kernel| shares_work(kernel, forall) && has_rows(kernel, launch, forall);
    (shares_loads(kernel, forall) || shares_work(kernel)) && fills(kernel, launch, forall, target)
}

/// Whether a thread shall have neighbours along the last axis of a loop, of which each is a reduction or several, because what
/// these walk is narrow there: a lane's own access would bring a byte or two.
pub fn brings_words(kernel: &mut Kernel, launch: Launch, forall: Inst, target: &TargetFacts) -> bool {
    walks_narrow(kernel, forall) && fills(kernel, launch, forall, target)
}

/// Whether there are threads enough where each has several elements.
fn fills(kernel: &mut Kernel, launch: Launch, forall: Inst, target: &TargetFacts) -> bool {
    let Some(all) = kernel.symbolic_iterations(forall) else { return false };
    let threads = target.threads_at_once();
    let conditions = Conditions::new().prefers_at_least(&all, threads * ELEMENTS as i64);
    ask(kernel, launch, &conditions) == Answer::Yes
}

/// Whether rows are long enough for two elements of each thread that a block has along them.
fn has_rows(kernel: &mut Kernel, launch: Launch, forall: Inst) -> bool {
    let threads = threads_of_row(kernel, forall) as i64;
    let Some((low, high)) = kernel.loop_bounds(forall).last().copied() else { return false };
    let Some(extent) = kernel.symbolic_extent(low, high) else { return false };
    ask(kernel, launch, &Conditions::new().prefers_at_least(&extent, 2 * threads)) == Answer::Yes
}

/// Whether all loops in a loop's body are reductions in it, through the same range for neighbours along the last axis, and all that they
/// load along it are neighbours narrower than a word.
fn walks_narrow(kernel: &Kernel, forall: Inst) -> bool {
    let body = kernel.insts[forall].regions[0];
    let Some(index) = kernel.blocks[body].params.last().copied() else { return false };
    let mut affine = Affine::new(kernel);
    let (mut fits, mut words, mut narrow) = (true, 0, 0);
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if !data.opcode.is_loop() {
            return;
        }
        let is_own = data.opcode == Opcode::Reduce && is_one_threads(kernel, inst);
        fits &= is_own && !affine.any_depends(&data.arguments, index);
        words += words_of(kernel, inst);
        for access in accesses(kernel, data.regions[0]) {
            let width = kernel.buffers[access.buffer].element.leaves[access.leaf as usize].scalar.size();
            match affine.stride(access.inst, index) {
                Stride::Bytes(0) => {}
                Stride::Bytes(stride) if stride == width as i64 && width < WORD_BYTES => narrow += 1,
                _ => fits = false,
            }
        }
    });
    fits && narrow > 0 && words * ELEMENTS <= MOST_SUMS
}

/// Whether a third of what a loop's body computes is the same for neighbours along the last axis.
fn shares_work(kernel: &Kernel, forall: Inst) -> bool {
    let body = kernel.insts[forall].regions[0];
    let Some(index) = kernel.blocks[body].params.last().copied() else { return false };
    let work = Work::of(kernel, body, index);
    work.is_some_and(|work| work.loops > 0 && work.alike >= work.all / 3)
}

/// Instructions of functions and quotients that elements along an axis of a body share, if its loops keep their order; 0 where they
/// cannot walk together.
pub fn shared_in_order(kernel: &Kernel, body: Block, index: Value) -> u64 {
    let (mut has_loops, mut keeps) = (false, true);
    kernel.walk(body, &mut |_, inst| {
        let opcode = kernel.insts[inst].opcode;
        has_loops |= opcode.is_loop();
        keeps &= opcode == Opcode::For || !opcode.is_loop();
    });
    let work = if has_loops && keeps { Work::of(kernel, body, index) } else { None };
    work.map_or(0, |work| work.slow)
}

/// What a body computes, and what of that is the same for neighbours along an axis.
struct Work {
    loops: usize,
    all: u64,
    alike: u64,
    /// Of that, functions and quotients.
    slow: u64,
}

impl Work {
    /// That of a body whose loops are one thread's, through the same ranges for these neighbours, who can walk together.
    fn of(kernel: &Kernel, body: Block, index: Value) -> Option<Self> {
        let mut affine = Affine::new(kernel);
        let (mut found, mut words) = (Self { loops: 0, all: 0, alike: 0, slow: 0 }, 0);
        for (inst, times) in weighted(kernel, body) {
            let data = &kernel.insts[inst];
            if data.opcode.is_loop() {
                let is_own =
                    matches!(data.opcode, Opcode::For | Opcode::Reduce) && is_one_threads(kernel, inst);
                let bounds = 2 * data.payload.axes().len();
                if !is_own || affine.any_depends(&data.arguments[..bounds], index) {
                    return None;
                }
                found.loops += 1;
                words += words_of(kernel, inst);
                continue;
            }
            let once = work(kernel, inst);
            let work = once.saturating_mul(times);
            let alike = if affine.any_depends(&data.arguments, index) { 0 } else { work };
            let is_slow = once >= SLOW;
            found.all = found.all.saturating_add(work);
            found.alike = found.alike.saturating_add(alike);
            found.slow = found.slow.saturating_add(if is_slow { alike } else { 0 });
        }
        let fits = words * ELEMENTS <= MOST_SUMS && distinct(kernel, body) <= MOST_CODE;
        fits.then_some(found)
    }
}

/// Whether the only loop in a loop's body is a reduction in it, through the same range for neighbours along the last axis, of whose
/// loads a good part is the same for these.
fn shares_loads(kernel: &Kernel, forall: Inst) -> bool {
    let body = kernel.insts[forall].regions[0];
    let mut loops = Vec::new();
    kernel.walk(body, &mut |_, inst| {
        if matches!(kernel.insts[inst].opcode, Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While)
        {
            loops.push(inst);
        }
    });
    let &[reduce] = loops.as_slice() else { return false };
    let data = &kernel.insts[reduce];
    let Some(index) = kernel.blocks[body].params.last().copied() else { return false };
    if data.opcode != Opcode::Reduce || !is_one_threads(kernel, reduce) {
        return false;
    }
    let mut affine = Affine::new(kernel);
    if affine.any_depends(&data.arguments, index) {
        return false;
    }
    if words_of(kernel, reduce) * ELEMENTS > MOST_SUMS {
        return false;
    }
    let (mut alike, mut all) = (0, 0);
    kernel.walk(data.regions[0], &mut |_, inst| {
        let data = &kernel.insts[inst];
        if matches!(data.opcode, Opcode::Load | Opcode::LoadIf) {
            all += 1;
            alike += u32::from(!affine.any_depends(&data.arguments, index));
        }
    });
    2 * alike >= all && all > 0
}

/// 32-bit registers of a loop's results.
fn words_of(kernel: &Kernel, inst: Inst) -> u64 {
    kernel.insts[inst].results.iter().map(|result| kernel.value_type(*result).size().div_ceil(4)).sum()
}
