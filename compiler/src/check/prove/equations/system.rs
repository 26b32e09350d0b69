//! Equations and facts, solved step by step.

use super::digits;
use super::exclusive::{self, Exclusive};
use crate::check::prove::digits::whole;
use crate::check::prove::nonzero::never_zero;
use crate::check::prove::vocabulary::{Atom, Facts, Function, Interval, Key, Poly};
use crate::mutants::mutant;
use rustc_hash::{FxHashMap, FxHashSet};

/// Equations that are kept.
const MAX_EQUATIONS: usize = 40;
/// Exclusive ors of which pairs are compared.
const MAX_EXCLUSIVE: usize = 8;
/// Steps for each attempt to refute one fact.
const REFUTE_BUDGET: u32 = 40;
/// Steps for the proof that an inequality of a remainder is an equality.
const EQUALITY_BUDGET: u32 = 40;

pub struct System<'a> {
    pub facts: &'a mut Facts,
    /// All 0.
    pub equations: Vec<Poly>,
    /// All at least 0.
    pub known: Vec<Poly>,
    pub exclusive: Vec<Exclusive>,
    /// Atoms whose definitions are among the equations, or were.
    pub defined: FxHashSet<Atom>,
    /// Equations of which no digits could be told apart.
    whole: FxHashSet<Poly>,
}

impl<'a> System<'a> {
    pub fn new(facts: &'a mut Facts, equations: &[Poly], known: &[Poly]) -> Self {
        let mut system = System {
            facts,
            equations: equations.to_vec(),
            known: known.to_vec(),
            exclusive: Vec::new(),
            defined: FxHashSet::default(),
            whole: FxHashSet::default(),
        };
        let mark = system.facts.mark();
        system.facts.assume_all(known);
        system.learn_equalities();
        system.facts.forget_since(mark);
        // Before anything is replaced: of bits more is known than of numbers.
        system.define_bits();
        system.compare_quotients();
        system
    }

    /// Quotients that are one number in two ways: `t / (h * w)` and `t / w / h`.
    fn compare_quotients(&mut self) {
        let mut quotients = Vec::new();
        for poly in self.equations.iter().chain(&self.known) {
            self.facts.atoms.any(poly, &mut |atom, key| {
                if matches!(key, Key::Apply(Function::Quotient, _)) {
                    quotients.push(atom);
                }
                false
            });
        }
        quotients.sort_unstable();
        quotients.dedup();
        let known: Vec<_> = quotients.iter().map(|atom| whole(self.facts, *atom)).collect();
        for (at, atom) in quotients.iter().enumerate() {
            let same = known[..at].iter().position(|other| known[at].is_some() && *other == known[at]);
            if let Some(other) = same {
                self.equations.extend(Poly::atom(*atom).subtract(&Poly::atom(quotients[other])));
            }
        }
    }

    /// Facts that are equalities: those that can be at most 0.
    fn learn_equalities(&mut self) {
        let all = self.facts.all().to_vec();
        for (at, fact) in all.iter().enumerate() {
            let Some(negated) = fact.negate() else { continue };
            // Of two facts that make an equality, the first one.
            if all[..at].contains(&negated) {
                continue;
            }
            if all[at + 1..].contains(&negated)
                || self.facts.range(&negated).low >= 0
                || self.is_of_remainder(fact)
                    && mutant!(
                        "prove: an inequality is an equality",
                        self.facts.proves_within(&negated, EQUALITY_BUDGET),
                        true
                    )
            {
                self.equations.push(fact.clone());
            }
        }
    }

    /// Whether a quotient by a number stands in the fact beside what it divides: `i - 2*(i / 2) >= 1`.
    fn is_of_remainder(&self, fact: &Poly) -> bool {
        fact.atoms().into_iter().any(|atom| match &self.facts.atoms.get(atom).key {
            Key::Apply(Function::Quotient, arguments) => {
                let dividend = arguments[0].atoms();
                arguments[1].as_constant().is_some()
                    && dividend.first().is_some_and(|first| fact.contains(*first))
            }
            _ => false,
        })
    }

