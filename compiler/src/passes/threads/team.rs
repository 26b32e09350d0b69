//! Teams: loops inside an iteration whose axis has lanes and warps are walked by the threads of a block, or of a
//! warp, together.
//!
//! Every thread of the team runs the iteration's straight code; what it stores outside the shared loops, one of
//! them does. In a shared loop each thread takes its own indices. A reduction's partial results meet by shuffles
//! within a warp, then through shared memory; each thread gets the result.
//!
//! An axis `[serial:4, warp:8, lane:32, vector:4]` gives each thread four groups of four neighbours, all at once,
//! the last of them masked where they lie outside; `[serial:*, warp:8, lane:32, vector:4]` a loop over as many
//! groups as all threads have, a last group for those that have one more, and the few elements left over after the last
//! whole group one by one. A sized serial factor after the open one is how many groups one turn of that loop takes: the more,
//! the more loads are under way.

use super::coordinates::{Spread, Threads};
use super::jam::{depending, jam, jam_in_turn};
use super::mask::{Masks, changed, loads_of, mask, writes_for_all};
use super::partial::{Partial, positions_rise};
use super::read::{accesses_of, read_by_all};
use super::slots::slots;
use crate::analysis::Endless;
use crate::data::Scalar;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BlockData, BufferKind, Combiners, Factor, InstData, Kernel, Level, Payload};
use crate::ir::op::{Combiner, Constant, Effect, Opcode};
use crate::manifest::Expr;
use crate::mutants::mutant;
use crate::passes::split_reductions::arrays::exchanged;
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

/// Whether a loop is shared by the threads of a team, or by one thread's iterations side by side.
pub fn is_shared(kernel: &Kernel, inst: Inst) -> bool {
    let (Payload::Loop { axes } | Payload::Reduce { axes, .. }) = &kernel.insts[inst].payload else {
        return false;
    };
    matches!(kernel.insts[inst].opcode, Opcode::Forall | Opcode::Reduce)
        && axes
            .iter()
            .flat_map(|axis| &kernel.axes[*axis].factors)
            .any(|factor| factor.level.is_parallel() || factor.size.is_some())
}

/// What is done for an element, in instructions, of which groups of elements can be under way side by side: each keeps what it
/// has computed so far in registers.
const SIDE_BY_SIDE: usize = 12;

/// The instructions of a block, and of what is inside, that are more than literals.
fn work(kernel: &Kernel, block: Block) -> usize {
    let mut count = 0;
    kernel.walk(block, &mut |_, inst| count += usize::from(kernel.insts[inst].opcode != Opcode::Const));
    count
}

/// How often the threads of a team meet each time that a block runs, whatever its branches do.
fn meetings(kernel: &Kernel, block: Block) -> usize {
    let of = |inst: &Inst| match &kernel.insts[*inst].payload {
        Payload::Reduce { combiners, .. } if is_shared(kernel, *inst) => combiners.len(),
        _ => 0,
    };
    kernel.blocks[block].insts.iter().map(of).sum()
}

/// The first shared loop in a block or below.
pub fn shared_loop(kernel: &Kernel, block: Block) -> Option<Inst> {
    shared_loops(kernel, block).first().copied()
}

/// The outermost shared loops in a block and below.
fn shared_loops(kernel: &Kernel, block: Block) -> Vec<Inst> {
    let of = |inst: &Inst| match is_shared(kernel, *inst) {
        true => vec![*inst],
        false => {
            kernel.insts[*inst].regions.iter().flat_map(|region| shared_loops(kernel, *region)).collect()
        }
    };
    kernel.blocks[block].insts.iter().flat_map(of).collect()
}

/// The warp and lane factors of a shared loop, as an axis that takes part in numbering the block's threads.
pub fn team_axis(kernel: &Kernel, inst: Inst) -> Option<Spread> {
    let mut axis = Spread::of(kernel, inst).pop()?;
    axis.factors.retain(|factor| matches!(factor.level, Level::Warp | Level::Lane));
    Some(axis)
}

