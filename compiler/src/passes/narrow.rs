//! `narrow`: divides indices in 32 bits where a launch's sizes allow it.
//!
//! ```text
//! v8: i64 = rem v5, v1             before
//!
//! relies_on sym0 <= 2147483647     after
//! v9: u32 = cast v5
//! v10: u32 = cast v1
//! v11: u32 = rem v9, v10
//! v8: i64 = cast v11
//! ```
//!
//! No GPU divides 64-bit integers: a quotient takes some hundred instructions, of 32-bit integers about twenty. All else
//! that is done with an index costs next to nothing more in 64 bits, and leaves the kernel able to run past 2^31 elements,
//! which it does where it is compiled for such sizes.
//!
//! # Preconditions
//!
//! With every size that the operands depend on below 2^31, or below 2^29 or 2^15 where that is not enough for all of them, both
//! lie within u32 or i32 (`analysis/ranges.rs`). The divisor
//! is no literal (those become a multiplication), or the quotient stands in a serial loop. The launch's threads are not
//! explicit yet, and share no memory.

use super::pass::{Changed, Pass, PassContext};
use super::special::specialize;
use crate::analysis::{Conditions, Interval, Ranges};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Definition, Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::ir::{FoundOwners, Parents};
use crate::manifest::{BinaryOp, Expr};

pub struct Narrow;

/// Sizes up to the first of these are narrow: the largest i32. Where a sum of several indices and sizes does not fit then, up
/// to the next one; where a product of two does not, up to the last.
const MOST: [i64; 3] = [i32::MAX as i64, (i32::MAX >> 2) as i64, i16::MAX as i64];
/// Longer chains of definitions are not followed.
const MAX_DEPTH: u32 = 48;

impl Pass for Narrow {
    fn name(&self) -> &str {
        "narrow"
    }

    fn reason(&self) -> &str {
        "divides indices in 32 bits where sizes are below 2^31"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Mapped])
    }

    fn runs_after(&self) -> &[&str] {
        &["map"]
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            // What other passes wrote with explicit threads divides once a block. Where threads share memory, the verifier
            // must be able to follow the subscripts.
            if kernel.launches[launch].grid.is_some() || shares_memory(kernel, launch) {
                continue;
            }
            let candidates = candidates(kernel, kernel.launches[launch].body);
            if candidates.is_empty() {
                continue;
            }
            let Some((condition, narrow)) = plan(kernel, &candidates) else { continue };
            let Some(condition) = condition else {
                rewrite(kernel, launch, &narrow);
                changed = true;
                continue;
            };
            let conditions = Conditions::new().needs(condition);
            // A copy's instructions come in the same order.
            let special = specialize(kernel, launch, &conditions, "narrow", |kernel, launch| {
                rewrite(kernel, launch, &narrow);
                true
            });
            changed |= special.is_some();
        }
        changed.into()
    }
}

/// Whether a launch has buffers that the threads of a block share.
fn shares_memory(kernel: &Kernel, launch: Launch) -> bool {
    let mut shares = false;
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = kernel.insts[inst].payload {
            shares |= matches!(kernel.buffers[buffer].kind, BufferKind::Shared);
        }
    });
    shares
}

/// A quotient or remainder, by its place in the order of `walk`.
struct Candidate {
    place: usize,
    inst: Inst,
}

/// The 64-bit divisions of a launch that are dear.
fn candidates(kernel: &Kernel, body: Block) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut parents: Option<Parents> = None;
    let mut place = 0;
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let divides = matches!(data.opcode, Opcode::Div | Opcode::Rem);
        if divides
            && kernel.value_type(data.results[0]) == Scalar::I64
            && kernel.symbolic(data.results[0]).is_none()
        {
            let mut in_loop = || {
                let parents = parents.get_or_insert_with(|| kernel.parents_in(body));
                let serial = |inst: Inst| {
                    matches!(kernel.insts[inst].opcode, Opcode::Reduce | Opcode::For | Opcode::While)
                };
                parents.enclosing(inst).any(serial)
            };
            if kernel.int_of(data.arguments[1]).is_none() || in_loop() {
                found.push(Candidate { place, inst });
            }
        }
        place += 1;
    });
    found
}

/// The condition under which divisions are narrow (none where they are anyway), and those: place and type.
type Plan = (Option<Expr>, Vec<(usize, Scalar)>);

