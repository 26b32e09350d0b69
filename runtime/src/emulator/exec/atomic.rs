//! `atom` and `red`: lanes one after the other, from the lowest.
//!
//! Each lane's operation is one atomic operation of the host, so blocks that run side by side cannot lose updates.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use krn_compiler::ptx::Type;
use krn_compiler::ptx::instruction::AtomOp;

use super::Outcome;
use super::lanes::{Registers, lanes_of};
use super::memory::{Request, View, addresses};
use super::round::{self, BF16, F16, Format};
use crate::emulator::fault::AccessKind;
use crate::emulator::opcodes::{AtomicForm, AtomicOp};
use crate::emulator::program::{Inst, NOWHERE};

impl AtomicOp {
    /// The width in memory, in bits.
    fn bits(self) -> u32 {
        self.ty.bits()
    }

    /// The value after the operation, from the value before.
    fn combine(self, old: u64, a: u64, b: u64) -> u64 {
        let signed = self.ty.is_signed();
        let sign_extend = |value: u64| {
            let cut = 64 - self.bits();
            ((value << cut) as i64) >> cut
        };
        match self.op {
            AtomOp::Add => self.add(old, a),
            AtomOp::Exch => a,
            AtomOp::Cas => {
                if old == a {
                    b
                } else {
                    old
                }
            }
            AtomOp::And => old & a,
            AtomOp::Or => old | a,
            AtomOp::Xor => old ^ a,
            AtomOp::Inc => {
                if old >= a {
                    0
                } else {
                    old + 1
                }
            }
            AtomOp::Dec => {
                if old == 0 || old > a {
                    a
                } else {
                    old - 1
                }
            }
            AtomOp::Min | AtomOp::Max if self.ty.is_float() => self.float_least_or_most(old, a),
            AtomOp::Min if signed => sign_extend(old).min(sign_extend(a)) as u64,
            AtomOp::Max if signed => sign_extend(old).max(sign_extend(a)) as u64,
            AtomOp::Min => old.min(a),
            AtomOp::Max => old.max(a),
        }
    }

    fn add(self, old: u64, a: u64) -> u64 {
        let narrow = |format: Format, old: u64, a: u64| {
            let sum = round::add_odd(
                round::widen(old as u32 & 0xffff, format),
                round::widen(a as u32 & 0xffff, format),
            );
            u64::from(round::round(sum, format, Default::default()))
        };
        let halves = |format| narrow(format, old, a) | narrow(format, old >> 16, a >> 16) << 16;
        match self.ty {
            Type::F32 => {
                let sum = f32::from_bits(old as u32) + f32::from_bits(a as u32);
                u64::from(if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() })
            }
            Type::F64 => {
                let sum = f64::from_bits(old) + f64::from_bits(a);
                if sum.is_nan() { round::NAN64 } else { sum.to_bits() }
            }
            Type::F16 => narrow(F16, old, a),
            Type::Bf16 => narrow(BF16, old, a),
            Type::F16x2 => halves(F16),
            Type::Bf16x2 => halves(BF16),
            _ => old.wrapping_add(a),
        }
    }

    fn float_least_or_most(self, old: u64, a: u64) -> u64 {
        let value = |bits: u64| match self.ty {
            Type::F32 => f64::from(f32::from_bits(bits as u32)),
            Type::F16 => round::widen(bits as u32 & 0xffff, F16),
            Type::Bf16 => round::widen(bits as u32 & 0xffff, BF16),
            _ => f64::from_bits(bits),
        };
        let (x, y) = (value(old), value(a));
        let take_new = match self.op {
            AtomOp::Min => y < x || (y == x && y.is_sign_negative()),
            _ => y > x || (y == x && y.is_sign_positive()),
        };
        if (take_new && !y.is_nan()) || x.is_nan() { a } else { old }
    }
}

/// Runs an atomic over the lanes in `mask`.
pub fn run(
    form: AtomicForm,
    r: &mut Registers,
    view: &mut View<'_>,
    i: &Inst,
    mask: u32,
    pc: usize,
    warp: usize,
) -> Outcome {
    let op = form.op;
    let bytes = op.ty.bytes();
    let request = Request { pc, warp, space: form.space, access: AccessKind::Atomic, bytes };
    let pointers = view.locate(request, &addresses(r, i.a, form.wide_base, i.imm), mask)?;
    let wide = op.bits() == 64;
    let read = |r: &Registers, column: u32, lane: usize| {
        if wide { r.c64(column)[lane] } else { u64::from(r.c32(column)[lane]) }
    };
    for lane in lanes_of(mask) {
        let a = read(r, i.b, lane);
        let b = if op.op == AtomOp::Cas { read(r, i.c, lane) } else { 0 };
        let to = pointers[lane];
        // SAFETY: `locate` checked this lane for range and alignment, and all access to device memory is atomic.
        let old = unsafe {
            match op.bits() {
                64 => {
                    let place = AtomicU64::from_ptr(to.cast());
                    place.fetch_update(Relaxed, Relaxed, |old| Some(op.combine(old, a, b)))
                }
                32 => {
                    let place = AtomicU32::from_ptr(to.cast());
                    let next = |old: u32| Some(op.combine(old.into(), a, b) as u32);
                    place.fetch_update(Relaxed, Relaxed, next).map(u64::from).map_err(u64::from)
                }
                _ => {
                    let place = AtomicU16::from_ptr(to.cast());
                    let next = |old: u16| Some(op.combine(old.into(), a & 0xffff, b & 0xffff) as u16);
                    place.fetch_update(Relaxed, Relaxed, next).map(u64::from).map_err(u64::from)
                }
            }
        };
        let (Ok(old) | Err(old)) = old;
        if i.d == NOWHERE {
            continue;
        }
        if wide {
            r.w64[i.d as usize].0[lane] = old;
        } else {
            r.w32[i.d as usize].0[lane] = old as u32;
        }
    }
    Ok(())
}
