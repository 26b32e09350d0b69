//! Equal instructions of a launch are computed once: what the pass `cse` does, and `stage` with a body that it has made of
//! several reductions.

use crate::analysis::each_write;
use crate::ir::Substitution;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{InstData, Kernel, Payload, Short};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::{EntitySet, SecondaryMap};
use rustc_hash::FxHashMap;

/// Replaces instructions of launches by equal ones before them; whether there were any.
pub fn share_equal(kernel: &mut Kernel, launches: &[Launch]) -> bool {
    let (written, atomic, replaced) = (EntitySet::new(), EntitySet::new(), kernel.of_values());
    let (versions, available) = (MemoryVersions::default(), FxHashMap::default());
    let (loaded, stored, changed) = (EntitySet::new(), SecondaryMap::new(), false);
    let mut eliminator =
        Eliminator { kernel, written, atomic, versions, available, loaded, stored, replaced, changed };
    for launch in launches {
        let body = eliminator.kernel.launches[*launch].body;
        let Eliminator { kernel, written, atomic, loaded, .. } = &mut eliminator;
        written.clear();
        atomic.clear();
        loaded.clear();
        kernel.walk(body, &mut |_, inst| match kernel.insts[inst].payload {
            Payload::Access { buffer, .. } if kernel.insts[inst].opcode == Opcode::Load => {
                loaded.insert(buffer);
            }
            _ => {}
        });
        each_write(kernel, body, |buffer, by_atomic| {
            written.insert(buffer);
            if by_atomic {
                atomic.insert(buffer);
            }
        });
        eliminator.versions = MemoryVersions::default();
        eliminator.block(body);
    }
    eliminator.changed
}

/// Versions of memory: loads of a buffer in one version give the same.
#[derive(Default)]
struct MemoryVersions {
    /// Of all buffers: barriers and loops clobber them.
    all: u32,
    /// Of one: each write makes a new one.
    own: SecondaryMap<Buffer, u32>,
}

/// The same for equal instructions.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    opcode: Opcode,
    payload: Payload,
    /// Those of commutative ops in order.
    arguments: Short<Value>,
    /// How many results.
    width: usize,
    /// Of a load from a buffer that is written.
    version: Option<(u32, u32)>,
    /// What stands in the regions of a branch.
    inside: Vec<Step>,
}

/// An instruction in a branch.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Step {
    opcode: Opcode,
    payload: Payload,
    operands: Vec<Operand>,
    width: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Operand {
    Outside(Value),
    /// A result in the branch, by its number.
    Inside(usize),
}

impl Key {
    fn new(data: &InstData, version: Option<(u32, u32)>) -> Self {
        let mut arguments = data.arguments.clone();
        if commutes(data.opcode) {
            arguments.sort_unstable();
        }
        Self {
            opcode: data.opcode,
            // Where a check stands does not matter: of two equal ones the first speaks.
            payload: if data.opcode == Opcode::Check { Payload::None } else { data.payload.clone() },
            arguments,
            width: data.results.len(),
            version,
            inside: Vec::new(),
        }
    }
}

/// The instructions of a branch's regions, one after the other; `None` where one of them writes, or reads what is written.
fn steps(kernel: &Kernel, inst: Inst, written: &EntitySet<Buffer>) -> Option<Vec<Step>> {
    let (mut steps, mut numbers) = (Vec::new(), FxHashMap::default());
    for region in &kernel.insts[inst].regions {
        for inst in &kernel.blocks[*region].insts {
            let data = &kernel.insts[*inst];
            let repeats = match (data.opcode.info().effect, &data.payload) {
                (Effect::Pure | Effect::Terminator, _) => data.regions.is_empty(),
                (Effect::Read, Payload::Access { buffer, .. }) => !written.contains(*buffer),
                _ => false,
            };
            if !repeats {
                return None;
            }
            let operand = |value: &Value| match numbers.get(value) {
                Some(number) => Operand::Inside(*number),
                None => Operand::Outside(*value),
            };
            steps.push(Step {
                opcode: data.opcode,
                payload: data.payload.clone(),
                operands: data.arguments.iter().map(operand).collect(),
                width: data.results.len(),
            });
            for result in &data.results {
                numbers.insert(*result, numbers.len());
            }
        }
    }
    Some(steps)
}

impl MemoryVersions {
    fn of(&self, buffer: Buffer) -> (u32, u32) {
        (self.all, self.own[buffer])
    }

    /// Notes what the instruction itself clobbers; its regions count by what is in them.
    fn clobber(&mut self, data: &InstData) {
        match (data.opcode.info().effect, &data.payload) {
            (Effect::Pure | Effect::Read | Effect::Record | Effect::Terminator, _) => {}
            (_, Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) => {
                self.own[*buffer] += mutant!("cse: a load over a store to its buffer", 1, 0);
            }
            // Both sides of an `if` see what was before it; a loop's body sees what the body itself does.
            _ if data.opcode == Opcode::If => {}
            _ => self.all += mutant!("cse: a loop reads what was there before it", 1, 0),
        }
    }
}

struct Eliminator<'k> {
    kernel: &'k mut Kernel,
    written: EntitySet<Buffer>,
    /// Of those, the ones that other threads may change at any time.
    atomic: EntitySet<Buffer>,
    versions: MemoryVersions,
    /// The results of instructions in scope, that is in the block that the pass is in or in one around it; and what stores
    /// there have left in memory, by the loads of it.
    available: FxHashMap<Key, Short<Value>>,
    /// Of the launch's buffers, those that it loads from.
    loaded: EntitySet<Buffer>,
    /// What stores have left in memory in its latest version.
    stored: SecondaryMap<Buffer, Vec<Key>>,
    replaced: Substitution,
    changed: bool,
}

