//! How large the tiles of a block are, and what a launch of them costs, about: closed formulas over sizes.
//!
//! ```text
//! steps / 16 * (ceil(tiles / multiprocessors) * fragment steps of a tile + wait) + begin
//! ```
//!
//! In cycles of a multiprocessor. Sixteen steps of a tile take as long as the slowest of what they need: the matrix units, the
//! fragments that come from shared memory, and what comes there from the second cache.

use super::factor::atom;
use super::found::Found;
use crate::analysis::REGISTERS;
use crate::analysis::rates::{CACHES, FUSED, LAUNCH, PRODUCTS, SHARED, WAIT, WAIT_OF_PRODUCTS};
use crate::atoms::{COLUMNS, ROWS};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::TargetFacts;

/// Registers of a thread beside sums and factors.
const OTHERS: i64 = 48;
/// Registers of an index, or of an address.
const NUMBER: i64 = 2;
/// Registers that a thread can have.
const MOST: i64 = 255;
/// Bytes of a row of a fragment's matrix.
const VECTOR: i64 = 16;
/// Chunks that shared memory holds, at most and at least, where they are copied in the background.
const SLOTS: [i64; 2] = [4, 3];
/// The same where they come through registers.
const SLOTS_OF_REGISTERS: i64 = 2;

/// Sums that a thread takes out of shared memory at a time.
const PIECE: i64 = 16;
/// What lies between two rows of sums in shared memory: as many elements as a fragment has columns.
const PAD: i64 = 8;

/// Rows and columns of a block: from those that few rows or few columns do not leave empty to the largest of which registers
/// hold the sums.
const TILES: [[i64; 2]; 7] = [[128, 256], [128, 128], [128, 64], [64, 128], [64, 64], [128, 32], [16, 128]];
/// One for small products, which is worth a question only where both factors are copied.
const SMALL: [i64; 2] = [64, 64];
/// Steps of a chunk: lines of memory where there is room, else half of one.
const DEPTHS: [i64; 2] = [64, 32];

/// The tile of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Rows and columns.
    pub tile: [i64; 2],
    /// Warps along rows and along columns.
    pub warps: [i64; 2],
    /// Steps of a chunk.
    pub depth: i64,
    /// Steps of one matrix instruction.
    pub steps: i64,
    /// Elements that fragments have side by side in shared memory.
    pub vector: i64,
    /// Elements of a copy.
    pub copy: i64,
    /// Chunks that shared memory holds.
    pub slots: i64,
    /// Blocks that a multiprocessor has at a time.
    pub resident: i64,
    /// Cycles of the steps of one matrix instruction.
    pub cycles: i64,
}

/// How a launch becomes tiles.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    pub shape: Shape,
    /// Whether the rows, and the columns, are copied in the background.
    pub copied: [bool; 2],
    /// Whether all tiles and chunks are whole.
    pub whole: bool,
    /// Whether the rows of all tiles are there, and the columns.
    pub whole_sides: [bool; 2],
    /// How many columns side by side a thread stores together, whose indices are the same but for the last one: a power of two.
    pub together: i64,
    /// Whether the sums go through shared memory, out of which a loop takes some rows at a time.
    pub staged: bool,
    /// How many pieces the steps are cut into, if not one.
    pub pieces: Option<Expr>,
}

impl Shape {
    pub fn threads(&self) -> i64 {
        32 * self.warps[0] * self.warps[1]
    }

    /// Rows and columns of a warp.
    pub fn of_warp(&self) -> [i64; 2] {
        [0, 1].map(|side| self.tile[side] / self.warps[side])
    }

    /// Rows of the sums that are taken out of shared memory at a time.
    pub fn piece_rows(&self) -> i64 {
        (PIECE * self.threads() / self.tile[1]).clamp(1, self.tile[0])
    }

    /// Elements of shared memory from one row of the sums to the next: rows that fragments store together are in banks of their
    /// own.
    pub fn pitch(&self) -> i64 {
        self.tile[1] + PAD
    }

