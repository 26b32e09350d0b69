//! `guards`: redundant guard elimination. Comparisons that the conditions around them imply are left out.
//!
//! ```text
//! v4: bool = lt v3, v1            (v3 is v2 + 3)      v4: bool = lt v3, v1
//! if v4 {                                             if v4 {
//!     v5: i64 = add v2, 1                      →          v5: i64 = add v2, 1
//!     v6: bool = lt v5, v1                                v6: bool = const true
//! ```
//!
//! Where a thread computes several neighbouring elements (`reuse`, `per_thread`), one condition says that the last of
//! them is inside. Guarded accesses of the others (`u[z + 1] else 0.0`) need none of their own then, and those that
//! read the same element become one (`cse`). `simplify`, which comes after, folds what the literals leave.
//!
//! # Preconditions
//!
//! Comparisons of i64 values that are known to be small (`analysis/ranges.rs`), whose difference from the implying
//! comparison is a constant, or made of sizes that the kernel's facts keep from being negative: where `w == 2 * h`, an
//! index `j` below `h` has `j + h` below `w`. A loop's index is below its high end. Minima and maxima are decided likewise.

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::{Affine, Atom, Known, Polynomial, Ranges, difference};
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{InstData, Kernel, Phases};
use crate::ir::op::{Constant, Opcode};
use crate::mutants::mutant;

pub struct Guards;

impl Pass for Guards {
    fn name(&self) -> &str {
        "guards"
    }

    fn reason(&self) -> &str {
        "leaves out comparisons that the conditions around them imply"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut decided = Vec::new();
        let (mut affine, mut ranges) = (Affine::new(kernel), Ranges::new(kernel));
        for (launch, data) in &kernel.launches {
            let (facts, decided) = (Vec::new(), &mut decided);
            let (affine, ranges) = (&mut affine, &mut ranges);
            Walker { kernel, affine, ranges, facts, launch, known: None, decided }.block(data.body);
        }
        let changed = !decided.is_empty();
        for (inst, decision) in decided {
            match decision {
                Decision::Is(value) => kernel.rewrite_to_constant(inst, Constant::Bool(value)),
                // The other operand, so that it is the one of both.
                Decision::Operand(value) => {
                    let (opcode, payload) = (kernel.insts[inst].opcode, kernel.insts[inst].payload.clone());
                    kernel.rewrite_inst(inst, opcode, payload, &[value, value]);
                }
            }
        }
        changed.into()
    }
}

enum Decision {
    Is(bool),
    /// A minimum or maximum is this operand.
    Operand(Value),
}

struct Walker<'k, 'w> {
    kernel: &'k Kernel,
    affine: &'w mut Affine<'k>,
    ranges: &'w mut Ranges,
    /// Differences that are not negative, by the enclosing conditions.
    facts: Vec<Polynomial>,
    launch: Launch,
    /// Of the launch's sizes, once somebody asks.
    known: Option<Known>,
    decided: &'w mut Vec<(Inst, Decision)>,
}

/// Whether a polynomial is made of symbols alone.
pub(super) fn is_of_sizes(polynomial: &Polynomial) -> bool {
    let terms = polynomial.terms().iter();
    terms.flat_map(|(monomial, _)| monomial.atoms()).all(|atom| matches!(atom, Atom::Symbol(_)))
}

/// What is not negative where a comparison has an outcome: so many times the second operand less the first, less 1 for
/// a strict one.
pub(super) fn sign(opcode: Opcode, outcome: bool) -> Option<(i128, i128)> {
    Some(match (opcode, outcome) {
        (Opcode::Lt, true) | (Opcode::Ge, false) => {
            (1, mutant!("guards: `<` holds where both are equal", 1, 0))
        }
        (Opcode::Le, true) | (Opcode::Gt, false) => (1, 0),
        (Opcode::Gt, true) | (Opcode::Le, false) => (-1, 1),
        (Opcode::Ge, true) | (Opcode::Lt, false) => (-1, 0),
        _ => return None,
    })
}

