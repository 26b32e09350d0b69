//! Whether two accesses of one stretch between barriers can touch the same element from different threads.

use super::forms::{Form, Forms, Mask};
use super::tables::Table;
use crate::ir::entities::{Buffer, Inst};
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use rustc_hash::FxHashMap;

/// An access to a shared buffer.
#[derive(Clone, Debug)]
pub struct Access {
    /// Different for each time that the walk comes by.
    pub id: u32,
    pub inst: Inst,
    pub opcode: Opcode,
    pub buffer: Buffer,
    pub leaf: u32,
    /// One a subscript.
    pub forms: Vec<Form>,
    /// Touches its leaf alone.
    pub scalar: bool,
    /// Consecutive elements.
    pub width: i64,
    /// Which threads may come by; `None` for all.
    pub mask: Option<Mask>,
    /// The loops whose next turn has come since.
    pub turned: Vec<Inst>,
    /// A copy in the background that nobody has waited for: 0 until its group is made, then the number of groups since,
    /// its own included.
    pub under_way: Option<u32>,
}

impl Access {
    pub fn writes(&self) -> bool {
        !self.opcode.is_load()
    }

    /// Does the same as another access, as far as the check can see.
    pub fn is_like(&self, other: &Self) -> bool {
        let class = |access: &Self| (access.opcode, access.buffer, access.leaf, access.scalar, access.width);
        class(self) == class(other)
            && self.under_way == other.under_way
            && self.mask == other.mask
            && self.forms == other.forms
    }

    fn comes(&self, thread: usize) -> bool {
        self.mask.as_ref().is_none_or(|mask| mask[thread])
    }
}

/// What is known of one subscript of two accesses: the two are equal only if
/// `first + a[t] + i = second + b[s] + j (mod modulus)` for `i` and `j` below the widths; modulus 0 is plain equality.
struct Axis {
    first: i64,
    second: i64,
    a: Option<Table>,
    b: Option<Table>,
    modulus: i64,
    widths: [i64; 2],
}

/// Two different threads that may touch the same element, one by each access; `None` where there are none. `extents`
/// are those of the buffer.
pub fn conflict(
    forms: &Forms<'_>,
    threads: usize,
    extents: &[Expr],
    a: &Access,
    b: &Access,
) -> Option<(usize, usize)> {
    let atomic = |access: &Access| access.opcode == Opcode::Atomic;
    let harmless = !(a.writes() || b.writes()) || (atomic(a) && atomic(b));
    let scalars = a.scalar && b.scalar;
    if harmless || a.buffer != b.buffer || (a.leaf != b.leaf && scalars) {
        return None;
    }
    let last = a.forms.len().wrapping_sub(1);
    let mut axes = Vec::with_capacity(a.forms.len());
    for (at, (x, y)) in a.forms.iter().zip(&b.forms).enumerate() {
        let widths = if at == last { [a.width, b.width] } else { [1, 1] };
        axes.push(axis(forms, x, y, widths));
    }
    if axes.iter().any(never_equal) {
        return None;
    }
    // Places in the whole buffer are numbers of a row, which is looked through faster than tuples are; where they meet, the
    // subscripts may still be told apart.
    if a.forms.len() > 1
        && let (Some(x), Some(y)) = (place(a, extents), place(b, extents))
    {
        let whole = axis(forms, &x, &y, [a.width, b.width]);
        let found = if never_equal(&whole) { None } else { meeting(threads, a, b, &[whole]) };
        return found.filter(|_| meeting(threads, a, b, &axes).is_some());
    }
    meeting(threads, a, b, &axes)
}

/// An element's place in its buffer, where the extents are literals.
fn place(access: &Access, extents: &[Expr]) -> Option<Form> {
    let (mut sum, mut stride) = (Form::default(), 1i64);
    for (form, extent) in access.forms.iter().zip(extents).rev() {
        let Expr::Int(extent) = extent else { return None };
        sum = sum.add(&form.scale(stride));
        stride = stride.checked_mul(*extent)?;
    }
    Some(sum)
}

