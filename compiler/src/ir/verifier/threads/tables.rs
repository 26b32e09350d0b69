//! Values that are functions of the thread's number and literals: one number a thread.

use crate::ir::entities::Value;
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// One number a thread; truth is 1.
pub type Table = Rc<[i64]>;

/// The tables of a launch's values, computed when asked for.
pub struct Tables<'k> {
    kernel: &'k Kernel,
    pub threads: usize,
    known: FxHashMap<Value, Option<Table>>,
}

/// Longer chains of definitions are not followed.
const MAX_DEPTH: u32 = 48;

impl<'k> Tables<'k> {
    pub fn new(kernel: &'k Kernel, threads: usize) -> Self {
        Self { kernel, threads, known: FxHashMap::default() }
    }

    /// What each thread computes; `None` where that depends on anything else.
    pub fn of(&mut self, value: Value) -> Option<Table> {
        self.within(value, MAX_DEPTH)
    }

    fn within(&mut self, value: Value, depth: u32) -> Option<Table> {
        if let Some(known) = self.known.get(&value) {
            return known.clone();
        }
        let table = depth.checked_sub(1).and_then(|depth| self.compute(value, depth));
        self.known.insert(value, table.clone());
        table
    }

    fn compute(&mut self, value: Value, depth: u32) -> Option<Table> {
        let data = self.kernel.definition_data(value)?;
        match (data.opcode, &data.payload) {
            (Opcode::ThreadIndex, _) => return Some((0..self.threads as i64).collect()),
            (_, Payload::Constant(Constant::Int(_, value))) => {
                return Some(vec![i64::try_from(*value).ok()?; self.threads].into());
            }
            (_, Payload::Constant(Constant::Bool(value))) => {
                return Some(vec![i64::from(*value); self.threads].into());
            }
            (_, Payload::None) => {}
            _ => return None,
        }
        // What a narrower type computes may wrap.
        let operand = data.arguments.first()?;
        if !matches!(self.kernel.value_type(*operand), crate::data::Scalar::I64 | crate::data::Scalar::Bool) {
            return None;
        }
        if !matches!(data.arguments.len(), 1 | 2) || arithmetic(data.opcode, 1, 1).is_none() {
            return None;
        }
        let a = self.within(data.arguments[0], depth)?;
        let b = match data.arguments.get(1) {
            Some(b) => self.within(*b, depth)?,
            None => a.clone(),
        };
        let boolean = self.kernel.value_type(*operand) == crate::data::Scalar::Bool;
        let of = |(a, b): (&i64, &i64)| match data.opcode {
            Opcode::Not if boolean => Some(1 - a),
            _ => arithmetic(data.opcode, *a, *b),
        };
        a.iter().zip(b.iter()).map(of).collect()
    }
}

/// What the IR computes in i64 or bool; the second operand of a unary operation does not count.
fn arithmetic(opcode: Opcode, a: i64, b: i64) -> Option<i64> {
    Some(match opcode {
        Opcode::Add => a.wrapping_add(b),
        Opcode::Sub => a.wrapping_sub(b),
        Opcode::Mul => a.wrapping_mul(b),
        Opcode::Div => {
            if b == 0 {
                0
            } else {
                a.wrapping_div(b)
            }
        }
        Opcode::Rem => {
            if b == 0 {
                0
            } else {
                a.wrapping_rem(b)
            }
        }
        Opcode::Min => a.min(b),
        Opcode::Max => a.max(b),
        Opcode::And => a & b,
        Opcode::Or => a | b,
        Opcode::Xor => a ^ b,
        Opcode::Shl => a.wrapping_shl(b as u32),
        Opcode::Shr => a.wrapping_shr(b as u32),
        Opcode::Neg => a.wrapping_neg(),
        Opcode::Not => !a,
        Opcode::Eq => i64::from(a == b),
        Opcode::Ne => i64::from(a != b),
        Opcode::Lt => i64::from(a < b),
        Opcode::Le => i64::from(a <= b),
        Opcode::Gt => i64::from(a > b),
        Opcode::Ge => i64::from(a >= b),
        _ => return None,
    })
}
