//! Jamming: several iterations of a loop's body side by side, in one copy of its control flow.
//!
//! What does not depend on the iteration is computed once, what does, once an iteration. Loops whose bounds are
//! the same for all iterations stay one loop, with a copy of the body's varying part for each: that is how a
//! register tile comes about. Control that differs between the iterations is copied whole.
//!
//! The iterations must be free of conflicts, as those of a `forall` are; each keeps its own order.

use crate::analysis::written_buffers;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BlockData, BufferKind, InstData, Kernel, Payload, Regions, Short};
use crate::ir::op::{Combiner, Effect, Opcode};
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

/// Appends the body's instructions to `emit`, once for each iteration: a list of what stands for each of `params`.
/// `map` holds what stands for the body's other parameters. The body's yield is left out; what it yields comes
/// back, one list an iteration. Private buffers that the body writes are each iteration's own, but for `common` ones,
/// of which the iterations have different elements.
pub fn jam(
    emit: &mut Emit<'_>,
    body: Block,
    params: &[Value],
    iterations: &[Vec<Value>],
    map: &ValueMap,
    common: &[Buffer],
) -> Vec<Vec<Value>> {
    let varying = Varying::new(emit.kernel, body, params, common);
    let mut jam = Jam::new(varying, params, iterations, map);
    jam.block(emit.kernel, body, emit.block);
    let yields = emit.kernel.yields(body).to_vec();
    jam.maps.iter().map(|map| yields.iter().map(|value| mapped(map, *value)).collect()).collect()
}

/// As [`jam`], of a body that yields nothing: all iterations load side by side, and then each finishes in its turn, so that no
/// registers hold what others have computed so far. Bodies that load what they write, or with control that is the same for all
/// iterations, are jammed.
pub fn jam_in_turn(
    emit: &mut Emit<'_>,
    body: Block,
    params: &[Value],
    iterations: &[Vec<Value>],
    map: &ValueMap,
    common: &[Buffer],
) {
    let kernel = &*emit.kernel;
    let varying = Varying::new(kernel, body, params, common);
    let loads = loads(kernel, body);
    let is_of_all = |inst: &Inst| !kernel.insts[*inst].regions.is_empty() && !varying.differs(kernel, *inst);
    let Some(loads) = loads.filter(|_| !kernel.blocks[body].insts.iter().any(is_of_all)) else {
        jam(emit, body, params, iterations, map, common);
        return;
    };
    let mut jam = Jam::new(varying, params, iterations, map);
    let insts = kernel.blocks[body].insts.iter().copied();
    let insts = insts.filter(|inst| kernel.insts[*inst].opcode != Opcode::Yield);
    let (first, rest): (Vec<Inst>, Vec<Inst>) = insts.partition(|inst| loads.contains(*inst));
    first.iter().for_each(|inst| jam.inst(emit.kernel, *inst, emit.block));
    for at in 0..iterations.len() {
        for inst in &rest {
            if !jam.is_once(emit.kernel, *inst) {
                jam.one(emit.kernel, *inst, emit.block, at);
            } else if at == 0 {
                jam.once(emit.kernel, *inst, emit.block);
            }
        }
    }
}

/// The loads of a block, those in branches too that do nothing else, and what they are made of; `None` where some are of what the
/// block writes, or something else than pure code stands before them.
fn loads(kernel: &Kernel, body: Block) -> Option<EntitySet<Inst>> {
    let written = written_buffers(kernel, body);
    let reads = |inst: Inst| {
        let data = &kernel.insts[inst];
        match (data.opcode, &data.payload) {
            (Opcode::Load, Payload::Access { buffer, .. }) => !written.contains(*buffer),
            _ => false,
        }
    };
    let is_pure = |inst: Inst| {
        let opcode = kernel.insts[inst].opcode;
        opcode == Opcode::Yield || opcode.info().effect == Effect::Pure
    };
    let (mut found, mut wanted) = (EntitySet::new(), EntitySet::<Value>::new());
    for inst in kernel.blocks[body].insts.iter().rev() {
        let data = &kernel.insts[*inst];
        let (mut has_load, mut is_plain) =
            (reads(*inst), reads(*inst) || is_pure(*inst) || data.opcode == Opcode::If);
        for region in &data.regions {
            kernel.walk(*region, &mut |_, inside| {
                has_load |= reads(inside);
                is_plain &= reads(inside) || is_pure(inside);
            });
        }
        let is_wanted = data.results.iter().any(|result| wanted.contains(*result));
        if is_wanted && !is_plain {
            return None;
        }
        if is_wanted || has_load && is_plain {
            found.insert(*inst);
            wanted.extend(data.arguments.iter().copied());
            for region in &data.regions {
                kernel.walk(*region, &mut |_, inside| {
                    wanted.extend(kernel.insts[inside].arguments.iter().copied())
                });
            }
        }
    }
    Some(found)
}

