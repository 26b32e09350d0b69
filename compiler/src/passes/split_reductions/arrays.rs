//! What the threads that share a row do to the arrays that the row's iteration writes.

use super::length::same_range;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::accumulate::accumulations;
use rustc_hash::FxHashMap;

/// The arrays of which threads read elements that others of their team have written, as the hidden state of a recurrence: all
/// wait for each other before and after each loop that writes one. All other memory that the iteration writes is only ever
/// touched by the thread that a loop gives the element to.
pub fn exchanged(kernel: &Kernel, body: Block, loops: &[Inst]) -> Vec<Buffer> {
    Touched::of(kernel, body, loops).exchanged(kernel)
}

/// The same of an iteration that is still one thread's; `None` where threads that wait for each other like that would not find in
/// such arrays what one thread does.
pub fn to_exchange(kernel: &Kernel, body: Block, loops: &[Inst]) -> Option<Vec<Buffer>> {
    let touched = Touched::of(kernel, body, loops);
    let arrays = touched.exchanged(kernel);
    let own = &kernel.blocks[body].params;
    let is_load = |inst: Inst| kernel.insts[inst].opcode == Opcode::Load;
    let is_read_by_all = |buffer: &Buffer| {
        touched.accesses[buffer].iter().any(|(inst, owner)| owner.is_none() && is_load(*inst))
    };
    // Whether all threads come to a meeting may not hang on what each has read for itself.
    let can = arrays.iter().all(|buffer| touched.can_be_exchanged(kernel, *buffer, own))
        && !(arrays.iter().any(is_read_by_all) && decides(kernel, body, loops));
    mutant!("split_reductions: threads exchange what one loop writes once", can, true).then_some(arrays)
}

/// Whether more than what the host knows decides how often shared loops come.
fn decides(kernel: &Kernel, body: Block, loops: &[Inst]) -> bool {
    let parents = kernel.parents_in(body);
    let decides = |inst: Inst| {
        let data = &kernel.insts[inst];
        match data.opcode {
            Opcode::For => data.arguments[..3].iter().any(|bound| kernel.symbolic(*bound).is_none()),
            Opcode::If | Opcode::While => true,
            _ => false,
        }
    };
    loops.iter().any(|inst| parents.enclosing(*inst).any(decides))
}

/// What of memory an iteration accesses.
struct Touched<'l> {
    body: Block,
    loops: &'l [Inst],
    written: Vec<Buffer>,
    /// With the shared loop that an access stands in, if any.
    accesses: FxHashMap<Buffer, Vec<(Inst, Option<Inst>)>>,
}

