//! What is known at a place of a kernel, and the search that proves `g >= 0` from it.
//!
//! Facts are polynomials that are at least 0, kept as a stack: entering a loop or a branch pushes, leaving
//! pops. Each also tightens the ranges of the atoms in it; a trail undoes that.
//!
//! # The search
//!
//! Goal-directed elimination. A goal that interval arithmetic cannot settle has an atom `x` whose term drags
//! it down (or, if none does, one whose lower bound is not yet used). Write the goal as `q*x + s`; a fact `a*x + r >= 0` with `a`
//! of the sign of `q` gives `|a|*g = |q|*f + rest`, so `rest >= 0` suffices; and as `g` is an integer,
//! `rest >= -(|a| - 1)` does. `q` may be a polynomial of known sign: that is the product rule by which
//! `i <= m - 1` and `k >= 0` prove `i*k + k <= m*k`. Quotients are eliminated by their defining
//! inequalities, choices by cases, products of atoms also as a whole. The number of steps is bounded: the
//! answer "not proved" is always allowed.

use super::atoms::{Atom, Atoms, Function, Key, Vocabulary, range_with, term_range_with};
use super::interval::Interval;
use super::polynomial::{Monomial, Polynomial};
use rustc_hash::FxHashMap;

type Poly = Polynomial<Atom>;

/// Steps of one search.
const BUDGET: u32 = 400;
/// Eliminations in a row.
const MAX_DEPTH: u32 = 14;

/// An operation of which no two values in the range are equal, but for equal arguments.
pub struct Injective<V: Vocabulary> {
    pub operation: V::Operation,
    pub low: Poly,
    /// Exclusive.
    pub high: Poly,
}

/// Where the stack of facts stood.
#[derive(Clone, Copy)]
pub struct Mark {
    facts: usize,
    trail: usize,
    contradiction: bool,
}

#[derive(Default)]
pub struct Facts<V: Vocabulary> {
    pub atoms: Atoms<V>,
    list: Vec<Poly>,
    /// Ranges tighter than an atom's own.
    ranges: FxHashMap<Atom, Interval>,
    /// Ranges to restore.
    trail: Vec<(Atom, Option<Interval>)>,
    /// The facts cannot all hold: this place is never reached.
    contradiction: bool,
    /// Operations whose values are known to differ.
    pub injective: Vec<Injective<V>>,
}

impl<V: Vocabulary> Facts<V> {
    pub fn mark(&self) -> Mark {
        Mark { facts: self.list.len(), trail: self.trail.len(), contradiction: self.contradiction }
    }

    /// Forgets everything assumed since `mark`.
    pub fn forget_since(&mut self, mark: Mark) {
        self.list.truncate(mark.facts);
        for (atom, range) in self.trail.drain(mark.trail..).rev() {
            match range {
                Some(range) => self.ranges.insert(atom, range),
                None => self.ranges.remove(&atom),
            };
        }
        self.contradiction = mark.contradiction;
    }

    /// The facts assumed since `mark`.
    pub fn since(&self, mark: Mark) -> &[Poly] {
        &self.list[mark.facts..]
    }

    pub fn all(&self) -> &[Poly] {
        &self.list
    }

    /// Whether what is known cannot all hold.
    pub fn is_contradictory(&self) -> bool {
        self.contradiction
    }

    pub fn atom_range(&self, atom: Atom) -> Interval {
        self.ranges.get(&atom).copied().unwrap_or(self.atoms.get(atom).range)
    }

    /// Bounds from what is known of each atom by itself.
    pub fn range(&self, poly: &Poly) -> Interval {
        range_with(poly, |atom| self.atom_range(atom))
    }

    fn term_range(&self, monomial: &Monomial<Atom>, coefficient: i128) -> Interval {
        term_range_with(monomial, coefficient, |atom| self.atom_range(atom))
    }

    pub fn assume_all(&mut self, facts: &[Poly]) {
        for fact in facts {
            self.assume(fact.clone());
        }
    }

    /// Takes `fact >= 0` for true.
    pub fn assume(&mut self, fact: Poly) {
        let fact = fact.tightened();
        if let Some(value) = fact.as_constant() {
            self.contradiction |= value < 0;
            return;
        }
        if self.range(&fact).low >= 0 {
            return;
        }
        self.tighten(&fact);
        self.list.push(fact);
    }