impl Eliminator<'_> {
    fn block(&mut self, block: Block) {
        let mut own = Vec::new();
        let mut insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        insts.retain(|inst| !self.is_redundant(*inst, &mut own));
        self.kernel.blocks[block].insts = insts;
        if mutant!("cse: what stands in a region is used behind it", true, false) {
            for key in own {
                self.available.remove(&key);
            }
        }
    }

    /// Whether an equal instruction replaces this one. Otherwise notes what it clobbers, and goes through its regions.
    fn is_redundant(&mut self, inst: Inst, own: &mut Vec<Key>) -> bool {
        let data = &mut self.kernel.insts[inst];
        for argument in data.arguments.as_mut_slice() {
            if let Some(value) = self.replaced[*argument].expand() {
                *argument = value;
            }
        }
        match (data.opcode.info().effect, &data.payload) {
            (Effect::Pure | Effect::Record, _) => self.eliminate(inst, None, own),
            (Effect::Read, Payload::Access { buffer, .. }) => {
                let version = match self.written.contains(*buffer) {
                    false => None,
                    true if self.atomic.contains(*buffer) => return false,
                    true => Some(self.versions.of(*buffer)),
                };
                self.eliminate(inst, version, own)
            }
            (Effect::Read | Effect::Terminator, _) => false,
            (Effect::Write | Effect::Collective | Effect::Regions, _) => {
                if data.opcode == Opcode::Store {
                    self.store(inst, own);
                    return false;
                }
                self.versions.clobber(data);
                for at in 0..data.regions.len() {
                    self.block(self.kernel.insts[inst].regions[at]);
                }
                let data = &self.kernel.insts[inst];
                if data.opcode != Opcode::If || data.results.is_empty() {
                    return false;
                }
                let Some(inside) = steps(self.kernel, inst, &self.written) else { return false };
                let key = Key { inside, ..Key::new(data, None) };
                self.eliminate_by(key, inst, own)
            }
        }
    }

    /// Whether an equal instruction is in scope, which then replaces this one: for a load from a buffer that is written, one
    /// in the same version of it.
    fn eliminate(&mut self, inst: Inst, version: Option<(u32, u32)>, own: &mut Vec<Key>) -> bool {
        self.eliminate_by(Key::new(&self.kernel.insts[inst], version), inst, own)
    }

    fn eliminate_by(&mut self, key: Key, inst: Inst, own: &mut Vec<Key>) -> bool {
        let results = &self.kernel.insts[inst].results;
        let Some(values) = self.available.get(&key) else {
            let results = results.clone();
            own.push(key.clone());
            self.available.insert(key, results);
            return false;
        };
        for (result, value) in results.iter().zip(values) {
            if self.kernel.values[*value].name.is_none() {
                self.kernel.values[*value].name = self.kernel.values[*result].name.clone();
            }
            self.replaced[*result] = (*value).into();
        }
        self.changed = true;
        true
    }

    /// What a store leaves in memory is what a load of it gives, until that is written again: not by stores to other elements,
    /// as unrolled iterations make them. Narrow numbers are not remembered, as memory holds less of them than the value.
    fn store(&mut self, store: Inst, own: &mut Vec<Key>) {
        let data = &self.kernel.insts[store];
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let before = self.versions.of(buffer);
        self.versions.clobber(data);
        if !self.loaded.contains(buffer) || self.atomic.contains(buffer) {
            return;
        }
        let scalar = self.kernel.buffers[buffer].element.leaves[leaf as usize].scalar;
        let is_narrow = mutant!("cse: memory holds all of a narrow number", scalar.is_narrow(), false);
        let Some((value, subscripts)) = data.arguments.split_last() else { return };
        let key = |payload: &Payload, subscripts: &[Value]| Key {
            opcode: Opcode::Load,
            payload: payload.clone(),
            arguments: Short::from_slice(subscripts),
            width: 1,
            version: Some(self.versions.of(buffer)),
            inside: Vec::new(),
        };
        let mut latest: Vec<(Key, Short<Value>)> = Vec::new();
        for known in std::mem::take(&mut self.stored[buffer]) {
            let is_latest = known.version == Some(before);
            let Some(value) = self.available.get(&known).filter(|_| is_latest) else { continue };
            if known.payload != data.payload || are_apart(self.kernel, &known.arguments, subscripts) {
                latest.push((key(&known.payload, &known.arguments), value.clone()));
            }
        }
        if !is_narrow {
            latest.push((key(&data.payload, subscripts), Short::from_slice(&[*value])));
        }
        for (key, value) in latest {
            own.push(key.clone());
            self.stored[buffer].push(key.clone());
            self.available.insert(key, value);
        }
    }
}

/// Whether two lists of subscripts are never of one element: they differ by a literal in some axis.
fn are_apart(kernel: &Kernel, one: &[Value], other: &[Value]) -> bool {
    one.iter().zip(other).any(|(one, other)| {
        let ((root, here), (same, there)) = (kernel.root_and_literal(*one), kernel.root_and_literal(*other));
        here != there && mutant!("cse: all stores are apart", root == same, true)
    })
}

fn commutes(opcode: Opcode) -> bool {
    use Opcode::{Add, And, Eq, Max, Min, Mul, Ne, Or, Xor};
    let commutes = matches!(opcode, Add | Mul | Min | Max | And | Or | Xor | Eq | Ne);
    mutant!("cse: operands of a difference in either order", commutes, commutes || opcode == Opcode::Sub)
}
