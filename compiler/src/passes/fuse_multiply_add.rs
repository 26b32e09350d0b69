//! `fuse_multiply_add`: a product that is added to something becomes one fused multiply-add.
//!
//! ```text
//! v3: f32 = mul v0, v1
//! v4: f32 = add v3, v2         →       v4: f32 = fma v0, v1, v2
//! ```
//!
//! `mul − c` and `c − mul` become an `fma` with a negated operand, which costs nothing on the machine. The
//! result is rounded once instead of twice: it differs in the last bit, towards the exact value. Only a product
//! without other uses is taken, so that nothing is computed twice.
//!
//! An outer product (`outer`) becomes one that does the same for each pair (`outer_fma`).
//!
//! # Limits
//!
//! Of two products that are added, the first is fused. The sum that a `reduce` keeps is not visible here:
//! selection fuses a product that is its only contribution.

use super::pass::{Changed, Pass, PassContext};
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Kernel, Payload, Phases};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use cranelift_entity::SecondaryMap;

pub struct FuseMultiplyAdd;

impl Pass for FuseMultiplyAdd {
    fn name(&self) -> &str {
        "fuse_multiply_add"
    }

    fn reason(&self) -> &str {
        "fuses multiplications into additions: half the instructions, one rounding less"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn runs_after(&self) -> &[&str] {
        // Those see through `mul` and `add` but not through `fma`.
        &["fold", "cse", "licm"]
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let uses = kernel.use_counts_in(launch);
            for block in kernel.blocks_in(kernel.launches[launch].body) {
                // Negations, each with the place that it goes before.
                let mut made = Vec::new();
                for at in 0..kernel.blocks[block].insts.len() {
                    let inst = kernel.blocks[block].insts[at];
                    let data = &mut kernel.insts[inst];
                    match data.opcode {
                        Opcode::Outer => {
                            data.opcode = Opcode::OuterFma;
                            changed = true;
                        }
                        Opcode::Add | Opcode::Sub => {
                            let mut before = |negation| made.push((at, negation));
                            changed |= fuse(kernel, inst, &uses, &mut before);
                        }
                        _ => {}
                    }
                }
                if !made.is_empty() {
                    let insts = std::mem::take(&mut kernel.blocks[block].insts);
                    kernel.blocks[block].insts = inserted(insts, &made);
                }
            }
        }
        changed.into()
    }
}

/// How often values of a launch are operands, before anything has changed.
type Uses = SecondaryMap<Value, u32>;

/// The list with further instructions, each before a place; those in order.
fn inserted(insts: Vec<Inst>, made: &[(usize, Inst)]) -> Vec<Inst> {
    let mut list = Vec::with_capacity(insts.len() + made.len());
    let mut next = made.iter().peekable();
    for (at, inst) in insts.into_iter().enumerate() {
        while let Some((_, more)) = next.next_if(|(place, _)| *place == at) {
            list.push(*more);
        }
        list.push(inst);
    }
    list
}

/// The factors of a float product that is used once.
fn product(kernel: &Kernel, value: Value, uses: &Uses) -> Option<(Value, Value)> {
    let data = kernel.definition_data(value)?;
    let factors = || (data.arguments[0], data.arguments[1]);
    (data.opcode == Opcode::Mul && uses[value] == 1).then(factors)
}

/// Makes a sum an `fma`, a negation going before it; whether it did.
fn fuse(kernel: &mut Kernel, inst: Inst, uses: &Uses, before: &mut impl FnMut(Inst)) -> bool {
    let data = &kernel.insts[inst];
    let [left, right] = data.arguments[..] else { return false };
    let (opcode, span) = (data.opcode, data.span);
    if !kernel.value_type(left).is_float() {
        return false;
    }
    let mut negated = |kernel: &mut Kernel, value: Value| {
        let made = kernel.make_inst(Opcode::Neg, Payload::None, &[value], span);
        before(made);
        kernel.insts[made].results[0]
    };
    let operands = if let Some((a, b)) = product(kernel, left, uses) {
        let subtracts = mutant!("fuse_multiply_add: a * b - c adds c", opcode == Opcode::Sub, false);
        let addend = if subtracts { negated(kernel, right) } else { right };
        mutant!("fuse_multiply_add: the addend is a factor", [a, b, addend], [a, addend, b])
    } else if let Some((a, b)) = product(kernel, right, uses) {
        let subtracts =
            mutant!("fuse_multiply_add: c - a * b adds the product", opcode == Opcode::Sub, false);
        let a = if subtracts { negated(kernel, a) } else { a };
        [a, b, left]
    } else {
        return false;
    };
    kernel.rewrite_inst(inst, Opcode::Fma, Payload::None, &operands);
    true
}