    /// Divides what can be divided, and leaves out what says nothing.
    pub fn tidy(&mut self) {
        let mut seen = FxHashSet::default();
        for equation in &mut self.equations {
            if let Some(divided) = equation.divided_exactly(equation.content()) {
                *equation = divided;
            }
        }
        self.equations.retain(|equation| !equation.is_zero() && seen.insert(equation.clone()));
        self.equations.truncate(MAX_EQUATIONS);
    }

    /// Replaces an equation by two that say the same.
    pub fn split_digits(&mut self) -> bool {
        for at in 0..self.equations.len() {
            if self.whole.contains(&self.equations[at]) {
                continue;
            }
            let equation = self.equations[at].clone();
            if let Some([high, low]) = digits::split(self.facts, &self.known, &equation) {
                self.equations[at] = high;
                self.equations.push(low);
                return true;
            }
            self.whole.insert(equation);
        }
        false
    }

    /// Adds what follows of exclusive ors with equal members; whether that is anything new.
    pub fn compare_exclusive(&mut self) -> bool {
        self.exclusive.truncate(MAX_EXCLUSIVE);
        let before = self.equations.len();
        for mut equation in exclusive::consequences(&self.exclusive) {
            if let Some(divided) = equation.divided_exactly(equation.content()) {
                equation = divided;
            }
            let is_known = |one: &Poly| *one == equation || equation.negate().as_ref() == Some(one);
            if !self.equations.iter().any(is_known) {
                self.equations.push(equation);
            }
        }
        self.equations.len() > before
    }

    /// Uses an equation with an atom of coefficient 1 or -1 to remove that atom everywhere.
    pub fn solve_one(&mut self) -> bool {
        let best = (0..self.equations.len())
            .filter_map(|at| {
                self.unit_atom(&self.equations[at]).map(|(rank, atom, sign)| (rank, at, atom, sign))
            })
            .min_by_key(|(rank, at, ..)| (*rank, *at));
        let Some((_, at, atom, sign)) = best else { return false };
        let equation = self.equations.remove(at);
        // equation = sign * atom + rest = 0
        let value = equation.add_scaled(&Poly::atom(atom), -sign).and_then(|rest| rest.scale(-sign));
        let Some(value) = value else { return true };
        self.keep_bounds(atom, &value);
        self.replace(atom, value);
        true
    }

    /// Replaces an equation `m*a + c*b = 0` by `b = m*t` and `a = -c*t`, where `m` and `c` have no common divisor.
    pub fn divide_coprime(&mut self) -> bool {
        for at in 0..self.equations.len() {
            let mut moduli: Vec<i128> =
                self.equations[at].terms().iter().map(|(_, factor)| factor.abs()).collect();
            moduli.sort_unstable();
            moduli.dedup();
            let parts = |modulus: &i128| coprime_parts(&self.equations[at], *modulus);
            let Some((modulus, [a, factor, b])) = moduli.iter().find_map(|m| Some((*m, parts(m)?))) else {
                continue;
            };
            let times = Poly::atom(self.facts.atoms.name(Interval::ALL));
            let (Some(whole), Some(factor)) = (times.scale(-modulus), times.multiply(&factor)) else {
                continue;
            };
            if let (Some(b), Some(a)) = (b.add(&whole), a.add(&factor)) {
                self.equations[at] = b;
                self.equations.push(a);
                return true;
            }
        }
        false
    }

