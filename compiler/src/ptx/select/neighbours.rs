//! Addresses of neighbours: an element of which one subscript differs by a constant from that of an address that is
//! there already lies a known number of rows, or planes, away from it.
//!
//! ```text
//! u[z, y, x]        mad.lo  %position, %z, %h, %y; mad.lo …; shl …; add.s64 %u_at, %p_u_base, %offset
//! u[z, y + 1, x]    add.s64 %u_at2, %u_at, %row
//! ```
//!
//! So does one whose subscript counts in steps of a value: `x[i * s, j]` and `x[(i + 1) * s, j]` are `s` rows apart.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::offsets::OffsetKey;
use super::selector::Selector;
use crate::ir::entities::{Buffer, Value};
use crate::ir::op::Opcode;

/// More rows than this are no neighbours.
const MAX_STEPS: i64 = 64;

/// How far it is from one element to another along an axis: so many times a value, or elements where there is none.
struct Steps {
    axis: usize,
    count: i64,
    of: Option<Value>,
}

impl Selector<'_> {
    /// The address that a key asks for, as a step from one that was computed before.
    pub(super) fn step_from_neighbour(
        &mut self,
        buffer: Buffer,
        key: OffsetKey,
        indices: &[Value],
        hint: &str,
    ) -> Option<Reg> {
        let candidates = self.offsets.like(key).map(|(known, reg)| (self.steps(known, indices), reg));
        let best = candidates
            .filter_map(|(steps, reg)| Some((steps?, reg)))
            .min_by_key(|(steps, _)| steps.iter().map(|steps| steps.count.abs()).sum::<i64>());
        let (steps, mut reg) = best?;
        for Steps { axis, count, of } in steps {
            let stride = self.stride_bytes(buffer, key, axis, of);
            let dst = self.builder.reg_for(Type::U64, hint);
            if count.abs() == 1 {
                let op = if count > 0 { IntBinaryOp::Add } else { IntBinaryOp::Sub };
                self.builder.emit(IntBinary {
                    op,
                    ty: Type::S64,
                    dst,
                    a: reg.into(),
                    b: stride,
                    ..Default::default()
                });
            } else {
                self.builder.emit(IntMad {
                    part: MulPart::Lo,
                    ty: Type::S64,
                    dst,
                    a: stride,
                    b: Operand::Int(count),
                    c: reg.into(),
                    ..Default::default()
                });
            }
            reg = dst;
        }
        Some(reg)
    }

    /// How far it is from one element to another; `None` where that is not known, or far.
    fn steps(&self, from: &[Value], to: &[Value]) -> Option<Vec<Steps>> {
        let mut steps = Vec::new();
        for (axis, (from, to)) in from.iter().zip(to).enumerate() {
            let (count, of) = self.step(*from, *to)?;
            if count.abs() > MAX_STEPS {
                return None;
            }
            if count != 0 {
                steps.push(Steps { axis, count, of });
            }
        }
        // The last axis' steps are constants of the instruction, and more than two would be no gain.
        let last = to.len().checked_sub(1)?;
        (steps.len() <= 2 && steps.iter().all(|steps| steps.axis < last)).then_some(steps)
    }

    /// How far it is from one value to another.
    fn step(&self, from: Value, to: Value) -> Option<(i64, Option<Value>)> {
        let rooted = |value| self.maps.rooted(self.kernel, value);
        let ((root, start), (other, end)) = (rooted(from), rooted(to));
        if root == other {
            return Some((end.checked_sub(start)?, None));
        }
        let ((base, from, of), (other, to, by)) = (self.multiple(root)?, self.multiple(other)?);
        let ((root, first), (same, last)) = (rooted(from), rooted(to));
        (start == end && base == other && of == by && root == same)
            .then_some((last.checked_sub(first)?, Some(of)))
    }

    /// A value as a sum of something and a product; the product's second factor is the same for all indices of a loop.
    fn multiple(&self, value: Value) -> Option<(Option<Value>, Value, Value)> {
        let data = self.kernel.definition_data(value)?;
        let product = |value: Value| {
            let data = self.kernel.definition_data(value).filter(|data| data.opcode == Opcode::Mul)?;
            Some((data.arguments[0], data.arguments[1]))
        };
        if data.opcode == Opcode::Add {
            let [left, right] = [data.arguments[0], data.arguments[1]];
            let (base, (index, of)) =
                product(right).map(|product| (left, product)).or_else(|| Some((right, product(left)?)))?;
            return Some((Some(base), index, of));
        }
        product(value).map(|(index, of)| (None, index, of))
    }

    /// Bytes from one element to the next along an axis, or to the one that lies a value away.
    fn stride_bytes(&mut self, buffer: Buffer, key: OffsetKey, axis: usize, of: Option<Value>) -> Operand {
        let known = OffsetKey { base: None, stride: axis as u32 + 1, ..key };
        if let Some(reg) = self.offsets.find(known, of.as_slice()) {
            return reg.into();
        }
        if let Some(of) = of {
            let (stride, times) = (self.stride_bytes(buffer, key, axis, None), self.operand(of));
            let dst = self.builder.reg_for(Type::B64, "rows");
            self.builder.emit(IntBinary {
                op: IntBinaryOp::Mul,
                part: MulPart::Lo,
                ty: Type::S64,
                dst,
                a: stride,
                b: times,
                ..Default::default()
            });
            self.offsets.insert(known, &[of], dst);
            return dst.into();
        }
        // The list of extents begins with the second axis'.
        let extents = self.extents[buffer].1[axis..].to_vec();
        let mut count = extents[0];
        for extent in &extents[1..] {
            let dst = self.builder.reg_for(Type::B64, "plane");
            self.builder.emit(IntBinary {
                op: IntBinaryOp::Mul,
                part: MulPart::Lo,
                ty: Type::S64,
                dst,
                a: count,
                b: *extent,
                ..Default::default()
            });
            count = dst.into();
        }
        let bytes = self.scaled(count, key.scale);
        if let Operand::Reg(reg) = bytes {
            self.offsets.insert(known, &[], reg);
        }
        bytes
    }
}
