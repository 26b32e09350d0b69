//! One load of a product: its tile in shared memory, how threads bring it, and what must hold for them to take vectors.

use super::super::copier::Copier;
use super::super::pattern::{LoopAxis, Pattern};
use super::super::tile::{Leaf, Side, Tile};
use super::shape::Shape;
use super::source::Source;
use crate::analysis::Stride;
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Payload};
use crate::ir::op::Opcode;
use crate::ir::schedule::Placement;
use crate::manifest::{Expr, Layout};
use crate::mutants::mutant;

/// Bytes of a row that neighbouring threads bring: a line, so that a thread's places differ in few rows; or a sector,
/// where that makes the copy into a transposed tile cheaper.
const PIECES: [i64; 2] = [128, 32];

/// Both tiles lie in shared memory in the same way.
#[derive(Clone)]
pub struct Operand {
    /// Scalar by scalar.
    pub scalar: Tile,
    /// Several scalars at a time.
    pub vector: Option<Tile>,
    /// What must hold for that.
    pub aligned: Vec<Expr>,
    /// Whether scalars that are neighbours along the fast side are neighbours in memory.
    pub dense: bool,
    /// How it is copied in the background, if it is.
    pub walk: Option<Walk>,
}

/// How the addresses of an operand that is copied in the background go along the reduced axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Walk {
    /// In even steps.
    Even,
    /// By a part that follows from the place along the reduced axis alone, which is added to that of the row or column.
    Uneven,
}

/// How a load's elements can be copied in the background: they are in global memory as they are in shared memory, of 4 or 8
/// bytes, zeros where its condition does not hold. `None` where they cannot.
pub fn walk(pattern: &mut Pattern<'_>, source: Source, [outer, inner]: [Value; 2]) -> Option<Walk> {
    let kernel = pattern.kernel;
    let load = source.load;
    let Payload::Access { buffer, .. } = kernel.insts[load].payload else { return None };
    let data = &kernel.buffers[buffer];
    let copied = source.is_zero_elsewhere(kernel)
        && matches!(data.kind, BufferKind::Argument { .. } | BufferKind::Scratch)
        && !matches!(data.layout, Layout::Aosoa(_))
        && matches!(pattern.width(load), 4 | 8);
    if !copied {
        return None;
    }
    if !source.is_computed() && pattern.stride(load, inner) != Stride::Irregular {
        return Some(Walk::Even);
    }
    let is_sum = pattern.is_separable(load, [outer, inner]);
    mutant!("flatten: every address is a sum of parts", is_sum, true).then_some(Walk::Uneven)
}

/// What must hold for all that moves along an axis to be read by vectors; `None` where it cannot be.
fn vector_conditions(
    pattern: &mut Pattern<'_>,
    leaves: &[(Inst, Scalar, bool)],
    axis: &LoopAxis,
    lanes: u64,
) -> Option<Vec<Expr>> {
    let mut moving = leaves.iter().filter(|(.., moves)| *moves).peekable();
    // What is the same along it would be one scalar many times.
    moving.peek()?;
    let needed = moving.map(|(inst, ..)| pattern.vector_condition(*inst, axis, lanes));
    Some(needed.collect::<Option<Vec<_>>>()?.concat())
}

