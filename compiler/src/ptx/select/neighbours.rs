//! Addresses of neighbours: an element of which one subscript differs by a constant from that of an address that is
//! there already lies a known number of rows, or planes, away from it.
//!
//! ```text
//! u[z, y, x]        mad.lo  %position, %z, %h, %y; mad.lo …; shl …; add.s64 %u_at, %p_u_base, %offset
//! u[z, y + 1, x]    add.s64 %u_at2, %u_at, %row
//! ```

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::offsets::OffsetKey;
use super::selector::Selector;
use crate::ir::entities::{Buffer, Value};

/// More rows than this are no neighbours.
const MAX_STEPS: i64 = 64;

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
            .min_by_key(|(steps, _)| steps.iter().map(|(_, count)| count.abs()).sum::<i64>());
        let (steps, mut reg) = best?;
        for (axis, count) in steps {
            let stride = self.stride_bytes(buffer, key, axis);
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

    /// How far it is from one element to another, as (axis, difference); `None` where that is no constant, or far.
    fn steps(&self, from: &[Value], to: &[Value]) -> Option<Vec<(usize, i64)>> {
        let mut steps = Vec::new();
        for (axis, (from, to)) in from.iter().zip(to).enumerate() {
            let ((root, start), (other, end)) =
                (self.maps.rooted(self.kernel, *from), self.maps.rooted(self.kernel, *to));
            let count = end.checked_sub(start).filter(|count| count.abs() <= MAX_STEPS)?;
            if root != other {
                return None;
            }
            if count != 0 {
                steps.push((axis, count));
            }
        }
        // The last axis' steps are constants of the instruction, and more than two would be no gain.
        let last = to.len().checked_sub(1)?;
        (steps.len() <= 2 && steps.iter().all(|(axis, _)| *axis < last)).then_some(steps)
    }

    /// Bytes from one element to the next along an axis.
    fn stride_bytes(&mut self, buffer: Buffer, key: OffsetKey, axis: usize) -> Operand {
        let known = OffsetKey { base: None, stride: axis as u32 + 1, ..key };
        if let Some(reg) = self.offsets.find(known, &[]) {
            return reg.into();
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
