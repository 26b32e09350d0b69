//! `promote_elements`: what the turns of a loop read and write at one place is a value there.
//!
//! ```text
//! for axis1 "t" = v0..v1 step v2 (v3) {              v4: f32 = load buf0[v9]
//!     v5: f32 = load buf0[v9]                        v8: f32 = for axis1 "t" = v0..v1 step v2 (v3, v5 = v4) {
//!     v6: f32 = mul v5, v7                       →       v6: f32 = mul v5, v7
//!     store buf0[v9], v6                                 yield v6
//! }                                                  }
//!                                                    store buf0[v9], v8
//! ```
//!
//! This is how steps of a simulation are written that are one element's alone: `for turn in 10 { v[i] = … v[i] … }`. As LLVM's
//! `licm` does it with scalars: the loads and stores between the first and the last turn are none, and what one turn leaves to
//! the next is in a register, so that `per_thread` and `unroll` see a body that computes.
//!
//! # Preconditions
//!
//! A `for` in an iteration of a `forall`, whose other iterations have other elements (programs have no races). All that the
//! loop does with a leaf of an array in memory are loads and stores at subscripts that are the same in all turns; one of them
//! is a store, and one stands in its body outside of branches and further loops, so that each turn comes to it. The element is
//! no narrower than a value, which would not be rounded as memory rounds it. No `while` asks for it, and no subscript of the
//! array is checked in the loop: it may be none.

use super::pass::{Changed, Pass, PassContext};
use super::promote;
use crate::analysis::Affine;
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload, Phase, Phases};
use crate::ir::op::{Combiner, Constant, Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

/// The pass.
pub struct PromoteElements;

impl Pass for PromoteElements {
    fn name(&self) -> &str {
        "promote_elements"
    }

    fn reason(&self) -> &str {
        "keeps elements that a loop's turns read and write in registers"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut made = EntitySet::new();
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase != Phase::Abstract {
                continue;
            }
            let root = kernel.launches[launch].body;
            loops(kernel, root, false, &mut made);
            if !made.is_empty() {
                promote::into_values(kernel, root, |buffer| made.contains(buffer));
            }
        }
        (!made.is_empty()).into()
    }
}

/// Promotes what it can of the loops in a block, outer ones first. `within`: a `forall`'s iteration.
fn loops(kernel: &mut Kernel, block: Block, within: bool, made: &mut EntitySet<Buffer>) {
    for inst in kernel.blocks[block].insts.clone() {
        if within && kernel.insts[inst].opcode == Opcode::For {
            for element in elements(kernel, inst) {
                made.insert(element.promote(kernel, block, inst));
            }
        }
        let within = within || kernel.insts[inst].opcode == Opcode::Forall;
        for region in kernel.insts[inst].regions.clone() {
            loops(kernel, region, within, made);
        }
    }
}

/// A place that a loop reads and writes.
struct Element {
    buffer: Buffer,
    leaf: u32,
    /// Of an access that gives them: values from outside the loop, and literals.
    subscripts: Vec<Value>,
    accesses: Vec<Inst>,
    /// Whether a turn stores it before it loads it.
    begins_with_store: bool,
}

/// What the turns of a loop have at one place each.
fn elements(kernel: &Kernel, inst: Inst) -> Vec<Element> {
    let data = &kernel.insts[inst];
    let body = data.regions[0];
    let goes_up = data.arguments.get(2).and_then(|step| kernel.int_of(*step)).is_some_and(|step| step > 0);
    let mut inside = EntitySet::new();
    let (mut are_plain, mut found, mut others): (bool, Vec<Element>, Vec<Buffer>) =
        (goes_up, Vec::new(), Vec::new());
    let (mut asked, mut checked) = (Vec::new(), Vec::new());
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        are_plain &= data.opcode.info().effect != Effect::Collective;
        if let Payload::Site(site) = data.payload {
            checked.push(&kernel.sites[site].array);
        }
        inside.extend(data.results.iter().copied());
        data.regions.iter().for_each(|region| inside.extend(kernel.blocks[*region].params.iter().copied()));
        if data.opcode == Opcode::While {
            kernel.walk(data.regions[0], &mut |_, inst| asked.push(inst));
        }
    });
    inside.extend(kernel.blocks[body].params.iter().copied());
    let is_kept = |value: &Value| !inside.contains(*value) || kernel.constant_of(*value).is_some();
    let mut affine = Affine::new(kernel);
    kernel.walk(body, &mut |block, inst| {
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, leaf } | Payload::Atomic { buffer, leaf, .. }) = data.payload else {
            return;
        };
        let (subscripts, is_store) = (kernel.subscripts(data), data.opcode == Opcode::Store);
        let fits = (data.opcode == Opcode::Load || is_store)
            && !asked.contains(&inst)
            && subscripts.iter().all(is_kept);
        if !fits {
            others.push(buffer);
            return;
        }
        let known = found.iter_mut().find(|element| (element.buffer, element.leaf) == (buffer, leaf));
        match known {
            Some(element) => {
                let pairs = element.subscripts.iter().zip(subscripts);
                let is_same = pairs.into_iter().all(|(one, other)| affine.form(*one) == affine.form(*other));
                if !mutant!("promote_elements: all of an array is one place", is_same, true) {
                    others.push(buffer);
                }
                element.accesses.push(inst);
            }
            None => found.push(Element {
                buffer,
                leaf,
                subscripts: subscripts.to_vec(),
                accesses: vec![inst],
                begins_with_store: is_store && block == body,
            }),
        }
    });
    let in_body = |inst: &Inst| {
        mutant!("promote_elements: every turn comes to all", kernel.blocks[body].insts.contains(inst), true)
    };
    found.retain(|element| {
        let data = &kernel.buffers[element.buffer];
        let is_store = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Store;
        are_plain
            && matches!(data.kind, BufferKind::Argument { .. } | BufferKind::Scratch)
            && !element.scalar(kernel).is_narrow()
            && !others.contains(&element.buffer)
            && !checked.contains(&&data.name)
            && element.accesses.iter().any(is_store)
            && element.accesses.iter().any(in_body)
    });
    found
}