/// The values of a block, and of what is inside, that depend on some of its parameters.
pub fn depending(kernel: &Kernel, body: Block, params: &[Value], common: &[Buffer]) -> EntitySet<Value> {
    Varying::new(kernel, body, params, common).values
}

/// Which values differ between the iterations.
struct Varying {
    values: EntitySet<Value>,
    /// Private buffers that the body writes: one an iteration.
    buffers: EntitySet<Buffer>,
}

impl Varying {
    fn new(kernel: &Kernel, body: Block, params: &[Value], common: &[Buffer]) -> Self {
        let mut varying = Self { values: EntitySet::new(), buffers: EntitySet::new() };
        varying.mark(params);
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload
                && data.opcode != Opcode::Load
                && kernel.buffers[buffer].kind == BufferKind::Private
                && !common.contains(&buffer)
            {
                varying.buffers.insert(buffer);
            }
        });
        while varying.spread(kernel, body) {}
        varying
    }

    fn any(&self, values: &[Value]) -> bool {
        values.iter().any(|value| self.values.contains(*value))
    }

    /// One round over a block; whether it found more.
    fn spread(&mut self, kernel: &Kernel, block: Block) -> bool {
        let mut changed = false;
        for inst in &kernel.blocks[block].insts {
            let data = &kernel.insts[*inst];
            if data.regions.is_empty() {
                let memory = match data.payload {
                    Payload::Access { buffer, .. } => self.buffers.contains(buffer),
                    _ => false,
                };
                if memory || self.any(&data.arguments) {
                    changed |= self.mark(&data.results);
                }
                continue;
            }
            for region in &data.regions {
                changed |= self.spread(kernel, *region);
            }
            if self.differs(kernel, *inst) {
                changed |= self.mark(&data.results);
                for region in &data.regions {
                    changed |= self.mark(&kernel.blocks[*region].params);
                }
                continue;
            }
            changed |= self.carried(kernel, data);
        }
        changed
    }

    /// Whether the iterations go different ways through an instruction with regions.
    fn differs(&self, kernel: &Kernel, inst: Inst) -> bool {
        let data = &kernel.insts[inst];
        match (&data.payload, data.opcode) {
            (Payload::Loop { axes } | Payload::Reduce { axes, .. }, opcode) => {
                let control = 2 * axes.len() + usize::from(opcode == Opcode::For);
                self.any(&data.arguments[..control])
            }
            (_, Opcode::While) => self.any(kernel.yields(data.regions[0])),
            _ => self.any(&data.arguments),
        }
    }

    /// Values that go round a loop or out of a region, where the control is the same for all.
    fn carried(&mut self, kernel: &Kernel, data: &InstData) -> bool {
        let mut changed = false;
        match data.opcode {
            Opcode::For | Opcode::While => {
                let skip = if data.opcode == Opcode::For { 3 } else { 0 };
                let last = data.regions[data.regions.len() - 1];
                for at in 0..data.results.len() {
                    let initial = data.arguments[skip + at];
                    let next = kernel.yields(last)[at];
                    if self.values.contains(initial) || self.values.contains(next) {
                        changed |= self.mark(&[data.results[at]]);
                        for region in &data.regions {
                            let first = kernel.blocks[*region].params.len() - data.results.len();
                            changed |= self.mark(&[kernel.blocks[*region].params[first + at]]);
                        }
                    }
                }
            }
            Opcode::Reduce => {
                let Payload::Reduce { combiners, .. } = &data.payload else { return false };
                let yields = kernel.yields(data.regions[0]);
                for (start, combiner) in positions(combiners) {
                    let range = start..start + combiner.width();
                    if self.any(&yields[range.clone()]) {
                        changed |= self.mark(&data.results[range]);
                    }
                }
            }
            Opcode::If => {
                for (at, result) in data.results.iter().enumerate() {
                    if data.regions.iter().any(|region| self.any(&kernel.yields(*region)[at..=at])) {
                        changed |= self.mark(&[*result]);
                    }
                }
            }
            _ => {}
        }
        changed
    }

    fn mark(&mut self, values: &[Value]) -> bool {
        let mut changed = false;
        for value in values {
            changed |= self.values.insert(*value);
        }
        changed
    }
}

