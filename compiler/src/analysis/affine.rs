//! Index values as polynomials of loop indices and symbols, and what follows from that: how far an access
//! steps when an index does.

use super::code::reads_memory;
use super::polynomial::{Atom, Polynomial, polynomial_of};
use crate::data::{LeafPlaces, Scalar};
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Definition, Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::ir::{FoundOwners, Owners};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// How the address of an access moves when one loop index grows by 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stride {
    /// By so many bytes, 0 for an access that does not depend on the index.
    Bytes(i64),
    /// By an amount that is the same everywhere but depends on dimensions.
    Symbolic,
    /// Not the same everywhere, or unknown.
    Irregular,
}

impl Stride {
    /// Of a step as [`Affine::step`] says it.
    fn of(step: Option<Option<Polynomial>>) -> Self {
        let Some(step) = step else { return Self::Irregular };
        step.and_then(|step| step.as_wrapped()).map_or(Self::Symbolic, Self::Bytes)
    }
}

/// Forms of the values of one kernel, computed once each.
pub struct Affine<'k> {
    pub(super) kernel: &'k Kernel,
    owners: FoundOwners,
    forms: FxHashMap<Value, Rc<Polynomial>>,
}

/// Longer chains of definitions are not followed.
const MAX_DEPTH: u32 = 64;

impl<'k> Affine<'k> {
    pub fn new(kernel: &'k Kernel) -> Self {
        Self::among(kernel, Owners::default())
    }

    /// For a kernel of which the owners of some blocks, as those of one launch, are known.
    pub fn among(kernel: &'k Kernel, owners: Owners) -> Self {
        Self { kernel, owners: owners.into(), forms: FxHashMap::default() }
    }

    /// The value as a polynomial; one that is none is an atom of its own. Values other than i64 are atoms.
    pub fn form(&mut self, value: Value) -> Rc<Polynomial> {
        self.form_within(value, MAX_DEPTH)
    }

    fn form_within(&mut self, value: Value, depth: u32) -> Rc<Polynomial> {
        if let Some(form) = self.forms.get(&value) {
            return form.clone();
        }
        let form = depth.checked_sub(1).and_then(|depth| self.compute(value, depth));
        let form = Rc::new(form.unwrap_or_else(|| Polynomial::atom(Atom::Value(value))));
        if self.forms.is_empty() {
            self.forms.reserve(64);
        }
        self.forms.insert(value, form.clone());
        form
    }

    fn compute(&mut self, value: Value, depth: u32) -> Option<Polynomial> {
        let kernel = self.kernel;
        if kernel.value_type(value) != Scalar::I64 {
            return None;
        }
        let data = kernel.definition_data(value)?;
        let mut operand = |at: usize| self.form_within(data.arguments[at], depth);
        Some(match (data.opcode, &data.payload) {
            (_, Payload::Constant(Constant::Int(_, value))) => Polynomial::constant(*value),
            (_, Payload::Symbol(symbol)) => Polynomial::atom(Atom::Symbol(*symbol)),
            // A narrower integer symbol, widened: its value is the same.
            (Opcode::Cast, Payload::Cast(Scalar::I64)) => {
                match kernel.definition_data(data.arguments[0])?.payload {
                    Payload::Symbol(symbol) if kernel.symbols[symbol].scalar.is_integer() => {
                        Polynomial::atom(Atom::Symbol(symbol))
                    }
                    _ => return None,
                }
            }
            (Opcode::Add, _) => operand(0).add(&operand(1))?,
            (Opcode::Sub, _) => operand(0).subtract(&operand(1))?,
            (Opcode::Mul, _) => operand(0).multiply(&operand(1))?,
            (Opcode::Neg, _) => operand(0).negate()?,
            (Opcode::Shl, _) => {
                let count = u32::try_from(kernel.int_of(data.arguments[1])? & 63).ok()?;
                operand(0).scale(1 << count)?
            }
            _ => return None,
        })
    }

    /// How the byte address of a load, store or atomic moves with a loop index, under the buffer's layout.
    /// `Irregular` for other instructions.
    pub fn stride(&mut self, inst: Inst, index: Value) -> Stride {
        Stride::of(self.step(inst, index))
    }

    /// The same as a polynomial of sizes, in bytes: `Some(None)` where it is the same everywhere, but no polynomial of
    /// moderate size.
    pub fn step(&mut self, inst: Inst, index: Value) -> Option<Option<Polynomial>> {
        self.step_of_subscripts(inst, index, false).or_else(|| {
            // Subscripts one by one may jump where all together do not: the places of a number along several axes.
            let position = self.position(inst)?;
            self.coefficient_of(&position, index, false).map(Some)
        })
    }

