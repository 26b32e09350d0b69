//! Which integers a value can be: intervals that hold whatever the input, wrapping included.

use super::grid::DIMENSION_LIMIT;
use super::known::Known;
use crate::algebra::Interval;
use crate::data::Scalar;
use crate::ir::Owners;
use crate::ir::entities::{Block, Inst, Launch, Symbol, Value};
use crate::ir::kernel::{Definition, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr, SymbolKind};
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

/// Intervals of the values of a kernel, computed when asked for. They stay right while a pass replaces
/// instructions by others of the same value.
#[derive(Default)]
pub struct Ranges {
    known: SecondaryMap<Value, Option<Interval>>,
    owners: Owners,
    /// The launch whose assumptions hold, if one is looked at alone.
    launch: Option<Launch>,
    /// Once a symbol has been asked for.
    sizes: Option<Known>,
}

/// Longer chains of definitions are not followed.
const MAX_DEPTH: u32 = 48;

impl Ranges {
    pub fn new(kernel: &Kernel) -> Self {
        Self { known: kernel.of_values(), owners: kernel.parents().owner_of, ..Self::default() }
    }

    /// Of the values of one launch, under what it assumes.
    pub fn in_launch(kernel: &Kernel, launch: Launch) -> Self {
        let owners = kernel.parents_in(kernel.launches[launch].body).owner_of;
        Self { known: kernel.of_values(), owners, launch: Some(launch), sizes: None }
    }

    /// Takes it that a value lies within an interval, before any other is asked for.
    pub fn suppose(&mut self, value: Value, interval: Interval) {
        self.known[value] = Some(interval);
    }

    /// The interval of an integer value; that of its type where nothing better is known.
    pub fn of(&mut self, kernel: &Kernel, value: Value) -> Interval {
        self.within(kernel, value, MAX_DEPTH)
    }

    fn within(&mut self, kernel: &Kernel, value: Value, depth: u32) -> Interval {
        if let Some(known) = self.known[value] {
            return known;
        }
        let ty = kernel.value_type(value);
        if !ty.is_integer() || depth == 0 {
            return Interval::of(ty);
        }
        // Fits its type.
        if let Some(literal) = kernel.int_of(value) {
            return Interval::new(literal, literal);
        }
        let interval = match kernel.values[value].definition {
            Definition::Result(inst, 0) => self.inst(kernel, inst, ty, depth - 1),
            Definition::Result(..) => None,
            Definition::Param(block, position) => self.index(kernel, block, position.into(), depth - 1),
        };
        let interval = interval.map_or_else(|| Interval::of(ty), |interval| interval.within(ty));
        self.known[value] = Some(interval);
        interval
    }

    /// A loop's index is from its low bound to below its high one.
    fn index(&mut self, kernel: &Kernel, block: Block, position: usize, depth: u32) -> Option<Interval> {
        let inst = self.owners[block].expand()?;
        let (low, high) = *kernel.loop_bounds(inst).get(position)?;
        let (low, high) = (self.within(kernel, low, depth), self.within(kernel, high, depth));
        Some(Interval::new(low.low, (high.high - 1).max(low.low)))
    }

    /// Of a symbol, if it is an integer.
    pub fn of_symbol(&mut self, kernel: &Kernel, symbol: Symbol) -> Option<Interval> {
        let data = &kernel.symbols[symbol];
        let mut interval = integers(data.scalar)?;
        if matches!(data.kind, SymbolKind::Dim { .. }) {
            (interval.low, interval.high) = (0, interval.high.min(DIMENSION_LIMIT.into()));
        }
        let known = self.sizes.get_or_insert_with(|| Known::new(kernel, self.launch));
        Some(known.range(symbol.index()).unwrap_or(interval))
    }