/// The combiners with the position of their first value.
fn positions(combiners: &[Combiner]) -> impl Iterator<Item = (usize, Combiner)> + '_ {
    combiners.iter().scan(0, |at, combiner| {
        let start = *at;
        *at += combiner.width();
        Some((start, *combiner))
    })
}

struct Jam {
    varying: Varying,
    /// One an iteration.
    maps: Vec<ValueMap>,
    /// The copies of private buffers that the body writes, one an iteration.
    privates: FxHashMap<Buffer, Vec<Buffer>>,
}

impl Jam {
    fn new(varying: Varying, params: &[Value], iterations: &[Vec<Value>], map: &ValueMap) -> Self {
        let mut maps = vec![map.clone(); iterations.len()];
        for (map, values) in maps.iter_mut().zip(iterations) {
            map.extend(params.iter().copied().zip(values.iter().copied()));
        }
        Self { varying, maps, privates: FxHashMap::default() }
    }

    /// Appends the instructions of a block but its yield.
    fn block(&mut self, kernel: &mut Kernel, from: Block, to: Block) {
        for inst in kernel.blocks[from].insts.clone() {
            if kernel.insts[inst].opcode != Opcode::Yield {
                self.inst(kernel, inst, to);
            }
        }
    }

    fn inst(&mut self, kernel: &mut Kernel, inst: Inst, to: Block) {
        let data = &kernel.insts[inst];
        if !data.regions.is_empty() {
            if self.varying.differs(kernel, inst) {
                self.each(kernel, inst, to);
            } else {
                self.shared_control(kernel, inst, to);
            }
            return;
        }
        if self.is_once(kernel, inst) {
            self.once(kernel, inst, to);
        } else {
            self.each(kernel, inst, to);
        }
    }

    /// Whether all iterations do the same.
    fn is_once(&self, kernel: &Kernel, inst: Inst) -> bool {
        let data = &kernel.insts[inst];
        let private = match data.payload {
            Payload::Access { buffer, .. } => self.varying.buffers.contains(buffer),
            _ => false,
        };
        let each = matches!(data.opcode, Opcode::Atomic | Opcode::Print) || !data.regions.is_empty();
        !private && !each && !self.varying.any(&data.arguments)
    }

    /// One copy for all iterations.
    fn once(&mut self, kernel: &mut Kernel, inst: Inst, to: Block) {
        let mut map = std::mem::take(&mut self.maps[0]);
        kernel.clone_inst(inst, to, &mut map);
        self.maps[0] = map;
        for result in kernel.insts[inst].results.clone() {
            let value = mapped(&self.maps[0], result);
            self.define(result, value);
        }
    }

    fn define(&mut self, from: Value, to: Value) {
        for map in &mut self.maps {
            map.insert(from, to);
        }
    }

    /// A copy, with everything inside, for each iteration.
    fn each(&mut self, kernel: &mut Kernel, inst: Inst, to: Block) {
        (0..self.maps.len()).for_each(|at| self.one(kernel, inst, to, at));
    }

    /// That of one iteration.
    fn one(&mut self, kernel: &mut Kernel, inst: Inst, to: Block, at: usize) {
        let mut map = std::mem::take(&mut self.maps[at]);
        let copy = kernel.clone_inst(inst, to, &mut map);
        self.maps[at] = map;
        self.own_privates(kernel, copy, at);
    }

