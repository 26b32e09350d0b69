//! Moves, packing and unpacking, and the few values that change while a warp runs (clocks).

use super::lanes::{Lane, Registers, write};
use super::multiversioned;
use crate::emulator::opcodes::MoveOp;
use crate::emulator::program::Inst;

multiversioned! {
    /// Moves; `clock` is the count of instructions that the warp has executed.
    pub fn moves(op: MoveOp, r: &mut Registers, lists: &[u32], i: &Inst, mask: u32, clock: u64) {
        match op {
            MoveOp::Move32 => copy::<u32>(r, i.d, i.a, mask),
            MoveOp::Move64 => copy::<u64>(r, i.d, i.a, mask),
            MoveOp::MovePredicate => r.set_predicate(i.d, mask, r.predicate(i.a)),
            MoveOp::ClearPredicate => r.set_predicate(i.d, mask, 0),
            MoveOp::Many32 => many::<u32>(r, lists, i, mask),
            MoveOp::Many64 => many::<u64>(r, lists, i, mask),
            MoveOp::Pack64 => {
                super::lanes::map2(r, i, mask, |a: u32, b: u32| u64::from(b) << 32 | u64::from(a));
            }
            MoveOp::Unpack64 => {
                let a = *r.c64(i.a);
                put(r, i.d, mask, a.map(|a| a as u32));
                put(r, i.b, mask, a.map(|a| (a >> 32) as u32));
            }
            MoveOp::Pack32 => super::lanes::map2(r, i, mask, |a: u32, b: u32| b << 16 | (a & 0xffff)),
            MoveOp::Unpack32 => {
                let a = *r.c32(i.a);
                put(r, i.d, mask, a.map(|a| a & 0xffff));
                put(r, i.b, mask, a.map(|a| a >> 16));
            }
            MoveOp::Pack64x4 => {
                let parts = [*r.c32(i.a), *r.c32(i.b), *r.c32(i.c), *r.c32(i.imm as u32)];
                let mut out = [0u64; 32];
                for (part, column) in parts.iter().enumerate() {
                    for lane in 0..32 {
                        out[lane] |= u64::from(column[lane] & 0xffff) << (16 * part);
                    }
                }
                write(r, i.d, mask, &out);
            }
            MoveOp::Unpack64x4 => {
                let a = *r.c64(i.a);
                for (part, to) in lists[i.b as usize..][..4].iter().enumerate() {
                    put(r, *to, mask, a.map(|a| (a >> (16 * part)) as u32 & 0xffff));
                }
            }
            MoveOp::Clock32 => write(r, i.d, mask, &[clock as u32; 32]),
            MoveOp::Clock64 => write(r, i.d, mask, &[clock; 32]),
        }
    }
}

#[inline(always)]
fn copy<T: Lane>(r: &mut Registers, d: u32, a: u32, mask: u32) {
    let from = T::columns(r)[a as usize].0;
    write(r, d, mask, &from);
}

/// All sources are read before any destination is written: the lists may overlap.
#[inline(always)]
fn many<T: Lane>(r: &mut Registers, lists: &[u32], i: &Inst, mask: u32) {
    let pairs = &lists[i.a as usize..][..2 * i.b as usize];
    let mut held = [[T::default(); 32]; 8];
    for (pair, held) in pairs.chunks_exact(2).zip(&mut held) {
        *held = T::columns(r)[pair[1] as usize].0;
    }
    for (pair, held) in pairs.chunks_exact(2).zip(&held) {
        write(r, pair[0], mask, held);
    }
}

#[inline(always)]
fn put(r: &mut Registers, column: u32, mask: u32, values: [u32; 32]) {
    if column != crate::emulator::program::NOWHERE {
        write(r, column, mask, &values);
    }
}
