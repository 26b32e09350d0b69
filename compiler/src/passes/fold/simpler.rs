//! What a rule makes of an instruction.

use crate::ir::entities::Value;
use crate::ir::op::{Constant, Opcode};

/// An operand of a simpler operation.
#[derive(Clone, Copy)]
pub enum Operand {
    Value(Value),
    /// A literal that has to be made.
    New(Constant),
    /// An operation on a value and a literal, both of which have to be made.
    Of(Opcode, Value, Constant),
    /// A choice between two literals by a condition.
    Choice(Value, [Constant; 2]),
}

/// What an instruction becomes.
pub enum Simpler {
    Constant(Constant),
    /// All uses of its result become uses of this value.
    Value(Value),
    /// Another op with the same result.
    Inst(Opcode, Vec<Operand>),
}