/// The threads that share an iteration.
pub struct Team {
    /// This thread's number in the team.
    pub(super) own: Value,
    /// How many they are: a power of two up to 32, or a multiple of 32 that is the whole block.
    pub(super) size: i64,
    /// Whether the iteration is one of the axes': where a warp has several teams, those behind the end run the last one
    /// again, since all lanes meet, and write nothing.
    inside: Option<Value>,
    /// Buffers that the iteration reads and writes: what comes once more reads nothing of them, for they change meanwhile.
    changed: EntitySet<Buffer>,
    /// Shared buffers may be used again: a barrier must stand between.
    pub(super) looped: bool,
    /// Another meeting, of all threads, comes before this one comes again: its barrier is the one between.
    pub(super) alternating: bool,
    /// Conditions, or loops that each thread runs, stand around shared loops: all threads must see the same.
    decides: bool,
    /// What more than the first thread uses.
    used_by_all: EntitySet<Value>,
    /// Arrays of which the threads read elements of each other's: they wait before and after each loop that writes one.
    exchanged: Vec<Buffer>,
    /// Buffers of which all threads read elements in the iteration's straight code.
    read: EntitySet<Buffer>,
    /// Row buffers that became one private slot for each element a thread owns.
    slots: FxHashMap<Buffer, Buffer>,
}

impl Team {
    pub fn new(emit: &mut Emit<'_>, threads: &Threads, axis: &Spread, at: usize, looped: bool) -> Self {
        let own = threads.part(emit, axis, at);
        emit.name(own, "member");
        let size = axis.level_size(Level::Warp) * axis.level_size(Level::Lane);
        Self {
            own,
            size,
            inside: None,
            changed: EntitySet::new(),
            looped,
            alternating: false,
            decides: false,
            used_by_all: EntitySet::new(),
            exchanged: Vec::new(),
            read: EntitySet::new(),
            slots: FxHashMap::default(),
        }
    }

    /// Whether a warp has several of them.
    pub fn is_part_of_warp(&self) -> bool {
        self.size > 1 && self.size < 32
    }

    /// Appends the body of an iteration that is there only where a condition holds; all teams run it.
    pub fn iteration_inside(&mut self, emit: &mut Emit<'_>, body: Block, indices: &[Value], inside: Value) {
        self.inside = Some(inside);
        let changed = changed(emit.kernel, body);
        self.changed = mutant!("threads: what comes once more sees rows change", changed, EntitySet::new());
        self.iteration(emit, body, indices);
        self.changed.clear();
        self.inside = None;
    }

    /// Appends the body of an iteration, without its yield.
    pub fn iteration(&mut self, emit: &mut Emit<'_>, body: Block, indices: &[Value]) {
        let params = emit.kernel.blocks[body].params.clone();
        params.iter().zip(indices).for_each(|(param, index)| emit.kernel.stand_in(*index, *param));
        let mut map: ValueMap = params.into_iter().zip(indices.iter().copied()).collect();
        self.exchanged = exchanged(emit.kernel, body, &shared_loops(emit.kernel, body));
        let straight = emit.kernel.blocks[body].insts.iter().filter(|inst| !is_shared(emit.kernel, **inst));
        self.read = read_by_all(emit.kernel, straight.copied());
        self.slots = slots(emit.kernel, body);
        self.alternating = meetings(emit.kernel, body) > 1;
        self.decides = emit.kernel.blocks[body].insts.iter().any(|inst| {
            let regions = &emit.kernel.insts[*inst].regions;
            let mut within = regions.iter().map(|region| shared_loop(emit.kernel, *region));
            !is_shared(emit.kernel, *inst) && within.any(|found| found.is_some())
        });
        self.used_by_all = used_by_all(emit.kernel, body);
        for inst in emit.kernel.blocks[body].insts.clone() {
            if self.waits(emit.kernel, inst) {
                emit.warp_barrier();
            }
            if emit.kernel.insts[inst].opcode != Opcode::Yield {
                self.inst(emit, inst, &mut map);
            }
        }
    }

