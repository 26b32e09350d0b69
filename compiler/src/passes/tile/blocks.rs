//! How large the tiles of a block are: whole lines of memory on every side, as far as the axes are long enough.

use super::found::{Found, LoopAxis, Seen, multiple_of};
use super::ways;
use crate::analysis::{Affine, Answer, Atom, Conditions, Polynomial, ask, polynomial_of};
use crate::data::{LeafPlaces, Scalar};
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use cranelift_entity::EntityRef;

/// What a block computes, one entry an axis of the loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// Iterations: powers of two.
    pub tiles: Vec<i64>,
    /// Neighbours that are accessed at once, where sizes allow it; else 1.
    pub vectors: Vec<i64>,
    /// An axis of which each block has all.
    pub whole: Option<usize>,
}

/// Bytes of a row that neighbouring threads bring or store before they go to the next one, the best first: from two lines down
/// to a sector.
const ROWS: [i64; 4] = [256, 128, 64, 32];
/// Bytes of the tile of one array: as many as leave a multiprocessor room for several blocks.
const BYTES: i64 = 16 * 1024;
/// Bytes of a tile that is too small for what a block costs.
const FEW: i64 = 4 * 1024;
/// Iterations that most long axes are a multiple of, or have many more than.
const WHOLE: i64 = 64;
/// Iterations along one axis.
const MOST: i64 = 1024;
/// Instructions of a thread's elements together.
const INSTS: i64 = 1024;

/// Extents from which on an axis has tiles as long as rows want them, and so long: few, since each is a question of which the
/// code depends.
const CLASSES: [(i64, i64); 4] = [(64, MOST), (33, 64), (9, 32), (0, 8)];

impl Blocks {
    /// `None` where so many rows of a sector do not fit into a block.
    pub fn new(kernel: &mut Kernel, launch: Launch, found: &Found) -> Option<Self> {
        let most: Vec<i64> = found.axes.iter().map(|axis| longest(kernel, launch, &axis.extent)).collect();
        let tiles = tiles(kernel, found, &most)?;
        // Vectors of short axes are not worth a question.
        let is_long = |at: usize| most[at] == MOST || matches!(found.axes[at].extent, Expr::Int(_));
        let vectors = (0..tiles.len())
            .map(|at| if is_long(at) { vector(kernel, launch, found, at, tiles[at]) } else { 1 })
            .collect();
        Some(Self { tiles, vectors, whole: None })
    }

    /// What a block would compute if all axes were long, and nothing was known of multiples: without a question.
    pub fn supposed(kernel: &Kernel, found: &Found) -> Option<Self> {
        let most: Vec<i64> = found.axes.iter().map(|axis| known(&axis.extent).unwrap_or(MOST)).collect();
        let tiles = tiles(kernel, found, &most)?;
        let vectors = vec![1; tiles.len()];
        Some(Self { tiles, vectors, whole: None })
    }

    /// The axes of the tiles: the loop's axis, how many of its iterations elements are apart, and how many there are. Of an axis
    /// with vectors these are one of their own.
    pub fn axes(&self) -> Vec<(usize, i64, u64)> {
        let parts = |(at, (tile, vector)): (usize, (&i64, &i64))| {
            [(at, *vector, (tile / vector) as u64), (at, 1, *vector as u64)]
        };
        let all = self.tiles.iter().zip(&self.vectors).enumerate().flat_map(parts);
        all.filter(|(_, _, extent)| *extent > 1).collect()
    }

    /// How many elements a block has.
    pub fn elements(&self) -> u64 {
        self.axes().iter().map(|(_, _, extent)| *extent).product()
    }
}

/// The tiles of axes that are so long at most: rows of each access, longer ones and further axes while they fit; `None` where
/// rows of a sector do not.
fn tiles(kernel: &Kernel, found: &Found, most: &[i64]) -> Option<Vec<i64>> {
    let bytes = found.accesses.iter().map(|seen| seen.bytes as i64).max()?;
    let insts = kernel.blocks_in(found.body).into_iter().map(|block| kernel.blocks[block].insts.len() as i64);
    let of_thread = (INSTS / insts.sum::<i64>().max(1)).clamp(4, 64);
    let elements = (BYTES / bytes).min(of_thread * ways::THREADS as i64);
    let fits = |tiles: &Vec<i64>| tiles.iter().product::<i64>() <= elements;
    let mut tiles = ROWS.into_iter().map(|row| rows(found, row, most)).find(fits)?;
    // Longer rows, then further axes, until each thread has several elements.
    let stores = found.accesses.iter().filter(|seen| seen.stores);
    let loads = found.accesses.iter().filter(|seen| !seen.stores);
    let firsts = stores.chain(loads).flat_map(|seen| seen.run.iter().copied());
    let order: Vec<usize> = firsts.chain((0..most.len()).rev()).collect();
    loop {
        let all = tiles.iter().product::<i64>();
        let is_small = all * bytes < FEW;
        let grows = |at: &&usize| tiles[**at] < most[**at] && (is_small || tiles[**at] < WHOLE);
        let next = order.iter().filter(grows).min_by_key(|at| tiles[**at]).copied();
        let Some(at) = next.filter(|_| 2 * all <= elements) else { break };
        tiles[at] *= 2;
    }
    Some(tiles)
}