    /// What is known of an atom by itself holds of what replaces it.
    fn keep_bounds(&mut self, atom: Atom, value: &Poly) {
        let range = self.facts.atom_range(atom);
        let mut bounds = Vec::new();
        if !range.is_open_below() {
            bounds.push(value.add_constant(-range.low));
        }
        if !range.is_open_above() {
            bounds.push(value.negate().and_then(|negated| negated.add_constant(range.high)));
        }
        if let Key::Apply(Function::Quotient, arguments) = &self.facts.atoms.get(atom).key
            && let Some(by @ 1..) = arguments[1].as_constant()
        {
            // The remainder has the sign of what is divided, and is less than the divisor.
            let remainder = arguments[0].add_scaled(value, -by);
            bounds.push(remainder.as_ref().and_then(|remainder| remainder.add_constant(by - 1)));
            bounds.push(remainder.and_then(|remainder| remainder.negate()?.add_constant(by - 1)));
        }
        self.known.extend(bounds.into_iter().flatten());
    }

    /// What the arithmetic gives up on is left out: nothing has to be known.
    fn replace(&mut self, atom: Atom, value: Poly) {
        let replacement = FxHashMap::from_iter([(atom, value)]);
        let atoms = &mut self.facts.atoms;
        let mut replaced = |list: &mut Vec<Poly>| {
            *list = list.iter().filter_map(|poly| atoms.substitute(poly, &replacement)).collect();
        };
        replaced(&mut self.equations);
        replaced(&mut self.known);
        self.exclusive.retain_mut(|triple| {
            let members = triple.members.each_ref().map(|member| atoms.substitute(member, &replacement));
            let [Some(x), Some(y), Some(z)] = members else { return false };
            triple.members = [x, y, z];
            true
        });
    }

    /// The atom to solve for, and how well it suits: it stands alone with coefficient 1 or -1, and is a name rather than
    /// something of which more is known; nothing else in the equation is made of it.
    fn unit_atom(&self, equation: &Poly) -> Option<(u8, Atom, i128)> {
        let atoms = &self.facts.atoms;
        let unit = equation.terms().iter().filter_map(|(monomial, coefficient)| match *monomial.atoms() {
            [atom] if coefficient.abs() == 1 => Some((atom, *coefficient)),
            _ => None,
        });
        unit.filter_map(|(atom, sign)| {
            let rest = equation.add_scaled(&Poly::atom(atom), -sign)?;
            if rest.contains(atom) {
                return None;
            }
            let rank = match &atoms.get(atom).key {
                _ if atoms.any(&rest, &mut |one, _| one == atom) => 3,
                Key::Name(_) => 0,
                Key::Apply(..) => 1,
                // Facts from outside speak of it.
                Key::Source(_) => 2,
            };
            Some((rank, atom, sign))
        })
        .min_by_key(|(rank, ..)| *rank)
    }

    /// Whether what is left contradicts the facts.
    pub fn refuted(&mut self) -> bool {
        self.facts.assume_all(&self.known);
        if self.facts.is_contradictory() {
            return true;
        }
        for equation in &self.equations {
            if never_zero(self.facts, equation) {
                return true;
            }
        }
        for equation in &self.equations {
            self.facts.assume(equation.clone());
            equation.negate().into_iter().for_each(|negated| self.facts.assume(negated));
        }
        let refuting = self.known.iter().filter_map(|fact| fact.negate()?.add_constant(-1));
        let refuting: Vec<Poly> = refuting.collect();
        refuting.iter().any(|fact| {
            self.facts.is_contradictory()
                || self.facts.proves_within(
                    &mutant!("prove: facts may fail", fact.clone(), fact.add_constant(1).unwrap_or_default()),
                    REFUTE_BUDGET,
                )
        })
    }
}

/// `a`, `c` and `b` of `m*a + c*b`, where the coefficients have no common divisor, so `m` and `c` have none either; `None`
/// where `c` is 1, which is solved otherwise.
fn coprime_parts(equation: &Poly, modulus: i128) -> Option<[Poly; 3]> {
    if modulus < 2 || equation.content() != 1 {
        return None;
    }
    let a = equation.divided_by_term(&Poly::constant(modulus))?;
    let rest = equation.add_scaled(&a, -modulus)?;
    let factor = rest.content();
    let b = (factor > 1).then(|| rest.divided_exactly(factor))??;
    Some([a, Poly::constant(factor), b])
}
