//! What is known of the sizes of a launch: the kernel's facts, what the launch assumes, and what follows from all of
//! them together.
//!
//! `where w == 2 * h, h % 8 == 0` says that 16 divides `w`; `n <= m, m <= 100` that `n` is at most 100.
//!
//! The host evaluates conditions without wrapping around, so they are facts about integers.

use super::grid::DIMENSION_LIMIT;
use crate::algebra::{self, Atom, Definitions, Interval, Vocabulary};
use crate::ir::entities::{Launch, Symbol};
use crate::ir::kernel::Kernel;
use crate::manifest::{BinaryOp, Expr, SymbolKind, UnaryOp};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

/// Larger powers of two are of no use to anybody.
pub const MOST: u64 = 1 << 20;

/// Steps of one proof: conditions on sizes are short.
const BUDGET: u32 = 40;

/// Of expressions that the host evaluates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Sizes;

impl Vocabulary for Sizes {
    /// A symbol's number.
    type Source = usize;
    /// There is none: what is no arithmetic is not looked into.
    type Operation = ();
}

type Facts = algebra::Facts<Sizes>;
type Key = algebra::Key<Sizes>;
type Polynomial = algebra::Polynomial<Atom>;

/// What is known of the symbols of a kernel, as far as conditions name them.
#[derive(Default)]
pub struct Known {
    facts: Facts,
    definitions: Definitions,
    /// The integer symbols that conditions name, by their definitions, and their own ranges.
    symbols: FxHashMap<usize, (Polynomial, Interval)>,
}

/// Whether an expression may be a polynomial: long ones that compare estimates are none, which is told without a look at each part.
fn is_arithmetic(expr: &Expr) -> bool {
    match expr {
        Expr::Int(_) | Expr::Symbol(_) => true,
        Expr::Unary(op, operand) => *op == UnaryOp::Negate && is_arithmetic(operand),
        Expr::Binary(op, left, right) => {
            use BinaryOp::{Add, CeilDiv, Div, Mul, Rem, Sub};
            matches!(op, Add | Sub | Mul | Div | Rem | CeilDiv) && is_arithmetic(left) && is_arithmetic(right)
        }
        _ => false,
    }
}

/// The largest power of two that divides a number.
pub fn power_of_two(number: u128) -> u64 {
    if number == 0 { MOST } else { (1 << number.trailing_zeros().min(20)).min(MOST) }
}

impl Known {
    /// By the kernel's facts, and what a launch assumes, if one is looked at alone.
    pub fn new(kernel: &Kernel, launch: Option<Launch>) -> Self {
        Self::of(kernel, kernel.conditions(launch).collect())
    }

    /// The same, and by what the code was chosen by: nothing that the code may rely on.
    pub fn of_choices(kernel: &Kernel, launch: Option<Launch>) -> Self {
        let chosen = &kernel.specialization.guard().chosen_by;
        Self::of(kernel, kernel.conditions(launch).chain(chosen).collect())
    }

    /// By the kernel's facts and these conditions.
    pub(super) fn by(kernel: &Kernel, conditions: &[&Expr]) -> Self {
        let facts = kernel.facts.iter().map(|fact| &fact.condition);
        Self::of(kernel, facts.chain(conditions.iter().copied()).collect())
    }

    fn of(kernel: &Kernel, conditions: Vec<&Expr>) -> Self {
        let mut known = Self::default();
        // Equalities first: what they determine is gone from all other facts.
        let mut all = Vec::with_capacity(conditions.len());
        for condition in &conditions {
            let holds = known.consequences(kernel, condition);
            known.definitions.learn(&mut known.facts.atoms, &holds);
            all.push(holds);
        }
        let determined = known.definitions.all();
        for (atom, value) in &determined {
            known.assume_within(value, known.facts.atoms.get(*atom).range);
        }
        for (condition, mut holds) in conditions.into_iter().zip(all) {
            if !determined.is_empty() {
                holds = known.consequences(kernel, condition);
            }
            known.facts.assume_all(&holds);
        }
        for (symbol, (value, range)) in &mut known.symbols {
            let atom = known.facts.atoms.intern(Key::Source(*symbol), *range);
            *value = known.definitions.value(atom);
        }
        known
    }

    fn assume_within(&mut self, value: &Polynomial, range: Interval) {
        let above = value.add_constant(-range.low);
        let below = value.negate().and_then(|negated| negated.add_constant(range.high));
        above.into_iter().chain(below).for_each(|fact| self.facts.assume(fact));
    }

    /// What is at least 0 where a condition holds, by the definitions so far.
    fn consequences(&mut self, kernel: &Kernel, condition: &Expr) -> Vec<Polynomial> {
        let mut found = Vec::new();
        self.add_consequences(kernel, condition, &mut found);
        found
    }

    fn add_consequences(&mut self, kernel: &Kernel, condition: &Expr, found: &mut Vec<Polynomial>) {
        let Expr::Binary(op, left, right) = condition else { return };
        if *op == BinaryOp::And {
            self.add_consequences(kernel, left, found);
            self.add_consequences(kernel, right, found);
        } else if is_arithmetic(left)
            && is_arithmetic(right)
            && let Some(difference) = self.difference(kernel, left, right)
        {
            found.extend(not_negative(*op, &difference));
        }
    }

    /// `right - left`.
    fn difference(&mut self, kernel: &Kernel, left: &Expr, right: &Expr) -> Option<Polynomial> {
        let (left, right) = (self.polynomial(kernel, left)?, self.polynomial(kernel, right)?);
        right.subtract(&left)
    }

