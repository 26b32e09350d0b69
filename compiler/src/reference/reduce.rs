//! Reductions. Sums accumulate in higher precision and are rounded once, sums of sums together; their bound is that of the
//! worst order in which a device may add: `(terms - 1) * rounding * sum of magnitudes`, and the terms' own bounds. A term that
//! is a sum or difference of products may join product by product: each is a rounding more, of a partial sum that may be
//! larger by that product.

use super::arithmetic::{binary, compare, extreme};
use super::bound::{ErrorModel, Format, power_of_two};
use super::combine::extreme_identity;
use super::evaluator::{Evaluator, Run};
use super::rounding::{Rounding, fma};
use super::value::{Number, Plain, Value};
use crate::check::typed::*;
use crate::data::Scalar;
use crate::syntax::ast::ReduceOp;

impl<'a> Evaluator<'a> {
    pub(super) fn reduce(&mut self, op: Reducer, axes: &'a [Axis], body: &'a Expr) -> Run<Value> {
        let op = match op {
            Reducer::BuiltIn(op) => op,
            Reducer::Own(reduction) => return self.own(reduction, axes, body),
        };
        match op {
            ReduceOp::Sum | ReduceOp::Prod => self.accumulate(op == ReduceOp::Sum, axes, body),
            ReduceOp::Min | ReduceOp::Max => self.extreme_of(op == ReduceOp::Max, axes, body),
            ReduceOp::ArgMin | ReduceOp::ArgMax => self.position_of(op == ReduceOp::ArgMax, axes, body),
            ReduceOp::Any | ReduceOp::All | ReduceOp::Count => self.decide(op, axes, body),
            ReduceOp::And => self.bits(BinaryOp::And, -1, axes, body),
            ReduceOp::Or => self.bits(BinaryOp::Or, 0, axes, body),
            ReduceOp::Xor => self.bits(BinaryOp::Xor, 0, axes, body),
        }
    }

    /// Of numbers, or field by field of structs.
    fn accumulate(&mut self, sum: bool, axes: &'a [Axis], body: &'a Expr) -> Run<Value> {
        let mut totals = Vec::new();
        let mut start = |scalar: Scalar| {
            totals.push(Accumulator::new(sum, scalar));
            Number::exact(Plain::zero(scalar))
        };
        let shape = self.filled(&body.ty, &mut start);
        let rounded = self.model.rounding.filter(|_| sum && totals.iter().all(Accumulator::is_float));
        let whole = totals.iter().all(|total| total.scalar == total.scalar.widened());
        let op = if sum { ReduceOp::Sum } else { ReduceOp::Prod };
        let uncertain = self.each_term(whole.then_some(op), axes, body, &mut |this, body| {
            if let (Some(rounding), [total]) = (rounded, totals.as_mut_slice()) {
                let term = this.term(body)?;
                let fused = this.factors_to_fuse(body, &term);
                // What rounded factors make of a product is in its value.
                let added = match fused.filter(|_| !(this.model.tf32 && rounding.is_by_chance())) {
                    Some((a, b)) => total.add_product(a, b),
                    None => total.add(term.value, &this.model),
                };
                return added
                    .map_or_else(|| this.malformed("a term is not of the reduction's type", body.span), Ok);
            }
            let added = if let Value::Number(_) = shape
                && let [total] = totals.as_mut_slice()
            {
                total.add(this.number(body)?, &this.model)
            } else {
                add_parts(&this.value(body)?, &mut totals.iter_mut(), &this.model)
            };
            match added {
                Some(()) => Ok(()),
                None => this.malformed("a term is not of the reduction's type", body.span),
            }
        })?;
        let mut finished = Vec::with_capacity(totals.len());
        for total in &totals {
            match total.finish() {
                Some(number) => finished.push(number.uncertain_if(uncertain)),
                None => return self.malformed("a term is not a number", body.span),
            }
        }
        let mut finished = finished.into_iter();
        Ok(replace_leaves(&shape, &mut finished))
    }