impl Operand {
    /// `side` is the one that the load moves with, `None` where the tile has too few elements for the threads.
    pub fn new(
        pattern: &mut Pattern<'_>,
        source: Source,
        (outer, inner): (&LoopAxis, &LoopAxis),
        (shape, side): (&Shape, usize),
        walk: Option<Walk>,
    ) -> Option<Self> {
        let kernel = pattern.kernel;
        let (load, stored) = (source.load, source.scalar(pattern));
        let across = Side { index: outer.index, size: shape.tile[side] };
        let deep = Side { index: inner.index, size: shape.depth };
        let straight = pattern.cost(load, across.index) <= pattern.cost(load, deep.index);
        let (sides, fast) = if straight { ((across, deep), outer) } else { ((deep, across), inner) };
        let leaves: Vec<(Inst, Scalar, bool)> = source
            .leaves(kernel)
            .into_iter()
            .map(|inst| {
                let is_load = kernel.insts[inst].opcode == Opcode::Load;
                let moves = is_load && pattern.stride(inst, fast.index) != Stride::Bytes(0);
                let scalar = match is_load {
                    true => pattern.scalar(inst),
                    false => kernel.value_type(kernel.insts[inst].results[0]),
                };
                (inst, scalar, moves)
            })
            .collect();
        let are_loads = leaves.iter().all(|(inst, ..)| kernel.insts[*inst].opcode == Opcode::Load);
        let tile = |lanes: i64| {
            let mut known = None;
            let tiles = PIECES.iter().filter_map(|piece| {
                let mut tile = Tile::new((load, stored), sides, (lanes, shape.threads()), straight, *piece)?;
                tile.given = source.given;
                if source.is_computed() {
                    let kinds = leaves.iter().map(|(inst, scalar, moves)| Leaf {
                        inst: *inst,
                        scalar: *scalar,
                        lanes: if *moves { tile.lanes } else { 1 },
                    });
                    tile.leaves = kinds.collect();
                }
                // A piece that is too long for the row gives the tile of a shorter one.
                if known.replace(tile.across) == Some(tile.across) {
                    return None;
                }
                match kernel.schedule.stage(&tile.array(kernel)) {
                    // Rows begin where vectors do.
                    Some((Some(Placement::Pad(pad)), _)) if i64::from(pad) * tile.bytes() % 16 == 0 => {
                        tile.pitch += i64::from(pad);
                    }
                    _ => tile.pad(shape.piece(side), |_| 0),
                }
                Some(tile)
            });
            tiles.min_by_key(Tile::store_cost)
        };
        let mut scalar = tile(1)?;
        let dense = pattern.stride(load, sides.0.index) == Stride::Bytes(scalar.bytes());
        // A copy in the background cannot turn a vector round.
        let wanted = if !are_loads || walk.is_some() && !straight { 1 } else { (16 / scalar.bytes()).min(4) };
        let (mut vector, mut aligned) = (None, Vec::new());
        if wanted > 1
            && let Some(found) = tile(wanted).filter(|tile| tile.lanes > 1)
            && let Some(needed) = vector_conditions(pattern, &leaves, fast, found.lanes as u64)
            && (walk.is_none() || found.stores_vectors())
        {
            scalar.pitch = found.pitch;
            (vector, aligned) = (Some(found), needed);
        }
        Some(Self { scalar, vector, aligned, dense, walk })
    }

    /// Of so many tiles.
    pub fn bytes(&self, stages: i64) -> i64 {
        self.scalar.elements() * self.scalar.bytes() * stages
    }

    /// Emits this thread's places.
    pub fn stage(&self, emit: &mut Emit<'_>, stages: i64, thread: Value) -> Staged {
        let buffer = self.scalar.allocate(emit.kernel, stages);
        let mut copier = |tile: &Tile| Copier::new(emit, tile.clone(), buffer, thread);
        let (scalar, vector) = (copier(&self.scalar), self.vector.as_ref().map(&mut copier));
        Staged { buffer, scalar, vector, dense: self.dense, walk: self.walk }
    }
}

/// An operand in a launch.
pub struct Staged {
    pub buffer: Buffer,
    pub scalar: Copier,
    pub vector: Option<Copier>,
    pub dense: bool,
    pub walk: Option<Walk>,
}

impl Staged {
    /// How it is copied where vectors may be taken, and where not.
    pub fn copier(&self, aligned: bool) -> &Copier {
        self.vector.as_ref().filter(|_| aligned).unwrap_or(&self.scalar)
    }

    /// What does not depend on how it is copied.
    pub fn tile(&self) -> &Tile {
        &self.scalar.tile
    }
}
