//! Lowers placed tile programs to what each thread does.

mod access;
mod contract;
mod control;
mod convert;
mod coordinates;
mod fragments;
mod matrices;
mod order;
#[cfg(test)]
mod random;
#[cfg(test)]
mod random_matrices;
mod reduce;
mod registers;
mod shared;
mod slots;
#[cfg(test)]
pub mod tests;

use super::pass::{Changed, Pass, PassContext};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Atom, BlockData, InstData, Kernel, Payload, Phase, Phases, Tile, Tiling};
use crate::ir::op::{Effect, Opcode};
use crate::layout::Digit;
use coordinates::{Coordinates, WARP, thread_replicas};
use order::Order;
use registers::Registers;
use rustc_hash::FxHashMap;
use shared::Exchange;

/// A launch in phase `tiled` whose tiles have layouts becomes the code of one thread: of each tile a thread has the registers
/// that the layout gives it.
///
/// ```text
/// launch … tiled threads 64 grid [sym0, 1, 1] axes [c: 256] layouts ["c = warp:2 · lane:32 · register:4"] {
///     v0: i64 = block_index 0
///     v1: i64 {c} layout0 = index c
///     v2: f32 {c} layout0 = load buf0[v0, v1]
///     v3: f32 = reduce_along [add] c: v2
/// }
/// →
///     v0: i64 = block_index 0                        the same for all threads
///     c0 = (thread / 32) * 128 + thread % 32 * 4     and c1 = c0 + 1, …
///     x0 = load buf0[v0, c0]                         and x1, x2, x3
///     s = (x0 + x1) + (x2 + x3), by shuffles among lanes, then in shared memory among warps
/// ```
///
/// - What works element by element is done once a register; replicas that a layout has in one thread are one register.
/// - Stores and atomics of what several threads hold are done by one of them.
/// - `convert` renames registers, or goes through shared memory by the layout that has the fewest conflicts.
/// - Elements are combined in an order that the layout fixes: registers in pairs, lanes by the bits of their number, warps in
///   their order.
/// - A contraction is an `outer` product for each step: all that a thread has of rows, of columns and of sums. Of a matrix atom
///   it is an instruction for each fragment of sums and of steps. Tiles of storage types are words.
/// - A barrier stands between accesses of one array where a thread may touch what another one wrote.
///
/// Needs layouts: an open launch is left alone, and the verifier of the phases after it refuses it.
pub struct LowerTiles;

impl Pass for LowerTiles {
    fn name(&self) -> &str {
        "lower_tiles"
    }

    fn reason(&self) -> &str {
        "makes of tiles with layouts what each thread does: its registers, shuffles, exchanges through shared memory"
    }

    fn needs(&self) -> Phases {
        Phases::TILED
    }

    fn leaves(&self) -> Option<Phase> {
        Some(Phase::Staged)
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let launches = kernel.launches.iter().filter(|(_, data)| data.is_placed());
        let launches: Vec<Launch> = launches.map(|(launch, _)| launch).collect();
        for launch in &launches {
            lower(kernel, *launch);
        }
        Changed::from(!launches.is_empty())
    }
}

fn lower(kernel: &mut Kernel, launch: Launch) {
    let Some(tiling) = kernel.launches[launch].tiling.take() else { return };
    let old = kernel.launches[launch].body;
    let body = kernel.blocks.push(BlockData::default());
    let (order, span) = (Order::new(kernel, &tiling, old), kernel.span);
    let mut lowering = Lowering {
        tiling: &tiling,
        coordinates: Coordinates::new(kernel.launches[launch].threads.unwrap_or(WARP)),
        registers: Registers::default(),
        exchange: Exchange::default(),
        order,
        stored: shared::stored_as(kernel, old),
        loops: 0,
    };
    lowering.block(&mut Emit::sharing(kernel, body, span), old);
    let data = &mut kernel.launches[launch];
    data.body = body;
    data.phase = Phase::Staged;
}

