//! `forward_stores`: what an iteration has stored, and loads again, it has already.
//!
//! ```text
//! v3: f32 = reduce [add] axis1 "j" (v2) { … }            v3: f32 = reduce [add] axis1 "j" (v2) { … }
//! store buf1[v0], v3                                     store buf1[v0], v3
//! forall axis2 "j" (v4) {                            →   forall axis2 "j" (v4) {
//!     v5: f32 = load buf1[v0]
//!     store buf2[v0, v4], v5                                 store buf2[v0, v4], v3
//! }                                                      }
//! ```
//!
//! `y[i] = sum(j: x[i, j])` and then `y[i]` is what a `let` for the sum would be: a row with its sum, which a team of threads
//! takes. What memory holds of a narrow number is the value rounded to it. (`cse` does the same of what passes have made of an
//! iteration by the end.)
//!
//! # Preconditions
//!
//! The subscripts are the same sums of indices and sizes, and nothing in between writes the array: no other thread may write what
//! this one reads (programs have no races). The array is one in memory, and the launch changes it by no atomics.

use super::pass::{Changed, Pass, PassContext};
use super::sweep::sweep;
use crate::analysis::{Affine, each_write};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase, Phases, Short};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;
use std::collections::BTreeSet;

/// The pass.
pub struct ForwardStores;

impl Pass for ForwardStores {
    fn name(&self) -> &str {
        "forward_stores"
    }

    fn reason(&self) -> &str {
        "uses what an iteration has stored instead of loading it again"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let data = &kernel.launches[launch];
            if data.phase != Phase::Abstract {
                continue;
            }
            let body = data.body;
            let mut atomic = EntitySet::new();
            each_write(kernel, body, |buffer, by_atomic| {
                if by_atomic {
                    atomic.insert(buffer);
                }
            });
            let mut stored = Stored { kernel, atomic, known: Vec::new(), changed: false };
            stored.block(body);
            changed |= stored.changed;
        }
        if changed {
            // The loads.
            sweep(kernel);
        }
        changed.into()
    }
}

/// What an element holds.
struct Held {
    payload: Payload,
    subscripts: Short<Value>,
    value: Value,
}

struct Stored<'k> {
    kernel: &'k mut Kernel,
    /// Buffers that other threads may change at any time.
    atomic: EntitySet<Buffer>,
    known: Vec<Held>,
    changed: bool,
}

impl Stored<'_> {
    fn block(&mut self, block: Block) {
        let around: Vec<Value> = self.known.iter().map(|held| held.value).collect();
        for inst in self.kernel.blocks[block].insts.clone() {
            self.inst(inst);
        }
        // Values in the block are none behind it.
        self.known.retain(|held| around.contains(&held.value));
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        match (data.opcode, &data.payload) {
            (Opcode::Load, Payload::Access { buffer, leaf }) => {
                let scalar = self.kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar;
                let same = |held: &&Held| {
                    held.payload == data.payload && is_same(self.kernel, &held.subscripts, &data.arguments)
                };
                let Some(value) = self.known.iter().find(same).map(|held| held.value) else { return };
                if mutant!("forward_stores: memory holds all of a narrow number", scalar.is_narrow(), false) {
                    self.kernel.rewrite_inst(inst, Opcode::Cast, Payload::Cast(scalar), &[value]);
                } else {
                    let result = data.results[0];
                    self.kernel.replace_uses(result, value);
                }
                self.changed = true;
            }
            (Opcode::Store, Payload::Access { buffer, .. }) => {
                let (payload, buffer) = (data.payload.clone(), *buffer);
                let arguments = data.arguments.clone();
                self.forget(buffer);
                let in_memory = matches!(
                    self.kernel.buffers[buffer].kind,
                    BufferKind::Argument { .. } | BufferKind::Scratch
                );
                if let Some((value, subscripts)) = arguments.split_last()
                    && in_memory
                    && !self.atomic.contains(buffer)
                {
                    let subscripts = Short::from_slice(subscripts);
                    self.known.push(Held { payload, subscripts, value: *value });
                }
            }
            (_, Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) => {
                if data.opcode.info().effect == Effect::Write {
                    let buffer = *buffer;
                    self.forget(buffer);
                }
            }
            _ => {
                let regions = data.regions.clone();
                // A branch begins with what was there before it, a loop with what its turns leave as well.
                let repeats = data.opcode != Opcode::If;
                let mut written: BTreeSet<Buffer> = BTreeSet::new();
                for region in &regions {
                    each_write(self.kernel, *region, |buffer, _| written.extend([buffer]));
                }
                if mutant!("forward_stores: all turns are the first", repeats, false) {
                    written.iter().for_each(|buffer| self.forget(*buffer));
                }
                for region in regions {
                    self.block(region);
                }
                written.iter().for_each(|buffer| self.forget(*buffer));
            }
        }
    }

    /// Of an array that is written nothing is known any more.
    fn forget(&mut self, buffer: Buffer) {
        let is_other =
            |held: &Held| !matches!(held.payload, Payload::Access { buffer: of, .. } if of == buffer);
        self.known.retain(|held| mutant!("forward_stores: what is stored stays", is_other(held), true));
    }
}

/// Whether subscripts are the same numbers.
fn is_same(kernel: &Kernel, left: &[Value], right: &[Value]) -> bool {
    let mut affine = Affine::new(kernel);
    left.iter().zip(right).all(|(left, right)| left == right || affine.form(*left) == affine.form(*right))
}
