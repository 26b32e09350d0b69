//! Promotion of private arrays to values, as LLVM's mem2reg does it: loads become what was stored last.
//!
//! Every access to such an array is a load or a store with literal subscripts; no store stands in the condition of a `while`,
//! and those in a parallel loop or in a reduction's terms all stand in one; each load comes after a store to the same place,
//! whatever way the thread took there. What an `if` stores is a result of it then, and what a loop stores is carried. Of a
//! narrow element it is the value rounded to it.

mod assigned;
mod forward;
mod place;

use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use cranelift_entity::EntitySet;
use place::literal_subscripts;
use rustc_hash::FxHashMap;

/// Elements of an array that become values before others look for reductions.
pub const SMALL: i64 = 16;
/// Scalars of the largest array that registers hold.
pub const MOST_SCALARS: i64 = 64;

/// The arrays of threads that are small.
pub fn small_arrays(kernel: &Kernel) -> Vec<Buffer> {
    let private = kernel.buffers.iter().filter(|(_, data)| data.kind == BufferKind::Private);
    private.filter(|(_, data)| is_small(data)).map(|(buffer, _)| buffer).collect()
}

/// Whether an array has so few elements, none of them narrow, that values are better wherever subscripts are literals.
fn is_small(data: &BufferData) -> bool {
    data.literal_elements().is_some_and(|elements| elements <= SMALL)
        && !data.element.leaves.iter().any(|leaf| leaf.scalar.is_narrow())
}

/// Makes values of the private arrays in a block that can be and are wanted; whether there were any.
pub fn into_values(kernel: &mut Kernel, body: Block, is_wanted: impl Fn(Buffer) -> bool) -> bool {
    let mut arrays = EntitySet::new();
    arrays.extend(literal_arrays(kernel, body).iter().filter(|buffer| is_wanted(*buffer)));
    let arrays = assigned::before_loads(kernel, body, arrays);
    forward::forward(kernel, body, &arrays)
}

/// The arrays whose accesses are loads and stores of known places. Iterations of a `forall`, and terms of a reduction, have
/// arrays of their own, so all stores to one stand in one of these.
fn literal_arrays(kernel: &Kernel, body: Block) -> EntitySet<Buffer> {
    let mut look =
        Look { kernel, stores: FxHashMap::default(), accessed: EntitySet::new(), others: EntitySet::new() };
    look.block(body, true, None);
    let mut found = EntitySet::new();
    found.extend(look.accessed.iter().filter(|buffer| !look.others.contains(*buffer)));
    found
}

struct Look<'a> {
    kernel: &'a Kernel,
    /// The innermost `forall` or reduction around the stores to an array.
    stores: FxHashMap<Buffer, Option<Inst>>,
    accessed: EntitySet<Buffer>,
    /// Arrays that stay in memory.
    others: EntitySet<Buffer>,
}

impl Look<'_> {
    /// `can_store` says whether stores here can become values.
    fn block(&mut self, block: Block, can_store: bool, forall: Option<Inst>) {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            self.access(*inst, can_store, forall);
            let data = &kernel.insts[*inst];
            for (at, region) in data.regions.iter().enumerate() {
                match data.opcode {
                    Opcode::If | Opcode::For => self.block(*region, can_store, forall),
                    Opcode::While => self.block(*region, can_store && at == 1, forall),
                    Opcode::Forall | Opcode::Reduce => self.block(*region, true, Some(*inst)),
                    _ => self.block(*region, false, forall),
                }
            }
        }
    }

    fn access(&mut self, inst: Inst, can_store: bool, forall: Option<Inst>) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else { return };
        if kernel.buffers[buffer].kind != BufferKind::Private {
            return;
        }
        self.accessed.insert(buffer);
        let is_taken = match data.opcode {
            Opcode::Load => true,
            Opcode::Store => can_store && *self.stores.entry(buffer).or_insert(forall) == forall,
            _ => false,
        };
        if !is_taken || literal_subscripts(kernel, inst).is_none() {
            self.others.insert(buffer);
        }
    }
}
