//! `strength_reduce`: orders integer sums, so that subscripts that differ by a literal share their computation and
//! what a loop does not change is added outside of it.
//!
//! ```text
//! v4: i64 = add v2, v3            (v3 = 128)      v9: i64 = add v2, v1
//! v5: i64 = add v4, v1                       →    v5: i64 = add v9, v3
//! v6: i64 = mul v4, v0            (v0 = 12)       v10: i64 = mul v2, v0
//!                                                 v6: i64 = add v10, v11    (v11 = 1536)
//! ```
//!
//! A literal that is added moves to the end of its sum: through sums, differences, and products and left shifts by
//! literals. Selection puts it into the offset of an address, where it costs nothing, and `cse` finds the rest equal for
//! neighbouring elements. Of the other addends, one from inside a loop goes behind one from outside it, so that
//! `licm` can add up what is invariant. Integers wrap, so all of it is exact.
//!
//! Of neighbours one is divided, and the others compared (`quotients.rs`).
//!
//! # Limits
//!
//! Two addends are swapped, longer sums are not sorted. Addresses are not carried from one iteration of a loop to the
//! next: the assembler does that.

mod quotients;

use super::pass::{Changed, Pass, PassContext};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Kernel, Payload, Phases};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::ir::wrap;
use crate::mutants::mutant;
use crate::source::Span;
use cranelift_entity::SecondaryMap;

pub struct StrengthReduce;

impl Pass for StrengthReduce {
    fn name(&self) -> &str {
        "strength_reduce"
    }

    fn reason(&self) -> &str {
        "orders sums, so that neighbouring subscripts share one address and loops add less"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut shared = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            shared |= quotients::share(kernel, launch);
        }
        let depths = kernel.of_values();
        let mut reassociation = Reassociation { kernel, depths, depth: 0, changed: false };
        for launch in reassociation.kernel.launches.keys().collect::<Vec<_>>() {
            reassociation.block(reassociation.kernel.launches[launch].body, 0);
        }
        (reassociation.changed | shared).into()
    }
}

struct Reassociation<'k> {
    kernel: &'k mut Kernel,
    /// The loop depth of each value: a pure one's is that to which `licm` can hoist it.
    depths: SecondaryMap<Value, u16>,
    /// The loop depth at which the pass is.
    depth: u16,
    changed: bool,
}

