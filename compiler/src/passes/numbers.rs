//! Quotients of numbers of blocks and tiles, which lie below 2^31.

use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::Payload;
use crate::ir::op::Opcode;

/// The quotient of numbers from 0 below 2^31, in 32 bits.
pub fn quotient(emit: &mut Emit<'_>, left: Value, right: Value) -> Value {
    let [left, right] =
        [left, right].map(|value| emit.value(Opcode::Cast, Payload::Cast(Scalar::U32), &[value]));
    let quotient = emit.binary(Opcode::Div, left, right);
    emit.value(Opcode::Cast, Payload::Cast(Scalar::I64), &[quotient])
}

/// The quotient and the remainder of a tile's number, which is below 2^31 as numbers of blocks are; so a larger divisor divides
/// as that does.
pub fn divided(emit: &mut Emit<'_>, left: Value, right: Value) -> (Value, Value) {
    let most = emit.int(i64::from(i32::MAX));
    let least = emit.min(right, most);
    let quotient = quotient(emit, left, least);
    // By the divisor itself, of which more is known: what it is a multiple of.
    let whole = emit.mul(quotient, right);
    (quotient, emit.sub(left, whole))
}
