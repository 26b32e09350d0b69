//! The layouts of a contraction's tiles: fragments of the matrix instruction over the warps of a block, and lanes along memory
//! for what is brought there.

use super::extents::Shape;
use super::factor::atom;
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::Block;
use crate::ir::kernel::{AxisSet, Kernel, Tile, TileAxis};
use crate::layout::{Dimension, ValueLayout};

const NAMES: [&str; 8] =
    ["row", "column", "step", "chunk", "chunk_vector", "row_vector", "column_vector", "piece_row"];

/// Layouts of all axes that code has together; a value that lacks some has its slice.
pub struct Layouts {
    pub axes: Vec<TileAxis>,
    homes: Vec<ValueLayout>,
    /// The layouts that tiles have.
    pub table: Vec<ValueLayout>,
}

/// A number of [`Layouts`].
pub type Home = usize;

impl Layouts {
    pub fn new(shape: &Shape) -> Self {
        let [rows, columns] = shape.tile;
        let [chunks, of_rows, of_columns] = [shape.depth, rows, columns].map(|extent| extent / shape.copy);
        let extents =
            [rows, columns, shape.steps, shape.depth, chunks, of_rows, of_columns, shape.piece_rows()];
        let axis =
            |(name, extent): (&&str, i64)| TileAxis { name: (*name).to_string(), extent: extent as u64 };
        let axes = NAMES.iter().zip(extents).map(axis).collect();
        Self { axes, homes: Vec::new(), table: Vec::new() }
    }

    /// The homes of rows, of columns and of sums: fragments of the instruction, over all warps.
    pub fn fragments(&mut self, shape: &Shape, scalars: [Scalar; 2]) -> Option<[Home; 3]> {
        let atom = atom(scalars)?;
        let [warp, register] = [Dimension::Warp, Dimension::Register];
        let [rows, columns] = shape.warps.map(|warps| warps as u64);
        let [of_rows, of_columns] = shape.of_warp();
        let repeats = [of_rows as u64 / crate::atoms::ROWS, of_columns as u64 / crate::atoms::COLUMNS];
        let outer = [
            ValueLayout::new(&[("row", &[(warp, rows), (register, repeats[0])]), ("_", &[(warp, columns)])]),
            ValueLayout::new(&[
                ("_", &[(warp, rows)]),
                ("column", &[(warp, columns), (register, repeats[1])]),
            ]),
            ValueLayout::new(&[
                ("row", &[(warp, rows), (register, repeats[0])]),
                ("column", &[(warp, columns), (register, repeats[1])]),
            ]),
        ];
        let mut homes = [0; 3];
        for ((fragment, outer), home) in atom.layouts().into_iter().zip(outer).zip(&mut homes) {
            let mut named = fragment;
            for (from, to) in [("m", "row"), ("n", "column"), ("k", "step")] {
                if named.axes().iter().any(|(axis, _)| *axis == from) {
                    named = named.rename(from, to).ok()?;
                }
            }
            // What moves nothing has a name of its own only while the layout is made.
            let outer = outer.ok()?;
            let whole = named.product(&outer).ok()?;
            *home = self.add(without_replicas(whole)?);
        }
        Some(homes)
    }

    /// A home of two axes, with so many neighbours of a thread and lanes along the first one, and what is left of them and warps
    /// along the second.
    pub fn along(&mut self, [fast, slow]: [usize; 2], vector: u64, shape: &Shape) -> Option<Home> {
        let mut left = [self.axes[fast].extent, self.axes[slow].extent];
        let names = [NAMES[fast], NAMES[slow]];
        let mut layout: Option<ValueLayout> = None;
        let mut digit = |at: usize, dimension: Dimension, size: u64| -> Option<()> {
            if size > 1 {
                let digit = ValueLayout::new(&[(names[at], &[(dimension, size)])]).ok()?;
                layout = Some(match layout.take() {
                    None => digit,
                    Some(low) => low.product(&digit).ok()?,
                });
            }
            Some(())
        };
        digit(0, Dimension::Register, vector)?;
        left[0] /= vector;
        let warps = (shape.threads() / 32) as u64;
        let mut of_threads = [(Dimension::Lane, 32), (Dimension::Warp, warps)];
        for (dimension, count) in &mut of_threads {
            for (at, left) in left.iter_mut().enumerate() {
                // Warps go along the second axis alone.
                if *dimension == Dimension::Warp && at == 0 {
                    continue;
                }
                let size = (*count).min(*left);
                digit(at, *dimension, size)?;
                (*count, *left) = (*count / size, *left / size);
            }
        }
        for (at, left) in left.into_iter().enumerate() {
            digit(at, Dimension::Register, left)?;
        }
        let mut layout = layout?;
        for (dimension, times) in of_threads {
            if times > 1 {
                layout = layout.replicated(dimension, times).ok()?;
            }
        }
        Some(self.add(layout))
    }

    fn add(&mut self, layout: ValueLayout) -> Home {
        self.homes.push(layout);
        self.homes.len() - 1
    }

    /// The shape of a value with some axes, at home with others.
    pub fn tile(&mut self, axes: AxisSet, home: Home) -> Tile {
        if axes.is_empty() {
            return Tile::SCALAR;
        }
        let whole = self.homes[home].clone();
        let lacking = (0..self.axes.len()).filter(|at| !axes.contains(*at));
        let sliced = lacking.fold(whole, |layout, at| layout.slice(NAMES[at]).unwrap_or(layout));
        let known = self.table.iter().position(|known| *known == sliced);
        let number = known.unwrap_or_else(|| {
            self.table.push(sliced);
            self.table.len() - 1
        });
        Tile { axes, layout: Some(number as u16) }
    }

    /// Gives the values of a block that have no layout, from an instruction on, that of a home.
    pub fn settle(&mut self, kernel: &mut Kernel, block: Block, from: usize, home: Home) {
        let insts = &kernel.blocks[block].insts[from..];
        for result in insts.iter().flat_map(|inst| &kernel.insts[*inst].results) {
            let tile = kernel.values[*result].tile;
            if !tile.axes.is_empty() && tile.layout.is_none() {
                kernel.values[*result].tile = self.tile(tile.axes, home);
            }
        }
    }
}

/// Where the next instruction comes.
pub fn place(emit: &Emit<'_>) -> usize {
    emit.kernel.blocks[emit.block].insts.len()
}

/// A layout in which what moves nothing belongs to no axis.
fn without_replicas(layout: ValueLayout) -> Option<ValueLayout> {
    let named = layout.axes().iter().any(|(axis, _)| *axis == "_");
    if named { layout.slice("_").ok() } else { Some(layout) }
}
