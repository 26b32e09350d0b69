//! Tiles of storage types: as words, of which each has neighbouring registers of the layout, the first one lowest.
//!
//! Fragments of types of 8 or 16 bits that lie in shared memory are loaded by `load_matrix` where the elements of 16 bytes that
//! follow each other along an axis are neighbours there:
//!
//! ```text
//! v5: bf16 {i, p} layout0 = load buf3[v0, v1, v2]        v1 and v2 are indices of i and p
//! →
//! a0, a1, a2, a3 = load_matrix buf3[v0, row, step]       row and step are those that the lane names, not those that it gets
//! ```
//!
//! In such a matrix, lane 4r + c gets elements 2c and 2c + 1 of row r, or four of 8 bits from 4c on; of a transposed one of
//! 16 bits it gets element r of rows 2c and 2c + 1. So the axis along which memory runs is moved by the registers of a word and the two lower bits of the lane's
//! number, or by the three upper ones. The subscripts are computed once more, for what the first lanes' first rows hold.
//! Others are loaded element by element, and packed.

use super::Lowering;
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::{BufferKind, InstData, Kernel, Payload, Tile};
use crate::ir::op::{Effect, Opcode};
use crate::layout::{Digit, Dimension, ValueLayout};
use crate::manifest::{Expr, Layout};
use crate::mutants::mutant;

/// Bytes of a row of a matrix, and of a word of one.
const ROW: u64 = 16;
const WORD: u64 = 4;

/// Where a matrix lies in memory.
struct Matrix {
    transposed: bool,
    /// Elements of a word.
    each: u64,
    /// Words that one instruction loads: 1, 2 or 4.
    words: u64,
    /// For each axis, what makes up the coordinate of a row.
    axes: Vec<RowAxis>,
}

/// What makes up a coordinate of the row that a lane names.
#[derive(Default)]
struct RowAxis {
    axis: usize,
    /// Digits of the lane's or the warp's number, and the place in the coordinate.
    threads: Vec<(u64, Digit)>,
    /// Bits of the register's number, and the place in the coordinate.
    registers: Vec<(u64, u64)>,
}