    /// An integer expression by what its symbols are.
    fn polynomial(&mut self, kernel: &Kernel, expr: &Expr) -> Option<Polynomial> {
        match expr {
            Expr::Int(value) => Some(Polynomial::constant((*value).into())),
            Expr::Symbol(symbol) => self.symbol(kernel, *symbol),
            Expr::Unary(UnaryOp::Negate, operand) => self.polynomial(kernel, operand)?.negate(),
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.polynomial(kernel, left)?, self.polynomial(kernel, right)?);
                let divisor = right.as_constant().filter(|divisor| *divisor > 0);
                match op {
                    BinaryOp::Add => left.add(&right),
                    BinaryOp::Sub => left.subtract(&right),
                    BinaryOp::Mul => left.multiply(&right),
                    BinaryOp::Div if divisor.is_some() => Some(self.facts.atoms.quotient(&left, &right)),
                    BinaryOp::Rem => {
                        let quotient = self.facts.atoms.quotient(&left, &right);
                        left.add_scaled(&quotient, -divisor?)
                    }
                    BinaryOp::CeilDiv if self.facts.range(&left).low >= 0 => {
                        let raised = left.add_constant(divisor? - 1)?;
                        Some(self.facts.atoms.quotient(&raised, &right))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn symbol(&mut self, kernel: &Kernel, symbol: usize) -> Option<Polynomial> {
        let data = kernel.symbols.get(Symbol::new(symbol)).filter(|data| data.scalar.is_integer())?;
        let mut range = Interval::of(data.scalar);
        if matches!(data.kind, SymbolKind::Dim { .. }) {
            range = range.intersect(Interval::new(0, DIMENSION_LIMIT.into()));
        }
        let atom = self.facts.atoms.intern(Key::Source(symbol), range);
        let value = self.definitions.value(atom);
        self.symbols.entry(symbol).or_insert_with(|| (value.clone(), range));
        Some(value)
    }

    /// Whether no condition says anything about sizes.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// What a symbol can be; none where nothing is known of it.
    pub fn range(&self, symbol: usize) -> Option<Interval> {
        let (value, range) = self.symbols.get(&symbol)?;
        // Facts that cannot all hold say nothing: no launch passes them.
        (!self.facts.is_contradictory()).then(|| self.facts.range(value).intersect(*range))
    }

    /// A power of two that divides a symbol, where one divides each of some others; at least 1.
    pub fn divisor(&self, symbol: usize, supposed: &FxHashMap<usize, u64>) -> u64 {
        let own = |symbol: usize| supposed.get(&symbol).copied().unwrap_or(1);
        let Some((value, _)) = self.symbols.get(&symbol) else { return own(symbol) };
        let of_atom = |atom: &Atom| match &self.facts.atoms.get(*atom).key {
            Key::Source(symbol) => own(*symbol),
            _ => 1,
        };
        let of_terms = value.terms().iter().map(|(monomial, coefficient)| {
            let factors = monomial.atoms().iter().map(of_atom);
            factors.fold(power_of_two(coefficient.unsigned_abs()), u64::saturating_mul).min(MOST)
        });
        of_terms.min().unwrap_or(MOST).max(own(symbol))
    }

    /// Whether a sum of symbols, which wraps around, is the integer that it looks like, and at least 0.
    pub fn is_never_negative(&mut self, kernel: &Kernel, wrapping: &super::Polynomial) -> bool {
        let Some(value) = self.of_symbols(kernel, wrapping) else { return false };
        self.facts.range(&value).high <= i64::MAX.into() && self.facts.proves_within(&value, BUDGET)
    }

    fn of_symbols(&mut self, kernel: &Kernel, polynomial: &super::Polynomial) -> Option<Polynomial> {
        let mut sum = Polynomial::default();
        for (monomial, coefficient) in polynomial.terms() {
            let mut product = Polynomial::constant(*coefficient);
            for atom in monomial.atoms() {
                let super::Atom::Symbol(symbol) = atom else { return None };
                product = product.multiply(&self.symbol(kernel, symbol.index())?)?;
            }
            sum = sum.add(&product)?;
        }
        Some(sum)
    }

    /// Whether a condition holds, whatever the sizes.
    pub fn holds(&mut self, kernel: &Kernel, condition: &Expr) -> bool {
        match condition {
            Expr::Bool(value) => *value,
            Expr::Binary(BinaryOp::And, left, right) => self.holds(kernel, left) && self.holds(kernel, right),
            Expr::Binary(op, left, right) => {
                let Some(difference) = self.difference(kernel, left, right) else { return false };
                let goals = not_negative(*op, &difference);
                !goals.is_empty() && goals.iter().all(|goal| self.facts.proves_within(goal, BUDGET))
            }
            _ => false,
        }
    }
}

/// What is at least 0 if and only if a comparison holds, by its right side less its left one; nothing where it says less.
fn not_negative(op: BinaryOp, difference: &Polynomial) -> Vec<Polynomial> {
    let opposite = difference.negate();
    let found = match op {
        BinaryOp::Equal => vec![Some(difference.clone()), opposite],
        BinaryOp::LessEqual => vec![Some(difference.clone())],
        BinaryOp::Less => vec![difference.add_constant(-1)],
        BinaryOp::GreaterEqual => vec![opposite],
        BinaryOp::Greater => vec![opposite.and_then(|opposite| opposite.add_constant(-1))],
        _ => return Vec::new(),
    };
    found.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default()
}