/// The longest tile that an axis of a literal extent has use for.
fn known(extent: &Expr) -> Option<i64> {
    let Expr::Int(extent) = extent else { return None };
    Some((*extent).clamp(1, MOST).unsigned_abs().next_power_of_two() as i64)
}

/// The longest tile that an axis of this extent has use for.
fn longest(kernel: &mut Kernel, launch: Launch, extent: &Expr) -> i64 {
    if let Some(known) = known(extent) {
        return known;
    }
    let is_as_long = |(from, _): &&(i64, i64)| {
        ask(kernel, launch, &Conditions::new().prefers_at_least(extent, *from)) == Answer::Yes
    };
    CLASSES.iter().find(is_as_long).map_or(CLASSES[CLASSES.len() - 1].1, |(_, tile)| *tile)
}

/// Tiles in which each access has so many bytes without a gap, as far as it runs without gaps.
fn rows(found: &Found, bytes: i64, most: &[i64]) -> Vec<i64> {
    let mut tiles = vec![1; most.len()];
    for seen in &found.accesses {
        let step = seen.run.first().and_then(|at| seen.steps[*at].as_ref()?.as_wrapped());
        let Some(step) = step.filter(|step| *step != 0) else { continue };
        let mut left = (bytes / step.abs()).max(1);
        left = 1 << left.ilog2();
        for at in &seen.run {
            let tile = most[*at].min(left);
            tiles[*at] = tiles[*at].max(tile);
            left /= tile;
            if left <= 1 {
                break;
            }
        }
    }
    tiles
}

/// Neighbours along an axis that accesses can move at once, at most so many as a tile has.
pub fn vector(kernel: &mut Kernel, launch: Launch, found: &Found, at: usize, tile: i64) -> i64 {
    let runs = |seen: &&Seen| seen.run.first() == Some(&at);
    let along: Vec<&Seen> = found.accesses.iter().filter(runs).collect();
    let Some(bytes) = along.iter().map(|seen| seen.bytes as i64).max() else { return 1 };
    let most = (ways::VECTOR as i64 / bytes).min(8).min(tile);
    let widths = std::iter::successors(Some(most), |lanes| Some(lanes / 2)).take_while(|lanes| *lanes > 1);
    for lanes in widths {
        let mut needed: Option<Vec<Expr>> = None;
        for seen in &along {
            let step = seen.steps[at].as_ref().and_then(Polynomial::as_wrapped);
            if let Some(condition) = aligned(kernel, &[&found.axes[at]], step, seen.inst, lanes as u64) {
                needed.get_or_insert_default().extend(condition);
            }
        }
        let Some(needed) = needed else { return 1 };
        let conditions = needed.into_iter().fold(Conditions::new(), Conditions::needs);
        let holds = ask(kernel, launch, &conditions) == Answer::Yes;
        if mutant!("tile: vectors where sizes are no multiples", holds, true) {
            return lanes;
        }
    }
    1
}

/// What must hold for neighbours along axes that lie side by side, the last one fastest, from a multiple of `lanes` past their
/// low ends on, to be a vector of that many scalars at an aligned address. `None` where they are none, whatever the sizes.
pub fn aligned(
    kernel: &Kernel,
    axes: &[&LoopAxis],
    step: Option<i64>,
    inst: Inst,
    lanes: u64,
) -> Option<Vec<Expr>> {
    let data = &kernel.insts[inst];
    let Payload::Access { buffer, leaf } = data.payload else { return None };
    let of = &kernel.buffers[buffer];
    let is_dense = LeafPlaces::new(&of.element, of.layout, leaf as usize).is_dense();
    let leaf = &of.element.leaves[leaf as usize];
    let has_address = matches!(of.kind, BufferKind::Argument { .. } | BufferKind::Scratch);
    // There is no vector of bools.
    let is_scalar = leaf.scalar != Scalar::Bool && leaf.extents.is_empty();
    if !is_dense || !has_address || !is_scalar || step != Some(leaf.scalar.size() as i64) {
        return None;
    }
    let mut affine = Affine::new(kernel);
    let mut position = Polynomial::default();
    for (at, (index, extent)) in data.arguments.iter().zip(&of.extents).enumerate() {
        // How long the first axis is does not matter.
        let before = if at == 0 { position } else { position.multiply(&polynomial_of(extent)?)? };
        position = before.add(&affine.form(*index))?;
    }
    let mut run = Polynomial::constant(1);
    let mut parts = vec![position];
    for axis in axes.iter().rev() {
        let index = run.multiply(&Polynomial::atom(Atom::Value(axis.index)))?;
        parts[0] = parts[0].subtract(&index)?;
        parts.push(run.multiply(&polynomial_of(&axis.low)?)?);
        run = run.multiply(&polynomial_of(&axis.extent)?)?;
    }
    parts.push(run);
    let mut symbols = Vec::new();
    for part in parts {
        multiple_of(&part, lanes, &mut symbols)?;
    }
    let is_multiple = |symbol: crate::ir::entities::Symbol| {
        let rest = Expr::binary(BinaryOp::Rem, Expr::Symbol(symbol.index()), Expr::Int(lanes as i64));
        Expr::binary(BinaryOp::Equal, rest, Expr::Int(0))
    };
    Some(symbols.into_iter().map(is_multiple).collect())
}