impl<'l> Touched<'l> {
    fn of(kernel: &Kernel, body: Block, loops: &'l [Inst]) -> Self {
        let parents = kernel.parents_in(body);
        let mut found = Self { body, loops, written: Vec::new(), accesses: FxHashMap::default() };
        let combined: Vec<Buffer> = accumulations(kernel, body).iter().map(|known| known.buffer).collect();
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else {
                return;
            };
            let owner = parents.enclosing(inst).find(|outer| loops.contains(outer));
            found.accesses.entry(buffer).or_default().push((inst, owner));
            let is_new = !found.written.contains(&buffer) && !combined.contains(&buffer);
            if data.opcode.info().effect.shows() && is_new {
                found.written.push(buffer);
            }
        });
        found
    }

    fn exchanged(&self, kernel: &Kernel) -> Vec<Buffer> {
        self.written.iter().copied().filter(|buffer| !self.is_each_threads_own(kernel, *buffer)).collect()
    }

    /// Whether an array that is written is only ever touched by the thread that a loop gives the element to.
    fn is_each_threads_own(&self, kernel: &Kernel, buffer: Buffer) -> bool {
        let accesses = &self.accesses[&buffer];
        let is_private = kernel.buffers[buffer].kind == BufferKind::Private;
        let reads = accesses.iter().any(|(inst, _)| kernel.insts[*inst].opcode == Opcode::Load);
        if !reads && !is_private {
            // Written only: any thread may, as long as each element is written once.
            return true;
        }
        let is_write = |inst: Inst| kernel.insts[inst].opcode.info().effect.shows();
        if is_private && accesses.iter().all(|(inst, owner)| owner.is_none() || !is_write(*inst)) {
            // Every thread has what all of them compute, and reads of it what it likes.
            return true;
        }
        let inside = accesses.iter().filter(|(_, owner)| owner.is_some()).count();
        if inside == 0 {
            // Straight code: memory is written by one thread and read by all.
            return self.is_read_first(kernel, buffer);
        }
        let mut leading: Option<(RowPlace, Inst)> = None;
        inside == accesses.len()
            && accesses.iter().all(|(inst, owner)| {
                let place = owner.and_then(|owner| self.place(kernel, buffer, *inst, owner));
                let (Some(place), Some(owner)) = (place, *owner) else { return false };
                // Of another range the same element is another thread's.
                let (first, in_loop) = leading.get_or_insert_with(|| (place.clone(), owner));
                *first == place && same_range(kernel, *in_loop, owner)
            })
    }

    /// Whether all threads have read what one of them writes: they meet in between.
    fn is_read_first(&self, kernel: &Kernel, buffer: Buffer) -> bool {
        let accesses = &self.accesses[&buffer];
        let insts = &kernel.blocks[self.body].insts;
        let parents = kernel.parents_in(self.body);
        // In the straight code, or a branch of it.
        let place = |inst: &Inst| {
            let outer = parents.enclosing(*inst).collect::<Vec<_>>();
            let branches = outer.iter().all(|outer| kernel.insts[*outer].opcode == Opcode::If);
            let top = outer.last().filter(|_| branches).or(outer.is_empty().then_some(inst))?;
            insts.iter().position(|other| other == top)
        };
        let (mut last_load, mut first_store) = (0, insts.len());
        for (inst, _) in accesses {
            match (kernel.insts[*inst].opcode, place(inst)) {
                (Opcode::Load, Some(at)) => last_load = last_load.max(at),
                (Opcode::Store, Some(at)) => first_store = first_store.min(at),
                _ => return false,
            }
        }
        let meets = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Reduce && self.loops.contains(inst);
        let between = insts.get(last_load..first_store).unwrap_or_default();
        mutant!("split_reductions: all have read when one writes", between.iter().any(meets), true)
    }

    /// Whether each iteration has an array, or a part of one, and a loop that writes it gives each element to one thread, which
    /// alone reads it there.
    fn can_be_exchanged(&self, kernel: &Kernel, buffer: Buffer, own: &[Value]) -> bool {
        let accesses = &self.accesses[&buffer];
        let rank = kernel.buffers[buffer].extents.len();
        let subscripts = |inst: Inst| &kernel.insts[inst].arguments[..rank];
        let all =
            |is_own: &dyn Fn(&[Value]) -> bool| accesses.iter().all(|(inst, _)| is_own(subscripts(*inst)));
        let is_private = kernel.buffers[buffer].kind == BufferKind::Private;
        let has_a_part = kernel.buffers[buffer].kind == BufferKind::Scratch
            && rank > own.len()
            && (all(&|subscripts| subscripts.ends_with(own))
                || all(&|subscripts| subscripts.starts_with(own)));
        let is_store = |inst: Inst| kernel.insts[inst].opcode == Opcode::Store;
        (is_private || has_a_part)
            && accesses.iter().all(|(inst, _)| is_store(*inst) || kernel.insts[*inst].opcode == Opcode::Load)
            && accesses.iter().filter(|(inst, _)| is_store(*inst)).all(|(store, owner)| {
                let Some(owner) = owner else { return false };
                let place = self.place(kernel, buffer, *store, *owner);
                let mut beside = accesses.iter().filter(|(_, other)| *other == Some(*owner));
                place.is_some() && beside.all(|(inst, _)| self.place(kernel, buffer, *inst, *owner) == place)
            })
    }

    fn place(&self, kernel: &Kernel, buffer: Buffer, inst: Inst, owner: Inst) -> Option<RowPlace> {
        let rank = kernel.buffers[buffer].extents.len();
        row_place(&kernel.insts[inst].arguments[..rank], row_index(kernel, owner))
    }
}

/// The index along the row: of a loop's axes the last one, which the team shares. Each thread walks the others whole.
pub fn row_index(kernel: &Kernel, inst: Inst) -> Value {
    let axes = kernel.loop_bounds(inst).len();
    kernel.blocks[kernel.insts[inst].regions[0]].params[axes - 1]
}

/// Which subscript is the row's index, and the others.
pub type RowPlace = (usize, Vec<Value>);

/// The one subscript that is the index; `None` where none is or several are.
pub fn row_place(subscripts: &[Value], index: Value) -> Option<RowPlace> {
    let at = subscripts.iter().position(|value| *value == index)?;
    let mut others = subscripts.to_vec();
    others.remove(at);
    (!others.contains(&index)).then_some((at, others))
}
