//! Warp-wide operations: `shfl vote match redux activemask`.
//!
//! Every lane that executes such an operation must be in the member mask, and every member that has not exited must
//! be executing it: otherwise the result is undefined on the hardware, and a fault here. A value taken from a lane
//! that is not executing reads as zero.

use krn_compiler::ptx::instruction::{MatchMode, ReduxOp, ShflMode, VoteMode};

use super::lanes::{Registers, lanes_of, write};
use super::{Outcome, fault};
use crate::emulator::fault::FaultKind;
use crate::emulator::opcodes::Collective;
use crate::emulator::program::{Inst, NOWHERE};

/// Checks the member masks of the lanes that execute, and yields the mask.
pub fn members(r: &Registers, column: u32, active: u32, live: u32) -> Outcome<u32> {
    let masks = r.c32(column);
    // Most have the same mask in every lane.
    let uniform = active.trailing_zeros() < 32 && {
        let first = masks[active.trailing_zeros() as usize];
        let differ =
            (0..32).fold(0, |bits, lane| bits | (masks[lane] ^ first) & (active >> lane & 1).wrapping_neg());
        differ == 0 && active & !first == 0 && first & live & !active == 0
    };
    if uniform {
        return Ok(masks[active.trailing_zeros() as usize]);
    }
    let mut groups = 0u32;
    for lane in lanes_of(active) {
        let mask = masks[lane];
        let bad = |reason| fault(1 << lane, FaultKind::CollectiveMask { mask, active, reason });
        if mask >> lane & 1 == 0 {
            return bad("a thread executes it that is not in its mask");
        }
        if mask & live & !active != 0 {
            return bad("the mask names threads that took another path");
        }
        groups |= mask;
    }
    Ok(groups)
}

/// Runs a collective over the lanes in `active`; `live` are the lanes of the warp that have not exited.
pub fn run(op: Collective, r: &mut Registers, i: &Inst, active: u32, live: u32) -> Outcome {
    match op {
        Collective::Activemask => write(r, i.d, active, &[active; 32]),
        Collective::Shfl(mode) => {
            members(r, i.imm as u32, active, live)?;
            shuffle(mode, r, i, active);
        }
        Collective::Vote(mode) => {
            members(r, i.b, active, live)?;
            vote(mode, r, i, active);
        }
        Collective::Match32(mode) => {
            members(r, i.b, active, live)?;
            let values = r.c32(i.a).map(u64::from);
            matching(mode, r, i, active, &values);
        }
        Collective::Match64(mode) => {
            members(r, i.b, active, live)?;
            let values = *r.c64(i.a);
            matching(mode, r, i, active, &values);
        }
        Collective::ReduxU(op) => {
            members(r, i.b, active, live)?;
            redux(r, i, active, |a, b| match op {
                ReduxOp::Min => a.min(b),
                ReduxOp::Max => a.max(b),
                other => bitwise(other, a, b),
            });
        }
        Collective::ReduxS(op) => {
            members(r, i.b, active, live)?;
            redux(r, i, active, |a, b| match op {
                ReduxOp::Min => (a as i32).min(b as i32) as u32,
                ReduxOp::Max => (a as i32).max(b as i32) as u32,
                other => bitwise(other, a, b),
            });
        }
    }
    Ok(())
}

fn shuffle(mode: ShflMode, r: &mut Registers, i: &Inst, active: u32) {
    // A loop a mode.
    match mode {
        ShflMode::Up => shuffle_by(r, i, active, |at| {
            let source = at.own.wrapping_sub(at.distance);
            (source, source as i32 >= at.most as i32)
        }),
        ShflMode::Down => {
            shuffle_by(r, i, active, |at| (at.own + at.distance, at.own + at.distance <= at.most))
        }
        ShflMode::Bfly => {
            shuffle_by(r, i, active, |at| (at.own ^ at.distance, at.own ^ at.distance <= at.most))
        }
        ShflMode::Idx => shuffle_by(r, i, active, |at| {
            let source = at.least | (at.distance & !at.segment);
            (source, source <= at.most)
        }),
    }
}

/// What a lane's shuffle says.
struct Shuffled {
    own: u32,
    distance: u32,
    segment: u32,
    least: u32,
    most: u32,
}

/// `from` says which lane a lane's value comes from, and whether that one is in range.
#[inline(always)]
fn shuffle_by(r: &mut Registers, i: &Inst, active: u32, from: impl Fn(Shuffled) -> (u32, bool)) {
    let (values, distances, controls) = (*r.c32(i.a), *r.c32(i.b), *r.c32(i.c));
    let mut out = [0; 32];
    let mut in_range = 0;
    for lane in 0..32 {
        let own = lane as u32;
        let segment = controls[lane] >> 8 & 31;
        let least = own & segment;
        let most = least | (controls[lane] & 31 & !segment);
        let (source, fits) = from(Shuffled { own, distance: distances[lane] & 31, segment, least, most });
        let source = (if fits { source } else { own }) & 31;
        in_range |= u32::from(fits) << lane;
        out[lane] = values[source as usize] & (active >> source & 1).wrapping_neg();
    }
    let predicate = (i.imm >> 32) as u32;
    if i.d != NOWHERE {
        write(r, i.d, active, &out);
    }
    if predicate != NOWHERE {
        r.set_predicate(predicate, active, in_range);
    }
}

fn vote(mode: VoteMode, r: &mut Registers, i: &Inst, active: u32) {
    let flip = if i.imm == 1 { u32::MAX } else { 0 };
    let yes = (r.predicate(i.a) ^ flip) & active;
    let masks = *r.c32(i.b);
    if mode == VoteMode::Ballot {
        write(r, i.d, active, &masks.map(|mask| yes & mask));
        return;
    }
    let mut bits = 0;
    for lane in lanes_of(active) {
        let (group, yes) = (masks[lane] & active, yes & masks[lane]);
        let answer = match mode {
            VoteMode::All => yes == group,
            VoteMode::Any => yes != 0,
            _ => yes == 0 || yes == group,
        };
        bits |= u32::from(answer) << lane;
    }
    r.set_predicate(i.d, active, bits);
}

fn matching(mode: MatchMode, r: &mut Registers, i: &Inst, active: u32, values: &[u64; 32]) {
    let masks = *r.c32(i.b);
    let mut out = [0; 32];
    let mut agree = 0;
    for lane in lanes_of(active) {
        let group = masks[lane] & active;
        let equal = lanes_of(group)
            .filter(|other| values[*other] == values[lane])
            .fold(0, |bits, other| bits | 1u32 << other);
        out[lane] = match mode {
            MatchMode::Any => equal,
            MatchMode::All if equal == group => {
                agree |= 1 << lane;
                masks[lane]
            }
            MatchMode::All => 0,
        };
    }
    write(r, i.d, active, &out);
    if i.c != NOWHERE {
        r.set_predicate(i.c, active, agree);
    }
}

fn bitwise(op: ReduxOp, a: u32, b: u32) -> u32 {
    match op {
        ReduxOp::And => a & b,
        ReduxOp::Or => a | b,
        ReduxOp::Xor => a ^ b,
        _ => a.wrapping_add(b),
    }
}

fn redux(r: &mut Registers, i: &Inst, active: u32, f: impl Fn(u32, u32) -> u32) {
    let (values, masks) = (*r.c32(i.a), *r.c32(i.b));
    let mut out = [0; 32];
    for lane in lanes_of(active) {
        let group = masks[lane] & active;
        out[lane] = lanes_of(group).map(|other| values[other]).reduce(&f).unwrap_or_default();
    }
    write(r, i.d, active, &out);
}