    /// What [`stride`](Self::stride) is among iterations that all begin at once: the index of a loop inside that begins where the
    /// index says moves with it (blocks of a column: `a in 32 * c..32 * (c + 1)`).
    pub fn stride_at_begin(&mut self, inst: Inst, index: Value) -> Stride {
        let plain = self.stride(inst, index);
        let Some(position) = self.position(inst) else { return plain };
        let mut moved = position.clone();
        for atom in position.atoms() {
            let Atom::Value(value) = atom else { continue };
            let Some(low) = self.begin_of(value).filter(|low| self.depends(*low, index)) else { continue };
            let begin = self.form(low);
            let sum = Polynomial::atom(atom).add(&begin);
            match sum.and_then(|sum| moved.substitute(&mut |other| (other == atom).then(|| sum.clone()))) {
                Some(sum) => moved = sum,
                None => return plain,
            }
        }
        if moved == position {
            return plain;
        }
        self.coefficient_of(&moved, index, false).map_or(plain, |step| Stride::of(Some(Some(step))))
    }

    /// Where a loop begins, of its index.
    fn begin_of(&mut self, index: Value) -> Option<Value> {
        let kernel = self.kernel;
        let Definition::Param(block, position) = kernel.values[index].definition else { return None };
        let inst = self.owners.of(kernel, block)?;
        kernel.loop_bounds(inst).get(usize::from(position)).map(|(low, _)| *low)
    }

    /// What [`stride`](Self::stride) is nearly everywhere: quotients that move with the index count as if they did not.
    pub fn usual_stride(&mut self, inst: Inst, index: Value) -> Stride {
        match self.stride(inst, index) {
            Stride::Irregular => Stride::of(self.step_of_subscripts(inst, index, true)),
            regular => regular,
        }
    }

    /// How many neighbours along an index an access takes at its [usual stride](Self::usual_stride), if a literal says it: what
    /// its subscripts divide the index by.
    pub fn usual_run(&mut self, inst: Inst, index: Value) -> Option<i64> {
        let kernel = self.kernel;
        let mut runs = Vec::new();
        for subscript in kernel.subscripts(&kernel.insts[inst]) {
            for atom in self.form(*subscript).atoms() {
                let Atom::Value(value) = atom else { continue };
                runs.extend(quotient(kernel, value).filter(|(dividend, _)| *dividend == index));
            }
        }
        runs.into_iter().filter_map(|(_, divisor)| kernel.int_of(divisor)?.try_into().ok()).min()
    }

    /// The step as a sum over the subscripts, each of which goes evenly.
    fn step_of_subscripts(
        &mut self,
        inst: Inst,
        index: Value,
        quotients_stay: bool,
    ) -> Option<Option<Polynomial>> {
        let scales = self.scales(inst)?;
        let mut total = Polynomial::default();
        let mut known = true;
        for (at, scale) in scales.iter().enumerate() {
            let form = self.form(self.kernel.insts[inst].arguments[at]);
            let step = self.coefficient_of(&form, index, quotients_stay)?;
            if step.is_zero() {
                continue;
            }
            match scale.as_ref().and_then(|scale| total.add(&step.multiply(scale)?)) {
                Some(sum) => total = sum,
                None => known = false,
            }
        }
        Some(known.then_some(total))
    }

    /// Whether the address of an access is a sum of parts, none of which moves with more than one of two indices.
    pub fn is_separable(&mut self, inst: Inst, indices: [Value; 2]) -> bool {
        let Some(position) = self.position(inst) else { return false };
        position.terms().iter().all(|(monomial, _)| {
            let moving = indices.iter().filter(|index| {
                monomial.atoms().iter().any(|atom| match atom {
                    Atom::Value(value) => self.depends(*value, **index),
                    Atom::Symbol(_) => false,
                })
            });
            moving.count() < 2
        })
    }

    /// The byte address of an access, from its buffer's begin.
    pub fn position(&mut self, inst: Inst) -> Option<Polynomial> {
        let scales = self.scales(inst)?;
        let arguments = &self.kernel.insts[inst].arguments;
        scales.iter().zip(arguments).try_fold(Polynomial::default(), |sum, (scale, subscript)| {
            sum.add(&self.form(*subscript).multiply(scale.as_ref()?)?)
        })
    }