impl Walker<'_, '_> {
    fn block(&mut self, block: Block) {
        for inst in &self.kernel.blocks[block].insts {
            let data = &self.kernel.insts[*inst];
            self.decide(*inst, data);
            for (at, region) in data.regions.iter().enumerate() {
                let around = self.facts.len();
                match data.opcode {
                    Opcode::If => {
                        let outcome = mutant!("guards: the condition holds on both sides", at == 0, true);
                        self.assume(data.arguments[0], outcome);
                    }
                    Opcode::Forall | Opcode::Reduce | Opcode::For => self.index(*inst, *region),
                    _ => {}
                }
                self.block(*region);
                self.facts.truncate(mutant!(
                    "guards: a condition holds behind its region",
                    around,
                    usize::MAX
                ));
            }
        }
    }

    /// The second operand less the first, for small i64 values.
    fn difference(&mut self, operands: &[Value]) -> Option<Polynomial> {
        let [a, b] = operands[..] else { return None };
        difference(self.kernel, self.affine, self.ranges, a, b)
    }

    /// Takes the outcome of a comparison as a fact.
    fn compared(&mut self, opcode: Opcode, outcome: bool, operands: &[Value]) {
        let Some((factor, strict)) = sign(opcode, outcome) else { return };
        let Some(difference) = self.difference(operands) else { return };
        self.facts.extend(difference.scale(factor).and_then(|known| known.add_constant(-strict)));
    }

    /// Takes a condition's outcome as a fact.
    fn assume(&mut self, condition: Value, outcome: bool) {
        let Some(data) = self.kernel.definition_data(condition) else { return };
        let joined = if outcome { Opcode::And } else { Opcode::Or };
        let joined =
            mutant!("guards: of `or` both hold", joined, if outcome { Opcode::Or } else { Opcode::And });
        if data.opcode == joined {
            for part in &data.arguments {
                self.assume(*part, outcome);
            }
        } else if data.opcode == Opcode::Not {
            self.assume(data.arguments[0], !outcome);
        } else {
            self.compared(data.opcode, outcome, &data.arguments);
        }
    }

    /// An index is below the end of its loop.
    fn index(&mut self, inst: Inst, region: Block) {
        let bounds = self.kernel.loop_bounds(inst);
        for ((_, high), index) in bounds.into_iter().zip(&self.kernel.blocks[region].params) {
            self.compared(Opcode::Lt, true, &[*index, high]);
        }
    }

    /// The outcome that a comparison surely has.
    fn outcome(&mut self, opcode: Opcode, operands: &[Value]) -> Option<bool> {
        let difference = self.difference(operands)?;
        [true, false].into_iter().find(|outcome| {
            let Some((factor, strict)) = sign(opcode, *outcome) else { return false };
            let needed = difference.scale(factor).and_then(|needed| needed.add_constant(-strict));
            needed.is_some_and(|needed| self.follows(&needed))
        })
    }

    /// Whether what is needed is not negative: itself, or what it is more than a fact. What is left then are sizes alone.
    fn follows(&mut self, needed: &Polynomial) -> bool {
        let left = self.facts.iter().filter_map(|fact| needed.subtract(fact));
        let left: Vec<Polynomial> = std::iter::once(needed.clone()).chain(left).collect();
        // Constants first, which cost nothing to judge.
        left.iter().any(|left| left.as_wrapped().is_some_and(|left| left >= 0))
            || left.iter().any(|left| self.is_never_negative(left))
    }

    fn is_never_negative(&mut self, left: &Polynomial) -> bool {
        if left.as_constant().is_some() || !is_of_sizes(left) {
            return false;
        }
        let known = self.known.get_or_insert_with(|| Known::new(self.kernel, Some(self.launch)));
        known.is_never_negative(self.kernel, left)
    }

    fn decide(&mut self, inst: Inst, data: &InstData) {
        let arguments = &data.arguments;
        match data.opcode {
            Opcode::Lt | Opcode::Le | Opcode::Gt | Opcode::Ge => {
                let outcome = self.outcome(data.opcode, arguments);
                self.decided.extend(outcome.map(|outcome| (inst, Decision::Is(outcome))));
            }
            Opcode::Min | Opcode::Max if arguments[0] != arguments[1] => {
                let first = if data.opcode == Opcode::Min { Opcode::Le } else { Opcode::Ge };
                let chosen = self.outcome(first, arguments);
                let operand = chosen.map(|first| arguments[usize::from(!first)]);
                self.decided.extend(operand.map(|operand| (inst, Decision::Operand(operand))));
            }
            _ => {}
        }
    }
}
