//! What holds from the launch on: the kernel's `where` facts and the extents of its arrays.
//!
//! An equality that determines a dimension or a parameter (`n == 2 * h`, `k % 32 == 0`) becomes its definition,
//! used wherever the name stands; everything else is a fact.

use super::atoms::{DIMENSION_LIMIT, Function, Key};
use super::facts::Injective;
use super::polynomial::{Atom, Poly};
use super::walker::Walker;
use crate::check::typed::*;
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};
use rustc_hash::FxHashMap;

impl Walker<'_> {
    /// Learns the facts and extents of the kernel. The launch checks hold them without wrapping.
    pub fn learn_assumptions(&mut self) {
        self.exact = true;
        let kernel = self.kernel;
        for fact in &kernel.facts {
            let truth = self.condition(&mut fact.condition.clone());
            self.define(&truth.yes);
        }
        self.learn_extents();
        for fact in &kernel.facts {
            let truth = self.condition(&mut fact.condition.clone());
            for known in &truth.yes {
                let opposite = known.negate().and_then(|negated| negated.add_constant(-1));
                if !self.facts.is_contradictory() && opposite.is_some_and(|goal| self.facts.proves(&goal)) {
                    self.report_never(fact);
                    break;
                }
                self.facts.assume(known.clone());
            }
        }
        // Facts about parameters may have made more of the extents known to be in range.
        self.exact = false;
    }

    /// Takes the kernel's facts about values for true, and gives each a site for its check.
    pub fn learn_injections(&mut self) {
        let kernel = self.kernel;
        self.exact = true;
        for (number, injection) in kernel.injections.iter().enumerate() {
            let (low, high) =
                (self.integer(&mut injection.low.clone()), self.integer(&mut injection.high.clone()));
            self.facts.injective.push(Injective { array: injection.array, low, high });
            let array = &kernel.arrays[injection.array];
            self.sites.push(Site {
                span: injection.span,
                array: array.name.clone(),
                axis: 0,
                unsigned: array.ty.as_scalar() == Some(Scalar::U64),
                injection: Some(number),
            });
        }
        self.exact = false;
    }

    fn report_never(&mut self, fact: &Fact) {
        self.diagnostics.push(
            Diagnostic::error(
                codes::E0410,
                fact.span,
                format!("the fact `{}` can never hold", fact.text),
                "no launch would pass this check",
            )
            .help("dimensions are at least 0 and below 2^48; state a fact that some launch satisfies"),
        );
    }

    /// Makes definitions of the equalities among `facts`.
    fn define(&mut self, facts: &[Poly]) {
        for (at, fact) in facts.iter().enumerate() {
            let equality = fact.negate().is_some_and(|negated| facts[at + 1..].contains(&negated));
            if equality && let Some((atom, value)) = self.determined(fact) {
                let replacement = FxHashMap::from_iter([(atom, value.clone())]);
                let mut definitions = std::mem::take(&mut self.definitions);
                for old in definitions.values_mut() {
                    if let Some(new) = self.facts.atoms.substitute(old, &replacement) {
                        *old = new;
                    }
                }
                definitions.insert(atom, value);
                self.definitions = definitions;
            }
        }
    }

    /// A dimension or parameter, and what it must be where `poly` is 0.
    fn determined(&mut self, poly: &Poly) -> Option<(Atom, Poly)> {
        // p - d * (p / d) = 0: p is d times something.
        for (monomial, coefficient) in poly.terms() {
            let [quotient] = *monomial.atoms() else { continue };
            let Key::Apply(Function::Quotient, arguments) = &self.facts.atoms.get(quotient).key else {
                continue;
            };
            let (dividend, divisor) = (arguments[0].clone(), arguments[1].as_constant()?);
            let remainder = dividend.add_scaled(&Poly::atom(quotient), -divisor)?;
            let negated = remainder.negate()?;
            if (*poly == remainder || *poly == negated) && coefficient.abs() == divisor.abs() {
                let range = self.facts.atoms.get(quotient).range;
                let whole = Poly::atom(self.facts.atoms.name(range)).scale(divisor)?;
                return self.unit_source(&dividend.subtract(&whole)?);
            }
        }
        self.unit_source(poly)
    }

    /// Solves `poly = 0` for a dimension or parameter that stands alone in it with coefficient 1 or -1.
    fn unit_source(&mut self, poly: &Poly) -> Option<(Atom, Poly)> {
        let (atom, sign) =
            poly.terms().iter().find_map(|(monomial, coefficient)| match *monomial.atoms() {
                [atom] if coefficient.abs() == 1 => {
                    let source = matches!(self.facts.atoms.get(atom).key, Key::Dim(_) | Key::Param(..));
                    let rest = poly.add_scaled(&Poly::atom(atom), -coefficient)?;
                    let elsewhere = self.facts.atoms.any(&rest, &mut |one, _| one == atom);
                    (source && !elsewhere).then_some((atom, *coefficient))
                }
                _ => None,
            })?;
        let value = poly.add_scaled(&Poly::atom(atom), -sign)?.scale(-sign)?;
        Some((atom, value))
    }

    /// Evaluates every extent, and assumes of it what the launch checks.
    fn learn_extents(&mut self) {
        let kernel = self.kernel;
        // A definition must keep its name's own range.
        let mut definitions: Vec<(Atom, Poly)> =
            self.definitions.iter().map(|(atom, value)| (*atom, value.clone())).collect();
        definitions.sort_unstable_by_key(|(atom, _)| *atom);
        for (atom, value) in definitions {
            let range = self.facts.atoms.get(atom).range;
            self.assume_between(&value, range.low, range.high);
        }
        for (array, data) in &kernel.arrays {
            let extents: Vec<Poly> =
                data.extents.iter().map(|extent| self.integer(&mut extent.clone())).collect();
            let mut product = Some(Poly::constant(1));
            for extent in &extents {
                self.assume_between(extent, 0, DIMENSION_LIMIT - 1);
                product = product.and_then(|sofar| sofar.multiply(extent));
                if let Some(product) = &product {
                    self.assume_between(product, 0, DIMENSION_LIMIT - 1);
                }
            }
            self.extents[array] = extents;
        }
    }

    fn assume_between(&mut self, value: &Poly, low: i128, high: i128) {
        let above = value.add_constant(-low);
        let below = value.negate().and_then(|negated| negated.add_constant(high));
        for fact in [above, below].into_iter().flatten() {
            if !self.facts.all().contains(&fact) {
                self.facts.assume(fact);
            }
        }
    }
}
