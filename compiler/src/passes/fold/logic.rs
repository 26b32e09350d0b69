//! Rules on bools, selections and casts.

use super::simpler::{Operand, Simpler};
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::mutants::mutant;

fn bool_of(kernel: &Kernel, value: Value) -> Option<bool> {
    match kernel.constant_of(value)? {
        Constant::Bool(value) => Some(value),
        _ => None,
    }
}

/// A simpler equal of an instruction on bools, a selection or a cast.
pub fn simpler(kernel: &Kernel, inst: Inst) -> Option<Simpler> {
    let data = &kernel.insts[inst];
    match (data.opcode, &data.arguments[..]) {
        (Opcode::Select, [condition, a, b]) => select(kernel, *condition, *a, *b),
        (Opcode::Cast, [a]) => cast(kernel, &data.payload, *a),
        (Opcode::Not, [a]) if kernel.value_type(*a) == Scalar::Bool => not(kernel, *a),
        (opcode, [a, b]) if kernel.value_type(*a) == Scalar::Bool => binary(kernel, opcode, *a, *b),
        _ => None,
    }
}

fn select(kernel: &Kernel, condition: Value, a: Value, b: Value) -> Option<Simpler> {
    if a == b {
        return Some(Simpler::Value(a));
    }
    if let Some(condition) = bool_of(kernel, condition) {
        return Some(Simpler::Value(if condition { a } else { b }));
    }
    match (bool_of(kernel, a), bool_of(kernel, b)) {
        (Some(true), Some(false)) => Some(Simpler::Value(condition)),
        (Some(false), Some(true)) => Some(Simpler::Inst(Opcode::Not, vec![Operand::Value(condition)])),
        _ => None,
    }
}

/// A cast to the type that the value has; one to a wider integer and back.
fn cast(kernel: &Kernel, payload: &Payload, a: Value) -> Option<Simpler> {
    let Payload::Cast(to) = *payload else { return None };
    let from = kernel.value_type(a);
    if from == to {
        return Some(Simpler::Value(a));
    }
    let inner = kernel.definition_data(a).filter(|inner| inner.opcode == Opcode::Cast)?;
    let origin = kernel.value_type(inner.arguments[0]);
    let widened = origin.is_integer() && from.is_integer() && from.size() >= origin.size();
    // The inner cast must not have wrapped into a narrow type.
    (inner.payload == Payload::Cast(from) && widened && origin == to)
        .then(|| Simpler::Value(inner.arguments[0]))
}

/// The comparison that is true where this one is false, for operands that are ordered.
pub fn opposite(opcode: Opcode) -> Option<Opcode> {
    Some(match opcode {
        Opcode::Eq => Opcode::Ne,
        Opcode::Ne => Opcode::Eq,
        Opcode::Lt => Opcode::Ge,
        Opcode::Ge => Opcode::Lt,
        Opcode::Gt => Opcode::Le,
        Opcode::Le => Opcode::Gt,
        _ => return None,
    })
}

fn not(kernel: &Kernel, a: Value) -> Option<Simpler> {
    let inner = kernel.definition_data(a)?;
    if inner.opcode == Opcode::Not {
        return Some(Simpler::Value(inner.arguments[0]));
    }
    let opposite = opposite(inner.opcode)?;
    // With a NaN, neither `<` nor `>=` is true.
    let ordered =
        !kernel.value_type(inner.arguments[0]).is_float() || matches!(opposite, Opcode::Eq | Opcode::Ne);
    mutant!("fold: `not <` is `>=` of floats too", ordered, true).then(|| {
        Simpler::Inst(opposite, inner.arguments.iter().map(|value| Operand::Value(*value)).collect())
    })
}

fn binary(kernel: &Kernel, opcode: Opcode, a: Value, b: Value) -> Option<Simpler> {
    if a == b {
        return Some(match opcode {
            Opcode::And | Opcode::Or => Simpler::Value(a),
            Opcode::Xor | Opcode::Ne => Simpler::Constant(Constant::Bool(false)),
            Opcode::Eq => Simpler::Constant(Constant::Bool(true)),
            _ => return None,
        });
    }
    let (known, other) = match (bool_of(kernel, a), bool_of(kernel, b)) {
        (Some(known), None) => (known, b),
        (None, Some(known)) => (known, a),
        _ => return None,
    };
    match (opcode, known) {
        (Opcode::And | Opcode::Eq, true) | (Opcode::Or | Opcode::Xor | Opcode::Ne, false) => {
            Some(Simpler::Value(other))
        }
        (Opcode::And, false) => Some(Simpler::Constant(Constant::Bool(false))),
        (Opcode::Or, true) => Some(Simpler::Constant(Constant::Bool(true))),
        (Opcode::Xor | Opcode::Ne, true) | (Opcode::Eq, false) => {
            Some(Simpler::Inst(Opcode::Not, vec![Operand::Value(other)]))
        }
        _ => None,
    }
}