    /// Bytes of shared memory that a chunk of both factors takes.
    fn chunk_bytes(&self, found: &Found) -> i64 {
        let of_side = |side: usize| {
            self.tile[side] * self.depth * found.parts[side] as i64 * found.scalars[side].size() as i64
        };
        (0..2).map(of_side).sum()
    }

    /// Whether the sums, of 32 bits each, find room where the chunks were.
    pub fn has_room_for_sums(&self, found: &Found) -> bool {
        self.tile[0] * self.pitch() * 4 <= self.chunk_bytes(found) * self.slots
    }
}

/// The shapes that fit, the largest first; of each factor it is said whether it is copied in the background, and of both, by how
/// many bytes at a time.
pub fn shapes(found: &Found, (copied, bytes): ([bool; 2], i64), target: &TargetFacts) -> Vec<Shape> {
    let Some(atom) = atom(found.scalars) else { return Vec::new() };
    let is_whole = |tile: &[i64; 2]| tile[0] as u64 >= ROWS && tile[1] as u64 >= 2 * COLUMNS;
    let tiles = TILES.into_iter().filter(is_whole).filter(|tile| *tile != SMALL || copied == [true; 2]);
    tiles.filter_map(|tile| shape(found, (copied, bytes), target, (tile, atom.steps as i64))).collect()
}

fn shape(
    found: &Found,
    (copied, bytes): ([bool; 2], i64),
    target: &TargetFacts,
    (tile, steps): ([i64; 2], i64),
) -> Option<Shape> {
    let size = found.scalars[0].size() as i64;
    let (vector, copy) = (VECTOR / size, bytes / size);
    // One vector of rows has no axis to lie along.
    let is_one = |side: &usize| copied[*side] && !found.factors[*side].along_steps && tile[*side] <= copy;
    if (0..2).any(|side| is_one(&side)) {
        return None;
    }
    for warps in [4, 8] {
        for depth in DEPTHS {
            let warps = along(tile, warps)?;
            let mut shape =
                Shape { tile, warps, depth, steps, vector, copy, slots: 0, resident: 1, cycles: 0 };
            let threads = shape.threads();
            // What comes through registers is in them while a chunk is multiplied.
            let held: i64 =
                (0..2).filter(|side| !copied[*side]).map(|side| tile[side] * depth / threads).sum();
            let [rows, columns] = shape.of_warp();
            let fragments = (rows + columns) * steps * size / 32 / 4;
            let sums = tile[0] * tile[1] / threads * found.sums() as i64;
            let addresses: i64 = (0..2)
                .filter(|side| copied[*side])
                .map(|side| tile[side] * depth / copy / threads * of_addresses(found, side))
                .sum();
            let registers = sums + held + fragments + addresses + OTHERS;
            if registers > MOST {
                continue;
            }
            shape.resident = (REGISTERS as i64 / (threads * registers)).clamp(1, 4);
            let bytes = shape.chunk_bytes(found);
            let room = i64::from(target.shared_bytes);
            let wanted = if copied.contains(&true) { SLOTS[1] } else { SLOTS_OF_REGISTERS };
            shape.resident = shape.resident.min(room / (bytes * wanted));
            if shape.resident < 1 {
                continue;
            }
            let most = if copied.contains(&true) { SLOTS[0] } else { SLOTS_OF_REGISTERS };
            shape.slots = (room / shape.resident / bytes).min(most);
            shape.cycles = cycles(found, &shape, size);
            return Some(shape);
        }
    }
    None
}

/// Registers that hold where a vector of a copied factor lies, beside what all of them share.
fn of_addresses(found: &Found, side: usize) -> i64 {
    let factor = &found.factors[side];
    let coordinates = if factor.guards.is_empty() { 0 } else { found.outer[side].len() as i64 };
    if factor.is_even { 0 } else { NUMBER * (1 + coordinates) }
}

/// So many warps along rows and columns: those that read the least of both.
fn along(tile: [i64; 2], warps: i64) -> Option<[i64; 2]> {
    let ways = (0..=warps.ilog2()).map(|bit| [1 << bit, warps >> bit]);
    let fits = |way: &[i64; 2]| tile[0] / way[0] >= ROWS as i64 && tile[1] / way[1] >= 2 * COLUMNS as i64;
    ways.filter(fits).min_by_key(|way| tile[0] / way[0] + tile[1] / way[1])
}