    /// Turns accesses to private buffers into accesses to the iteration's own copies.
    fn own_privates(&mut self, kernel: &mut Kernel, inst: Inst, iteration: usize) {
        let mut open = vec![inst];
        while let Some(inst) = open.pop() {
            for region in &kernel.insts[inst].regions {
                open.extend(&kernel.blocks[*region].insts);
            }
            let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) =
                kernel.insts[inst].payload
            else {
                continue;
            };
            if !self.varying.buffers.contains(buffer) {
                continue;
            }
            let own = self.private(kernel, buffer, iteration);
            if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } =
                &mut kernel.insts[inst].payload
            {
                *buffer = own;
            }
        }
    }

    fn private(&mut self, kernel: &mut Kernel, buffer: Buffer, iteration: usize) -> Buffer {
        let count = self.maps.len();
        let copies = self.privates.entry(buffer).or_insert_with(|| {
            let copies = (1..count).map(|_| {
                let data = kernel.buffers[buffer].clone();
                kernel.buffers.push(data)
            });
            [buffer].into_iter().chain(copies.collect::<Vec<_>>()).collect()
        });
        copies[iteration]
    }

    /// One copy of the control flow around a copy of the varying part for each iteration.
    fn shared_control(&mut self, kernel: &mut Kernel, inst: Inst, to: Block) {
        let InstData { opcode, payload, arguments, results, regions, span } = kernel.insts[inst].clone();
        let groups = groups(&payload, results.len());
        let (payload, head) = match kernel.clone_payload(payload) {
            Payload::Loop { axes } => {
                let head = if opcode == Opcode::For { 3 } else { arguments.len() };
                (Payload::Loop { axes }, head)
            }
            Payload::Reduce { axes, combiners } => {
                let mut all = Vec::with_capacity(combiners.len());
                for (start, combiner) in positions(&combiners) {
                    let copies = self.copies(results[start]);
                    all.extend(std::iter::repeat_n(combiner, copies));
                }
                (Payload::Reduce { axes, combiners: all.into() }, arguments.len())
            }
            other => (other, if opcode == Opcode::If { 1 } else { 0 }),
        };
        let mut given: Vec<Value> =
            arguments[..head].iter().map(|value| mapped(&self.maps[0], *value)).collect();
        for (at, initial) in arguments[head..].iter().enumerate() {
            let copies = self.copies(results[at]);
            given.extend((0..copies).map(|copy| mapped(&self.maps[copy], *initial)));
        }
        let copy = kernel.insts.push(InstData {
            opcode,
            payload,
            arguments: given.into(),
            results: Short::new(),
            regions: Regions::new(),
            span,
        });
        kernel.blocks[to].insts.push(copy);
        for region in regions {
            let fresh = kernel.blocks.push(BlockData::default());
            kernel.insts[copy].regions.push(fresh);
            let condition = opcode == Opcode::While && kernel.insts[copy].regions.len() == 1;
            self.region(kernel, region, fresh);
            let yields = kernel.yields(region).to_vec();
            let values = if condition {
                yields.iter().map(|value| mapped(&self.maps[0], *value)).collect()
            } else {
                self.spread_list(&yields, &results, &groups)
            };
            let inst = kernel.make_inst(Opcode::Yield, Payload::None, &values, span);
            kernel.blocks[fresh].insts.push(inst);
        }
        self.results(kernel, copy, &results, &groups);
    }

    fn copies(&self, value: Value) -> usize {
        if self.varying.values.contains(value) { self.maps.len() } else { 1 }
    }

    fn region(&mut self, kernel: &mut Kernel, from: Block, to: Block) {
        for param in kernel.blocks[from].params.clone() {
            let copies = self.copies(param);
            for copy in 0..copies {
                let value = kernel.add_param(to, kernel.values[param].ty);
                kernel.values[value].name = kernel.values[param].name.clone();
                if copies == 1 {
                    self.define(param, value);
                } else {
                    self.maps[copy].insert(param, value);
                }
            }
        }
        self.block(kernel, from, to);
    }

    /// One value, or one an iteration, for each result; the parts of one pair stay together.
    fn spread_list(&self, values: &[Value], results: &[Value], groups: &[usize]) -> Vec<Value> {
        let mut spread = Vec::new();
        let mut at = 0;
        for width in groups {
            for copy in 0..self.copies(results[at]) {
                spread.extend(values[at..at + width].iter().map(|value| mapped(&self.maps[copy], *value)));
            }
            at += width;
        }
        spread
    }

    fn results(&mut self, kernel: &mut Kernel, copy: Inst, results: &[Value], groups: &[usize]) {
        let mut at = 0;
        for width in groups {
            let copies = self.copies(results[at]);
            for iteration in 0..copies {
                for result in &results[at..at + width] {
                    let value = kernel.clone_result(*result, copy);
                    if copies == 1 {
                        self.define(*result, value);
                    } else {
                        self.maps[iteration].insert(*result, value);
                    }
                }
            }
            at += width;
        }
    }
}

/// How many results belong together: two for argmin and argmax.
fn groups(payload: &Payload, results: usize) -> Vec<usize> {
    match payload {
        Payload::Reduce { combiners, .. } => combiners.iter().map(|combiner| combiner.width()).collect(),
        _ => vec![1; results],
    }
}
