//! Arrays in the evaluator's memory: bytes in C layout, a bound beside every scalar, and for elements that are
//! combined into, what is needed to bound every order in which the device may do it.

use super::layout::Layout;
use super::value::{Number, Plain, Value};
use super::{convert::convert, layout::LayoutKind};
use crate::check::typed::CombineOp;
use crate::data::Scalar;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::rc::Rc;

/// One array.
pub struct Storage<'a> {
    pub layout: Rc<Layout>,
    /// All at least 0.
    pub extents: Vec<u64>,
    bytes: Cow<'a, [u8]>,
    /// One a slot of every element; empty while all are zero.
    errors: Vec<f64>,
    /// One a slot of every element; empty until something is combined.
    histories: Vec<History>,
    /// Something may have been written anywhere: all is uncertain.
    tainted: bool,
    /// Set when only chosen elements are evaluated: where in `bytes` those that were written are.
    sparse: Option<FxHashMap<u64, usize>>,
    /// With `sparse`: the bytes of all elements before the first write; empty where they are zero.
    base: &'a [u8],
}

/// What was combined into one scalar since it was last written.
#[derive(Clone, Copy, Default)]
pub struct History {
    pub terms: u64,
    /// All of them, and the start value, are whole numbers: exact in any order while they are small.
    pub whole: bool,
    /// The sum of the magnitudes of the start value and all terms that are finite.
    pub magnitude: f64,
    /// Some of them was infinite; overflowed in a product, or NaN.
    pub infinite: bool,
    pub overflowed: bool,
    pub nan: bool,
    /// The sum of their bounds.
    pub propagated: f64,
    /// What the stored value lacks to the sum in higher precision.
    pub residual: f64,
}

impl History {
    /// With one more value.
    pub fn with(mut self, value: f64, error: f64) -> History {
        self.magnitude += if value.is_finite() { value.abs() } else { 0.0 };
        self.infinite |= value.is_infinite();
        self.overflowed |= value.is_infinite() && error > 0.0;
        self.nan |= value.is_nan();
        self.propagated += error;
        self
    }
}

/// Where a scalar or a part of an element lies.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The element, by its row-major position.
    pub element: u64,
    /// Bytes into the element.
    pub offset: usize,
    /// Slots into the element.
    pub slot: usize,
}

impl Place {
    /// A whole element.
    pub fn of(element: u64) -> Place {
        Place { element, offset: 0, slot: 0 }
    }
}

impl<'a> Storage<'a> {
    /// `bytes` are whole elements, `product(extents)` of them.
    pub fn dense(layout: Rc<Layout>, extents: Vec<u64>, bytes: Cow<'a, [u8]>) -> Self {
        Storage {
            layout,
            extents,
            bytes,
            errors: Vec::new(),
            histories: Vec::new(),
            tainted: false,
            sparse: None,
            base: &[],
        }
    }

    /// Keeps only what is written. `base` are the bytes of all elements before that, or none (all zero).
    pub fn sparse(layout: Rc<Layout>, extents: Vec<u64>, base: &'a [u8]) -> Self {
        Storage {
            sparse: Some(FxHashMap::default()),
            base,
            ..Self::dense(layout, extents, Cow::Owned(Vec::new()))
        }
    }

    /// Every scalar becomes the identity of `op`. `None` where its type has none.
    pub fn fill_identity(&mut self, op: CombineOp) -> Option<()> {
        let mut element = vec![0u8; self.layout.size];
        fill_element(&self.layout, &mut element, op)?;
        if !element.is_empty() {
            self.bytes
                .to_mut()
                .chunks_exact_mut(element.len())
                .for_each(|each| each.copy_from_slice(&element));
        }
        Some(())
    }

    pub fn taint(&mut self) {
        self.tainted = true;
    }

    /// Every element is about to be written anew.
    pub fn clear_taint(&mut self) {
        self.tainted = false;
    }

    /// Marks every scalar of one element.
    pub fn taint_element(&mut self, element: u64) {
        for slot in 0..self.layout.slots {
            self.set_error(Place { element, offset: 0, slot }, f64::INFINITY);
        }
    }

    /// The chosen elements that were written, in order; `None` where all are evaluated.
    pub fn chosen(&self) -> Option<Vec<u64>> {
        let sparse = self.sparse.as_ref()?;
        let mut chosen: Vec<u64> = sparse.keys().copied().collect();
        chosen.sort_unstable();
        Some(chosen)
    }