/// Cycles of the steps of one matrix instruction for all of a tile.
fn cycles(found: &Found, shape: &Shape, bytes: i64) -> i64 {
    let parts = found.parts.map(|parts| parts as i64);
    let [rows, columns] = [0, 1].map(|side| shape.tile[side] * parts[side]);
    let [of_rows, of_columns] = [0, 1].map(|side| shape.of_warp()[side] * parts[side]);
    let warps = shape.warps[0] * shape.warps[1];
    let products = rows * columns * shape.steps * bytes / PRODUCTS;
    let read = warps * (of_rows + of_columns) * shape.steps * bytes;
    let brought = (rows + columns) * shape.steps * bytes;
    products.max((read + brought) / SHARED).max(brought / CACHES)
}

pub fn mul(left: Expr, right: Expr) -> Expr {
    Expr::binary(BinaryOp::Mul, left, right)
}

fn add(left: Expr, right: i64) -> Expr {
    Expr::binary(BinaryOp::Add, left, Expr::Int(right))
}

pub fn ceil_div(left: Expr, right: i64) -> Expr {
    Expr::binary(BinaryOp::CeilDiv, left, Expr::Int(right))
}

/// The sizes of a contraction.
pub struct Sizes {
    pub batch: Expr,
    pub outer: [Expr; 2],
    pub steps: Expr,
}

impl Sizes {
    pub fn of(found: &Found) -> Self {
        let batch: Vec<_> = found.batch.iter().map(|at| &found.axes[*at]).collect();
        Self {
            batch: Found::extent(&batch),
            outer: [0, 1].map(|side| Found::extent(&found.of_side(side))),
            steps: Found::extent(&found.of_steps()),
        }
    }

    /// Those of a piece of so many: each is a batch.
    pub fn of_piece(&self, count: &Expr) -> Self {
        let batch = mul(self.batch.clone(), count.clone());
        let steps = Expr::binary(BinaryOp::CeilDiv, self.steps.clone(), count.clone());
        Self { batch, outer: self.outer.clone(), steps }
    }

    /// What the cheapest of some shapes costs.
    pub fn least(&self, shapes: &[Shape], target: &TargetFacts) -> Option<Expr> {
        let costs = shapes.iter().map(|shape| self.cost(shape, target));
        costs.reduce(|left, right| Expr::binary(BinaryOp::Min, left, right))
    }

    /// How many tiles there are along rows, or along columns.
    pub fn tiles(&self, shape: &Shape, side: usize) -> Expr {
        match &self.outer[side] {
            Expr::Int(extent) => Expr::Int((extent + shape.tile[side] - 1).div_euclid(shape.tile[side])),
            extent => ceil_div(extent.clone(), shape.tile[side]),
        }
    }

    /// How many blocks there are.
    pub fn blocks(&self, shape: &Shape) -> Expr {
        let tiles = mul(self.tiles(shape, 0), self.tiles(shape, 1));
        if self.batch == Expr::Int(1) { tiles } else { mul(self.batch.clone(), tiles) }
    }

    /// What a launch of such tiles costs.
    pub fn cost(&self, shape: &Shape, target: &TargetFacts) -> Expr {
        let of_step =
            mul(ceil_div(self.blocks(shape), target.multiprocessors.into()), Expr::Int(shape.cycles));
        add(mul(ceil_div(self.steps.clone(), shape.steps), add(of_step, WAIT_OF_PRODUCTS)), LAUNCH)
    }

    /// The least that it costs to multiply and add one by one: as many threads as there are add at a time, and each step waits
    /// for its operands.
    pub fn cost_one_by_one(&self, target: &TargetFacts) -> Expr {
        let results = mul(self.batch.clone(), mul(self.outer[0].clone(), self.outer[1].clone()));
        let of_step = ceil_div(results, FUSED * i64::from(target.multiprocessors));
        add(mul(self.steps.clone(), add(of_step, WAIT)), LAUNCH)
    }
}
