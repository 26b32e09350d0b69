//! Quotients of neighbours: what stands a few places behind is in the same row, or in the next one.
//!
//! ```text
//! v6: u32 = div v4, v0                                   v6: u32 = div v4, v0
//! v7: u32 = rem v4, v0                                   v7: u32 = sub v4, v6 * v0
//! v5: u32 = cast v9    (v9 is 8 * v1 + 3)          →     v10: bool = ge v7, v0 - 3
//! v8: u32 = rem v5, v0                                   v8: u32 = select v10, v7 - (v0 - 3), v7 + 3
//! ```
//!
//! A division by what is no literal takes some twenty instructions, and each element of a thread's vector has one (`coalesce_axes`).
//!
//! # Preconditions
//!
//! The first neighbour is a multiple of a power of two that is more than the distance, so that nothing wraps around, and not
//! negative; the divisor is at least the distance.

use crate::analysis::{Multiples, Ranges};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::mutants::mutant;
use crate::passes::insert::before;

/// Quotient and remainder of one number by another.
struct Division {
    /// The number as an i64.
    of: Value,
    number: Value,
    divisor: Value,
    /// What the divisor is made of.
    by: Value,
    quotient: Option<Value>,
    remainder: Option<Value>,
}

struct Quotients<'k> {
    kernel: &'k mut Kernel,
    multiples: Multiples,
    ranges: Ranges,
    /// Those whose results are there.
    known: Vec<Division>,
    changed: bool,
}

/// Makes quotients and remainders of neighbours out of those of the first one; whether there were any.
pub fn share(kernel: &mut Kernel, launch: Launch) -> bool {
    let root = kernel.launches[launch].body;
    let mut count = 0;
    kernel.walk(root, &mut |_, inst| count += usize::from(divides(kernel, inst)));
    if count < 2 {
        return false;
    }
    let (multiples, ranges) = (Multiples::new(kernel, launch), Ranges::in_launch(kernel, launch));
    let mut quotients = Quotients { kernel, multiples, ranges, known: Vec::new(), changed: false };
    quotients.block(root);
    quotients.changed
}

/// Whether an instruction is a quotient or a remainder of numbers of 64 bits, or of unsigned ones of 32, by what is no literal.
fn divides(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    matches!(data.opcode, Opcode::Div | Opcode::Rem)
        && matches!(kernel.value_type(data.results[0]), Scalar::I64 | Scalar::U32)
        && kernel.int_of(data.arguments[1]).is_none()
}

/// What a value is before it becomes narrow.
fn wide(kernel: &Kernel, value: Value) -> Value {
    match kernel.definition_data(value) {
        Some(data) if data.opcode == Opcode::Cast && kernel.value_type(data.arguments[0]) == Scalar::I64 => {
            data.arguments[0]
        }
        _ => value,
    }
}

/// Whether two values are one: each use of a size has its own.
fn is_same(kernel: &Kernel, left: Value, right: Value) -> bool {
    let symbol = |value: Value| match kernel.definition_data(value)?.payload {
        Payload::Symbol(symbol) => Some(symbol),
        _ => None,
    };
    left == right || symbol(left).is_some_and(|one| symbol(right) == Some(one))
}

