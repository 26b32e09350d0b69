//! Which accesses of a loop's body walk along its last axis without gaps, so that a vector can bring neighbours.

use crate::analysis::{Affine, MemoryAccess, Multiples, Polynomial, SECTOR_BYTES, Stride, accesses};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Layout;

/// The widest access of a thread.
pub const VECTOR_BYTES: u64 = 16;

/// The accesses of a body that walk along its last axis without gaps.
pub struct Contiguous {
    pub found: Vec<Walk>,
    /// Others, which leave gaps within a sector: neighbours of one thread make several requests of them.
    pub spread: usize,
    /// Whether there are atomics among them, each of which combines one scalar.
    pub combines: bool,
    /// Whether some of them have no vector: pixels of three bytes.
    pub is_odd: bool,
    /// Where loads stand, but for a literal along the last axis: those of a window all in one row.
    pub rows: Vec<Row>,
}

/// An array and a leaf, and subscripts, of the last of which without its literal.
#[derive(PartialEq)]
pub struct Row {
    buffer: Buffer,
    leaf: u32,
    subscripts: Vec<Polynomial>,
}

/// One access that walks along the last axis without gaps; or the first of several that do so together, as `x[2 * j]` and
/// `x[2 * j + 1]` do.
pub struct Walk {
    pub inst: Inst,
    /// Bytes an iteration.
    pub step: u64,
    pub loads: bool,
    /// The row in which a load stands.
    pub row: Option<usize>,
}

/// How the accesses of a body walk along its last axis.
pub fn contiguous(kernel: &Kernel, body: Block, param: Value) -> Contiguous {
    let mut affine = Affine::new(kernel);
    let mut found = Vec::new();
    let (mut combines, mut is_odd) = (false, false);
    let mut dense: Vec<(Buffer, u64)> = Vec::new();
    let mut strided: Vec<(Buffer, u64)> = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    let all = accesses(kernel, body);
    for access in &all {
        let data = &kernel.buffers[access.buffer];
        let width = data.element.leaves[access.leaf as usize].scalar.size();
        let Stride::Bytes(stride) = affine.stride(access.inst, param) else { continue };
        let Ok(step) = u64::try_from(stride) else { continue };
        let whole = step == width
            || (data.layout == Layout::Aos && step == data.element.size)
            || is_first_of_dense(kernel, &mut affine, &all, access, step);
        if step > width && whole {
            dense.push((access.buffer, step));
        } else if step > width && step < SECTOR_BYTES {
            strided.push((access.buffer, step));
        }
        let memory = !matches!(data.kind, BufferKind::Private | BufferKind::Constant(_));
        let atomic = matches!(kernel.insts[access.inst].opcode, Opcode::Atomic);
        combines |= memory && whole && atomic;
        if memory && whole && !atomic {
            match step {
                1 | 2 | 4 | 8 | 16 => {
                    let row = if access.writes { None } else { Row::of(kernel, &mut affine, access) };
                    let row = row.map(|row| {
                        rows.iter().position(|known| *known == row).unwrap_or_else(|| {
                            rows.push(row);
                            rows.len() - 1
                        })
                    });
                    found.push(Walk { inst: access.inst, step, loads: !access.writes, row });
                }
                _ => is_odd = true,
            }
        }
    }
    // What the first of a dense group leaves out is brought with it.
    let spread = strided.into_iter().filter(|access| !dense.contains(access)).count();
    Contiguous { found, spread, combines, is_odd, rows }
}

impl Row {
    fn of(kernel: &Kernel, affine: &mut Affine<'_>, access: &MemoryAccess) -> Option<Self> {
        let arguments = kernel.subscripts(&kernel.insts[access.inst]);
        let mut subscripts: Vec<Polynomial> =
            arguments.iter().map(|value| (*affine.form(*value)).clone()).collect();
        let last = subscripts.pop()?;
        subscripts.push(last.split_constant().0);
        Some(Self { buffer: access.buffer, leaf: access.leaf, subscripts })
    }