    /// The bytes of all elements (or of the chosen ones, in order), and the bounds of all their slots.
    pub fn into_parts(self) -> (Vec<u8>, Vec<f64>) {
        let size = self.layout.size;
        let slots = self.layout.slots;
        let (bytes, mut errors) = match self.chosen() {
            None => (self.bytes.into_owned(), self.errors),
            Some(chosen) => {
                let (mut bytes, mut errors) = (Vec::new(), Vec::new());
                let sparse = self.sparse.unwrap_or_default();
                for element in &chosen {
                    let at = sparse[element];
                    bytes.extend_from_slice(&self.bytes[at * size..(at + 1) * size]);
                    errors.extend(
                        (at * slots..(at + 1) * slots).map(|slot| self.errors.get(slot).unwrap_or(&0.0)),
                    );
                }
                (bytes, errors)
            }
        };
        let count = bytes.len().checked_div(size).unwrap_or(0) * slots;
        errors.resize(count, 0.0);
        if self.tainted {
            errors.fill(f64::INFINITY);
        }
        (bytes, errors)
    }

    /// The position of an element in `bytes`, or `None` where it was never stored (and is zero).
    fn position(&self, element: u64) -> Option<usize> {
        match &self.sparse {
            None => Some(element as usize),
            Some(sparse) => sparse.get(&element).copied(),
        }
    }

    fn position_to_write(&mut self, element: u64) -> usize {
        let Some(sparse) = &mut self.sparse else { return element as usize };
        let next = sparse.len();
        let at = *sparse.entry(element).or_insert(next);
        if at == next {
            let size = self.layout.size;
            let from = element as usize * size;
            let bytes = self.bytes.to_mut();
            bytes.extend_from_slice(self.base.get(from..from + size).unwrap_or(&[]));
            bytes.resize((next + 1) * size, 0);
        }
        at
    }

    /// A whole element or a part of one, widened.
    pub fn read(&self, place: Place, layout: &Layout) -> Value {
        match &layout.kind {
            LayoutKind::Scalar(scalar) => Value::Number(self.read_scalar(place, *scalar)),
            LayoutKind::Struct(fields) => {
                let part = |at: &super::layout::FieldLayout| {
                    let place =
                        Place { offset: place.offset + at.offset, slot: place.slot + at.slot, ..place };
                    self.read(place, &at.layout)
                };
                Value::Parts(fields.iter().map(part).collect())
            }
            LayoutKind::Array { count, element } => {
                let part = |at: usize| {
                    let (offset, slot) = (place.offset + at * element.size, place.slot + at * element.slots);
                    self.read(Place { offset, slot, ..place }, element)
                };
                Value::Parts((0..*count as usize).map(part).collect())
            }
        }
    }

    /// One scalar, widened.
    pub fn read_scalar(&self, place: Place, scalar: Scalar) -> Number {
        let Some(at) = self.position(place.element) else {
            let start = place.element as usize * self.layout.size + place.offset;
            let value = self.base.get(start..).filter(|rest| rest.len() as u64 >= scalar.size());
            let value = value.map_or(Plain::zero(scalar), |bytes| read_bytes(bytes, scalar));
            return Number::exact(value).uncertain_if(self.tainted);
        };
        let value = read_bytes(&self.bytes[at * self.layout.size + place.offset..], scalar);
        let error = if self.tainted {
            f64::INFINITY
        } else {
            self.errors.get(at * self.layout.slots + place.slot).copied().unwrap_or(0.0)
        };
        Number::within(value, error)
    }

    /// Writes a wide scalar, rounded or wrapped to the memory's type. `false` where the types do not fit.
    pub fn write_scalar(&mut self, place: Place, scalar: Scalar, number: Number) -> bool {
        let Some(rounded) = convert(number, scalar) else { return false };
        let at = self.position_to_write(place.element);
        let start = at * self.layout.size + place.offset;
        if !write_bytes(&mut self.bytes.to_mut()[start..], scalar, rounded.value) {
            return false;
        }
        self.set_error(place, rounded.error);
        let slot = at * self.layout.slots + place.slot;
        if let Some(history) = self.histories.get_mut(slot) {
            *history = History::default();
        }
        true
    }

    /// Sets the bound of a scalar that was written.
    pub fn set_error(&mut self, place: Place, error: f64) {
        let slot = self.position_to_write(place.element) * self.layout.slots + place.slot;
        if slot < self.errors.len() {
            self.errors[slot] = error;
        } else if error != 0.0 {
            let all = (self.bytes.len() / self.layout.size.max(1)) * self.layout.slots;
            self.errors.resize(all, 0.0);
            self.errors[slot] = error;
        }
    }

