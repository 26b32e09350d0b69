//! Contractions by the atom `fma`: each thread has all steps of the rows and the columns of its results.
//!
//! ```text
//! v7: f32 {i, j} layout0 = contract [p] v5, v6, v4
//! →
//! s0, s1, … = outer 16: a0, …, a15, b0, …, b7, s0, s1, …         once for each step along p
//! ```
//!
//! Rows are what the left factor alone moves with, columns what the right one alone does. Each combination of what both move
//! with is a product of its own. Sums that are not all pairs of some rows and columns, and integers, are multiplied and added
//! one by one.

use super::Lowering;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::{AxisSet, InstData, Kernel};
use crate::ir::op::Opcode;
use crate::layout::ValueLayout;
use crate::mutants::mutant;
use std::collections::{BTreeMap, BTreeSet};

/// Coordinates along all axes of the launch; 0 along those that do not matter.
pub(super) type Point = Vec<u64>;

/// The results of a thread that have the same coordinates along axes of both factors.
#[derive(Default)]
struct Group {
    rows: BTreeSet<Point>,
    columns: BTreeSet<Point>,
    /// Which of the thread's results a row and a column have.
    results: BTreeMap<(Point, Point), usize>,
}

impl Lowering<'_> {
    pub(super) fn contract(&mut self, emit: &mut Emit<'_>, data: &InstData, along: AxisSet) {
        let [left, right, sum] = [0, 1, 2].map(|at| data.arguments[at]);
        let tile = emit.kernel.tile(data.results[0]);
        let shape = self.registers.shape(self.tiling, tile);
        let factors = [left, right].map(|value| self.elements(emit.kernel, value));
        let [rows, columns] = [left, right].map(|value| emit.kernel.tile(value).axes.without(along));
        let mut groups: BTreeMap<Point, Group> = BTreeMap::new();
        for (at, register) in shape.own.iter().enumerate() {
            let point = self.point(emit.kernel, data.results[0], *register);
            let group = groups.entry(only(&point, rows.intersection(columns))).or_default();
            let [row, column] = [rows, columns].map(|axes| only(&point, axes));
            group.rows.insert(row.clone());
            group.columns.insert(column.clone());
            group.results.insert((row, column), at);
        }
        let steps: BTreeSet<Point> = factors[0].keys().map(|point| only(point, along)).collect();
        let skipped = mutant!("lower_tiles: the first step of a contraction is left out", 0, 1);
        let is_float = emit.kernel.value_type(sum).is_float();
        let initial: Vec<Value> =
            shape.own.iter().map(|register| self.registers.get(sum, *register)).collect();
        let mut sums = initial.clone();
        for step in steps.iter().skip(skipped) {
            for group in groups.values() {
                let factor = |side: usize, point: &Point| factors[side][&both(point, step)];
                let before = mutant!("lower_tiles: each step begins anew", &sums, &initial);
                if !is_float || group.rows.len() * group.columns.len() != group.results.len() {
                    for ((row, column), at) in &group.results {
                        let product = emit.binary(Opcode::Mul, factor(0, row), factor(1, column));
                        sums[*at] = emit.binary(Opcode::Add, sums[*at], product);
                    }
                    continue;
                }
                let rows: Vec<Value> = group.rows.iter().map(|row| factor(0, row)).collect();
                let columns: Vec<Value> = group.columns.iter().map(|column| factor(1, column)).collect();
                let rows =
                    mutant!("lower_tiles: all rows are the first one", rows, vec![rows[0]; rows.len()]);
                // Row by row, as the pairs are in order.
                let before: Vec<Value> = group.results.values().map(|at| before[*at]).collect();
                let after = emit.outer(&rows, &columns, &before);
                group.results.values().zip(after).for_each(|(at, value)| sums[*at] = value);
            }
        }
        self.registers.set(data.results[0], shape, sums);
    }

    /// What a thread has of a value, by the coordinates that the first thread has there: all of them are the first one's, moved
    /// alike in all values that go together.
    fn elements(&self, kernel: &Kernel, value: Value) -> BTreeMap<Point, Value> {
        let own = self.registers.own(value);
        own.map(|(register, scalar)| (self.point(kernel, value, register), scalar)).collect()
    }

    /// The coordinates of what a register of the first thread holds.
    fn point(&self, kernel: &Kernel, value: Value, register: u64) -> Point {
        match self.tiling.layout(kernel.tile(value)) {
            Some(layout) => self.point_of(layout, register),
            None => vec![0; self.tiling.axes.len()],
        }
    }

    /// The coordinates along all axes that a layout gives a register of the first thread.
    pub(super) fn point_of(&self, layout: &ValueLayout, register: u64) -> Point {
        let mut point = vec![0; self.tiling.axes.len()];
        let coordinates = layout.apply([register, 0, 0, 0]);
        for ((name, _), coordinate) in layout.axes().into_iter().zip(coordinates) {
            if let Some(axis) = self.tiling.axis(name) {
                point[axis] = coordinate;
            }
        }
        point
    }
}

/// A point's coordinates along some axes.
pub(super) fn only(point: &Point, axes: AxisSet) -> Point {
    let along = |(axis, coordinate): (usize, &u64)| if axes.contains(axis) { *coordinate } else { 0 };
    point.iter().enumerate().map(along).collect()
}

/// The point with the coordinates of two that have no axis in common.
pub(super) fn both(left: &Point, right: &Point) -> Point {
    left.iter().zip(right).map(|(left, right)| left + right).collect()
}