fn axis(forms: &Forms<'_>, a: &Form, b: &Form, widths: [i64; 2]) -> Axis {
    let mut modulus = 0;
    let (mut left, mut right) = (a.terms.iter().peekable(), b.terms.iter().peekable());
    loop {
        let by = match (left.peek(), right.peek()) {
            // Private unknowns of the two sides are never the same.
            (Some((x, by)), Some((y, other))) if x == y && forms.is_common(*x) => {
                let by = by.wrapping_sub(*other);
                right.next();
                left.next();
                by
            }
            (Some((x, by)), other) if other.is_none_or(|(y, _)| x <= y) => {
                left.next();
                *by
            }
            (_, Some((_, by))) => {
                right.next();
                *by
            }
            (_, None) => break,
        };
        modulus = gcd(modulus, by);
    }
    Axis { first: a.constant, second: b.constant, a: a.table.clone(), b: b.table.clone(), modulus, widths }
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

/// Whether no two threads at all have equal subscripts.
fn never_equal(axis: &Axis) -> bool {
    let ends = |table: &Option<Table>| {
        let table = table.as_deref().unwrap_or(&[0]);
        (table.iter().copied().min().unwrap_or(0), table.iter().copied().max().unwrap_or(0))
    };
    let (a, b) = (ends(&axis.a), ends(&axis.b));
    // All values of first + a[t] + i - second - b[s] - j lie between these.
    let low = i128::from(axis.first) + i128::from(a.0)
        - i128::from(axis.second)
        - i128::from(b.1)
        - i128::from(axis.widths[1] - 1);
    let high = i128::from(axis.first) + i128::from(a.1) + i128::from(axis.widths[0] - 1)
        - i128::from(axis.second)
        - i128::from(b.0);
    match i128::from(axis.modulus) {
        0 => low > 0 || high < 0,
        modulus => low.div_euclid(modulus) == high.div_euclid(modulus) && low.rem_euclid(modulus) != 0,
    }
}

/// Threads for which all subscripts may be equal.
fn meeting(threads: usize, a: &Access, b: &Access, axes: &[Axis]) -> Option<(usize, usize)> {
    // A subscript that is the same for all threads has been looked at. Two more than the last one tell enough apart.
    let mut told: Vec<(bool, &Axis)> = Vec::with_capacity(3);
    for (at, axis) in axes.iter().enumerate().rev() {
        let widths = at + 1 == axes.len() && (a.width, b.width) != (1, 1);
        if axis.a.is_some() || axis.b.is_some() || widths {
            told.push((widths, axis));
        }
    }
    told.truncate(3);
    let mut seen = match told.as_slice() {
        [(_, axis)] => Seen::of(axis),
        _ => Seen::Far(FxHashMap::default()),
    };
    let keys = |first: bool, thread: usize, step: i64| {
        let mut keys: Key = [0; 3];
        for ((stepped, axis), to) in told.iter().zip(&mut keys) {
            let (start, table) = if first { (axis.first, &axis.a) } else { (axis.second, &axis.b) };
            let value = start.wrapping_add(table.as_ref().map_or(0, |table| table[thread]));
            let value = value.wrapping_add(if *stepped { step } else { 0 });
            *to = if axis.modulus == 0 { value } else { value.rem_euclid(axis.modulus) };
        }
        keys
    };
    for thread in (0..threads).filter(|thread| a.comes(*thread)) {
        (0..a.width).for_each(|step| seen.insert(keys(true, thread, step), thread));
    }
    for thread in (0..threads).filter(|thread| b.comes(*thread)) {
        for step in 0..b.width {
            // What is under way is not even its own thread's to touch, and rows of a matrix go to other lanes.
            let of_nobody = a.under_way.is_some() || [a, b].iter().any(|it| it.opcode.loads_matrices());
            let own = if of_nobody { None } else { Some(thread) };
            if let Some(other) = seen.other(&keys(false, thread, step), own) {
                return Some((other, thread));
            }
        }
    }
    None
}

type Key = [i64; 3];

/// For each element the first two threads that come.
enum Seen {
    /// By the key's first number, from a least one on.
    Near(i64, Vec<[u16; 2]>),
    Far(FxHashMap<Key, [u16; 2]>),
}

const NOBODY: u16 = u16::MAX;

/// The most numbers that have a place each: the bytes of the largest shared memory.
const NEAR: i64 = 1 << 18;

impl Seen {
    /// For keys that are values of one subscript.
    fn of(axis: &Axis) -> Self {
        let table = axis.a.as_deref().unwrap_or(&[0]);
        let (low, high) = match axis.modulus {
            0 => (table.iter().min().copied().unwrap_or(0), table.iter().max().copied().unwrap_or(0)),
            modulus => (0, modulus - 1),
        };
        let low = if axis.modulus == 0 { low.wrapping_add(axis.first) } else { 0 };
        let high =
            if axis.modulus == 0 { high.wrapping_add(axis.first).wrapping_add(axis.widths[0]) } else { high };
        match high.checked_sub(low) {
            Some(count @ 0..NEAR) => Seen::Near(low, vec![[NOBODY; 2]; count as usize + 1]),
            _ => Seen::Far(FxHashMap::default()),
        }
    }

    fn insert(&mut self, key: Key, thread: usize) {
        let place = match self {
            Seen::Near(low, places) => {
                let at = usize::try_from(key[0].wrapping_sub(*low)).ok();
                match at.and_then(|at| places.get_mut(at)) {
                    Some(place) => place,
                    None => return,
                }
            }
            Seen::Far(places) => places.entry(key).or_insert([NOBODY; 2]),
        };
        let thread = thread as u16;
        if place[0] == NOBODY {
            place[0] = thread;
        } else if place[0] != thread && place[1] == NOBODY {
            place[1] = thread;
        }
    }

    /// A thread, other than `own`, that comes to the element.
    fn other(&self, key: &Key, own: Option<usize>) -> Option<usize> {
        let place = match self {
            Seen::Near(low, places) => places.get(usize::try_from(key[0].wrapping_sub(*low)).ok()?)?,
            Seen::Far(places) => places.get(key)?,
        };
        place
            .iter()
            .find(|other| **other != NOBODY && Some(usize::from(**other)) != own)
            .map(|other| usize::from(*other))
    }
}
