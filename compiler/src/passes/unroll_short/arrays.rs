//! Loops that keep local arrays in memory: registers have no numbers that change from round to round.

use super::reductions::{literal_ranges, ranges};
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Definition, Kernel, Level, Payload};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::ir::{Parents, evaluate};
use crate::passes::iterations::places;
use crate::passes::promote::MOST_SCALARS;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Instructions that are left of all rounds of the loops that are straight code for the sake of arrays.
const MOST_INSTS: i64 = 2048;
/// All that these rounds are written down as, before numbers are known.
const MOST_WRITTEN: i64 = 16_384;

/// The loops in a body of which local arrays would be in registers, were they straight code.
pub fn loops(kernel: &Kernel, body: Block) -> FxHashSet<Inst> {
    if kernel.buffers.values().all(|data| data.kind != BufferKind::Private) {
        return FxHashSet::default();
    }
    let parents = kernel.parents_in(body);
    let mut arrays: BTreeMap<Buffer, Option<FxHashSet<Inst>>> = BTreeMap::new();
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else { return };
        if kernel.buffers[buffer].kind != BufferKind::Private {
            return;
        }
        let all = arrays.entry(buffer).or_insert_with(|| is_small(kernel, buffer).then(FxHashSet::default));
        let plain = matches!(data.opcode, Opcode::Load | Opcode::Store);
        let known = |all: &mut FxHashSet<Inst>| {
            let mut search = Search { kernel, parents: &parents, loops: all, seen: FxHashSet::default() };
            plain && kernel.subscripts(data).iter().all(|value| search.is_known(*value))
        };
        if !all.as_mut().is_some_and(known) {
            *all = None;
        }
    });
    let mut found = FxHashSet::default();
    for wanted in arrays.into_values().flatten().filter(|wanted| !wanted.is_empty()) {
        let all: FxHashSet<Inst> = found.union(&wanted).copied().collect();
        if Code::default().count(kernel, body, &all, &mut FxHashMap::default()) {
            found = all;
        }
    }
    // Short reductions become straight code anyway.
    found.retain(|inst| kernel.insts[*inst].opcode != Opcode::Reduce || ranges(kernel, *inst).is_none());
    found
}

/// The indices of the rounds of a loop, one an axis, where its bounds are numbers by now.
pub fn indices(kernel: &Kernel, inst: Inst) -> Option<Vec<Vec<i64>>> {
    rounds(kernel, inst, &FxHashMap::default())
}

/// Whether registers could hold it.
fn is_small(kernel: &Kernel, buffer: Buffer) -> bool {
    let data = &kernel.buffers[buffer];
    let extent =
        |extent: &crate::manifest::Expr| extent.evaluate_int(&[]).and_then(|it| i64::try_from(it).ok());
    let scalars = data.extents.iter().try_fold(1i64, |product, it| product.checked_mul(extent(it)?));
    let leaves = &data.element.leaves;
    scalars.is_some_and(|scalars| scalars.saturating_mul(leaves.len() as i64) <= MOST_SCALARS)
}

/// What has to be straight code for values to be numbers.
struct Search<'a> {
    kernel: &'a Kernel,
    parents: &'a Parents,
    loops: &'a mut FxHashSet<Inst>,
    /// Values that are known then.
    seen: FxHashSet<Value>,
}

impl Search<'_> {
    fn is_known(&mut self, value: Value) -> bool {
        let kernel = self.kernel;
        if self.seen.contains(&value) {
            return true;
        }
        let known = match kernel.values[value].definition {
            Definition::Result(inst, at) if kernel.insts[inst].opcode == Opcode::If => {
                let data = &kernel.insts[inst];
                let yields = data.regions.iter().map(|region| kernel.yields(*region)[usize::from(at)]);
                self.is_known(data.arguments[0]) && yields.into_iter().all(|value| self.is_known(value))
            }
            Definition::Result(inst, _) => {
                let data = &kernel.insts[inst];
                let is_leaf = data.arguments.is_empty() && data.opcode != Opcode::Const;
                let is_pure = data.opcode.info().effect == Effect::Pure && data.regions.is_empty();
                is_pure && !is_leaf && data.arguments.iter().all(|argument| self.is_known(*argument))
            }
            Definition::Param(block, position) => match self.parents.owner_of[block].expand() {
                Some(inst) => self.is_counted(inst, usize::from(position)),
                None => false,
            },
        };
        if known {
            self.seen.insert(value);
        }
        known
    }

    /// Whether a parameter is the index of a loop that can be straight code.
    fn is_counted(&mut self, inst: Inst, position: usize) -> bool {
        let axes = self.kernel.loop_bounds(inst).len();
        if position >= axes || !may_be_straight(self.kernel, inst) {
            return false;
        }
        let data = &self.kernel.insts[inst];
        let counts = 2 * axes + usize::from(data.opcode == Opcode::For);
        let is_known = data.arguments[..counts].iter().all(|argument| self.is_known(*argument));
        self.loops.insert(inst);
        is_known
    }
}

/// What is known of values.
type Known = FxHashMap<Value, Constant>;