    /// Visits the terms of a sum, or of a product. Where a term is such a reduction itself, its terms are those of the whole:
    /// a sum of sums is one sum, in any order.
    fn each_term(
        &mut self,
        whole: Option<ReduceOp>,
        axes: &'a [Axis],
        body: &'a Expr,
        visit: &mut dyn FnMut(&mut Self, &'a Expr) -> Run<()>,
    ) -> Run<bool> {
        let mut inside = false;
        let uncertain = self.each(axes, &mut |this| match &body.kind {
            ExprKind::Reduce { op: Reducer::BuiltIn(op), axes, body } if whole == Some(*op) => {
                inside |= this.each_term(whole, axes, body, visit)?;
                Ok(())
            }
            _ => visit(this, body),
        })?;
        Ok(uncertain || inside)
    }

    fn extreme_of(&mut self, largest: bool, axes: &'a [Axis], body: &'a Expr) -> Run<Value> {
        let identity = body.ty.as_scalar().and_then(|scalar| extreme_identity(largest, scalar));
        let Some(identity) = identity else {
            return self.malformed("`min` and `max` take numbers", body.span);
        };
        let mut best = Number::exact(identity);
        let uncertain = self.each(axes, &mut |this| {
            let term = this.number(body)?;
            match extreme(largest, best, term) {
                Some(next) => {
                    best = next;
                    Ok(())
                }
                None => this.malformed("a term is not of the reduction's type", body.span),
            }
        })?;
        Ok(Value::Number(best.uncertain_if(uncertain)))
    }

    /// The lowest position of the extreme; the first NaN wins; -1 over an empty range.
    fn position_of(&mut self, largest: bool, axes: &'a [Axis], body: &'a Expr) -> Run<Value> {
        let mut best: Option<(i64, Number)> = None;
        let mut loose: Vec<Number> = Vec::new();
        let mut any_loose = false;
        let mut position = 0i64;
        let uncertain = self.each(axes, &mut |this| {
            let term = this.number(body)?;
            let at = match axes {
                [axis] => this.indices[axis.index.as_u32() as usize],
                _ => position,
            };
            position += 1;
            any_loose |= term.error != 0.0;
            loose.push(term);
            let Some((_, held)) = best else {
                best = Some((at, term));
                return Ok(());
            };
            let nan = |number: Number| number.value.as_float().is_some_and(f64::is_nan);
            let Some(changed) = extreme(largest, held, term) else {
                return this.malformed("a term is not of the reduction's type", body.span);
            };
            // As `min` and `max` have it, -0 is below +0.
            let beats = match (changed.value.as_float(), held.value.as_float()) {
                (Some(changed), Some(held)) => changed.to_bits() != held.to_bits(),
                _ => changed.value != held.value,
            };
            if !nan(held) && beats {
                best = Some((at, term));
            }
            Ok(())
        })?;
        let Some((at, held)) = best else {
            return Ok(Value::Number(Number::exact(Plain::I64(-1)).uncertain_if(uncertain)));
        };
        // Another position may win where its bound and the winner's overlap.
        let mut rivals = loose.iter().filter(|term| {
            term.is_uncertain()
                || term.error + held.error > 0.0
                    && compare(CompareOp::Equal, **term, held).is_none_or(|equal| equal.is_uncertain())
        });
        // The winner overlaps with itself: that is one.
        let own = usize::from(held.error > 0.0);
        let open = any_loose && (held.is_uncertain() || rivals.by_ref().nth(own).is_some());
        self.undecided |= open && !held.is_uncertain();
        Ok(Value::Number(Number::exact(Plain::I64(at)).uncertain_if(uncertain || open)))
    }

    /// Of the bits of integers; `start` is what the reduction of nothing is.
    fn bits(&mut self, op: BinaryOp, start: i128, axes: &'a [Axis], body: &'a Expr) -> Run<Value> {
        let start = body.ty.as_scalar().and_then(|scalar| Plain::wrapped(start, scalar));
        let Some(mut held) = start.map(Number::exact) else {
            return self.malformed("a reduction of bits takes integers", body.span);
        };
        let uncertain = self.each(axes, &mut |this| {
            let term = this.number(body)?;
            match binary(op, held, term, &this.model) {
                Some(next) => held = next,
                None => return this.malformed("a reduction of bits takes integers", body.span),
            }
            Ok(())
        })?;
        Ok(Value::Number(held.uncertain_if(uncertain)))
    }

    fn decide(&mut self, op: ReduceOp, axes: &'a [Axis], body: &'a Expr) -> Run<Value> {
        let (mut holds, mut fails, mut open) = (0i64, 0i64, 0i64);
        let mut open_holds = 0i64;
        let uncertain = self.each(axes, &mut |this| {
            let (value, loose) = this.boolean(body)?;
            match (value, loose) {
                (true, false) => holds += 1,
                (false, false) => fails += 1,
                (true, true) => (open, open_holds) = (open + 1, open_holds + 1),
                (false, true) => open += 1,
            }
            Ok(())
        })?;
        let (value, decided) = match op {
            ReduceOp::Any => (Plain::Bool(holds + open_holds > 0), holds > 0 || open == 0),
            ReduceOp::All => (Plain::Bool(fails + (open - open_holds) == 0), fails > 0 || open == 0),
            _ => (Plain::I64(holds + open_holds), open == 0),
        };
        Ok(Value::Number(Number::exact(value).uncertain_if(uncertain || !decided)))
    }
}

/// Adds a term's scalars to their accumulators.
fn add_parts(
    term: &Value,
    totals: &mut std::slice::IterMut<'_, Accumulator>,
    model: &ErrorModel,
) -> Option<()> {
    match term {
        Value::Number(number) => totals.next()?.add(*number, model),
        Value::Parts(parts) => parts.iter().try_for_each(|part| add_parts(part, totals, model)),
    }
}

fn replace_leaves(shape: &Value, leaves: &mut std::vec::IntoIter<Number>) -> Value {
    match shape {
        Value::Number(number) => Value::Number(leaves.next().unwrap_or(*number)),
        Value::Parts(parts) => Value::Parts(parts.iter().map(|part| replace_leaves(part, leaves)).collect()),
    }
}

/// A running sum or product of one scalar type.
struct Accumulator {
    sum: bool,
    /// The stored type: a struct's narrow field is rounded at the end.
    scalar: Scalar,
    /// Of integers.
    whole: Number,
    terms: u64,
    /// The value is that of one lawful evaluation.
    rounded: bool,
    /// Some term is infinite or NaN: then the result's class hangs on the order only where the finite terms alone
    /// may leave the format, or an infinity is but an overflowed product.
    nonfinite: bool,
    nan: bool,
    overflowed: bool,
    /// Of floats: the running value, and what it lacks.
    value: f64,
    lost: f64,
    /// Of the finite terms. Sum: of their magnitudes. Product: of `max(1, magnitude)`.
    magnitude: f64,
    /// Sum: of the products that terms are made of, where these are several, the sum of the magnitudes.
    products: f64,
    /// Product: of `min(1, magnitude)` over the factors but zero.
    smallest: f64,
    /// Sum: of the terms' bounds. Product: of their relative bounds.
    propagated: f64,
    /// The lowest bit that is set in any term, as a power of two.
    quantum: f64,
}

impl Accumulator {
    fn new(sum: bool, scalar: Scalar) -> Self {
        let wide = scalar.widened();
        let one = Plain::wrapped(1, wide).unwrap_or(Plain::Bool(true));
        Accumulator {
            sum,
            scalar,
            whole: Number::exact(if sum { Plain::zero(wide) } else { one }),
            terms: 0,
            rounded: false,
            nonfinite: false,
            nan: false,
            overflowed: false,
            value: if sum { 0.0 } else { 1.0 },
            lost: 0.0,
            magnitude: if sum { 0.0 } else { 1.0 },
            products: 0.0,
            smallest: 1.0,
            propagated: 0.0,
            quantum: f64::INFINITY,
        }
    }

