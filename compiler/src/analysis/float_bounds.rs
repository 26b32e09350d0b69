//! What a float is at least, from facts about parameters: squares are not negative, and rounding keeps order.

use crate::data::Scalar;
use crate::ir::entities::{Launch, Symbol, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntityRef;

/// Longer chains of definitions are not followed.
const MAX_DEPTH: u32 = 24;

/// The smallest normal f32, 2^-126.
pub fn least_normal() -> f64 {
    f64::from(f32::MIN_POSITIVE)
}

/// Lower bounds of the values of a launch.
pub struct FloatBounds<'k> {
    kernel: &'k Kernel,
    launch: Launch,
    /// Parameters that are supposed to be at least so large.
    supposed: Vec<(Symbol, f64)>,
}

impl<'k> FloatBounds<'k> {
    pub fn new(kernel: &'k Kernel, launch: Launch) -> Self {
        Self { kernel, launch, supposed: Vec::new() }
    }

    /// Goes on as if a parameter were at least so large.
    pub fn suppose(&mut self, symbol: Symbol, least: f64) {
        self.supposed.push((symbol, least));
    }

    /// What an f32 or f64 is at least, unless it is NaN; negative infinity where nothing is known.
    pub fn least(&self, value: Value) -> f64 {
        self.within(value, MAX_DEPTH)
    }

    fn within(&self, value: Value, depth: u32) -> f64 {
        let unknown = f64::NEG_INFINITY;
        let (Some(depth), Some(data)) = (depth.checked_sub(1), self.kernel.definition_data(value)) else {
            return unknown;
        };
        if !matches!(self.kernel.value_type(value), Scalar::F32 | Scalar::F64) {
            return unknown;
        }
        let of = |at: usize| self.within(data.arguments[at], depth);
        match (data.opcode, &data.payload) {
            (_, Payload::Constant(Constant::F32(bits))) => known(f64::from(f32::from_bits(*bits))),
            (_, Payload::Constant(Constant::F64(bits))) => known(f64::from_bits(*bits)),
            (_, Payload::Symbol(symbol)) => self.symbol(*symbol),
            (Opcode::Mul, _) if data.arguments[0] == data.arguments[1] => 0.0,
            (Opcode::Mul, _) if of(0) >= 0.0 && of(1) >= 0.0 => 0.0,
            (Opcode::Add, _) => sum(of(0), of(1)),
            (Opcode::Fma, _) if data.arguments[0] == data.arguments[1] => sum(0.0, of(2)),
            (Opcode::Abs | Opcode::Exp | Opcode::Exp2, _) => 0.0,
            // A NaN loses against a number.
            (Opcode::Min | Opcode::Max, _) => of(0).min(of(1)),
            (Opcode::Select, _) => of(1).min(of(2)),
            _ => unknown,
        }
    }

    fn symbol(&self, symbol: Symbol) -> f64 {
        let mut least = f64::NEG_INFINITY;
        for (supposed, bound) in &self.supposed {
            if *supposed == symbol {
                least = least.max(*bound);
            }
        }
        for condition in self.kernel.conditions(Some(self.launch)) {
            least = least.max(from_condition(condition, symbol.index()));
        }
        least
    }
}

/// A literal as a bound; a NaN is none.
fn known(value: f64) -> f64 {
    if value.is_nan() { f64::NEG_INFINITY } else { value }
}

/// The sum of two numbers is at least either, where the other is not negative.
fn sum(a: f64, b: f64) -> f64 {
    match (a >= 0.0, b >= 0.0) {
        (true, true) => a.max(b),
        (true, false) => b,
        (false, true) => a,
        (false, false) => f64::NEG_INFINITY,
    }
}

/// What a condition says that a symbol is at least.
fn from_condition(condition: &Expr, symbol: usize) -> f64 {
    let unknown = f64::NEG_INFINITY;
    let Expr::Binary(op, left, right) = condition else { return unknown };
    let number = |expr: &Expr| match expr {
        Expr::Float(value) => known(*value),
        Expr::Int(value) => *value as f64,
        _ => unknown,
    };
    match (op, &**left, &**right) {
        (BinaryOp::And, left, right) => from_condition(left, symbol).max(from_condition(right, symbol)),
        (BinaryOp::Greater | BinaryOp::GreaterEqual, Expr::Symbol(found), bound) if *found == symbol => {
            number(bound)
        }
        (BinaryOp::Less | BinaryOp::LessEqual, bound, Expr::Symbol(found)) if *found == symbol => {
            number(bound)
        }
        _ => unknown,
    }
}
