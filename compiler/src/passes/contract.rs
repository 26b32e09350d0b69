//! `contract`: a product that is added to something becomes one fused multiply-add.
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
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{InstData, Kernel, Payload};
use crate::ir::op::Opcode;
use cranelift_entity::SecondaryMap;

pub struct Contract;

impl Pass for Contract {
    fn name(&self) -> &str {
        "contract"
    }

    fn reason(&self) -> &str {
        "fuses multiplications into additions: half the instructions, one rounding less"
    }

    fn runs_after(&self) -> &[&str] {
        // Those see through `mul` and `add` but not through `fma`.
        &["fold", "cse", "licm"]
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut uses = kernel.of_values();
        let mut changed = false;
        // Some of which no launch may run any more.
        let products = kernel.insts.values().any(|data| is_product(kernel, data));
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if products && has_products(kernel, launch) {
                kernel.add_use_counts(launch, &mut uses);
            }
            for block in kernel.blocks_in(kernel.launches[launch].body) {
                let insts = std::mem::take(&mut kernel.blocks[block].insts);
                // Negations, each with the place that it goes before.
                let mut made = Vec::new();
                for (at, inst) in insts.iter().enumerate() {
                    changed |= contract(kernel, *inst, &uses, &mut |negation| made.push((at, negation)));
                }
                kernel.blocks[block].insts = inserted(insts, &made);
            }
        }
        changed.into()
    }
}

/// Whether an instruction is a product of floats.
fn is_product(kernel: &Kernel, data: &InstData) -> bool {
    data.opcode == Opcode::Mul && kernel.value_type(data.results[0]).is_float()
}

/// Whether a launch has products of floats.
fn has_products(kernel: &Kernel, launch: Launch) -> bool {
    let mut found = false;
    kernel
        .walk(kernel.launches[launch].body, &mut |_, inst| found |= is_product(kernel, &kernel.insts[inst]));
    found
}

/// The list with further instructions, each before a place; those in order.
fn inserted(insts: Vec<Inst>, made: &[(usize, Inst)]) -> Vec<Inst> {
    if made.is_empty() {
        return insts;
    }
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
fn product(kernel: &Kernel, value: Value, uses: &SecondaryMap<Value, u32>) -> Option<(Value, Value)> {
    let data = kernel.definition_data(value)?;
    (data.opcode == Opcode::Mul && uses[value] == 1).then(|| (data.arguments[0], data.arguments[1]))
}

/// Makes a sum an `fma`, a negation going before it; whether it did.
fn contract(
    kernel: &mut Kernel,
    inst: Inst,
    uses: &SecondaryMap<Value, u32>,
    before: &mut impl FnMut(Inst),
) -> bool {
    let opcode = kernel.insts[inst].opcode;
    if opcode == Opcode::Outer {
        kernel.insts[inst].opcode = Opcode::OuterFma;
        return true;
    }
    let data = &kernel.insts[inst];
    let [left, right] = data.arguments[..] else { return false };
    if !matches!(opcode, Opcode::Add | Opcode::Sub) || !kernel.value_type(left).is_float() {
        return false;
    }
    let span = data.span;
    let mut negated = |kernel: &mut Kernel, value: Value| {
        let made = kernel.make_inst(Opcode::Neg, Payload::None, &[value], span);
        before(made);
        kernel.insts[made].results[0]
    };
    let operands = if let Some((a, b)) = product(kernel, left, uses) {
        let addend = if opcode == Opcode::Sub { negated(kernel, right) } else { right };
        [a, b, addend]
    } else if let Some((a, b)) = product(kernel, right, uses) {
        let a = if opcode == Opcode::Sub { negated(kernel, a) } else { a };
        [a, b, left]
    } else {
        return false;
    };
    kernel.rewrite_inst(inst, Opcode::Fma, Payload::None, &operands);
    true
}
