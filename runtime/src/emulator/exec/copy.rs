//! `cp.async`: copies from global to shared memory that are carried out as late as the program allows.
//!
//! Addresses are checked when the copy is issued, but the bytes move only when the thread waits for their group (or
//! exits). So a missing wait shows: the data is not there.

use std::collections::VecDeque;

use super::Outcome;
use super::lanes::{Registers, lanes_of};
use super::memory::{Request, View, addresses, copy_bytes};
use crate::emulator::fault::AccessKind;
use crate::emulator::opcodes::CopyForm;
use crate::emulator::program::NOWHERE;

/// One thread's copy, on its way.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    to: *mut u8,
    from: *mut u8,
    bytes: u32,
    /// How many bytes are read; the rest is zero.
    from_bytes: u32,
}

impl Pending {
    pub fn carry_out(&self) {
        // SAFETY: both ends were checked by `locate` when the copy was issued, and live as long as the block.
        unsafe { copy_bytes(self.to, self.from, self.bytes as usize, self.from_bytes as usize) };
    }
}

/// What the copies of one warp's threads are, `T` a copy, in the groups that the threads have made of them.
#[derive(Debug)]
pub struct CopyQueue<T> {
    /// Lane and copy.
    open: Vec<(u32, T)>,
    /// Committed groups from the oldest, each with the lanes that committed it.
    groups: VecDeque<(u32, Vec<(u32, T)>)>,
}

impl<T> Default for CopyQueue<T> {
    fn default() -> Self {
        Self { open: Vec::new(), groups: VecDeque::new() }
    }
}

impl CopyQueue<Pending> {
    /// Issues a copy for the lanes in `mask`.
    pub fn begin(
        &mut self,
        form: &CopyForm,
        r: &Registers,
        view: &mut View<'_>,
        mask: u32,
        pc: usize,
        warp: usize,
    ) -> Outcome {
        let bytes = form.bytes;
        let from_bytes = |lane: usize| {
            if form.from_bytes == NOWHERE { bytes } else { r.c32(form.from_bytes)[lane].min(bytes) }
        };
        // A copy of no bytes reads nothing, so its source may be anywhere.
        let reading =
            lanes_of(mask).filter(|lane| from_bytes(*lane) > 0).fold(0, |bits, lane| bits | 1 << lane);
        let sources = addresses(r, form.from_base, form.from_base_is_wide, form.from_offset);
        let request = Request { pc, warp, space: form.from, access: AccessKind::Load, bytes };
        let from = view.locate(request, &sources, reading)?;
        let targets = addresses(r, form.to_base, form.to_base_is_wide, form.to_offset);
        let request = Request { pc, warp, space: form.to, access: AccessKind::Store, bytes };
        let to = view.locate(request, &targets, mask)?;
        for lane in lanes_of(mask) {
            let from_bytes = from_bytes(lane);
            self.push(lane as u32, Pending { to: to[lane], from: from[lane], bytes, from_bytes });
        }
        Ok(())
    }
}

impl<T: Copy> CopyQueue<T> {
    pub fn clear(&mut self) {
        self.open.clear();
        self.groups.clear();
    }

    /// A lane begins a copy.
    pub fn push(&mut self, lane: u32, copy: T) {
        self.open.push((lane, copy));
    }

    /// Closes the open group of the lanes in `mask`.
    pub fn commit(&mut self, mask: u32) {
        let of_mask = |(lane, _): &(u32, T)| mask >> lane & 1 == 1;
        let group = self.open.iter().copied().filter(of_mask).collect();
        self.open.retain(|copy| !of_mask(copy));
        self.groups.push_back((mask, group));
    }

    /// Ends the copies of the lanes in `mask`, but for their latest `keep` groups; of all, open ones too, where `keep` is
    /// negative. `done` sees each, in the order in which they were begun.
    pub fn wait(&mut self, mask: u32, keep: i64, mut done: impl FnMut(&T)) {
        if self.open.is_empty() && self.groups.is_empty() {
            return;
        }
        let mut end = |copies: &mut Vec<(u32, T)>, due: u32| {
            copies.retain(|(lane, copy)| {
                let now = due >> lane & 1 == 1;
                if now {
                    done(copy);
                }
                !now
            });
        };
        let mut newer = [0i64; 32];
        // From the newest, to know which are among the latest; carried out from the oldest, as issued.
        let mut due = vec![0u32; self.groups.len()];
        for (at, (lanes, _)) in self.groups.iter().enumerate().rev() {
            for lane in lanes_of(*lanes & mask) {
                if newer[lane] >= keep {
                    due[at] |= 1 << lane;
                }
                newer[lane] += 1;
            }
        }
        for ((lanes, copies), due) in self.groups.iter_mut().zip(due) {
            end(copies, due);
            *lanes &= !due;
        }
        while self.groups.front().is_some_and(|(lanes, _)| *lanes == 0) {
            self.groups.pop_front();
        }
        if keep < 0 {
            end(&mut self.open, mask);
        }
    }
}