fn plan(kernel: &Kernel, candidates: &[Candidate]) -> Option<Plan> {
    let mut finder =
        Finder { kernel, owners: FoundOwners::default(), ranges: Ranges::new(kernel), sizes: Vec::new() };
    for candidate in candidates {
        for value in &kernel.insts[candidate.inst].arguments {
            finder.look(*value, MAX_DEPTH);
        }
    }
    let mut sizes = finder.sizes;
    let narrow_with = |sizes: &[Size], most: i64| -> Vec<(usize, Scalar)> {
        let mut ranges = Ranges::new(kernel);
        for size in sizes {
            let high = size.known.high.min(most.into());
            let supposed = Interval { low: size.known.low.max((-most).into()).min(high), high };
            size.values.iter().for_each(|value| ranges.suppose(*value, supposed));
        }
        let narrow = candidates.iter().filter_map(|candidate| {
            let operands = &kernel.insts[candidate.inst].arguments;
            Some((candidate.place, narrow_type(kernel, &mut ranges, operands)?))
        });
        narrow.collect()
    };
    let mut of_limits = MOST.map(|most| (narrow_with(&sizes, most), most)).into_iter();
    let (mut narrow, mut most) = of_limits.next()?;
    for (more, less) in of_limits {
        if more.len() > narrow.len() {
            (narrow, most) = (more, less);
        }
    }
    if narrow.is_empty() {
        return None;
    }
    // Without the sizes that do not matter.
    for expr in sizes.iter().map(|size| size.expr.clone()).collect::<Vec<_>>() {
        let fewer: Vec<Size> = sizes.iter().filter(|size| size.expr != expr).cloned().collect();
        if narrow_with(&fewer, most) == narrow {
            sizes = fewer;
        }
    }
    let bounds = sizes.iter().flat_map(|size| {
        let ends = Expr::binary(BinaryOp::LessEqual, size.expr.clone(), Expr::Int(most));
        let starts = Expr::binary(BinaryOp::GreaterEqual, size.expr.clone(), Expr::Int(-most));
        let below = size.known.low < (-most).into() && !kernel.never_negative(&size.expr);
        [Some(ends), below.then_some(starts)]
    });
    let condition = bounds.flatten().reduce(|all, bound| Expr::binary(BinaryOp::And, all, bound));
    Some((condition, narrow))
}

/// What the host can compute, the values of the kernel that are this, and what is known of them.
#[derive(Clone)]
struct Size {
    expr: Expr,
    values: Vec<Value>,
    known: Interval,
}

/// The 32-bit type that holds both operands and gives the same quotient.
fn narrow_type(kernel: &Kernel, ranges: &mut Ranges, operands: &[Value]) -> Option<Scalar> {
    let holds = |scalar: Scalar, ranges: &mut Ranges| {
        let (low, high) = crate::ir::int_range(scalar).unwrap_or_default();
        operands.iter().all(|value| {
            let interval = ranges.of(kernel, *value);
            low <= interval.low && interval.high <= high
        })
    };
    if holds(Scalar::U32, ranges) {
        return Some(Scalar::U32);
    }
    // The least i32 by -1 would wrap in 32 bits and not in 64: a literal divisor other than -1 keeps away from it.
    let safe = ranges.of(kernel, operands[0]).low > i128::from(i32::MIN)
        || kernel.int_of(operands[1]).is_some_and(|divisor| divisor != -1);
    (safe && holds(Scalar::I32, ranges)).then_some(Scalar::I32)
}

/// Looks for the values that the host can compute among what others are computed from.
struct Finder<'k> {
    kernel: &'k Kernel,
    owners: FoundOwners,
    ranges: Ranges,
    sizes: Vec<Size>,
}

impl Finder<'_> {
    /// Among what a value is computed from, literals aside; of a loop's index among its bounds.
    fn look(&mut self, value: Value, depth: u32) {
        let kernel = self.kernel;
        if depth == 0 || kernel.constant_of(value).is_some() {
            return;
        }
        if let Some(expr) = kernel.symbolic(value) {
            match self.sizes.iter_mut().find(|size| size.expr == expr) {
                Some(size) => size.values.push(value),
                None => {
                    let known = self.ranges.of(kernel, value);
                    self.sizes.push(Size { expr, values: vec![value], known });
                }
            }
            return;
        }
        match kernel.values[value].definition {
            Definition::Result(inst, _) => {
                for argument in &kernel.insts[inst].arguments {
                    if kernel.value_type(*argument) == Scalar::I64 {
                        self.look(*argument, depth - 1);
                    }
                }
            }
            Definition::Param(block, position) => {
                let Some(owner) = self.owners.of(kernel, block) else { return };
                if let Some((low, high)) = kernel.loop_bounds(owner).get(usize::from(position)) {
                    self.look(*low, depth - 1);
                    self.look(*high, depth - 1);
                }
            }
        }
    }
}

/// Makes the divisions at these places narrow.
fn rewrite(kernel: &mut Kernel, launch: Launch, narrow: &[(usize, Scalar)]) {
    let mut places = narrow.iter().copied().peekable();
    let (mut place, mut found) = (0, Vec::new());
    kernel.walk(kernel.launches[launch].body, &mut |block, inst| {
        if let Some((_, scalar)) = places.next_if(|(wanted, _)| *wanted == place) {
            found.push((block, inst, scalar));
        }
        place += 1;
    });
    for (block, inst, scalar) in found {
        let (opcode, operands) = (kernel.insts[inst].opcode, kernel.insts[inst].arguments.clone());
        let span = kernel.insts[inst].span;
        let at = kernel.blocks[block].insts.iter().position(|known| *known == inst);
        let after = kernel.blocks[block].insts.split_off(at.expect("the walk found it in this block"));
        let mut emit = Emit::new(kernel, block, span);
        let operands: Vec<Value> =
            operands.iter().map(|value| emit.value(Opcode::Cast, Payload::Cast(scalar), &[*value])).collect();
        let result = emit.value(opcode, Payload::None, &operands);
        kernel.rewrite_inst(inst, Opcode::Cast, Payload::Cast(Scalar::I64), &[result]);
        kernel.blocks[block].insts.extend(after);
    }
}