    /// The history of a scalar; one that was not combined into since its last write starts from its value.
    pub fn history(&mut self, place: Place, current: Number) -> History {
        let at = self.position_to_write(place.element);
        let slot = at * self.layout.slots + place.slot;
        match self.histories.get(slot) {
            Some(history) if history.terms > 0 => *history,
            _ => {
                let start = current.value.as_float().unwrap_or(0.0);
                History { whole: start.fract() == 0.0, ..History::default() }.with(start, current.error)
            }
        }
    }

    /// Keeps a history; to be called after the write of the value that goes with it.
    pub fn set_history(&mut self, place: Place, history: History) {
        let at = self.position_to_write(place.element);
        let slot = at * self.layout.slots + place.slot;
        if slot >= self.histories.len() {
            let all = (self.bytes.len() / self.layout.size.max(1)) * self.layout.slots;
            self.histories.resize(all, History::default());
        }
        self.histories[slot] = history;
    }
}

fn fill_element(layout: &Layout, bytes: &mut [u8], op: CombineOp) -> Option<()> {
    match &layout.kind {
        LayoutKind::Scalar(scalar) => write_bytes(bytes, *scalar, op.identity(*scalar)?).then_some(()),
        LayoutKind::Struct(fields) => {
            fields.iter().try_for_each(|field| fill_element(&field.layout, &mut bytes[field.offset..], op))
        }
        LayoutKind::Array { count, element } => {
            (0..*count as usize).try_for_each(|at| fill_element(element, &mut bytes[at * element.size..], op))
        }
    }
}

/// One scalar from its little-endian bytes, widened; `bool` is any byte but 0.
pub fn read_bytes(bytes: &[u8], scalar: Scalar) -> Plain {
    fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&bytes[..N]);
        out
    }
    match scalar {
        Scalar::Bool => Plain::Bool(bytes[0] != 0),
        Scalar::I8 => Plain::I32(i32::from(bytes[0] as i8)),
        Scalar::U8 => Plain::U32(u32::from(bytes[0])),
        Scalar::I16 => Plain::I32(i32::from(i16::from_le_bytes(first(bytes)))),
        Scalar::U16 => Plain::U32(u32::from(u16::from_le_bytes(first(bytes)))),
        Scalar::I32 => Plain::I32(i32::from_le_bytes(first(bytes))),
        Scalar::U32 => Plain::U32(u32::from_le_bytes(first(bytes))),
        Scalar::I64 => Plain::I64(i64::from_le_bytes(first(bytes))),
        Scalar::U64 => Plain::U64(u64::from_le_bytes(first(bytes))),
        Scalar::F16 => Plain::F32(half::f16::from_le_bytes(first(bytes)).to_f32()),
        Scalar::BF16 => Plain::F32(half::bf16::from_le_bytes(first(bytes)).to_f32()),
        Scalar::F32 => Plain::F32(f32::from_le_bytes(first(bytes))),
        Scalar::F64 => Plain::F64(f64::from_le_bytes(first(bytes))),
    }
}

/// Writes a wide scalar that already has a value of `scalar`. `false` where the types do not fit.
pub fn write_bytes(bytes: &mut [u8], scalar: Scalar, value: Plain) -> bool {
    macro_rules! put {
        ($value:expr) => {{
            let raw = $value.to_le_bytes();
            bytes[..raw.len()].copy_from_slice(&raw);
        }};
    }
    match (scalar, value) {
        (Scalar::Bool, Plain::Bool(value)) => bytes[0] = u8::from(value),
        (Scalar::I8, Plain::I32(value)) => put!((value as i8)),
        (Scalar::U8, Plain::U32(value)) => put!((value as u8)),
        (Scalar::I16, Plain::I32(value)) => put!((value as i16)),
        (Scalar::U16, Plain::U32(value)) => put!((value as u16)),
        (Scalar::I32, Plain::I32(value)) => put!(value),
        (Scalar::U32, Plain::U32(value)) => put!(value),
        (Scalar::I64, Plain::I64(value)) => put!(value),
        (Scalar::U64, Plain::U64(value)) => put!(value),
        (Scalar::F16, Plain::F32(value)) => put!(half::f16::from_f32(value)),
        (Scalar::BF16, Plain::F32(value)) => put!(half::bf16::from_f32(value)),
        (Scalar::F32, Plain::F32(value)) => put!(value),
        (Scalar::F64, Plain::F64(value)) => put!(value),
        _ => return false,
    }
    true
}
