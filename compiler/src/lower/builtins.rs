//! Calls of built-in functions.

use super::Lowerer;
use super::powers::literal_power;
use crate::builtins::MathFunction;
use crate::check::typed::{Builtin, Expr};
use crate::ir::entities::Value;
use crate::ir::kernel::Payload;
use crate::ir::op::Opcode;

impl<'a> Lowerer<'a> {
    pub fn call(&mut self, builtin: Builtin, arguments: &'a [Expr]) -> Vec<Value> {
        if builtin == Builtin::Select {
            let condition = self.scalar(&arguments[0]);
            let then = self.expression(&arguments[1]);
            let otherwise = self.expression(&arguments[2]);
            return then
                .into_iter()
                .zip(otherwise)
                .map(|(a, b)| self.builder.select(condition, a, b))
                .collect();
        }
        let values: Vec<Value> = arguments.iter().map(|argument| self.scalar(argument)).collect();
        if builtin == Builtin::Math(MathFunction::Pow)
            && let Some(power) = literal_power(&mut self.builder, values[0], values[1])
        {
            return vec![power];
        }
        let opcode = match builtin {
            Builtin::Clamp => {
                let low = self.builder.binary(Opcode::Max, values[0], values[1]);
                return vec![self.builder.binary(Opcode::Min, low, values[2])];
            }
            // Handled above.
            Builtin::Select => Opcode::Select,
            Builtin::Math(function) => Opcode::of(function),
            Builtin::Sqrt => Opcode::Sqrt,
            Builtin::Floor => Opcode::Floor,
            Builtin::Ceil => Opcode::Ceil,
            Builtin::Round => Opcode::Round,
            Builtin::Trunc => Opcode::Trunc,
            Builtin::IsNan => Opcode::IsNan,
            Builtin::IsInf => Opcode::IsInf,
            Builtin::IsFinite => Opcode::IsFinite,
            Builtin::Abs => Opcode::Abs,
            Builtin::Sign => Opcode::Sign,
            Builtin::Copysign => Opcode::Copysign,
            Builtin::Min => Opcode::Min,
            Builtin::Max => Opcode::Max,
            Builtin::Fma => Opcode::Fma,
            Builtin::Popcount => Opcode::Popcount,
            Builtin::LeadingZeros => Opcode::LeadingZeros,
            Builtin::TrailingZeros => Opcode::TrailingZeros,
            Builtin::RandU32 => Opcode::RandU32,
            Builtin::Rand => Opcode::Rand,
            Builtin::RandNormal => Opcode::RandNormal,
            Builtin::ToBits => Opcode::ToBits,
            Builtin::FromBits => Opcode::FromBits,
        };
        self.builder.inst(opcode, Payload::None, &values).into_iter().collect()
    }
}