impl Lowering<'_> {
    /// A load, or a cast, of a tile of a storage type.
    pub(super) fn storage(&mut self, emit: &mut Emit<'_>, data: &InstData) {
        let result = data.results[0];
        let scalar = emit.kernel.value_type(result);
        let shape = self.registers.shape_of(emit.kernel, self.tiling, result);
        if let Some(matrix) = self.matrix(emit.kernel, data, scalar)
            && let Some(words) = self.load_matrices(emit, data, &matrix, shape.own.len() as u64)
        {
            self.registers.set(result, shape, words);
            return;
        }
        let last = 4 / scalar.size() - 1;
        let mut words = Vec::with_capacity(shape.own.len());
        for register in &shape.own {
            let part = |part: u64| {
                let part =
                    mutant!("lower_tiles: words hold their elements the other way round", part, last - part);
                let operands = self.operands(&data.arguments, register + part);
                match operands[..] {
                    // Packing rounds as a cast does.
                    [wide]
                        if data.opcode == Opcode::Cast
                            && emit.kernel.value_type(wide) == scalar.widened() =>
                    {
                        wide
                    }
                    _ => emit.value(data.opcode, data.payload.clone(), &operands),
                }
            };
            let parts: Vec<Value> = (0..=last).map(part).collect();
            words.push(emit.value(Opcode::Pack, Payload::Cast(scalar), &parts));
        }
        self.registers.set(result, shape, words);
    }

    /// Whether a load is one of matrices, and how they lie.
    fn matrix(&self, kernel: &Kernel, data: &InstData, scalar: Scalar) -> Option<Matrix> {
        let (Opcode::Load, Payload::Access { buffer, leaf: 0 }) = (data.opcode, &data.payload) else {
            return None;
        };
        let buffer = &kernel.buffers[*buffer];
        let (each, of_row) = (WORD / scalar.size(), (ROW / scalar.size()) as i64);
        let whole_rows = matches!(buffer.extents.last(), Some(Expr::Int(extent)) if extent % of_row == 0);
        if buffer.kind != BufferKind::Shared
            || buffer.element.as_scalar() != Some(scalar)
            || !matches!(scalar.size(), 1 | 2)
            || buffer.layout != Layout::Aos
            || !whole_rows
        {
            return None;
        }
        let (last, others) = data.arguments.split_last()?;
        let tile = kernel.tile(data.results[0]);
        let layout = self.tiling.layout(tile)?;
        let along = tile.axes.iter().find(|axis| runs_along(kernel, *last, *axis, of_row))?;
        if others.iter().any(|subscript| kernel.tile(*subscript).axes.contains(along))
            || !data.arguments.iter().all(|subscript| can_be_computed_again(kernel, *subscript))
        {
            return None;
        }
        let axis_bits = bits_of(layout, &self.tiling.axes[along].name)?;
        let lowest: Vec<Digit> = [1, 2, 4, 8]
            .iter()
            .filter(|position| **position < of_row as u64)
            .filter_map(|position| axis_bits.iter().find(|(at, _)| at == position).map(|(_, source)| *source))
            .collect();
        let bit = |dimension, position| Digit { dimension, position, size: 2 };
        let [register, lane] = [Dimension::Register, Dimension::Lane];
        let of_word = [1, 2].into_iter().filter(|place| *place < each).map(|place| bit(register, place));
        let in_order: Vec<Digit> = of_word.chain([bit(lane, 1), bit(lane, 2)]).collect();
        let transposed = if lowest == in_order {
            false
        } else if each == 2 && lowest == [bit(lane, 4), bit(lane, 8), bit(lane, 16)] {
            true
        } else {
            return None;
        };
        let words = layout.extent(register) / each;
        let words = if words % 4 == 0 {
            4
        } else if words % 2 == 0 {
            2
        } else {
            1
        };
        let mut axes = Vec::new();
        for axis in tile.axes.iter() {
            let mut row = RowAxis { axis, ..RowAxis::default() };
            for (position, source) in bits_of(layout, &self.tiling.axes[axis].name)? {
                // The bit of the lane's number that says the row, or which of the matrices.
                let lanes = match (source.dimension, source.position) {
                    (Dimension::Lane, 1 | 2) => transposed.then_some(2 * source.position),
                    (Dimension::Lane, upper) => (!transposed).then_some(upper / 4),
                    (Dimension::Register, place) if place < each => transposed.then_some(1),
                    (Dimension::Register, place) if place < each * words => Some(mutant!(
                        "lower_tiles: matrices come in another order",
                        8 * place / each,
                        24 - 8 * place / each
                    )),
                    (Dimension::Register, place) => {
                        row.registers.push((position, place));
                        None
                    }
                    _ => {
                        row.threads.push((position, source));
                        None
                    }
                };
                if let Some(lanes) = lanes {
                    row.threads.push((position, bit(lane, lanes)));
                }
            }
            row.threads = merged(row.threads);
            axes.push(row);
        }
        Some(Matrix { transposed, each, words, axes })
    }

    /// Loads so many words.
    fn load_matrices(
        &mut self,
        emit: &mut Emit<'_>,
        data: &InstData,
        matrix: &Matrix,
        count: u64,
    ) -> Option<Vec<Value>> {
        let transposed = mutant!("lower_tiles: matrices are not transposed", matrix.transposed, false);
        let opcode = if transposed { Opcode::LoadMatrixTransposed } else { Opcode::LoadMatrix };
        let mut words = Vec::new();
        for first in (0..count).step_by(matrix.words as usize) {
            let first = matrix.each * first;
            let subscripts: Option<Vec<Value>> =
                data.arguments.iter().map(|value| self.named(emit, *value, matrix, first)).collect();
            let inst = emit.bare_inst(opcode, data.payload.clone(), subscripts?.into());
            words.extend_from_slice(&emit.kernel.add_results(inst, Scalar::U32, matrix.words as u16));
        }
        Some(words)
    }

    /// A subscript of the row that a lane names, of the matrices that begin with a register.
    fn named(&self, emit: &mut Emit<'_>, value: Value, matrix: &Matrix, first: u64) -> Option<Value> {
        if emit.kernel.tile(value) == Tile::SCALAR {
            return Some(self.registers.get(value, 0));
        }
        let data = emit.kernel.definition_data(value)?.clone();
        if let Payload::Index(axis) = data.payload {
            let row = matrix.axes.iter().find(|row| row.axis == usize::from(axis))?;
            let mut sum = emit.int(0);
            for (position, digit) in &row.threads {
                let digit = self.coordinates.digit(emit, *digit);
                let scaled = emit.mul_int(digit, *position as i64);
                sum = emit.add(sum, scaled);
            }
            let known = row.registers.iter().filter(|(_, bit)| first & bit != 0);
            let known: u64 = known.map(|(position, _)| position).sum();
            return Some(emit.add_int(sum, known as i64));
        }
        let operands: Option<Vec<Value>> =
            data.arguments.iter().map(|operand| self.named(emit, *operand, matrix, first)).collect();
        Some(match operands?[..] {
            [left, right] if data.opcode == Opcode::Add => emit.add(left, right),
            [left, right] if data.payload == Payload::None => emit.binary(data.opcode, left, right),
            ref operands => emit.value(data.opcode, data.payload.clone(), operands),
        })
    }
}

