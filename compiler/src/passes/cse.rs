//! `cse`: common subexpressions are computed once.
//!
//! ```text
//! v3: i64 = mul v1, v2                  v3: i64 = mul v1, v2
//! if v0 {                               if v0 {
//!     v4: i64 = mul v2, v1      →           (uses of v4 become uses of v3)
//! ```
//!
//! A pure instruction, or a load from a buffer that its launch does not write, is replaced by an equal one that
//! comes before it in the same region or in one around it. Operands of commutative ops match in either order.
//!
//! # Limits
//!
//! Equal instructions in two regions of which neither is around the other stay (`licm` brings many of them
//! together). Loads from buffers that the launch writes stay, whatever lies between.

use super::pass::{Changed, Pass, PassContext};
use crate::ir::Substitution;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use cranelift_entity::EntitySet;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

pub struct Cse;

impl Pass for Cse {
    fn name(&self) -> &str {
        "cse"
    }

    fn reason(&self) -> &str {
        "computes common subexpressions once"
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let body = kernel.launches[launch].body;
            let written = written_buffers(kernel, body);
            let (available, replaced) = (FxHashMap::default(), Substitution::new());
            let mut eliminator = Eliminator { kernel, written, available, replaced, changed: false };
            eliminator.block(body);
            changed |= eliminator.changed;
        }
        changed.into()
    }
}

/// Buffers that a block or what is inside writes.
pub(super) fn written_buffers(kernel: &Kernel, block: Block) -> EntitySet<Buffer> {
    let mut written = EntitySet::new();
    kernel.walk(block, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload
            && data.opcode != Opcode::Load
        {
            written.insert(buffer);
        }
    });
    written
}

struct Eliminator<'k> {
    kernel: &'k mut Kernel,
    written: EntitySet<Buffer>,
    /// Instructions in scope, by hash: of those with equal hashes the last one.
    available: FxHashMap<u64, Inst>,
    replaced: Substitution,
    changed: bool,
}

impl Eliminator<'_> {
    fn block(&mut self, block: Block) {
        // What this region adds goes out of scope at its end.
        let mut added = Vec::new();
        let mut insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        insts.retain(|inst| {
            for at in 0..self.kernel.insts[*inst].arguments.len() {
                let value = self.kernel.insts[*inst].arguments[at];
                if let Some(value) = self.replaced[value].expand() {
                    self.kernel.insts[*inst].arguments[at] = value;
                }
            }
            for at in 0..self.kernel.insts[*inst].regions.len() {
                self.block(self.kernel.insts[*inst].regions[at]);
            }
            !self.eliminate(*inst, &mut added)
        });
        self.kernel.blocks[block].insts = insts;
        for (hash, before) in added.into_iter().rev() {
            match before {
                Some(before) => self.available.insert(hash, before),
                None => self.available.remove(&hash),
            };
        }
    }

    /// Whether an equal instruction is in scope, which then takes the place of this one.
    fn eliminate(&mut self, inst: Inst, added: &mut Vec<(u64, Option<Inst>)>) -> bool {
        let data = &self.kernel.insts[inst];
        let shared = match (data.opcode.info().effect, &data.payload) {
            (Effect::Pure, _) => true,
            (Effect::Read, Payload::Access { buffer, .. }) => !self.written.contains(*buffer),
            _ => false,
        };
        if !shared {
            return false;
        }
        let mut hasher = FxHasher::default();
        (data.opcode, &data.payload, self.operands(inst)).hash(&mut hasher);
        let hash = hasher.finish();
        let before = self.available.get(&hash).copied();
        let kernel = &*self.kernel;
        let equal = before.filter(|other| {
            let other_data = &kernel.insts[*other];
            (other_data.opcode, &other_data.payload) == (data.opcode, &data.payload)
                && other_data.results.len() == data.results.len()
                && operands(kernel, *other) == operands(kernel, inst)
        });
        let Some(other) = equal else {
            self.available.insert(hash, inst);
            added.push((hash, before));
            return false;
        };
        for at in 0..self.kernel.insts[inst].results.len() {
            let (result, value) = (self.kernel.insts[inst].results[at], self.kernel.insts[other].results[at]);
            if self.kernel.values[value].name.is_none() {
                self.kernel.values[value].name = self.kernel.values[result].name.clone();
            }
            self.replaced[result] = value.into();
        }
        self.changed = true;
        true
    }

    fn operands(&self, inst: Inst) -> Operands {
        operands(self.kernel, inst)
    }
}

/// Operands in an order that is the same for equal instructions; more than four do not fit but rarely occur.
#[derive(PartialEq, Eq, Hash)]
enum Operands {
    Few([Option<Value>; 4]),
    Many(Vec<Value>),
}

fn operands(kernel: &Kernel, inst: Inst) -> Operands {
    use Opcode::{Add, And, Eq, Max, Min, Mul, Ne, Or, Xor};
    let data = &kernel.insts[inst];
    if data.arguments.len() > 4 {
        return Operands::Many(data.arguments.to_vec());
    }
    let mut few = [None; 4];
    for (slot, value) in few.iter_mut().zip(&data.arguments) {
        *slot = Some(*value);
    }
    if matches!(data.opcode, Add | Mul | Min | Max | And | Or | Xor | Eq | Ne) {
        few[..2].sort_unstable();
    }
    Operands::Few(few)
}
