//! Reading and writing array elements: subscripts, bounds, and paths into structs.

use super::combine::combine_scalar;
use super::error::EvalError;
use super::evaluator::{Evaluator, Run};
use super::layout::{Layout, LayoutKind};
use super::memory::Place;
use super::value::{Number, Value};
use crate::check::typed::*;
use crate::data::Scalar;
use crate::source::Span;
use smallvec::SmallVec;
use std::rc::Rc;

/// Where an access goes.
enum Target {
    Inside {
        element: u64,
        uncertain: bool,
    },
    /// A guarded subscript is outside.
    Outside {
        uncertain: bool,
    },
}

/// A path's steps, each with whether it is uncertain.
pub(super) type Steps = SmallVec<[(i64, bool); 4]>;

impl<'a> Evaluator<'a> {
    /// An [`ExprKind::Load`].
    pub(super) fn load(&mut self, expr: &'a Expr) -> Run<Value> {
        let ExprKind::Load { access, path, otherwise } = &expr.kind else {
            return self.malformed("not a load", expr.span);
        };
        let target = self.element(access)?;
        let steps = self.path_steps(path)?;
        let loose = steps.iter().any(|(_, uncertain)| *uncertain);
        let storage = &self.memory[access.array.as_u32() as usize];
        let (found, uncertain) = match target {
            Target::Inside { element, uncertain } => {
                match walk(&storage.layout, Place::of(element), &steps) {
                    Ok((place, part)) => (Some(storage.read(place, part)), uncertain || loose),
                    Err((at, _)) if is_guarded(&path[at]) => (None, uncertain || loose),
                    Err((at, extent)) => {
                        return self.part_outside(&path[at], steps[at].0, extent, access.span);
                    }
                }
            }
            Target::Outside { uncertain } => (None, uncertain),
        };
        let mut value = match (found, otherwise) {
            (Some(value), _) => value,
            (None, Some(otherwise)) => self.value(otherwise)?,
            (None, None) => return self.malformed("a guarded access has no `else`", expr.span),
        };
        if uncertain {
            value.taint();
        }
        Ok(value)
    }

    /// A load of a number. The common form, of a whole element, is a short cut.
    pub(super) fn load_number(&mut self, expr: &'a Expr) -> Run<Option<Number>> {
        if let ExprKind::Load { access, path, otherwise: None } = &expr.kind
            && path.is_empty()
            && let Target::Inside { element, uncertain } = self.element(access)?
        {
            let storage = &self.memory[access.array.as_u32() as usize];
            let LayoutKind::Scalar(scalar) = storage.layout.kind else { return Ok(None) };
            return Ok(Some(storage.read_scalar(Place::of(element), scalar).uncertain_if(uncertain)));
        }
        Ok(self.load(expr)?.number())
    }

    /// Writes `value` (or combines it) into the element, or the part of it, that an access names.
    pub(super) fn store(
        &mut self,
        access: &'a Access,
        path: &'a [Projection],
        combine: Option<CombineOp>,
        value: &Value,
    ) -> Run<()> {
        let Target::Inside { element, uncertain } = self.element(access)? else {
            return self.malformed("a store cannot be guarded", access.span);
        };
        let steps = self.path_steps(path)?;
        let index = access.array.as_u32() as usize;
        let storage = &mut self.memory[index];
        if uncertain || steps.iter().any(|(_, uncertain)| *uncertain) {
            storage.taint();
        }
        let layout = Rc::clone(&storage.layout);
        let result = match walk(&layout, Place::of(element), &steps) {
            Err(failed) => Err(Some(failed)),
            Ok((place, part)) => {
                let uncertain = self.uncertain_depth > 0;
                let model = &self.model.clone();
                let mut write = |place, scalar, number: Number| {
                    let number = number.uncertain_if(uncertain);
                    match combine {
                        None => storage.write_scalar(place, scalar, number).then_some(()),
                        Some(op) => combine_scalar(storage, place, scalar, op, number, model),
                    }
                };
                write_parts(place, part, value, &mut write).ok_or(None)
            }
        };
        match result {
            Ok(()) => Ok(()),
            Err(None) => self.malformed("an element does not take a value of this type", access.span),
            Err(Some((at, extent))) => self.part_outside(&path[at], steps[at].0, extent, access.span),
        }
    }

    /// Writes a whole element, whose position is known to be inside.
    pub(super) fn write_element(
        &mut self,
        array: ArrayId,
        element: u64,
        value: &Value,
        span: Span,
    ) -> Run<()> {
        let uncertain = self.uncertain_depth > 0;
        let storage = &mut self.memory[array.as_u32() as usize];
        let layout = Rc::clone(&storage.layout);
        let mut write = |place, scalar, number: Number| {
            storage.write_scalar(place, scalar, number.uncertain_if(uncertain)).then_some(())
        };
        match write_parts(Place::of(element), &layout, value, &mut write) {
            Some(()) => Ok(()),
            None => self.malformed("an element does not take a value of this type", span),
        }
    }

