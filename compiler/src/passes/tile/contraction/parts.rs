//! Factors of wider types as sums of numbers of `bf16`, which has 8 bits and the exponents of `f32`: two for `f16`, three for
//! `f32`.
//!
//! ```text
//! x = large + middle + small      each the upper 8 bits of what is left
//! ```
//!
//! Bits below 2^-133 are lost, which only numbers below 2^-110 have.

use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::mutants::mutant;

/// The bits of `f32` that `bf16` has.
const UPPER: i128 = 0xffff_0000;

/// A value that has been taken apart.
pub struct Apart {
    /// What computes the parts.
    pub insts: Vec<Inst>,
    /// The parts, the largest first.
    pub parts: Vec<Value>,
    /// What puts them together again.
    pub join: Inst,
}

/// Lets a block use the exact sum of so many parts of a value in the place of the value.
pub fn take_apart(kernel: &mut Kernel, block: Block, value: Value, count: usize) -> Option<Apart> {
    let end = kernel.defining_inst(value)?;
    let at = kernel.blocks[block].insts.iter().position(|inst| *inst == end)? + 1;
    let behind = kernel.blocks[block].insts.split_off(at);
    let mut emit = Emit::new(kernel, block, kernel.insts[end].span);
    let parts = parts(&mut emit, value, count);
    let insts = emit.kernel.blocks[block].insts[at..].to_vec();
    let (last, others) = parts.split_last()?;
    let sum = others.iter().rfold(*last, |sum, part| emit.binary(Opcode::AddExact, *part, sum));
    let join = emit.kernel.blocks[block].insts[at + insts.len()];
    kernel.replace_uses(value, sum);
    for inst in &insts {
        kernel.insts[*inst].arguments.iter_mut().filter(|used| **used == sum).for_each(|used| *used = value);
    }
    kernel.blocks[block].insts.extend(behind);
    Some(Apart { insts, parts, join })
}

/// So many parts of a number, the largest first. Of what is not finite the first one is the number itself, and the others zero.
fn parts(emit: &mut Emit<'_>, value: Value, count: usize) -> Vec<Value> {
    let zero = emit.constant(Constant::F32(0));
    let is_finite = emit.value(Opcode::IsFinite, Payload::None, &[value]);
    let mut found = Vec::with_capacity(count);
    let mut left = value;
    while found.len() + 1 < count {
        let bits = emit.value(Opcode::ToBits, Payload::None, &[left]);
        let mask = emit.constant(Constant::Int(emit.kernel.value_type(bits), UPPER));
        let upper = emit.binary(Opcode::And, bits, mask);
        let upper = emit.value(Opcode::FromBits, Payload::None, &[upper]);
        let rest = emit.binary(Opcode::Sub, left, upper);
        let (part, rest) = match found.is_empty() {
            true => (emit.select(is_finite, upper, left), emit.select(is_finite, rest, zero)),
            false => (upper, rest),
        };
        found.push(mutant!("parts: the bits that make it a NaN are cut off", part, upper));
        left = rest;
    }
    found.push(left);
    found
}

/// A result of its sums: that of the largest parts, with that of the others where it is finite.
pub fn total(emit: &mut Emit<'_>, sums: &[Value]) -> Value {
    let [large, others] = sums else { return sums[0] };
    let is_finite = emit.value(Opcode::IsFinite, Payload::None, &[*large]);
    let both = emit.binary(Opcode::Add, *large, *others);
    let total = emit.select(is_finite, both, *large);
    mutant!("tile contraction: parts of an infinity are added to it", total, both)
}