    fn tighten(&mut self, fact: &Poly) {
        for (monomial, coefficient) in fact.terms() {
            if monomial.degree() == 0 {
                continue;
            }
            // coefficient * monomial >= -rest, and rest is at most `most`.
            let mut rest = Interval::new(0, 0);
            for (other, value) in fact.terms() {
                if other != monomial {
                    rest = rest.add(self.term_range(other, *value));
                }
            }
            if rest.is_open_above() {
                continue;
            }
            let most = rest.high;
            if let [atom] = *monomial.atoms() {
                let range = self.atom_range(atom);
                let tighter = if *coefficient > 0 {
                    // Rounded up: -floor(most / coefficient).
                    Interval::new(range.low.max(-most.div_euclid(*coefficient)), range.high)
                } else {
                    Interval::new(range.low, range.high.min(most.div_euclid(-*coefficient)))
                };
                self.set_range(atom, tighter);
            } else if *coefficient > 0
                && most < 0
                && monomial.atoms().iter().all(|atom| self.atom_range(*atom).low >= 0)
            {
                // A product of non-negative factors that is positive: each factor is.
                for atom in monomial.atoms() {
                    let range = self.atom_range(*atom);
                    self.set_range(*atom, Interval::new(range.low.max(1), range.high));
                }
            }
        }
    }

    fn set_range(&mut self, atom: Atom, range: Interval) {
        if range != self.atom_range(atom) {
            self.trail.push((atom, self.ranges.insert(atom, range)));
            self.contradiction |= range.low > range.high;
        }
    }

    /// Whether `goal >= 0` follows.
    pub fn proves(&mut self, goal: &Poly) -> bool {
        self.proves_within(goal, BUDGET)
    }

    /// The same, giving up after `budget` steps.
    pub fn proves_within(&mut self, goal: &Poly, budget: u32) -> bool {
        let mut budget = budget;
        self.search(goal.clone(), 0, &mut budget)
    }

    /// Whether `left <= right` follows.
    pub fn proves_at_most(&mut self, left: &Poly, right: &Poly) -> bool {
        right.subtract(left).is_some_and(|goal| self.proves(&goal))
    }

    fn search(&mut self, goal: Poly, depth: u32, budget: &mut u32) -> bool {
        let goal = goal.tightened();
        if self.contradiction || self.range(&goal).low >= 0 {
            return true;
        }
        if goal.as_constant().is_some() || depth >= MAX_DEPTH || *budget == 0 {
            return false;
        }
        *budget -= 1;
        if self.eliminate_product(&goal, depth, budget) {
            return true;
        }
        let pivots = self.pivots(&goal);
        pivots.into_iter().take(4).any(|pivot| self.eliminate(&goal, pivot, depth, budget))
    }

    /// Which atoms to eliminate, latest first: those of the terms that may be negative, and quotients, whose
    /// bounds tie them to what they divide. If nothing but the constant drags, everything: a better lower
    /// bound of any atom may do.
    fn pivots(&self, goal: &Poly) -> Vec<Atom> {
        let is_quotient =
            |atom: &Atom| matches!(self.atoms.get(*atom).key, Key::Apply(Function::Quotient, _));
        let mut pivots: Vec<Atom> = Vec::new();
        for (monomial, coefficient) in goal.terms() {
            if monomial.degree() > 0 && self.term_range(monomial, *coefficient).low < 0 {
                pivots.extend(monomial.atoms());
            } else {
                pivots.extend(monomial.atoms().iter().copied().filter(is_quotient));
            }
        }
        if pivots.is_empty() {
            return goal.atoms();
        }
        pivots.sort_unstable_by(|a, b| b.cmp(a));
        pivots.dedup();
        pivots
    }

    /// Removes a harmful product of atoms by a fact that bounds that product.
    fn eliminate_product(&mut self, goal: &Poly, depth: u32, budget: &mut u32) -> bool {
        for (monomial, coefficient) in goal.terms() {
            if monomial.degree() < 2 {
                continue;
            }
            for at in (0..self.list.len()).rev() {
                let fact = &self.list[at];
                let by = fact.coefficient(monomial);
                if by.signum() != coefficient.signum() {
                    continue;
                }
                let rest = goal
                    .scale(by.abs())
                    .and_then(|scaled| scaled.add_scaled(fact, -coefficient.abs()))
                    .and_then(|rest| rest.add_constant(by.abs() - 1));
                if let Some(rest) = rest
                    && self.search(rest, depth + 1, budget)
                {
                    return true;
                }
            }
        }
        false
    }