    fn add(&mut self, term: Number, model: &ErrorModel) -> Option<()> {
        if term.value.scalar() != self.scalar.widened() {
            return None;
        }
        self.terms += 1;
        let Some(value) = term.value.as_float() else {
            let op = if self.sum { BinaryOp::Add } else { BinaryOp::Mul };
            self.whole = binary(op, self.whole, term, model)?;
            return Some(());
        };
        if let Some(rounding) = model.rounding {
            return self.add_rounded(rounding, value, term);
        }
        self.nonfinite |= !value.is_finite();
        self.nan |= value.is_nan();
        self.overflowed |= value.is_infinite() && term.error > 0.0;
        let finite = if value.is_finite() { value.abs() } else { 0.0 };
        self.quantum = self.quantum.min(lowest_bit(value));
        if self.sum {
            let next = self.value + value;
            let part = next - self.value;
            let lost = (self.value - (next - part)) + (value - part);
            self.lost += if lost.is_nan() { 0.0 } else { lost };
            self.value = next;
            self.magnitude += finite;
            self.propagated += term.error + term.products.lost;
            if term.products.count > 1 {
                self.terms += u64::from(term.products.count) - 1;
                self.products += term.products.magnitude;
            }
        } else {
            // The error of the f64 product is kept to first order.
            let next = self.value * value;
            let lost = libm::fma(self.value, value, -next);
            self.lost = self.lost * value + if lost.is_nan() { 0.0 } else { lost };
            self.value = next;
            self.magnitude *= finite.max(1.0);
            if value != 0.0 && value.is_finite() {
                self.smallest *= value.abs().min(1.0);
            }
            self.propagated += if term.error == 0.0 { 0.0 } else { term.error / value.abs() };
        }
        Some(())
    }