/// A launch on its way from tiles to threads.
struct Lowering<'t> {
    tiling: &'t Tiling,
    coordinates: Coordinates,
    /// What each thread has of each value.
    registers: Registers,
    /// Shared memory that values go through.
    exchange: Exchange,
    /// Where barriers stand between accesses of one array.
    order: Order,
    /// The types in memory of what is only stored.
    stored: FxHashMap<Value, Option<Scalar>>,
    /// How many loops are around.
    loops: usize,
}

impl Lowering<'_> {
    /// Lowers what a block does, but for what it yields.
    fn block(&mut self, emit: &mut Emit<'_>, block: Block) {
        for inst in emit.kernel.blocks[block].insts.clone() {
            self.inst(emit, inst);
        }
    }

    fn inst(&mut self, emit: &mut Emit<'_>, inst: Inst) {
        let data = emit.kernel.insts[inst].clone();
        emit.span = data.span;
        if self.order.needs_barrier(inst) {
            emit.barrier();
        }
        match (data.opcode, &data.payload) {
            (Opcode::Yield, _) => {}
            (Opcode::If, _) => self.branch(emit, &data),
            (Opcode::For, _) => self.for_loop(emit, &data),
            (Opcode::While, _) => self.while_loop(emit, &data),
            (_, Payload::Index(axis)) => self.index(emit, data.results[0], usize::from(*axis)),
            (Opcode::Convert, _) => self.convert(emit, data.results[0], data.arguments[0]),
            (_, Payload::Along { axes, combiners }) => self.reduce_along(emit, &data, *axes, combiners),
            (_, Payload::Contract { along, atom: Atom::Fma }) => self.contract(emit, &data, *along),
            (_, Payload::Contract { along, atom }) => self.matrices(emit, &data, (*along, *atom)),
            _ if self.is_storage(emit.kernel, &data) => self.storage(emit, &data),
            (Opcode::CopyCommit | Opcode::CopyWait, _) => {
                emit.inst(data.opcode, data.payload.clone(), &[]);
            }
            (opcode, _) if matches!(opcode.info().effect, Effect::Write | Effect::Record) => {
                self.write(emit, &data);
            }
            _ => self.by_registers(emit, &data),
        }
    }

    /// Whether an op makes a tile of a storage type.
    fn is_storage(&self, kernel: &Kernel, data: &InstData) -> bool {
        data.results.first().is_some_and(|result| kernel.value_type(*result).is_narrow())
    }

    /// The coordinates of a thread's elements along an axis.
    fn index(&mut self, emit: &mut Emit<'_>, result: Value, axis: usize) {
        let tile = emit.kernel.tile(result);
        let Some(layout) = self.tiling.layout(tile) else { return };
        let name = &self.tiling.axes[axis].name;
        let shape = self.registers.shape(self.tiling, tile);
        let values = self.coordinates.along(emit, layout, name, &shape.own);
        self.registers.set(result, shape, values);
    }

    /// An op that gives a value, once for each register of it.
    fn by_registers(&mut self, emit: &mut Emit<'_>, data: &InstData) {
        let result = data.results[0];
        let shape = self.registers.shape(self.tiling, emit.kernel.tile(result));
        let mut values = Vec::with_capacity(shape.own.len());
        for register in &shape.own {
            let operands = self.operands(&data.arguments, *register);
            let value = emit.value(data.opcode, data.payload.clone(), &operands);
            if let Some(name) = emit.kernel.values[result].name.clone() {
                emit.name(value, &name);
            }
            values.push(value);
        }
        self.registers.set(result, shape, values);
    }

    /// The scalars of operands that go with a register of the op.
    fn operands(&self, arguments: &[Value], register: u64) -> Vec<Value> {
        arguments.iter().map(|value| self.registers.get(*value, register)).collect()
    }

    /// Digits of the thread's number in which a tile does not differ; of a scalar all of them.
    fn replicas(&self, tile: Tile) -> Vec<Digit> {
        match self.tiling.layout(tile) {
            Some(layout) => thread_replicas(layout),
            None => self.coordinates.all(),
        }
    }
}