    fn block(&mut self, emit: &mut Emit<'_>, body: Block, map: &mut ValueMap) {
        for inst in emit.kernel.blocks[body].insts.clone() {
            if emit.kernel.insts[inst].opcode != Opcode::Yield {
                self.inst(emit, inst, map);
            }
        }
    }

    fn inst(&mut self, emit: &mut Emit<'_>, inst: Inst, map: &mut ValueMap) {
        let data = emit.kernel.insts[inst].clone();
        if is_shared(emit.kernel, inst) {
            // A team of more than a warp is all of a block; smaller ones exchange nothing.
            let meets = self.size > 32 && self.writes_for_others(emit.kernel, inst);
            if mutant!("threads: what others still read is not written", meets, false) {
                emit.barrier();
            }
            self.shared(emit, inst, map);
            if mutant!("threads: what a loop has written is there for all", meets, false) {
                emit.barrier();
            }
        } else if data.regions.iter().any(|region| shared_loop(emit.kernel, *region).is_some())
            || (matches!(data.opcode, Opcode::If | Opcode::For | Opcode::While)
                && writes_for_all(emit.kernel, inst))
        {
            self.control(emit, &data, map);
        } else if self.size > 1 && writes_for_all(emit.kernel, inst) {
            let zero = emit.int(0);
            let mut first = emit.binary(Opcode::Eq, self.own, zero);
            if let Some(inside) = self.inside {
                first = emit.binary(Opcode::And, first, inside);
            }
            emit.if_then(first, |emit| {
                emit.kernel.clone_inst(inst, emit.block, map);
            });
        } else {
            self.copy(emit, inst, map);
        }
    }

    /// Whether one thread writes what all lanes of the warp have read in this iteration. The threads of more than a warp have met
    /// at a barrier since.
    fn waits(&self, kernel: &Kernel, inst: Inst) -> bool {
        let mut writes = false;
        accesses_of(kernel, inst, &mut |opcode, buffer| {
            writes |= opcode == Opcode::Store && self.read.contains(buffer);
        });
        writes && self.size > 1 && self.size <= 32 && !is_shared(kernel, inst)
    }

    /// Whether a loop writes what other threads read.
    fn writes_for_others(&self, kernel: &Kernel, inst: Inst) -> bool {
        let mut writes = false;
        kernel.walk(kernel.insts[inst].regions[0], &mut |_, inside| {
            let data = &kernel.insts[inside];
            let Payload::Access { buffer, .. } = data.payload else { return };
            writes |= data.opcode == Opcode::Store && self.exchanged.contains(&buffer);
        });
        writes
    }

    /// Appends what each thread does.
    fn copy(&self, emit: &mut Emit<'_>, inst: Inst, map: &mut ValueMap) {
        let Some(inside) = self.inside.filter(|_| !self.changed.is_empty()) else {
            emit.kernel.clone_inst(inst, emit.block, map);
            return;
        };
        let (block, span) = (emit.kernel.blocks.push(BlockData::default()), emit.span);
        emit.kernel.clone_inst(inst, block, map);
        let loads = |kernel: &Kernel, inst: Inst| loads_of(kernel, inst, &self.changed);
        mask(emit.kernel, block, &Masks { inside: Some(inside), writes: None, loads: &loads }, span);
        let insts = std::mem::take(&mut emit.kernel.blocks[block].insts);
        emit.kernel.blocks[emit.block].insts.extend(insts);
    }