    fn inst(&mut self, kernel: &Kernel, inst: Inst, ty: Scalar, depth: u32) -> Option<Interval> {
        let data = &kernel.insts[inst];
        match &data.payload {
            Payload::Symbol(symbol) => return self.of_symbol(kernel, *symbol),
            Payload::Access { buffer, leaf } => {
                return integers(kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar);
            }
            Payload::Cast(to) => {
                let from = kernel.value_type(data.arguments[0]);
                let all = integers(*to)?;
                let operand =
                    if from.is_integer() { self.within(kernel, data.arguments[0], depth) } else { all };
                return Some(operand.within(*to));
            }
            // A block has 1024 threads at most, a grid 2^31 - 1 blocks along an axis.
            Payload::Grid(_) if data.opcode == Opcode::GridSize => {
                return Some(Interval::new(1, 0x7fff_ffff));
            }
            Payload::Grid(_) => return Some(Interval::new(0, 0x7fff_fffe)),
            Payload::None if data.opcode == Opcode::ThreadIndex => return Some(Interval::new(0, 1023)),
            _ => {}
        }
        let mut operands: SmallVec<[Interval; 3]> = SmallVec::new();
        for value in data.arguments.iter().filter(|value| kernel.value_type(**value).is_integer()) {
            operands.push(self.within(kernel, *value, depth));
        }
        let found = arithmetic(data.opcode, ty, &operands)?;
        let may_be_negative = data.opcode == Opcode::Sub && found.low < 0 && found.within(ty) == found;
        Some(if may_be_negative && self.is_known_size(kernel, data.results[0]) {
            Interval::new(0, found.high.max(0))
        } else {
            found
        })
    }

    /// Whether a difference of sizes is never negative, by facts about several of them: `n - offset`, of `offset <= n`.
    fn is_known_size(&mut self, kernel: &Kernel, difference: Value) -> bool {
        let known = self.sizes.get_or_insert_with(|| Known::new(kernel, self.launch));
        !known.is_empty()
            && kernel.symbolic(difference).is_some_and(|size| {
                known.holds(kernel, &Expr::binary(BinaryOp::GreaterEqual, size, Expr::Int(0)))
            })
    }
}

/// The interval of a result; it may lie beyond the type, which means that the value may wrap.
fn arithmetic(opcode: Opcode, ty: Scalar, operands: &[Interval]) -> Option<Interval> {
    let constant = |interval: &Interval| (interval.low == interval.high).then_some(interval.low);
    Some(match (opcode, operands) {
        (Opcode::Add, [a, b]) => Interval::new(a.low + b.low, a.high + b.high),
        (Opcode::Sub, [a, b]) => Interval::new(a.low - b.high, a.high - b.low),
        (Opcode::Neg, [a]) => Interval::new(-a.high, -a.low),
        (Opcode::Mul, [a, b]) => {
            let products = [(a.low, b.low), (a.low, b.high), (a.high, b.low), (a.high, b.high)];
            let (mut low, mut high) = (i128::MAX, i128::MIN);
            for (x, y) in products {
                let product = x.checked_mul(y)?;
                (low, high) = (low.min(product), high.max(product));
            }
            Interval::new(low, high)
        }
        (Opcode::Div, [a, b]) if b.low > 0 => {
            let ends = [a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high];
            Interval::new(*ends.iter().min()?, *ends.iter().max()?)
        }
        (Opcode::Rem, [a, b]) if b.low > 0 => {
            let most = (b.high - 1).min(a.high.max(-a.low).max(0));
            Interval::new(if a.low >= 0 { 0 } else { -most }, if a.high <= 0 { 0 } else { most })
        }
        (Opcode::Min, [a, b]) => Interval::new(a.low.min(b.low), a.high.min(b.high)),
        (Opcode::Max, [a, b]) => Interval::new(a.low.max(b.low), a.high.max(b.high)),
        (Opcode::And, [a, b]) if a.low >= 0 && b.low >= 0 => Interval::new(0, a.high.min(b.high)),
        (Opcode::And, [a, b]) if a.low >= 0 || b.low >= 0 => {
            Interval::new(0, if a.low >= 0 { a.high } else { b.high })
        }
        (Opcode::Shl, [a, count]) => {
            let factor = 1i128 << constant(count)?.rem_euclid(ty.size() as i128 * 8);
            Interval::new(a.low.checked_mul(factor)?, a.high.checked_mul(factor)?)
        }
        (Opcode::Shr, [a, count]) if a.low >= 0 => {
            let count = constant(count)?.rem_euclid(ty.size() as i128 * 8) as u32;
            Interval::new(a.low >> count, a.high >> count)
        }
        (Opcode::Select, [a, b]) => Interval::new(a.low.min(b.low), a.high.max(b.high)),
        (Opcode::Popcount | Opcode::LeadingZeros | Opcode::TrailingZeros, [_]) => {
            Interval::new(0, ty.size() as i128 * 8)
        }
        _ => return None,
    })
}

/// All integers of a type.
fn integers(scalar: Scalar) -> Option<Interval> {
    scalar.is_integer().then(|| Interval::of(scalar))
}