/// Whether a value is the index along an axis, with a multiple of a row added or crossed that the axis does not move.
fn runs_along(kernel: &Kernel, value: Value, axis: usize, row: i64) -> bool {
    let Some(data) = kernel.definition_data(value) else { return false };
    match (&data.payload, data.opcode, &data.arguments[..]) {
        (Payload::Index(own), ..) => usize::from(*own) == axis,
        (_, Opcode::Add | Opcode::Xor, [left, right]) => {
            [(left, right), (right, left)].into_iter().any(|(index, rest)| {
                runs_along(kernel, *index, axis, row)
                    && !kernel.tile(*rest).axes.contains(axis)
                    && is_multiple(kernel, *rest, row)
            })
        }
        _ => false,
    }
}

fn is_multiple(kernel: &Kernel, value: Value, row: i64) -> bool {
    if let Some(literal) = kernel.int_of(value) {
        return literal % i128::from(row) == 0;
    }
    let Some(data) = kernel.definition_data(value) else { return false };
    let mut operands = data.arguments.iter();
    match data.opcode {
        Opcode::Add | Opcode::Sub | Opcode::Xor => operands.all(|operand| is_multiple(kernel, *operand, row)),
        Opcode::Mul => operands.any(|operand| is_multiple(kernel, *operand, row)),
        _ => false,
    }
}

/// Whether a subscript is made of indices and scalars by pure ops.
fn can_be_computed_again(kernel: &Kernel, value: Value) -> bool {
    if kernel.tile(value) == Tile::SCALAR {
        return true;
    }
    let Some(data) = kernel.definition_data(value) else { return false };
    matches!(data.payload, Payload::Index(_))
        || (data.opcode.info().effect == Effect::Pure
            && !matches!(data.opcode, Opcode::Convert | Opcode::Contract)
            && data.arguments.iter().all(|operand| can_be_computed_again(kernel, *operand)))
}

/// What moves a coordinate along an axis: registers and lanes bit by bit, warps by their digits. `None` where digits of registers
/// or lanes are no bits, or are xored.
fn bits_of(layout: &ValueLayout, axis: &str) -> Option<Vec<(u64, Digit)>> {
    let mut found = Vec::new();
    for digit in layout.digits(axis)? {
        let [source] = digit.sources[..] else { return None };
        if !matches!(source.dimension, Dimension::Register | Dimension::Lane) {
            found.push((digit.position, source));
            continue;
        }
        if !source.size.is_power_of_two() || !source.position.is_power_of_two() {
            return None;
        }
        found.extend((0..source.size.trailing_zeros()).map(|bit| {
            let position = source.position << bit;
            (digit.position << bit, Digit { dimension: source.dimension, position, size: 2 })
        }));
    }
    Some(found)
}

/// Digits of which one begins where another one ends, in the number and in the coordinate, as one.
fn merged(mut digits: Vec<(u64, Digit)>) -> Vec<(u64, Digit)> {
    digits.sort_by_key(|(position, _)| *position);
    let mut all: Vec<(u64, Digit)> = Vec::new();
    for (position, digit) in digits {
        match all.last_mut() {
            Some((at, last))
                if last.dimension == digit.dimension
                    && *at * last.size == position
                    && last.position * last.size == digit.position =>
            {
                last.size *= digit.size;
            }
            _ => all.push((position, digit)),
        }
    }
    all
}
