//! Where the threads of a block wait between accesses of one array, in global or in shared memory: where one may touch what
//! another one wrote, or write what another one has yet to read.
//!
//! The program is gone through in its order, with the accesses that no barrier separates yet from those that come; loops until
//! nothing new is left open at the end of a turn. Slots of a ring, `(turn + 3) % 4` and `turn % 4`, are told apart, from one
//! turn to the next as well. A copy in the background is an access once it has been waited for. Arrays in shared memory of which
//! one is used after the other is no more may have one place (`ptx/select/shared.rs`), so a barrier stands between them too.

use super::coordinates::thread_replicas;
use super::slots::{Slot, Slots};
use crate::analysis::SharedLifetimes;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload, Tile, Tiling};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use rustc_hash::{FxHashMap, FxHashSet};

/// Turns of loops, and groups of copies, that are told apart.
const MOST_TURNS: u8 = 8;

/// An access of an array that the launch both reads and writes.
#[derive(Clone, PartialEq, Debug)]
struct Access {
    buffer: Buffer,
    writes: bool,
    subscripts: Vec<Value>,
    /// What is known of each subscript.
    slots: Vec<Option<Slot>>,
    tile: Tile,
    /// Whether each element is touched by one thread.
    is_own: bool,
    /// How many turns ago it was, at most [`MOST_TURNS`].
    turns: u8,
    /// Of a copy under way: how many groups have been made since, its own included; at most [`MOST_TURNS`].
    groups: u8,
}

impl Access {
    /// Whether threads may meet: not where each touches elements of its own, the same ones in both, and not in different slots.
    fn meets(&self, later: &Access, lifetimes: &SharedLifetimes) -> bool {
        if self.buffer != later.buffer {
            return lifetimes.follows(later.buffer, self.buffer);
        }
        let same = self.subscripts == later.subscripts && self.tile == later.tile;
        let same = same && self.is_own && later.is_own;
        let slots = || self.slots.iter().zip(&later.slots);
        let apart = slots().any(|slots| matches!(slots, (Some(own), Some(other)) if own.differs(other)));
        (self.writes || later.writes) && !(same && self.turns == 0) && !apart
    }

    /// The access as the next turn of a loop sees it.
    fn turned(mut self, index: Option<(Value, Option<i64>)>) -> Self {
        self.turns = (self.turns + 1).min(MOST_TURNS);
        let is_long_ago = self.turns == MOST_TURNS;
        self.move_slots(|slot| slot.turned(index, is_long_ago));
        self
    }

    /// The access as what follows the loop of an index sees it.
    fn left(mut self, index: Option<Value>) -> Self {
        self.move_slots(|slot| (index.is_none() || slot.index != index).then_some(slot));
        self
    }

    fn move_slots(&mut self, by: impl Fn(Slot) -> Option<Slot>) {
        self.slots.iter_mut().for_each(|slot| *slot = slot.and_then(&by));
    }
}

/// What accesses there are in front of a place.
#[derive(Clone, Default, PartialEq, Debug)]
struct State {
    /// Those that no barrier separates yet from those that come.
    open: Vec<Access>,
    /// Copies that nobody has waited for.
    under_way: Vec<Access>,
}

impl State {
    /// Adds the accesses of another way to the same place; whether there are new ones.
    fn join(&mut self, other: State) -> bool {
        let open = other.open.into_iter().map(|access| add(&mut self.open, access));
        let is_new = open.fold(false, |any, is_new| any | is_new);
        let under_way = other.under_way.into_iter().map(|access| add(&mut self.under_way, access));
        under_way.fold(is_new, |any, is_new| any | is_new)
    }

    fn each(self, change: impl Fn(Access) -> Access) -> Self {
        let mut changed = State::default();
        let [open, under_way] = [self.open, self.under_way].map(|all| all.into_iter().map(&change).collect());
        changed.join(State { open, under_way });
        changed
    }

    /// After a wait for all but so many of the latest groups of copies.
    fn wait(&mut self, groups: u8) {
        let (done, still): (Vec<Access>, Vec<Access>) =
            std::mem::take(&mut self.under_way).into_iter().partition(|access| access.groups > groups);
        // Of those that were long ago it is not known which they are.
        let unknown = still.iter().filter(|access| access.groups == MOST_TURNS).cloned();
        for access in done.into_iter().chain(unknown.collect::<Vec<_>>()) {
            add(&mut self.open, access);
        }
        self.under_way = still;
    }
}

/// Adds an access that is not there yet; whether it was not.
fn add(all: &mut Vec<Access>, access: Access) -> bool {
    let is_new = !all.contains(&access);
    if is_new {
        all.push(access);
    }
    is_new
}

/// The instructions before which a barrier stands.
pub struct Order {
    barriers: FxHashSet<Inst>,
}