    /// Whether what lies at multiples of a vector from its beginning does so in memory, where the last index is one of the vector.
    fn is_aligned(&self, kernel: &Kernel, multiples: &mut Multiples, vector: u64) -> bool {
        let mut stride = 1u64;
        let extents = kernel.buffers[self.buffer].extents.iter();
        extents.zip(&self.subscripts).rev().all(|(extent, subscript)| {
            let fits = multiples.of_form(kernel, subscript).saturating_mul(stride) >= vector;
            stride = stride.saturating_mul(multiples.of_expression(extent));
            fits
        })
    }
}

/// How many of the accesses a vector brings, alone or with others: those at a multiple of its size, and those of a window, of at least
/// as many elements as a vector has. Neighbours read the same vectors of it.
pub fn count_aligned(
    kernel: &Kernel,
    multiples: &mut Multiples,
    (found, rows): (&[Walk], &[Row]),
    vector: u64,
) -> usize {
    let mut are_windows = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let elements = found.iter().filter(|access| access.row == Some(at)).count() as u64;
        let width = found.iter().find(|access| access.row == Some(at)).map_or(0, |access| access.step);
        let is_plain = kernel.buffers[row.buffer].element.size == width;
        are_windows.push(is_plain && elements >= vector && row.is_aligned(kernel, multiples, vector));
    }
    let is_brought = |access: &&Walk| {
        access.row.is_some_and(|row| are_windows[row]) || is_aligned(kernel, multiples, access, vector)
    };
    found.iter().filter(is_brought).count()
}

/// Whether one row has as many loads as a vector has elements.
pub fn has_windows(found: &[Walk], vector: u64) -> bool {
    let of_row = |row: usize| found.iter().filter(|access| access.row == Some(row)).count() as u64;
    found.iter().any(|access| access.row.is_some_and(|row| of_row(row) >= vector))
}

/// Whether an access of scalars, and others of the body at the next places, are all that lies between it and the next
/// iteration's.
fn is_first_of_dense(
    kernel: &Kernel,
    affine: &mut Affine<'_>,
    all: &[MemoryAccess],
    access: &MemoryAccess,
    step: u64,
) -> bool {
    let data = &kernel.buffers[access.buffer];
    let width = data.element.size;
    let is_scalar = data.element.leaves.len() == 1 && data.element.leaves[0].scalar.size() == width;
    if !is_scalar || step <= width || !step.is_multiple_of(width) {
        return false;
    }
    // Elements behind it, of each access to the same rows.
    let mut places: Vec<i64> = Vec::new();
    for other in all.iter().filter(|other| other.buffer == access.buffer && other.writes == access.writes) {
        let [own, others] = [access, other].map(|access| kernel.subscripts(&kernel.insts[access.inst]));
        let Some(((last, rows), (other_last, other_rows))) = own.split_last().zip(others.split_last()) else {
            return false;
        };
        let same = rows.iter().zip(other_rows).all(|(own, other)| affine.form(*own) == affine.form(*other));
        let behind = affine.form(*other_last).subtract(&affine.form(*last));
        places.extend(behind.filter(|_| same).and_then(|behind| behind.as_wrapped()));
    }
    (0..(step / width) as i64).all(|at| places.contains(&at)) && !places.iter().any(|at| *at < 0)
}

/// Whether the access' address is a multiple of the vector's bytes where the last index is one of the vector.
pub fn is_aligned(kernel: &Kernel, multiples: &mut Multiples, access: &Walk, vector: u64) -> bool {
    let data = &kernel.insts[access.inst];
    let Payload::Access { buffer, .. } = data.payload else { return false };
    let buffer = &kernel.buffers[buffer];
    // A subscript counts elements, of which an iteration may have several.
    let several = if buffer.layout == Layout::Aos { (access.step / buffer.element.size).max(1) } else { 1 };
    let wanted = several * vector.min(VECTOR_BYTES / access.step.min(VECTOR_BYTES));
    let mut stride = 1u64;
    for (at, extent) in buffer.extents.iter().enumerate().rev() {
        let divisor = multiples.of(kernel, data.arguments[at]);
        if divisor.saturating_mul(stride) < wanted {
            return false;
        }
        stride = stride.saturating_mul(multiples.of_expression(extent));
    }
    true
}
