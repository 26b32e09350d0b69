//! Which accesses of a loop's body walk along its last axis without gaps, so that a vector can bring neighbours.

use crate::analysis::{Affine, MemoryAccess, Multiples, Polynomial, SECTOR_BYTES, Stride, accesses};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Layout;

/// The widest access of a thread.
pub const VECTOR_BYTES: u64 = 16;

/// Bytes of elements from which on a lane's own access fills a request as well as a vector does.
pub const WORD_BYTES: u64 = 4;

/// The accesses of a body that walk along its last axis without gaps.
pub struct Contiguous {
    pub found: Vec<Walk>,
    /// Others, which leave gaps within a sector: neighbours of one thread make several requests of them.
    pub spread: usize,
    /// Whether there are atomics among them, each of which combines one scalar.
    pub combines: bool,
    /// Whether some of them have no vector: points of three floats.
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
    /// Bytes an iteration: a power of two, or three times one where words of 4 bytes bring several iterations (pixels of three bytes).
    pub step: u64,
    pub loads: bool,
    /// The row in which a load stands, and its place there.
    pub place: Option<(usize, i64)>,
}

/// How many iterations of so many bytes a vector brings; of three, or twice three, as many words do as of the next power of two.
pub fn per_vector(step: u64) -> u64 {
    VECTOR_BYTES / step.next_power_of_two().clamp(1, VECTOR_BYTES)
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
                1 | 2 | 3 | 4 | 6 | 8 | 16 => {
                    let place = if access.writes { None } else { Row::of(kernel, &mut affine, access.inst) };
                    let place = place.map(|(row, offset)| {
                        let known = rows.iter().position(|known| *known == row).unwrap_or_else(|| {
                            rows.push(row);
                            rows.len() - 1
                        });
                        (known, offset)
                    });
                    found.push(Walk { inst: access.inst, step, loads: !access.writes, place });
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
    /// The row of an access, and the literal along its last axis.
    pub fn of(kernel: &Kernel, affine: &mut Affine<'_>, inst: Inst) -> Option<(Self, i64)> {
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return None };
        let arguments = kernel.subscripts(data);
        let mut subscripts: Vec<Polynomial> =
            arguments.iter().map(|value| (*affine.form(*value)).clone()).collect();
        let (last, offset) = subscripts.pop()?.split_constant();
        subscripts.push(last);
        Some((Self { buffer, leaf, subscripts }, offset))
    }

    /// How many elements of a row 16 bytes have; 1 of structs.
    pub fn vector(&self, kernel: &Kernel) -> u64 {
        let element = &kernel.buffers[self.buffer].element;
        if element.as_scalar().is_some() { VECTOR_BYTES / element.size.clamp(1, VECTOR_BYTES) } else { 1 }
    }

    /// Whether what lies at multiples of a vector from its beginning does so in memory, where the last index is one of the vector.
    pub fn is_aligned(&self, kernel: &Kernel, multiples: &mut Multiples, vector: u64) -> bool {
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
        let of_row = |access: &&Walk| access.place.is_some_and(|(row, _)| row == at);
        let width = found.iter().find(of_row).map_or(0, |access| access.step);
        let is_plain = kernel.buffers[row.buffer].element.size == width;
        let is_window = is_plain && elements_of(found, at) >= vector;
        are_windows.push(is_window && row.is_aligned(kernel, multiples, vector));
    }
    let is_brought = |access: &&Walk| {
        access.place.is_some_and(|(row, _)| are_windows[row]) || is_aligned(kernel, multiples, access, vector)
    };
    found.iter().filter(is_brought).count()
}

/// How many elements of a row are loaded.
fn elements_of(found: &[Walk], row: usize) -> u64 {
    let mut offsets: Vec<i64> = found
        .iter()
        .filter_map(|access| access.place.filter(|(of, _)| *of == row).map(|(_, offset)| offset))
        .collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets.len() as u64
}

/// Whether as many elements of one row are loaded as a vector has.
pub fn has_windows(found: &[Walk], vector: u64) -> bool {
    found.iter().any(|access| access.place.is_some_and(|(row, _)| elements_of(found, row) >= vector))
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
    let wanted = several * vector.min(per_vector(access.step));
    // Of three words each begins at a multiple of one.
    let wanted = 1 << wanted.trailing_zeros();
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