    /// Bytes from one value of each subscript of an access to the next one; `None` in it for no polynomial of moderate size.
    pub(super) fn scales(&self, inst: Inst) -> Option<Vec<Option<Polynomial>>> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, leaf } | Payload::Atomic { buffer, leaf, .. }) = data.payload else {
            return None;
        };
        let buffer = &kernel.buffers[buffer];
        let LeafPlaces { element, axes, .. } = LeafPlaces::new(&buffer.element, buffer.layout, leaf as usize);
        let later = |at: usize| {
            let extents = buffer.extents[at + 1..].iter();
            let product =
                extents.map(polynomial_of).try_fold(Polynomial::constant(1), |all, one| all.multiply(&one?));
            product.and_then(|product| product.scale(element.into()))
        };
        let inner = axes.into_iter().map(|scale| Some(Polynomial::constant(scale.into())));
        Some((0..buffer.extents.len()).map(later).chain(inner).collect())
    }

    /// What a form grows by when the index grows by 1, as [`coefficient`](Self::coefficient) says.
    fn coefficient_of(
        &mut self,
        form: &Polynomial,
        index: Value,
        quotients_stay: bool,
    ) -> Option<Polynomial> {
        let kernel = self.kernel;
        let mut opaque = |atom: Atom| match atom {
            Atom::Value(value) => {
                let stays = quotients_stay && quotient(kernel, value).is_some();
                value != index && !stays && self.depends(value, index)
            }
            Atom::Symbol(_) => false,
        };
        if form.atoms().into_iter().any(&mut opaque) {
            return None;
        }
        Some(form.split(Atom::Value(index))?.0)
    }

    /// What a value grows by when the index grows by 1 (the other indices staying as they are); `None` where
    /// that is not the same everywhere.
    pub fn coefficient(&mut self, value: Value, index: Value) -> Option<Polynomial> {
        let form = self.form(value);
        self.coefficient_of(&form, index, false)
    }

    /// Whether one of several values may change when the index does ([`depends`](Self::depends)).
    pub fn any_depends(&mut self, values: &[Value], index: Value) -> bool {
        values.iter().any(|value| self.depends(*value, index))
    }

    /// Whether one of several values is made of a loop's index that begins at a place in memory that the index tells: in one
    /// round, iterations along the index are at different places then (the rows of a sparse matrix).
    pub fn begins_by(&mut self, values: &[Value], index: Value) -> bool {
        let kernel = self.kernel;
        let mut seen = FxHashSet::default();
        let mut open = values.to_vec();
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            match kernel.values[value].definition {
                Definition::Result(inst, _) => open.extend(&kernel.insts[inst].arguments),
                Definition::Param(block, position) => {
                    let Some(inst) = self.owners.of(kernel, block) else { continue };
                    let low = kernel.loop_bounds(inst).get(usize::from(position)).map(|(low, _)| *low);
                    if low.is_some_and(|low| reads_memory(kernel, &[low]) && self.depends(low, index)) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Whether a value may change when the index does, the other indices staying as they are.
    pub fn depends(&mut self, value: Value, index: Value) -> bool {
        let kernel = self.kernel;
        let mut seen = FxHashSet::default();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if value == index {
                return true;
            }
            if !seen.insert(value) {
                continue;
            }
            let inst = match kernel.values[value].definition {
                Definition::Result(inst, _) => inst,
                Definition::Param(block, position) => {
                    let Some(inst) = self.owners.of(kernel, block) else { continue };
                    match (kernel.insts[inst].opcode, position) {
                        // A loop's index runs by itself.
                        (Opcode::Forall | Opcode::Reduce, _) | (Opcode::For, 0) => continue,
                        _ => inst,
                    }
                }
            };
            open.extend(&kernel.insts[inst].arguments);
            for region in &kernel.insts[inst].regions {
                kernel.walk(*region, &mut |_, inst| open.extend(&kernel.insts[inst].arguments));
            }
        }
        false
    }
}

/// Dividend and divisor of a quotient, which may be computed in fewer bits than they have.
fn quotient(kernel: &Kernel, value: Value) -> Option<(Value, Value)> {
    let widened = |value: Value| match kernel.definition_data(value) {
        Some(data) if data.opcode == Opcode::Cast => data.arguments[0],
        _ => value,
    };
    let data = kernel.definition_data(widened(value)).filter(|data| data.opcode == Opcode::Div)?;
    Some((widened(data.arguments[0]), widened(data.arguments[1])))
}
