//! Slots: row buffers of which each thread of a team keeps the elements that it owns, in registers.

use super::coordinates::Spread;
use super::team::is_shared;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Level, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use crate::mutants::mutant;
use crate::passes::split_reductions::arrays::{RowPlace, row_index, row_place};
use rustc_hash::FxHashMap;

/// Row buffers of the iteration whose elements are only ever touched by the thread that owns them, all at once:
/// one private slot for each of a thread's elements.
pub fn slots(kernel: &mut Kernel, body: Block) -> FxHashMap<Buffer, Buffer> {
    let mut slots = FxHashMap::default();
    for (buffer, count) in slot_buffers(kernel, body) {
        let data = kernel.buffers[buffer].clone();
        let extents = vec![Expr::Int(count)];
        let own = kernel.buffers.push(BufferData { kind: BufferKind::Private, extents, ..data });
        slots.insert(buffer, own);
    }
    slots
}

/// Scratch and private buffers that live within the iteration: every access stands in a shared loop that is walked
/// all at once, over the same range, with the loop's index as the last subscript, and the first one, in this and in
/// every other launch, writes. With how many elements a thread owns.
fn slot_buffers(kernel: &Kernel, body: Block) -> Vec<(Buffer, i64)> {
    // The loop has been taken out of its launch.
    let parents = kernel.parents_in(body);
    let mut order: Vec<Buffer> = Vec::new();
    let mut known: FxHashMap<Buffer, Option<RowAccess>> = FxHashMap::default();
    kernel.walk(body, &mut |block, inst| {
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = kernel.insts[inst].payload
        else {
            return;
        };
        let data = &kernel.buffers[buffer];
        if !matches!(data.kind, BufferKind::Scratch | BufferKind::Private) || data.extents.is_empty() {
            return;
        }
        let access = row_access(kernel, &parents, block, inst, data.extents.len());
        match known.get_mut(&buffer) {
            None => {
                order.push(buffer);
                let first_writes = kernel.insts[inst].opcode == Opcode::Store;
                known.insert(buffer, access.filter(|access| first_writes && access.direct));
            }
            Some(first) => {
                let same = first.as_ref().zip(access.as_ref()).is_some_and(|(a, b)| a.same_elements(b));
                if !same {
                    *first = None;
                }
            }
        }
    });
    order.retain(|buffer| {
        let first_writes = |body: Block| first_access_writes(kernel, body, *buffer);
        mutant!("threads: nobody else reads what a row keeps", kernel.bodies().all(first_writes), true)
    });
    order.into_iter().filter_map(|buffer| Some((buffer, known.get(&buffer)?.as_ref()?.count))).collect()
}

/// Which elements of a row buffer an access touches.
struct RowAccess {
    /// As the host knows them; the values where it does not.
    bounds: [(Option<Expr>, Value); 2],
    place: RowPlace,
    count: i64,
    vector: i64,
    /// It stands in the loop's own block: it happens for every element.
    direct: bool,
}

impl RowAccess {
    fn same_elements(&self, other: &Self) -> bool {
        let same = |at: usize| {
            let (a, b) = (&self.bounds[at], &other.bounds[at]);
            a.1 == b.1 || (a.0.is_some() && a.0 == b.0)
        };
        (self.count, self.vector) == (other.count, other.vector)
            && same(0)
            && same(1)
            && self.place == other.place
    }
}

fn row_access(
    kernel: &Kernel,
    parents: &crate::ir::Parents,
    block: Block,
    inst: Inst,
    rank: usize,
) -> Option<RowAccess> {
    let owner = parents.enclosing(inst).find(|owner| is_shared(kernel, *owner))?;
    let axis = Spread::of(kernel, owner).pop()?;
    let region = kernel.insts[owner].regions[0];
    let place = row_place(&kernel.insts[inst].arguments[..rank], row_index(kernel, owner))?;
    let plain = matches!(kernel.insts[inst].payload, Payload::Access { .. });
    let sized = axis.factors.iter().all(|factor| factor.size.is_some());
    (plain && sized).then(|| RowAccess {
        bounds: [axis.low, axis.high].map(|value| (kernel.symbolic(value), value)),
        place,
        count: axis.level_size(Level::Serial) * axis.level_size(Level::Vector),
        vector: axis.level_size(Level::Vector),
        direct: block == region,
    })
}

/// Whether a launch does not touch the buffer, or begins by writing it.
fn first_access_writes(kernel: &Kernel, body: Block, buffer: Buffer) -> bool {
    let mut first = None;
    kernel.walk(body, &mut |_, inst| {
        if let Payload::Access { buffer: found, .. } | Payload::Atomic { buffer: found, .. } =
            kernel.insts[inst].payload
            && found == buffer
            && first.is_none()
        {
            first = Some(kernel.insts[inst].opcode);
        }
    });
    first.is_none_or(|opcode| matches!(opcode, Opcode::Store | Opcode::StoreVector))
}