    /// Control flow around shared loops: the same for all threads of the team.
    fn control(&mut self, emit: &mut Emit<'_>, data: &InstData, map: &mut ValueMap) {
        let results = match data.opcode {
            Opcode::For => {
                let given: Vec<Value> = data.arguments.iter().map(|value| mapped(map, *value)).collect();
                let name = match &data.payload {
                    Payload::Loop { axes } => emit.kernel.axes[axes[0]].name.clone(),
                    _ => String::new(),
                };
                let region = data.regions[0];
                let params = emit.kernel.blocks[region].params.clone();
                let alternating = meetings(emit.kernel, region) > 1;
                let outer = (self.looped, self.alternating);
                (self.looped, self.alternating) = (true, alternating);
                let bounds = (given[0], given[1], given[2]);
                let results = emit.for_loop(&name, bounds, &given[3..], |emit, index, carried| {
                    map.insert(params[0], index);
                    map.extend(params[1..].iter().copied().zip(carried.iter().copied()));
                    self.block(emit, region, map);
                    emit.kernel.yields(region).iter().map(|value| mapped(map, *value)).collect()
                });
                (self.looped, self.alternating) = outer;
                results
            }
            Opcode::While => self.while_loop(emit, data, map.clone()),
            _ => {
                let condition = mapped(map, data.arguments[0]);
                let (then, otherwise) = (data.regions[0], data.regions[1]);
                let mut other = map.clone();
                // What a branch has need not come in the next turn.
                let outer = std::mem::replace(&mut self.alternating, false);
                let team = std::cell::RefCell::new(&mut *self);
                let results = emit.if_else(
                    condition,
                    |emit| {
                        team.borrow_mut().block(emit, then, map);
                        emit.kernel.yields(then).iter().map(|value| mapped(map, *value)).collect()
                    },
                    |emit| {
                        team.borrow_mut().block(emit, otherwise, &mut other);
                        emit.kernel.yields(otherwise).iter().map(|value| mapped(&other, *value)).collect()
                    },
                );
                self.alternating = outer;
                results
            }
        };
        map.extend(data.results.iter().copied().zip(results));
    }

    /// A loop with a condition of its own, which shared loops may stand in as well as in its body.
    fn while_loop(&mut self, emit: &mut Emit<'_>, data: &InstData, map: ValueMap) -> Vec<Value> {
        let given: Vec<Value> = data.arguments.iter().map(|value| mapped(&map, *value)).collect();
        let (test, body) = (data.regions[0], data.regions[1]);
        let alternating = meetings(emit.kernel, body) > 1;
        let inside = self.inside.filter(|_| !self.changed.is_empty());
        let outer = (self.looped, self.alternating);
        // What the test has need not come in the last turn.
        (self.looped, self.alternating) = (true, false);
        let team = std::cell::RefCell::new((&mut *self, map));
        let enter = |kernel: &Kernel, block: Block, carried: &[Value], map: &mut ValueMap| {
            map.extend(kernel.blocks[block].params.iter().copied().zip(carried.iter().copied()));
        };
        let results = emit.while_loop(
            &given,
            |emit, carried| {
                let (team, map) = &mut *team.borrow_mut();
                enter(emit.kernel, test, carried, map);
                team.block(emit, test, map);
                let goes_on = mapped(map, emit.kernel.yields(test)[0]);
                // What comes once more may never see the condition become false.
                inside.map_or(goes_on, |inside| emit.binary(Opcode::And, goes_on, inside))
            },
            |emit, carried| {
                let (team, map) = &mut *team.borrow_mut();
                team.alternating = alternating;
                enter(emit.kernel, body, carried, map);
                team.block(emit, body, map);
                emit.kernel.yields(body).iter().map(|value| mapped(map, *value)).collect()
            },
        );
        (self.looped, self.alternating) = outer;
        results
    }