fn literal(kernel: &Kernel, value: Value, known: &Known) -> Option<Constant> {
    if let Some(constant) = known.get(&value) {
        return Some(*constant);
    }
    let Definition::Result(inst, at) = kernel.values[value].definition else { return None };
    let data = &kernel.insts[inst];
    if data.opcode == Opcode::If {
        let Constant::Bool(holds) = literal(kernel, data.arguments[0], known)? else { return None };
        return literal(kernel, kernel.yields(data.regions[usize::from(!holds)])[usize::from(at)], known);
    }
    let operands: Option<Vec<Constant>> =
        data.arguments.iter().map(|argument| literal(kernel, *argument, known)).collect();
    evaluate(data.opcode, &data.payload, &operands?)
}

/// The indices of the rounds of a loop, as far as so much is known.
fn rounds(kernel: &Kernel, inst: Inst, known: &Known) -> Option<Vec<Vec<i64>>> {
    let number = |value: Value| match literal(kernel, value, known)? {
        Constant::Int(_, value) => i64::try_from(value).ok(),
        _ => None,
    };
    let data = &kernel.insts[inst];
    let step = if data.opcode == Opcode::For { number(*data.arguments.get(2)?)? } else { 1 };
    let step = usize::try_from(step).ok().filter(|step| *step > 0)?;
    let (mut axes, mut count) = (Vec::new(), 1i64);
    for (low, high) in kernel.loop_bounds(inst) {
        let (low, high) = (number(low)?, number(high)?);
        count = count.checked_mul(high.checked_sub(low)?.max(0)).filter(|count| *count <= MOST_INSTS)?;
        axes.push((low..high).step_by(step));
    }
    Some(places(axes.into_iter()))
}

/// Notes what an instruction gives where it is a number in this round; whether it is.
fn is_number(kernel: &Kernel, inst: Inst, known: &mut Known) -> bool {
    let data = &kernel.insts[inst];
    let [result] = data.results[..] else { return false };
    // What it was in another round.
    known.remove(&result);
    let number =
        if data.opcode.info().effect == Effect::Pure { literal(kernel, result, known) } else { None };
    known.extend(number.map(|number| (result, number)));
    number.is_some()
}

/// Instructions of straight code.
#[derive(Default)]
struct Code {
    /// What is left once numbers are known and local arrays are registers.
    left: i64,
    /// All that is written down before.
    written: i64,
}

impl Code {
    /// Counts what loops in a block become as straight code; whether it is not too much. What is a number is not left, nor is a check
    /// that holds; of a branch by a number one side is.
    fn count(&mut self, kernel: &Kernel, block: Block, loops: &FxHashSet<Inst>, known: &mut Known) -> bool {
        kernel.blocks[block].insts.iter().all(|inst| self.add(kernel, *inst, loops, known))
    }

    fn add(&mut self, kernel: &Kernel, inst: Inst, loops: &FxHashSet<Inst>, known: &mut Known) -> bool {
        let data = &kernel.insts[inst];
        self.written += 1;
        if is_number(kernel, inst, known) {
            return self.fits();
        }
        let decided = match data.opcode {
            Opcode::If | Opcode::Check => literal(kernel, data.arguments[0], known),
            _ => None,
        };
        if let Some(Constant::Bool(holds)) = decided {
            let side = data.regions.get(usize::from(!holds));
            return side.is_none_or(|side| self.count(kernel, *side, loops, known)) && self.fits();
        }
        let is_register = matches!(data.payload, Payload::Access { buffer, .. }
            if kernel.buffers[buffer].kind == BufferKind::Private);
        self.left += i64::from(!is_register && data.opcode != Opcode::Yield);
        let rounds = if loops.contains(&inst) { rounds(kernel, inst, known) } else { Some(vec![Vec::new()]) };
        let Some(rounds) = rounds else { return false };
        self.fits()
            && rounds.into_iter().all(|round| {
                data.regions.iter().all(|region| {
                    let indices = kernel.blocks[*region].params.iter().zip(&round);
                    known.extend(
                        indices.map(|(param, index)| (*param, Constant::Int(Scalar::I64, (*index).into()))),
                    );
                    self.count(kernel, *region, loops, known)
                })
            })
    }

    fn fits(&self) -> bool {
        self.left <= MOST_INSTS && self.written <= MOST_WRITTEN
    }
}

/// Whether the schedule leaves it to the compiler or asks for it, and threads do not meet inside.
fn may_be_straight(kernel: &Kernel, inst: Inst) -> bool {
    if kernel.insts[inst].opcode == Opcode::Reduce {
        return literal_ranges(kernel, inst).is_some();
    }
    let Payload::Loop { axes } = &kernel.insts[inst].payload else { return false };
    let free = axes.iter().all(|axis| {
        let axis = &kernel.axes[*axis];
        if axis.factors.iter().any(|factor| factor.level != Level::Serial) {
            return false;
        }
        let is_asked_for = kernel.schedule.unroll(&axis.name) == Some(None);
        !axis.nounroll && (is_asked_for || !kernel.schedule.speaks_of(&axis.name))
    });
    let mut meets = false;
    kernel.walk(kernel.insts[inst].regions[0], &mut |_, inst| {
        meets |= kernel.insts[inst].opcode.info().effect == Effect::Collective;
    });
    free && !meets
}