    fn is_float(&self) -> bool {
        self.scalar.is_float()
    }

    /// A term of one lawful evaluation: the running value is rounded each time, no bound is kept.
    fn add_rounded(&mut self, rounding: Rounding, value: f64, term: Number) -> Option<()> {
        let format = Format::of(self.scalar.widened())?;
        let (exact, lost) = if self.sum {
            let next = self.value + value;
            let part = next - self.value;
            (next, (self.value - (next - part)) + (value - part))
        } else {
            let next = self.value * value;
            (next, libm::fma(self.value, value, -next))
        };
        self.value = rounding.partial(format, exact, lost);
        self.rounded = true;
        self.propagated += term.error;
        Some(())
    }

    /// As a term of one lawful evaluation, a product that is fused with the sum.
    fn add_product(&mut self, a: Plain, b: Plain) -> Option<()> {
        let before = Plain::float(self.value, self.scalar.widened())?;
        self.value = fma(a, b, before)?.as_float()?;
        self.rounded = true;
        Some(())
    }

    fn finish(&self) -> Option<Number> {
        let wide = self.scalar.widened();
        let Some(format) = Format::of(wide) else {
            return super::convert::convert(self.whole, self.scalar);
        };
        // Nothing lost is not added: it would turn -0 into 0.
        let exact = if self.value.is_finite() && self.lost.is_finite() && self.lost != 0.0 {
            self.value + self.lost
        } else {
            self.value
        };
        let value = format.round(exact);
        let error = if !self.propagated.is_finite() {
            f64::INFINITY
        } else if self.rounded {
            0.0
        } else if self.sum {
            self.sum_error(format, value)
        } else {
            self.product_error(format, value)
        };
        let number = Number::within(Plain::float(value, wide)?, error);
        super::convert::convert(number, self.scalar).map(|rounded| Number {
            error: rounded.error.max(if self.scalar.is_narrow() { 0.0 } else { error }),
            ..rounded
        })
    }

    fn sum_error(&self, format: Format, value: f64) -> f64 {
        let magnitude = self.magnitude + self.propagated;
        let passed = magnitude + self.products;
        if self.nonfinite {
            let certain = self.nan || passed < format.max && !(self.overflowed && value.is_nan());
            return if certain { 0.0 } else { f64::INFINITY };
        }
        if passed >= format.max {
            return f64::INFINITY;
        }
        // Of products that cancel the lowest bits are not known.
        let aligned = self.products == 0.0 && self.magnitude <= self.quantum * format.exact_integers();
        if self.propagated == 0.0 && (self.terms <= 1 || aligned) {
            return 0.0;
        }
        // (1 + u)^n - 1 <= 1.01 n u for every n that could be evaluated; one more for a fused last product.
        let roundings = 0.5 * format.epsilon() * (self.terms as f64 * magnitude + self.products);
        self.propagated + 1.01 * roundings + 0.5 * format.spacing(value)
    }

    fn product_error(&self, format: Format, value: f64) -> f64 {
        if self.nan || self.propagated == 0.0 && self.terms <= 1 {
            return 0.0;
        }
        // Some order may pass through the ends of the format.
        let smallest_normal = format.spacing(0.0) * format.exact_integers();
        if self.magnitude >= format.max || self.smallest <= smallest_normal {
            return f64::INFINITY;
        }
        if value == 0.0 && self.propagated < 1.0 || self.nonfinite {
            return 0.0;
        }
        let relative = self.propagated * 1.01 + 1.01 * self.terms as f64 * 0.5 * format.epsilon();
        if self.propagated > 0.01 {
            return f64::INFINITY;
        }
        value.abs() * relative + 0.5 * format.spacing(value)
    }
}

/// The value of the lowest set bit; infinite for zero, and for what has none.
fn lowest_bit(value: f64) -> f64 {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    if exponent == 0 || exponent == 0x7ff {
        // Zero; or subnormal in f64 (its sums are never taken for exact); or not finite.
        return if value == 0.0 { f64::INFINITY } else { 0.0 };
    }
    let lowest = if fraction == 0 { 52 } else { fraction.trailing_zeros() as i32 };
    power_of_two(exponent - 1023 - 52 + lowest)
}