    fn shared(&mut self, emit: &mut Emit<'_>, inst: Inst, map: &mut ValueMap) {
        let mut around = Spread::of(emit.kernel, inst);
        let Some(mut axis) = around.pop() else { return };
        axis.low = mapped(map, axis.low);
        axis.high = mapped(map, axis.high);
        // What comes once more writes nothing, and reads nothing that changes.
        let writes = self.inside.filter(|_| writes_for_all(emit.kernel, inst));
        let takes_part = self.inside.filter(|_| writes.is_some() || !self.changed.is_empty());
        let data = emit.kernel.insts[inst].clone();
        let combiners = match &data.payload {
            Payload::Reduce { combiners, .. } => combiners.clone(),
            _ => Combiners::new(),
        };
        let types: Vec<Scalar> = data.results.iter().map(|value| emit.kernel.value_type(*value)).collect();
        let in_order = around.is_empty() && positions_rise(emit.kernel, data.regions[0], &combiners);
        let partial = Partial { combiners: &combiners, types: &types, in_order };
        let serial = axis.factors.first().filter(|factor| factor.level == Level::Serial).and_then(|f| f.size);
        let is_open = matches!(axis.factors.first(), Some(Factor { level: Level::Serial, size: None }));
        let bounds = emit.kernel.loop_bounds(inst).last().copied().filter(|_| is_open);
        let of_memory = bounds.is_some_and(|(low, high)| {
            let mut endless = Endless::new(emit.kernel);
            endless.is_of_memory(low) || endless.is_of_memory(high)
        });
        if let Some(inside) = takes_part.filter(|_| is_open) {
            // Its range is empty.
            axis.high = emit.select(inside, axis.high, axis.low);
        }
        // One accumulator for each place in a vector.
        let mut known = Vec::new();
        if !around.is_empty() {
            (0..axis.level_size(Level::Vector)).for_each(|_| known.extend(partial.identity(emit)));
        }
        let mut inner = |team: &mut Self, emit: &mut Emit<'_>, map: &ValueMap, known: &[Value]| match is_open
        {
            true => team.open(emit, (&axis, of_memory), data.regions[0], map, (&partial, known)),
            false => {
                let groups = serial.unwrap_or(1) as i64;
                team.at_once(emit, (&axis, groups, writes), data.regions[0], map, (&partial, known))
            }
        };
        let params = emit.kernel.blocks[data.regions[0]].params.clone();
        let columns = self.nest(emit, (&around, &params), map, &known, &mut inner);
        let columns = columns.chunks(types.len().max(1)).map(<[Value]>::to_vec).collect();
        let own = partial.all(emit, columns);
        let mut at = 0;
        for combiner in &combiners {
            let width = combiner.width();
            let is_own = matches!(combiner, Combiner::Own(..));
            let mut results = data.results[at..at + width].iter();
            let in_order = is_own && results.any(|result| self.used_by_all.contains(*result))
                || combiner.is_position() && self.decides;
            let all = self.meet(emit, (*combiner, in_order), &own[at..at + width]);
            map.extend(data.results[at..at + width].iter().copied().zip(all));
            at += width;
        }
    }

    /// Loops over the axes around the one that is shared, each of which every thread walks whole, with the accumulators
    /// that it has so far.
    fn nest(
        &mut self,
        emit: &mut Emit<'_>,
        (around, params): (&[Spread], &[Value]),
        map: &mut ValueMap,
        known: &[Value],
        inner: &mut Walk<'_>,
    ) -> Vec<Value> {
        let Some((axis, rest)) = around.split_first() else { return inner(self, emit, map, known) };
        let bounds = (mapped(map, axis.low), mapped(map, axis.high), emit.int(1));
        emit.for_loop(&axis.name, bounds, known, |emit, index, carried| {
            map.insert(params[0], index);
            self.nest(emit, (rest, &params[1..]), map, carried, inner)
        })
    }