impl Order {
    pub fn new(kernel: &Kernel, tiling: &Tiling, body: Block) -> Self {
        let mut accesses = FxHashMap::default();
        let [mut read, mut written] = [FxHashSet::default(), FxHashSet::default()];
        let slots = Slots::new(kernel, body);
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else {
                return;
            };
            if data.opcode == Opcode::Address {
                return;
            }
            let writes = data.opcode.info().effect == Effect::Write;
            // An atomic alone meets atomics in any order.
            if writes {
                written.insert(buffer)
            } else {
                read.insert(buffer)
            };
            let tile = kernel.whole_tile(data.arguments.iter().chain(&data.results));
            let tile = tile.unwrap_or(Tile::SCALAR);
            // Fragments go by way of other lanes.
            let by_warp = data.results.iter().any(|result| kernel.value_type(*result).is_narrow());
            let is_own = !by_warp
                && tiling.layout(tile).is_some_and(|layout| thread_replicas(layout).is_empty())
                && data.opcode != Opcode::Atomic;
            let subscripts = kernel.subscripts(data).to_vec();
            let known = subscripts.iter().map(|subscript| slots.of(*subscript)).collect();
            let access =
                Access { buffer, writes, subscripts, slots: known, tile, is_own, turns: 0, groups: 0 };
            accesses.insert(inst, access);
        });
        // What is copied in the background is read from elsewhere.
        accesses.retain(|_, access| read.contains(&access.buffer) && written.contains(&access.buffer));
        let lifetimes = SharedLifetimes::of(kernel, body);
        let mut walk = Walk { kernel, accesses, slots, lifetimes, barriers: FxHashSet::default() };
        walk.block(body, &mut State::default());
        Self { barriers: walk.barriers }
    }

    /// Whether a barrier stands before an instruction.
    pub fn needs_barrier(&self, inst: Inst) -> bool {
        self.barriers.contains(&inst)
    }
}

struct Walk<'k> {
    kernel: &'k Kernel,
    accesses: FxHashMap<Inst, Access>,
    slots: Slots<'k>,
    lifetimes: SharedLifetimes,
    barriers: FxHashSet<Inst>,
}

impl Walk<'_> {
    fn block(&mut self, block: Block, state: &mut State) {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            // In front of a whole branch or loop: inside it would be there on some ways only, or in each turn.
            if self.barriers.contains(inst) || self.meets(*inst, &state.open) {
                self.barriers.insert(*inst);
                state.open.clear();
            }
            let data = &kernel.insts[*inst];
            match (data.opcode, &data.payload) {
                (Opcode::CopyCommit, _) => {
                    for access in &mut state.under_way {
                        access.groups = (access.groups + 1).min(MOST_TURNS);
                    }
                }
                (Opcode::CopyWait, Payload::Lanes(groups)) => {
                    let copies_count = mutant!("lower_tiles: what was copied needs no barrier", true, false);
                    if copies_count {
                        state.wait(*groups);
                    }
                }
                (Opcode::If, _) => {
                    let mut other = state.clone();
                    self.block(data.regions[0], state);
                    self.block(data.regions[1], &mut other);
                    state.join(other);
                }
                (Opcode::For | Opcode::While, _) => self.turns(*inst, state),
                _ => {
                    let Some(access) = self.accesses.get(inst).cloned() else { continue };
                    let copies = matches!(data.opcode, Opcode::CopyAsync | Opcode::CopyAsyncIf);
                    add(if copies { &mut state.under_way } else { &mut state.open }, access);
                }
            }
        }
    }

    /// Whether an access of an instruction, or inside of it, may meet one that is open.
    fn meets(&self, inst: Inst, open: &[Access]) -> bool {
        let kernel = self.kernel;
        let one = |inst: &Inst| {
            self.accesses
                .get(inst)
                .is_some_and(|access| open.iter().any(|open| open.meets(access, &self.lifetimes)))
        };
        if open.is_empty() || self.accesses.is_empty() {
            return false;
        }
        let mut found = one(&inst);
        for region in &kernel.insts[inst].regions {
            kernel.walk(*region, &mut |_, inst| found |= one(&inst));
        }
        found
    }

    /// A loop: its turns, until no barrier is added and nothing new is left open at the end of one.
    fn turns(&mut self, inst: Inst, state: &mut State) {
        let data = &self.kernel.insts[inst];
        let index = self.slots.index(inst);
        let mut back = State::default();
        loop {
            let known = self.barriers.len();
            let mut now = state.clone();
            now.join(back.clone());
            let mut exit = now.clone();
            for (at, region) in data.regions.iter().enumerate() {
                self.block(*region, &mut now);
                // A `while` ends behind its condition.
                if data.opcode == Opcode::While && at == 0 {
                    exit = now.clone();
                }
            }
            let turned = now.each(|access| access.turned(index));
            let turned = mutant!("lower_tiles: turns are apart", turned, State::default());
            if self.barriers.len() > known {
                // What a turn leaves open is less now.
                back = State::default();
            } else if !back.join(turned) {
                *state = exit.each(|access| access.left(index.map(|(index, _)| index)));
                return;
            }
        }
    }
}