    /// Evaluates the subscripts and checks them.
    fn element(&mut self, access: &'a Access) -> Run<Target> {
        let array = access.array.as_u32() as usize;
        let rank = self.memory.get(array).map(|storage| storage.extents.len());
        if rank != Some(access.subscripts.len()) {
            return self.malformed("an access has not as many subscripts as its array has axes", access.span);
        }
        let (mut element, mut uncertain, mut outside) = (0u64, false, false);
        for (axis, subscript) in access.subscripts.iter().enumerate() {
            let (index, loose) = self.integer(subscript)?;
            uncertain |= loose;
            let extent = self.memory[array].extents[axis];
            // A negative one is larger than any extent.
            if index as u64 >= extent {
                if access.checks.get(axis) == Some(&BoundsCheck::Guarded) {
                    outside = true;
                    continue;
                }
                return self.outside(access, axis, index, extent);
            }
            element = element.wrapping_mul(extent).wrapping_add(index as u64);
        }
        Ok(if outside { Target::Outside { uncertain } } else { Target::Inside { element, uncertain } })
    }

    /// The error for a subscript that is outside its axis.
    fn outside<T>(&self, access: &Access, axis: usize, index: i64, extent: u64) -> Run<T> {
        let subscript = &access.subscripts[axis];
        Err(Box::new(EvalError::OutOfBounds {
            array: self.kernel.arrays[access.array].name.clone(),
            axis,
            span: subscript.span,
            index: as_written(subscript, index),
            extent,
            proved: !matches!(access.checks.get(axis), Some(BoundsCheck::Runtime(_))),
        }))
    }

    /// A path's steps as numbers; not yet checked.
    pub(super) fn path_steps(&mut self, path: &'a [Projection]) -> Run<Steps> {
        let mut steps = Steps::new();
        for projection in path {
            steps.push(match projection {
                Projection::Field(field) => (*field as i64, false),
                Projection::Element { index, .. } => self.integer(index)?,
            });
        }
        Ok(steps)
    }

    /// The error for a step into a fixed array that is outside it.
    pub(super) fn part_outside<T>(&self, step: &Projection, index: i64, extent: u64, span: Span) -> Run<T> {
        let Projection::Element { index: subscript, check } = step else {
            return self.malformed("a struct has no such field", span);
        };
        let (array, proved) = match check {
            BoundsCheck::Runtime(site) => (self.kernel.sites[*site].array.clone(), false),
            _ => ("a fixed array".to_string(), true),
        };
        let (span, index) = (subscript.span, as_written(subscript, index));
        Err(Box::new(EvalError::OutOfBounds { array, axis: 0, span, index, extent, proved }))
    }
}

fn is_guarded(step: &Projection) -> bool {
    matches!(step, Projection::Element { check: BoundsCheck::Guarded, .. })
}

/// An index as the source has it: an `i64` or a `u64`.
fn as_written(subscript: &Expr, index: i64) -> i128 {
    if is_unsigned(subscript) { (index as u64).into() } else { index.into() }
}

/// Follows steps through a layout; on failure which step, and the extent it missed.
fn walk<'l>(
    layout: &'l Layout,
    mut place: Place,
    steps: &[(i64, bool)],
) -> Result<(Place, &'l Layout), (usize, u64)> {
    let mut at = layout;
    for (position, (step, _)) in steps.iter().enumerate() {
        match &at.kind {
            LayoutKind::Struct(fields) => {
                let field = usize::try_from(*step).ok().and_then(|step| fields.get(step));
                let Some(field) = field else { return Err((position, fields.len() as u64)) };
                place.offset += field.offset;
                place.slot += field.slot;
                at = &field.layout;
            }
            LayoutKind::Array { count, element } => {
                if *step < 0 || *step as u64 >= *count {
                    return Err((position, *count));
                }
                place.offset += *step as usize * element.size;
                place.slot += *step as usize * element.slots;
                at = element;
            }
            LayoutKind::Scalar(_) => return Err((position, 0)),
        }
    }
    Ok((place, at))
}

/// Writes every scalar of a value to its place.
fn write_parts(
    place: Place,
    layout: &Layout,
    value: &Value,
    write: &mut impl FnMut(Place, Scalar, Number) -> Option<()>,
) -> Option<()> {
    match (&layout.kind, value) {
        (LayoutKind::Scalar(scalar), Value::Number(number)) => write(place, *scalar, *number),
        (LayoutKind::Struct(fields), Value::Parts(parts)) if fields.len() == parts.len() => {
            for (field, part) in fields.iter().zip(parts.iter()) {
                let place =
                    Place { offset: place.offset + field.offset, slot: place.slot + field.slot, ..place };
                write_parts(place, &field.layout, part, write)?;
            }
            Some(())
        }
        (LayoutKind::Array { count, element }, Value::Parts(parts)) if *count == parts.len() as u64 => {
            for (at, part) in parts.iter().enumerate() {
                let (offset, slot) = (place.offset + at * element.size, place.slot + at * element.slots);
                write_parts(Place { offset, slot, ..place }, element, part, write)?;
            }
            Some(())
        }
        _ => None,
    }
}