impl Quotients<'_> {
    fn block(&mut self, block: Block) {
        let around = self.known.len();
        for inst in self.kernel.blocks[block].insts.clone() {
            if divides(self.kernel, inst) {
                self.division(block, inst);
            }
            for region in self.kernel.insts[inst].regions.clone() {
                self.block(region);
            }
        }
        self.known.truncate(around);
    }

    fn division(&mut self, block: Block, inst: Inst) {
        let data = &self.kernel.insts[inst];
        let (opcode, result) = (data.opcode, data.results[0]);
        let [number, divisor] = data.arguments[..] else { return };
        let (of, by) = (wide(self.kernel, number), wide(self.kernel, divisor));
        let (root, distance) = self.kernel.split_sum(of).unwrap_or((of, 0));
        let ty = self.kernel.value_type(result);
        let is_first = |known: &Division, of: Value| {
            known.of == of
                && is_same(self.kernel, known.by, by)
                && self.kernel.value_type(known.divisor) == ty
        };
        if let Some(at) = self.known.iter().position(|known| is_first(known, of)) {
            self.same(block, inst, at);
        } else if let Some(at) = self.known.iter().position(|known| is_first(known, root))
            && self.is_neighbour(at, distance)
        {
            self.neighbour(block, inst, at, distance);
        } else {
            let result = |is: Opcode| (opcode == is).then_some(result);
            let (quotient, remainder) = (result(Opcode::Div), result(Opcode::Rem));
            self.known.push(Division { of, number, divisor, by, quotient, remainder });
        }
    }

    /// Whether what stands so many places behind a number is in the same row or the next one.
    fn is_neighbour(&mut self, at: usize, distance: i64) -> bool {
        let Division { of, divisor, .. } = self.known[at];
        let whole = self.multiples.of(self.kernel, of) > distance.unsigned_abs();
        let is_long = self.ranges.of(self.kernel, divisor).low >= i128::from(distance);
        // Unsigned numbers are never negative.
        let is_unsigned = self.kernel.value_type(divisor) == Scalar::U32;
        distance > 0
            && whole
            && mutant!("strength_reduce: rows are shorter than a distance", is_long, true)
            && (is_unsigned || self.ranges.of(self.kernel, of).low >= 0)
    }

    /// The other one of quotient and remainder of one number.
    fn same(&mut self, block: Block, inst: Inst, at: usize) {
        let result = self.kernel.insts[inst].results[0];
        let Division { number, divisor, quotient, .. } = self.known[at];
        if self.kernel.insts[inst].opcode == Opcode::Div {
            self.known[at].quotient.get_or_insert(result);
            return;
        }
        if let Some(quotient) = quotient {
            let begin = before(self.kernel, block, inst, |emit| emit.binary(Opcode::Mul, quotient, divisor));
            let Some(begin) = begin else { return };
            self.kernel.rewrite_inst(inst, Opcode::Sub, Payload::None, &[number, begin]);
            self.changed = true;
        }
        self.known[at].remainder.get_or_insert(result);
    }

    fn neighbour(&mut self, block: Block, inst: Inst, at: usize, distance: i64) {
        let Division { number, divisor, quotient, remainder, .. } = self.known[at];
        let is_quotient = self.kernel.insts[inst].opcode == Opcode::Div;
        if is_quotient && quotient.is_none() {
            return;
        }
        let ty = self.kernel.value_type(divisor);
        let literal = |emit: &mut Emit<'_>, value: i64| emit.constant(Constant::Int(ty, value.into()));
        let made = before(self.kernel, block, inst, |emit| {
            let remainder = match (remainder, quotient) {
                (None, Some(quotient)) => {
                    let begin = emit.binary(Opcode::Mul, quotient, divisor);
                    emit.binary(Opcode::Sub, number, begin)
                }
                (remainder, _) => remainder?,
            };
            let distance = literal(emit, distance);
            let left = emit.binary(Opcode::Sub, divisor, distance);
            let is_next = emit.binary(
                mutant!("strength_reduce: a row goes on behind its end", Opcode::Ge, Opcode::Gt),
                remainder,
                left,
            );
            let sides = match quotient.filter(|_| is_quotient) {
                Some(quotient) => {
                    let one = literal(emit, 1);
                    [emit.binary(Opcode::Add, quotient, one), quotient]
                }
                None => {
                    [emit.binary(Opcode::Sub, remainder, left), emit.binary(Opcode::Add, remainder, distance)]
                }
            };
            Some((remainder, [is_next, sides[0], sides[1]]))
        });
        let Some((remainder, operands)) = made.flatten() else { return };
        self.known[at].remainder.get_or_insert(remainder);
        self.kernel.rewrite_inst(inst, Opcode::Select, Payload::None, &operands);
        self.changed = true;
    }
}
