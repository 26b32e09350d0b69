//! What a value is computed with.

use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Effect;

/// Whether memory says some of these values.
pub fn reads_memory(kernel: &Kernel, values: &[Value]) -> bool {
    let mut reads = false;
    for value in values {
        code(kernel, *value, &mut |inst, _| {
            reads |= kernel.insts[inst].opcode.info().effect == Effect::Read;
        });
    }
    reads
}

/// Whether two values are the same, or made by equal code whose effects may be these.
pub fn is_equal_code(kernel: &Kernel, left: Value, right: Value, may: &[Effect]) -> bool {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut open = vec![(left, right)];
    while let Some((left, right)) = open.pop() {
        if left == right || !seen.insert((left, right)) {
            continue;
        }
        let (Some(one), Some(other)) = (kernel.definition_data(left), kernel.definition_data(right)) else {
            return false;
        };
        let is_equal = one.opcode == other.opcode
            && one.payload == other.payload
            && may.contains(&one.opcode.info().effect)
            && one.regions.is_empty()
            && one.results.len() == 1
            && one.arguments.len() == other.arguments.len();
        if !is_equal {
            return false;
        }
        open.extend(one.arguments.iter().copied().zip(other.arguments.iter().copied()));
    }
    true
}

/// Calls back for each instruction that a value is computed with, and whether it stands in a branch of that code.
pub fn code(kernel: &Kernel, value: Value, visit: &mut impl FnMut(Inst, bool)) {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let Some(inst) = kernel.defining_inst(value).filter(|inst| seen.insert(*inst)) else { continue };
        visit(inst, false);
        open.extend(&kernel.insts[inst].arguments);
        for region in &kernel.insts[inst].regions {
            kernel.walk(*region, &mut |_, inside| {
                if seen.insert(inside) {
                    visit(inside, true);
                }
                open.extend(&kernel.insts[inside].arguments);
            });
        }
    }
}