impl Element {
    fn scalar(&self, kernel: &Kernel) -> Scalar {
        kernel.buffers[self.buffer].element.leaves[self.leaf as usize].scalar
    }

    /// Makes an array of the iteration's own of it, loaded in front of a loop of a block and stored behind.
    fn promote(&self, kernel: &mut Kernel, block: Block, inst: Inst) -> Buffer {
        let scalar = self.scalar(kernel);
        let name = kernel.buffers[self.buffer].name.clone();
        let own = BufferData::temporary(name, BufferKind::Private, scalar, Vec::new());
        let own = kernel.buffers.push(own);
        let at = kernel.blocks[block].insts.iter().position(|known| *known == inst).unwrap_or(0);
        let rest = kernel.blocks[block].insts.split_off(at);
        let span = kernel.insts[inst].span;
        let (low, high) = (kernel.insts[inst].arguments[0], kernel.insts[inst].arguments[1]);
        let runs = mutant!("promote_elements: all loops run", runs(kernel, inst), true);
        let zero = Combiner::Add.identity(scalar).unwrap_or(Constant::Bool(false));
        let mut emit = Emit::new(kernel, block, span);
        let subscripts: Vec<Value> = self.subscripts.iter().map(|value| outside(&mut emit, *value)).collect();
        let turns = (!runs).then(|| emit.binary(Opcode::Lt, low, high));
        let load = |emit: &mut Emit<'_>| emit.load(self.buffer, self.leaf, &subscripts);
        let begin = match turns {
            _ if mutant!("promote_elements: all are stored first", self.begins_with_store, true) => {
                emit.constant(zero)
            }
            None => load(&mut emit),
            Some(turns) => emit.if_else(turns, |emit| vec![load(emit)], |emit| vec![emit.constant(zero)])[0],
        };
        emit.store(own, 0, &[], begin);
        emit.kernel.blocks[block].insts.push(inst);
        let store = |emit: &mut Emit<'_>| {
            let last = emit.load(own, 0, &[]);
            emit.store(self.buffer, self.leaf, &subscripts, last);
        };
        let mut emit = Emit::new(kernel, block, span);
        match turns {
            None => store(&mut emit),
            Some(turns) => emit.if_then(turns, store),
        }
        kernel.blocks[block].insts.extend(rest.into_iter().skip(1));
        for access in &self.accesses {
            let data = &kernel.insts[*access];
            let (opcode, value) = (data.opcode, data.arguments.last().copied());
            let value = value.filter(|_| opcode == Opcode::Store);
            let arguments: Vec<Value> = value.into_iter().collect();
            kernel.rewrite_inst(*access, opcode, Payload::Access { buffer: own, leaf: 0 }, &arguments);
        }
        own
    }
}

/// Whether a loop surely has a turn.
fn runs(kernel: &Kernel, inst: Inst) -> bool {
    let bounds = kernel.loop_bounds(inst);
    bounds.iter().all(|(low, high)| {
        kernel.int_of(*low).zip(kernel.int_of(*high)).is_some_and(|(low, high)| low < high)
    })
}

/// A subscript for what stands in front of the loop.
fn outside(emit: &mut Emit<'_>, value: Value) -> Value {
    match emit.kernel.constant_of(value) {
        Some(constant) => emit.constant(constant),
        None => value,
    }
}