    fn eliminate(&mut self, goal: &Poly, pivot: Atom, depth: u32, budget: &mut u32) -> bool {
        if let Key::Apply(Function::Choice { then }, arguments) = &self.atoms.get(pivot).key {
            let (then, arguments) = (*then as usize, arguments.clone());
            return self.split_cases(goal, pivot, then, &arguments, depth, budget);
        }
        let Some((factor, rest)) = goal.split(pivot) else { return false };
        let Some(sign) = self.sign(&factor, depth, budget) else { return false };
        if let Key::Apply(Function::Quotient, arguments) = &self.atoms.get(pivot).key {
            let (dividend, divisor) = (arguments[0].clone(), arguments[1].clone());
            if self.eliminate_quotient(&factor, &rest, sign, &dividend, &divisor, depth, budget) {
                return true;
            }
        }
        let Some(size) = factor.scale(sign) else { return false };
        // First by what speaks of the goal's own atoms: others lead away from it, and often round in a circle.
        let known = goal.atoms();
        let (near, far): (Vec<usize>, Vec<usize>) = (0..self.list.len())
            .rev()
            .filter(|at| self.list[*at].contains(pivot))
            .partition(|at| self.list[*at].atoms().iter().all(|atom| known.contains(atom)));
        for at in near.into_iter().chain(far) {
            let fact = &self.list[at];
            let Some((by, _)) = fact.split(pivot) else { continue };
            let reduced = if let Some(by) = by.as_constant() {
                if by.signum() != sign {
                    continue;
                }
                size.multiply(fact)
                    .and_then(|product| goal.scale(by.abs())?.subtract(&product)?.add_constant(by.abs() - 1))
            } else if let Some((up, down)) = factor.ratio(&by)
                && up > 0
            {
                goal.scale(down).and_then(|scaled| scaled.add_scaled(fact, -up)?.add_constant(down - 1))
            } else {
                continue;
            };
            if let Some(reduced) = reduced
                && self.search(reduced, depth + 1, budget)
            {
                return true;
            }
        }
        // The atom's own range.
        let range = self.atom_range(pivot);
        let end = if sign > 0 {
            (!range.is_open_below()).then_some(range.low)
        } else {
            (!range.is_open_above()).then_some(range.high)
        };
        let Some(end) = end else { return false };
        let reduced = factor.scale(end).and_then(|term| rest.add(&term));
        reduced.is_some_and(|reduced| self.search(reduced, depth + 1, budget))
    }

    /// 1 or -1 where the polynomial is known to be at least 0 or at most 0.
    fn sign(&mut self, factor: &Poly, depth: u32, budget: &mut u32) -> Option<i128> {
        let range = self.range(factor);
        if range.low >= 0 {
            return Some(1);
        }
        if range.high <= 0 {
            return Some(-1);
        }
        let deeper = (depth + 4).min(MAX_DEPTH);
        if self.search(factor.clone(), deeper, budget) {
            return Some(1);
        }
        let negated = factor.negate()?;
        self.search(negated, deeper, budget).then_some(-1)
    }

    /// `factor * (dividend / divisor) + rest >= 0`, for a divisor that is at least 1, by
    /// `dividend - divisor + 1 <= divisor * quotient <= dividend` (for a dividend that may be negative:
    /// `dividend + divisor - 1`).
    #[allow(clippy::too_many_arguments)]
    fn eliminate_quotient(
        &mut self,
        factor: &Poly,
        rest: &Poly,
        sign: i128,
        dividend: &Poly,
        divisor: &Poly,
        depth: u32,
        budget: &mut u32,
    ) -> bool {
        let deeper = (depth + 4).min(MAX_DEPTH);
        let positive = divisor.add_constant(-1).is_some_and(|goal| self.search(goal, deeper, budget));
        if !positive {
            return false;
        }
        let bound = if sign > 0 {
            dividend.subtract(divisor).and_then(|bound| bound.add_constant(1))
        } else if self.search(dividend.clone(), deeper, budget) {
            Some(dividend.clone())
        } else {
            dividend.add(divisor).and_then(|bound| bound.add_constant(-1))
        };
        let Some(bound) = bound else { return false };
        // Where the factor is a multiple of the divisor, the product is bounded as it stands.
        if let Some((up, 1)) = factor.ratio(divisor) {
            let direct = bound.scale(up).and_then(|term| rest.add(&term));
            return direct.is_some_and(|direct| self.search(direct, depth + 1, budget));
        }
        // divisor * goal >= divisor * rest + factor * bound, and goal is an integer.
        let scaled = factor
            .multiply(&bound)
            .and_then(|term| divisor.multiply(rest)?.add(&term)?.add(divisor)?.add_constant(-1));
        scaled.is_some_and(|scaled| self.search(scaled, depth + 1, budget))
    }

    fn split_cases(
        &mut self,
        goal: &Poly,
        pivot: Atom,
        then: usize,
        arguments: &[Poly],
        depth: u32,
        budget: &mut u32,
    ) -> bool {
        let cases = [(&arguments[0], &arguments[2..2 + then]), (&arguments[1], &arguments[2 + then..])];
        cases.into_iter().all(|(value, facts)| {
            let replaced = goal.substitute(&mut |atom| (atom == pivot).then(|| value.clone()));
            let Some(replaced) = replaced else { return false };
            let mark = self.mark();
            self.assume_all(facts);
            let proved = self.search(replaced, depth + 1, budget);
            self.forget_since(mark);
            proved
        })
    }
}
