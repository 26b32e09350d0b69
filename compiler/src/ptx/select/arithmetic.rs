//! Dispatch of the plain ops, and integer arithmetic with the language's rules for division and shifts.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::SelectError;
use super::selector::{Selector, bits_type, signed_type};
use crate::analysis::{Interval, Ranges};
use crate::builtins::math_functions;
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Payload;
use crate::ir::op::{Opcode, math_opcode_pattern};
use crate::mutants::mutant;

impl Selector<'_> {
    /// Every op that has neither regions nor memory.
    pub fn simple(&mut self, inst: Inst) -> Result<(), SelectError> {
        use Opcode::*;
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let result = data.results[0];
        let arguments = &data.arguments;
        let scalar = self.scalar(arguments[0]);
        match data.opcode {
            Add | AddExact | Sub | Mul | Div | Rem | Min | Max => {
                let (a, b) = (self.operand(arguments[0]), self.operand(arguments[1]));
                let reg = if scalar.is_float() {
                    self.float_binary(data.opcode, scalar, a, b)
                } else {
                    let divides = matches!(data.opcode, Div | Rem);
                    let divisor = if divides { Some(self.interval(arguments[1])) } else { None };
                    self.int_binary(data.opcode, scalar, a, b, divisor)
                };
                self.name_result(result, reg);
            }
            And | Or | Xor => {
                let (a, b) = self.logic_operands(scalar, arguments[0], arguments[1]);
                let op = match data.opcode {
                    And => LogicBinaryOp::And,
                    Or => LogicBinaryOp::Or,
                    _ => LogicBinaryOp::Xor,
                };
                let dst = self.define(result);
                self.builder.emit(LogicBinary { op, ty: bits_type(scalar), dst, a, b });
            }
            Shl | Shr => self.shift_op(data.opcode, scalar, result, arguments),
            Neg => {
                let a = self.operand(arguments[0]);
                let dst = self.define(result);
                self.negate(scalar, dst, a);
            }
            Not => {
                let a = self.register(arguments[0]);
                let dst = self.define(result);
                let (op, ty) = (LogicUnaryOp::Not, bits_type(scalar));
                self.builder.emit(LogicUnary { op, ty, dst, a: a.into() });
            }
            Abs => {
                let a = self.operand(arguments[0]);
                if scalar.is_unsigned_integer() {
                    self.maps.values[result] = Some(a);
                } else {
                    let dst = self.define(result);
                    let ty = signed_type(scalar);
                    if scalar.is_float() {
                        let op = FloatUnaryOp::Abs;
                        self.builder.emit(FloatUnary { op, ty, dst, a, ..Default::default() });
                    } else {
                        self.builder.emit(IntUnary { op: IntUnaryOp::Abs, ty, dst, a });
                    }
                }
            }
            Sign => self.sign(scalar, result, arguments[0]),
            Popcount | LeadingZeros | TrailingZeros => {
                self.bit_count(data.opcode, scalar, result, arguments[0]);
            }
            Eq | Ne | Lt | Le | Gt | Ge => {
                self.compare(data.opcode, scalar, result, arguments[0], arguments[1]);
            }
            IsNan => {
                // One instruction that others combine with; `testp` looks at the bits in two.
                let a = self.operand(arguments[0]);
                let p = self.define(result);
                let (compare, ty) = (Compare::Nan, signed_type(scalar));
                self.builder.emit(Setp { compare, ty, p, a, b: a, ..Default::default() });
            }
            IsInf | IsFinite => {
                let test = match data.opcode {
                    IsInf => FloatTest::Infinite,
                    _ => FloatTest::Finite,
                };
                let a = self.register(arguments[0]);
                let dst = self.define(result);
                self.builder.emit(Testp { test, ty: signed_type(scalar), dst, a: a.into() });
            }
            Select => self.select(result, arguments),
            Cast => {
                let Payload::Cast(to) = data.payload else {
                    return Err(self.error(format!("{inst} is a cast without a type")));
                };
                let operand = self.cast(arguments[0], to);
                self.bind(result, operand);
            }
            ToBits | FromBits => {
                let a = self.register(arguments[0]);
                let ty = if scalar.size() == 8 { Type::B64 } else { Type::B32 };
                let dst = self.define(result);
                self.builder.emit(Mov { ty, dst, a: a.into() });
            }
            Fma => {
                let operands = [0, 1, 2].map(|at| self.operand(arguments[at]));
                let dst = self.define(result);
                let [a, b, c] = operands;
                self.builder.emit(super::super::instruction::Fma {
                    ty: signed_type(scalar),
                    dst,
                    a,
                    b,
                    c,
                    ..Default::default()
                });
            }
            RandU32 | Rand | RandNormal => {
                let operand = self.random(inst);
                self.bind(result, operand);
            }
            Floor => self.round_to(Rounding::Rmi, result, arguments[0]),
            Ceil => self.round_to(Rounding::Rpi, result, arguments[0]),
            Trunc => self.round_to(Rounding::Rzi, result, arguments[0]),
            RoundTf32 => self.round_tf32(result, arguments[0]),
            Round => self.round_half_away(result, arguments[0]),
            Copysign => self.copysign(result, arguments[0], arguments[1]),
            Sqrt => self.square_root(result, arguments[0]),
            math_functions!(math_opcode_pattern) => {
                let Some(function) = data.opcode.math() else {
                    return Err(self.error(format!("{inst} is no elementary function")));
                };
                self.math_function(function, result, arguments);
            }
            Const | Symbol | Load | LoadIf | Store | StoreIf | StoreEach | Atomic | Check | Print
            | Forall | Reduce | For | While | If | Yield | LoadVector | StoreVector | Address | CopyAsync
            | CopyAsyncIf | CopyCommit | CopyWait | BlockIndex | GridSize | ThreadIndex | Barrier
            | WarpBarrier | ShuffleXor | Outer | OuterFma | Pack | LoadMatrix | LoadMatrixTransposed
            | Mma | Index | Convert | ReduceAlong | Contract => {
                return Err(self.error(format!("{inst} is not a plain op")));
            }
        }
        Ok(())
    }

    /// Records a value's operand; a computed register takes the value's name where it has one by being copied nowhere.
    pub fn bind(&mut self, value: Value, operand: Operand) {
        self.maps.values[value] = Some(operand);
    }

    fn name_result(&mut self, value: Value, reg: Reg) {
        self.maps.values[value] = Some(reg.into());
    }

    /// Predicates have no immediates in logic; everything else does.
    fn logic_operands(&mut self, scalar: Scalar, a: Value, b: Value) -> (Operand, Operand) {
        if scalar == Scalar::Bool {
            (self.register(a).into(), self.register(b).into())
        } else {
            (self.operand(a), self.operand(b))
        }
    }

    /// What an integer can be.
    pub fn interval(&mut self, value: Value) -> Interval {
        match self.constant_int(value) {
            Some(literal) => Interval { low: literal, high: literal },
            None => {
                let ranges = self.ranges.get_or_insert_with(|| Ranges::in_launch(self.kernel, self.launch));
                ranges.of(self.kernel, value)
            }
        }
    }

    /// `divisor` is what the second operand of a division can be, where that is known.
    pub fn int_binary(
        &mut self,
        opcode: Opcode,
        scalar: Scalar,
        a: Operand,
        b: Operand,
        divisor: Option<Interval>,
    ) -> Reg {
        let ty = signed_type(scalar);
        let op = match opcode {
            Opcode::Add => IntBinaryOp::Add,
            Opcode::Sub => IntBinaryOp::Sub,
            Opcode::Mul => IntBinaryOp::Mul,
            Opcode::Min => IntBinaryOp::Min,
            Opcode::Max => IntBinaryOp::Max,
            _ => {
                let quotient = self.divide(ty, a, b, divisor, opcode == Opcode::Rem);
                return self.in_register(quotient, bits_type(scalar));
            }
        };
        self.int(op, ty, a, b)
    }

    /// Division toward zero with the language's rules: by zero gives 0, the most negative by -1 wraps.
    pub fn divide(
        &mut self,
        ty: Type,
        a: Operand,
        b: Operand,
        divisor: Option<Interval>,
        remainder: bool,
    ) -> Operand {
        let op = if remainder { IntBinaryOp::Rem } else { IntBinaryOp::Div };
        let constant = match b {
            Operand::Int(value) => Some(i128::from(value)),
            _ => divisor.filter(|range| range.low == range.high).map(|range| range.low),
        };
        let may_be = |value| divisor.is_none_or(|range| range.low <= value && value <= range.high);
        match constant {
            Some(0) => return Operand::Int(0),
            Some(-1) if ty.is_signed() => {
                if remainder {
                    return Operand::Int(0);
                }
                let zero = Operand::Int(0);
                return self.int(IntBinaryOp::Sub, ty, zero, a).into();
            }
            Some(value) => {
                let wide = bits(ty) == Type::B64;
                let short = wide.then(|| self.divide_by_constant(ty, a, value, remainder)).flatten();
                return short.unwrap_or_else(|| self.int(op, ty, a, b).into());
            }
            None if !(may_be(0) || ty.is_signed() && may_be(-1)) => return self.int(op, ty, a, b).into(),
            None => {}
        }
        let zero = self.setp(Compare::Eq, ty, b, Operand::Int(0));
        if !ty.is_signed() {
            let safe = self.selp(bits(ty), zero, Operand::Int(1), b);
            let raw = self.int(op, ty, a, safe.into());
            return self.selp(bits(ty), zero, Operand::Int(0), raw.into()).into();
        }
        // A divisor of 0 or -1 is replaced by 1: then the quotient is a, and the remainder 0.
        let minus = self.setp(Compare::Eq, ty, b, Operand::Int(-1));
        let special = self.logic(LogicBinaryOp::Or, Type::Pred, zero.into(), minus.into());
        let safe = self.selp(bits(ty), special, Operand::Int(1), b);
        let raw = self.int(op, ty, a, safe.into());
        if remainder {
            return raw.into();
        }
        let negative = self.int(IntBinaryOp::Sub, ty, Operand::Int(0), raw.into());
        let signed = self.selp(bits(ty), minus, negative.into(), raw.into());
        self.selp(bits(ty), zero, Operand::Int(0), signed.into()).into()
    }

    pub fn negate(&mut self, scalar: Scalar, dst: Reg, a: Operand) {
        if scalar.is_float() {
            let (op, ty) = (FloatUnaryOp::Neg, signed_type(scalar));
            self.builder.emit(FloatUnary { op, ty, dst, a, ..Default::default() });
        } else {
            let ty = if scalar.size() == 8 { Type::S64 } else { Type::S32 };
            self.builder.emit(IntUnary { op: IntUnaryOp::Neg, ty, dst, a });
        }
    }

    /// Shift counts are taken modulo the width.
    fn shift_op(&mut self, opcode: Opcode, scalar: Scalar, result: Value, arguments: &[Value]) {
        let width = scalar.size() as i64 * 8;
        let amount = match self.constant_int(arguments[1]) {
            Some(count) => Operand::Int(count.rem_euclid(i128::from(width)) as i64),
            None => {
                let count = self.operand(arguments[1]);
                let count = if self.scalar(arguments[1]).size() == 8 {
                    self.cvt(None, Type::U32, Type::U64, count).into()
                } else {
                    count
                };
                self.logic(LogicBinaryOp::And, Type::B32, count, Operand::Int(width - 1)).into()
            }
        };
        let a = self.operand(arguments[0]);
        let dst = self.define(result);
        let (op, ty) = match opcode {
            Opcode::Shl => (ShiftOp::Left, bits_type(scalar)),
            _ => {
                let ty =
                    mutant!("select: zeros come in from the left", signed_type(scalar), bits_type(scalar));
                (ShiftOp::Right, ty)
            }
        };
        self.builder.emit(Shift { op, ty, dst, a, b: amount });
    }

    fn select(&mut self, result: Value, arguments: &[Value]) {
        let p = self.register(arguments[0]);
        let scalar = self.scalar(result);
        if scalar == Scalar::Bool {
            let (a, b) = (self.register(arguments[1]), self.register(arguments[2]));
            let picked = self.logic(LogicBinaryOp::And, Type::Pred, p.into(), a.into());
            let inverse = self.pred("");
            let (op, ty) = (LogicUnaryOp::Not, Type::Pred);
            self.builder.emit(LogicUnary { op, ty, dst: inverse, a: p.into() });
            let other = self.logic(LogicBinaryOp::And, Type::Pred, inverse.into(), b.into());
            let either = self.logic(LogicBinaryOp::Or, Type::Pred, picked.into(), other.into());
            self.maps.values[result] = Some(either.into());
            return;
        }
        let (a, b) = (self.operand(arguments[1]), self.operand(arguments[2]));
        let (a, b) = mutant!("select: the sides of a `select` are exchanged", (a, b), (b, a));
        let dst = self.define(result);
        self.builder.emit(Selp { ty: bits_type(scalar), dst, a, b, p });
    }

    /// An integer operand as i64.
    pub fn widen_to_i64(&mut self, operand: Operand, from: Scalar) -> Operand {
        match (operand, from) {
            (Operand::Int(_), _) | (_, Scalar::I64 | Scalar::U64) => operand,
            (operand, from) => self.cvt(None, Type::S64, signed_type(from), operand).into(),
        }
    }
}

/// The untyped form of an integer type.
pub(super) fn bits(ty: Type) -> Type {
    if ty.bits() == 64 { Type::B64 } else { Type::B32 }
}