    /// A fixed number of groups, all at once; those outside are masked. They write where a condition holds. What they load
    /// does not depend on it, so that it is the same that another loop over the axis has loaded, or in all of these.
    fn at_once(
        &mut self,
        emit: &mut Emit<'_>,
        (axis, groups, writes): (&Spread, i64, Option<Value>),
        body: Block,
        map: &ValueMap,
        (partial, known): (&Partial<'_>, &[Value]),
    ) -> Vec<Value> {
        let vector = axis.level_size(Level::Vector);
        let exact = matches!(&axis.extent, Some(Expr::Int(extent)) if *extent == groups * self.size * vector);
        let reads = self.inside.filter(|_| !self.changed.is_empty());
        let writes = writes.filter(|_| reads.is_none());
        let masks = Masked { reads: !exact || reads.is_some(), writes: writes.is_some() };
        let group = self.group(emit.kernel, body, vector, map, masks, emit.span);
        let first = emit.mul_int(self.own, vector);
        let start = emit.add(axis.low, first);
        // All of the axis is within the groups, and so short: one 32-bit comparison with a literal a group.
        let left = (!exact).then(|| {
            let left = emit.sub(axis.high, start);
            let left = emit.value(Opcode::Cast, Payload::Cast(Scalar::I32), &[left]);
            emit.name(left, "left")
        });
        let mut iterations = Vec::new();
        let mut actives = Vec::new();
        for at in 0..groups {
            let before = at * self.size * vector;
            let mut iteration = vec![emit.add_int(start, before), emit.int(at * vector)];
            let within = left.map(|left| {
                let before = emit.constant(Constant::Int(Scalar::I32, before.into()));
                emit.binary(Opcode::Gt, left, before)
            });
            let active = match (within, reads) {
                (Some(within), Some(reads)) => Some(emit.binary(Opcode::And, within, reads)),
                _ => within.or(reads),
            };
            iteration.extend(active);
            actives.extend(active);
            if let Some(writes) = writes {
                let all = actives.last().map(|active| emit.binary(Opcode::And, *active, writes));
                iteration.push(all.unwrap_or(writes));
            }
            iterations.push(iteration);
        }
        let params = emit.kernel.blocks[group].params.clone();
        if partial.types.is_empty() && work(emit.kernel, body) > SIDE_BY_SIDE {
            jam_in_turn(emit, group, &params, &iterations, map, &self.own_slots());
            return Vec::new();
        }
        let yields = jam(emit, group, &params, &iterations, map, &self.own_slots());
        let mut columns: Vec<Vec<Value>> =
            known.chunks(partial.types.len().max(1)).map(<[Value]>::to_vec).collect();
        for (at, values) in yields.iter().enumerate() {
            for (place, part) in values.chunks(partial.types.len().max(1)).enumerate() {
                let mut part = part.to_vec();
                if let Some(active) = actives.get(at) {
                    part = partial.masked(emit, *active, &part);
                }
                match columns.get_mut(place) {
                    Some(known) => *known = partial.follow(emit, known, &part),
                    None => columns.push(part),
                }
            }
        }
        columns.concat()
    }

    /// A block that runs a group of neighbours: its parameters are the first index, the number of the first slot,
    /// and as far as that is `masked`, whether the group is inside, and whether it writes; it yields what the body yields, neighbour by neighbour.
    pub(super) fn group(
        &self,
        kernel: &mut Kernel,
        body: Block,
        vector: i64,
        map: &ValueMap,
        masked: Masked,
        span: crate::source::Span,
    ) -> Block {
        let source = self.slotted(kernel, body);
        // The axes around the shared one have indices already.
        let around = kernel.blocks[body].params.len() - 1;
        let own: Vec<Value> = kernel.blocks[source].params.drain(..around).collect();
        let given = kernel.blocks[body].params.iter().map(|index| mapped(map, *index));
        let mut map = map.clone();
        map.extend(own.into_iter().zip(given.collect::<Vec<_>>()));
        let map = &map;
        let group = kernel.blocks.push(BlockData::default());
        let index = kernel.add_param(group, Scalar::I64);
        let slot = kernel.add_param(group, Scalar::I64);
        let inside = masked.reads.then(|| kernel.add_param(group, Scalar::Bool));
        let writes = masked.writes.then(|| kernel.add_param(group, Scalar::Bool)).or(inside);
        let mut emit = Emit::new(kernel, group, span);
        let iterations: Vec<Vec<Value>> =
            (0..vector).map(|at| vec![emit.add_int(index, at), emit.add_int(slot, at)]).collect();
        let params = emit.kernel.blocks[source].params.clone();
        let yields = jam(&mut emit, source, &params, &iterations, map, &self.own_slots());
        let all: Vec<Value> = yields.into_iter().flatten().collect();
        emit.inst(Opcode::Yield, Payload::None, &all);
        if writes.is_some() {
            let outside = depending(kernel, group, &[index, slot], &self.own_slots());
            let loads = |kernel: &Kernel, inst: Inst| match (&kernel.insts[inst], kernel.insts[inst].opcode) {
                (data, Opcode::Load) => {
                    !is_private(kernel, data) && data.arguments.iter().any(|value| outside.contains(*value))
                        || loads_of(kernel, inst, &self.changed)
                }
                _ => loads_of(kernel, inst, &self.changed),
            };
            mask(kernel, group, &Masks { inside, writes, loads: &loads }, span);
        }
        group
    }

    pub(super) fn own_slots(&self) -> Vec<Buffer> {
        self.slots.values().copied().collect()
    }

    /// A copy of a loop's body with a second parameter, the slot, by which row buffers are accessed.
    fn slotted(&self, kernel: &mut Kernel, body: Block) -> Block {
        let copy = kernel.clone_block(body, &mut ValueMap::default());
        let slot = kernel.add_param(copy, Scalar::I64);
        let mut insts = Vec::new();
        kernel.walk(copy, &mut |_, inst| insts.push(inst));
        for inst in insts {
            let Payload::Access { buffer, leaf } = kernel.insts[inst].payload else { continue };
            let Some(own) = self.slots.get(&buffer).copied() else { continue };
            let rank = kernel.buffers[buffer].extents.len();
            let data = &mut kernel.insts[inst];
            data.payload = Payload::Access { buffer: own, leaf };
            data.arguments.drain(..rank);
            data.arguments.insert(0, slot);
        }
        copy
    }
}

/// The values of a body that loops and branches in it use, or checks and prints, and what they are computed of. Others are
/// written by the first thread alone.
fn used_by_all(kernel: &Kernel, body: Block) -> EntitySet<Value> {
    let mut used = EntitySet::new();
    for inst in kernel.blocks[body].insts.iter().rev() {
        let data = &kernel.insts[*inst];
        let counts = match (data.opcode.info().effect, &data.payload) {
            (Effect::Pure | Effect::Read, _) => data.results.iter().any(|result| used.contains(*result)),
            // Each thread has private arrays of its own.
            (Effect::Write, Payload::Access { buffer, .. }) => {
                kernel.buffers[*buffer].kind == BufferKind::Private
            }
            _ => true,
        };
        if !counts {
            continue;
        }
        used.extend(data.arguments.iter().copied());
        for region in &data.regions {
            kernel.walk(*region, &mut |_, inst| used.extend(kernel.insts[inst].arguments.iter().copied()));
        }
    }
    used
}

fn is_private(kernel: &Kernel, data: &InstData) -> bool {
    matches!(data.payload, Payload::Access { buffer, .. } if kernel.buffers[buffer].kind == BufferKind::Private)
}

/// Walks the shared axis of a loop, of accumulators to accumulators.
type Walk<'a> = dyn FnMut(&mut Team, &mut Emit<'_>, &ValueMap, &[Value]) -> Vec<Value> + 'a;

/// What of a group takes place only where a condition holds.
#[derive(Clone, Copy, Default)]
pub(super) struct Masked {
    /// All of it, since it may lie behind the end.
    pub reads: bool,
    /// What it writes has a condition of its own.
    pub writes: bool,
}