impl Reassociation<'_> {
    fn block(&mut self, block: Block, depth: u16) {
        for value in &self.kernel.blocks[block].params {
            self.depths[*value] = depth;
        }
        let insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        let mut done = Vec::with_capacity(insts.len());
        self.depth = depth;
        for inst in insts {
            let mut data = &self.kernel.insts[inst];
            if matches!(data.opcode, Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Shl) {
                self.inst(inst, &mut done);
                data = &self.kernel.insts[inst];
            }
            if !data.regions.is_empty() {
                let repeats =
                    matches!(data.opcode, Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While);
                for at in 0..data.regions.len() {
                    self.block(self.kernel.insts[inst].regions[at], depth + u16::from(repeats));
                }
                self.depth = depth;
            }
            self.note_depth(inst);
            done.push(inst);
        }
        self.kernel.blocks[block].insts = done;
    }

    /// A pure result is as deep as the deepest operand: `licm` can take it there. Any other stays in its loop.
    fn note_depth(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        if data.results.is_empty() {
            return;
        }
        let depth = match data.opcode.info().effect {
            Effect::Pure => match data.arguments[..] {
                [] => 0,
                [left, right] => self.depths[left].max(self.depths[right]),
                ref many => many.iter().map(|value| self.depths[*value]).max().unwrap_or(0),
            },
            _ => self.depth,
        };
        for result in &data.results {
            self.depths[*result] = depth;
        }
    }

    fn inst(&mut self, inst: Inst, done: &mut Vec<Inst>) {
        let data = &self.kernel.insts[inst];
        let [left, right] = data.arguments[..] else { return };
        let (opcode, span, ty) = (data.opcode, data.span, self.kernel.value_type(left));
        if !ty.is_integer() || data.results.len() != 1 {
            return;
        }
        match opcode {
            Opcode::Add if self.kernel.int_of(right).is_some() => {}
            // Behind a sum there is one literal for both.
            Opcode::Sub if self.kernel.int_of(right).is_some() => {
                let (rest, first) = self.split(left);
                let both = wrap(ty, first - self.kernel.int_of(right).unwrap_or(0));
                if first != 0 && both == 0 {
                    let result = self.kernel.insts[inst].results[0];
                    self.kernel.replace_uses(result, rest);
                } else if first != 0 {
                    let both = self.literal(ty, both, span, done);
                    self.rewrite(inst, Opcode::Add, rest, both);
                }
            }
            Opcode::Add | Opcode::Sub => {
                let ((left, first), (right, second)) = (self.split(left), self.split(right));
                let sign = if opcode == Opcode::Sub { -1 } else { 1 };
                let sign = mutant!("strength_reduce: a - (b + 1) is a - b + 1", sign, 1);
                let literal = wrap(ty, first + sign * second);
                let moved = first != 0 || second != 0;
                if moved && literal != 0 {
                    let sum = self.made(opcode, left, right, span, done);
                    let literal = self.literal(ty, literal, span, done);
                    self.rewrite(inst, Opcode::Add, sum, literal);
                } else if moved {
                    self.rewrite(inst, opcode, left, right);
                } else if opcode == Opcode::Add {
                    self.invariant_first(inst, left, right, done);
                }
            }
            Opcode::Mul | Opcode::Shl => {
                let Some(factor) = self.kernel.int_of(right) else { return };
                let (rest, literal) = self.split(left);
                let literal = match opcode {
                    _ if literal == 0 => return,
                    Opcode::Mul => {
                        mutant!(
                            "strength_reduce: (a + 1) * 4 is a * 4 + 1",
                            literal.checked_mul(factor),
                            Some(literal)
                        )
                    }
                    // The machine's own shifts differ where the distance is not one within the type.
                    _ if (0..8 * ty.size() as i128).contains(&factor) => literal.checked_mul(1 << factor),
                    _ => None,
                };
                let Some(literal) = literal.map(|literal| wrap(ty, literal)) else { return };
                let scaled = self.made(opcode, rest, right, span, done);
                let literal = self.literal(ty, literal, span, done);
                self.rewrite(inst, Opcode::Add, scaled, literal);
            }
            _ => {}
        }
    }

    /// `(a + deep) + shallow` becomes `(a + shallow) + deep`.
    fn invariant_first(&mut self, inst: Inst, left: Value, right: Value, done: &mut Vec<Inst>) {
        for (sum, other) in [(left, right), (right, left)] {
            let Some(data) = self.kernel.definition_data(sum) else { continue };
            let [a, b] = data.arguments[..] else { continue };
            let (depth, span) = (self.depths[other], self.kernel.insts[inst].span);
            if data.opcode != Opcode::Add || depth >= self.depths[sum] {
                continue;
            }
            let (shallow, deep) = if self.depths[a] <= self.depths[b] { (a, b) } else { (b, a) };
            if self.depths[shallow] < self.depths[deep] {
                let sum = self.made(Opcode::Add, shallow, other, span, done);
                self.rewrite(inst, Opcode::Add, sum, deep);
                return;
            }
        }
    }

    /// A value as another one and a literal that is added to it.
    fn split(&self, value: Value) -> (Value, i128) {
        match self.kernel.definition_data(value) {
            Some(data) if data.opcode == Opcode::Add => match self.kernel.int_of(data.arguments[1]) {
                Some(literal) => (data.arguments[0], literal),
                None => (value, 0),
            },
            Some(data) if data.opcode == Opcode::Sub => match self.kernel.int_of(data.arguments[1]) {
                Some(literal) => {
                    (data.arguments[0], mutant!("strength_reduce: a - 1 is a + 1", -literal, literal))
                }
                None => (value, 0),
            },
            _ => (value, 0),
        }
    }

    fn literal(&mut self, ty: crate::data::Scalar, value: i128, span: Span, done: &mut Vec<Inst>) -> Value {
        let constant = Payload::Constant(Constant::Int(ty, value));
        let made = self.kernel.make_inst(Opcode::Const, constant, &[], span);
        done.push(made);
        self.kernel.insts[made].results[0]
    }

    fn made(&mut self, opcode: Opcode, left: Value, right: Value, span: Span, done: &mut Vec<Inst>) -> Value {
        let made = self.kernel.make_inst(opcode, Payload::None, &[left, right], span);
        self.inst(made, done);
        self.note_depth(made);
        done.push(made);
        self.kernel.insts[made].results[0]
    }

    fn rewrite(&mut self, inst: Inst, opcode: Opcode, left: Value, right: Value) {
        self.kernel.rewrite_inst(inst, opcode, Payload::None, &[left, right]);
        self.changed = true;
    }
}
