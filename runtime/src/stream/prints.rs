//! The records that prints leave behind the error record: read into lines, in an order that does not depend on when which
//! thread came.

use crate::device::prints::{Print, Printed};
use krn_compiler::data::{ElementType, Scalar};
use krn_compiler::manifest::{KernelManifest, PRINT_HEADER, PrintManifest, Value};
use std::cmp::Ordering;

/// One record.
struct Record<'a> {
    site: usize,
    print: &'a PrintManifest,
    /// Which launch it was, by the order of launches.
    launch: u64,
    indices: Vec<i64>,
    /// Block in z, y and x, and thread.
    thread: [u32; 4],
    /// How many records stand before it. Those of one thread are in the order in which it printed them.
    slot: usize,
    numbers: &'a [u8],
}

/// The lines that records tell of, which follow each other in memory. Those of an unknown site are left out: none has it.
pub(super) fn lines(kernel: &KernelManifest, bytes: &[u8]) -> Vec<Print> {
    let size = kernel.print_bytes() as usize;
    let mut records: Vec<Record<'_>> = Vec::new();
    // Launches of a stream follow each other, so that the records of one stand together. A graph's have the same number each
    // time, in other rounds.
    let (mut launch, mut last) = (0, None);
    for (slot, bytes) in bytes.chunks_exact(size.max(1)).enumerate() {
        let (site, number) = (word(bytes, 0) as usize, (wide(bytes, 8), word(bytes, 28)));
        if last.replace(number).is_some_and(|last| last != number) {
            launch += 1;
        }
        let Some(print) = kernel.sites.get(site).and_then(|site| site.print.as_ref()) else { continue };
        let thread = [24, 20, 16, 4].map(|at| word(bytes, at));
        let numbers = &bytes[PRINT_HEADER as usize..];
        let indices = (0..print.indices.len()).map(|at| wide(numbers, 8 * at) as i64).collect();
        records.push(Record { site, print, launch, indices, thread, slot, numbers });
    }
    records.sort_by(|a, b| a.launch.cmp(&b.launch).then_with(|| in_source(a, b)));
    records.iter().map(|record| line(kernel, record)).collect()
}

/// The order in which the iterations of one launch would print, one after another: loops that two prints have in common
/// decide, from the outermost one on, then the place in the file.
fn in_source(a: &Record<'_>, b: &Record<'_>) -> Ordering {
    let pairs = a.print.indices.iter().zip(&b.print.indices);
    let common = pairs.take_while(|(a, b)| a.number == b.number).count();
    let loops = a.indices[..common].cmp(&b.indices[..common]);
    let same = common == a.indices.len() && common == b.indices.len();
    // In one iteration a loop without an index name may come to each several times.
    let within = match same {
        true => (a.thread, a.slot).cmp(&(b.thread, b.slot)),
        false => a.site.cmp(&b.site),
    };
    loops.then(within)
}

fn line(kernel: &KernelManifest, record: &Record<'_>) -> Print {
    let site = &kernel.sites[record.site];
    let names = record.print.indices.iter().map(|index| index.name.clone());
    let indices = names.zip(record.indices.iter().copied()).collect();
    let mut at = 8 * record.indices.len();
    let mut values = Vec::with_capacity(record.print.operands.len());
    for operand in &record.print.operands {
        values.push((operand.text.clone(), value(&operand.element, record.numbers, &mut at)));
    }
    Print { line: site.line, column: site.column, indices, values }
}

/// The value whose numbers begin at `at`, which moves behind them.
fn value(element: &ElementType, numbers: &[u8], at: &mut usize) -> Printed {
    let mut fields = Vec::with_capacity(element.leaves.len());
    for leaf in &element.leaves {
        let mut next = || {
            let number = scalar(leaf.scalar.widened(), &numbers[*at..*at + 8]);
            *at += 8;
            number
        };
        let field = match leaf.extents.is_empty() {
            true => next(),
            false => Printed::Elements((0..leaf.count()).map(|_| next()).collect()),
        };
        fields.push((leaf.path.clone(), field));
    }
    match &mut fields[..] {
        [(path, _)] if path.is_empty() => fields.remove(0).1,
        _ => Printed::Fields(fields),
    }
}

fn scalar(scalar: Scalar, bytes: &[u8]) -> Printed {
    let (narrow, wide) = (word(bytes, 0), wide(bytes, 0));
    Printed::Scalar(match scalar {
        Scalar::Bool => Value::Bool(narrow != 0),
        Scalar::I32 => Value::Int((narrow as i32).into()),
        Scalar::U32 => Value::Int(narrow.into()),
        Scalar::I64 => Value::Int((wide as i64).into()),
        Scalar::F64 => Value::Float(f64::from_bits(wide)),
        Scalar::F32 => return Printed::F32(f32::from_bits(narrow)),
        _ => Value::Int(wide.into()),
    })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

fn wide(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}
