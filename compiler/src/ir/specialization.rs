//! The sizes that a kernel is compiled for, and what its passes were told of them.

use crate::manifest::{Expr, Guard, Value};

/// The sizes that a kernel is compiled for. Passes ask by `analysis::ask` whether conditions hold, and cannot read a
/// number: what they answer is a function of the answers alone, and those are the guard.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Specialization {
    /// One a symbol, as far as anything is known. Nothing is known of repeat counters.
    values: Vec<Option<Value>>,
    /// The code must be right for all sizes: no condition holds that is not sure. The values decide what it is chosen by.
    general: bool,
    guard: Guard,
    /// What faster code would have relied on.
    missed: Vec<Expr>,
}

impl Specialization {
    /// For these values of the symbols.
    pub fn for_values(values: Vec<Option<Value>>) -> Self {
        Self { values, ..Self::default() }
    }

    /// For all sizes, as good as can be for these.
    pub fn general(values: Vec<Option<Value>>) -> Self {
        Self { values, general: true, ..Self::default() }
    }

    /// With answers that passes have got before.
    pub(super) fn with_guard(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    pub fn is_general(&self) -> bool {
        self.general
    }

    /// The answers so far.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The values, for the text form.
    pub(crate) fn values(&self) -> &[Option<Value>] {
        &self.values
    }

    /// Whether a condition holds; `None` where it names a symbol of which nothing is known, or overflows.
    pub(crate) fn evaluate(&self, condition: &Expr) -> Option<bool> {
        // What is not known is not looked at.
        let values: Vec<Value> = self.values.iter().map(|value| value.unwrap_or(Value::Int(0))).collect();
        match condition.evaluate(&values) {
            Some(Value::Bool(holds)) if self.knows(condition) => Some(holds),
            _ => None,
        }
    }

    /// Whether the value of each symbol is known that a condition names.
    pub(crate) fn knows(&self, condition: &Expr) -> bool {
        let known = |symbol| self.values.get(symbol).is_some_and(Option::is_some);
        let mut all_known = true;
        condition.each_symbol(&mut |symbol| all_known &= known(symbol));
        all_known
    }

    /// Notes what the code relies on.
    pub(crate) fn relies_on(&mut self, condition: Expr) {
        if !self.guard.relies_on.contains(&condition) {
            self.guard.relies_on.push(condition);
        }
    }

    /// What faster code would have relied on, and does not hold.
    pub fn missed(&self) -> &[Expr] {
        &self.missed
    }

    /// Notes what faster code would have relied on.
    pub(crate) fn misses(&mut self, condition: Expr) {
        if !self.missed.contains(&condition) {
            self.missed.push(condition);
        }
    }

    /// Notes a condition that holds, by which the code was chosen.
    pub(crate) fn chosen_by(&mut self, condition: Expr) {
        if !self.guard.chosen_by.contains(&condition) {
            self.guard.chosen_by.push(condition);
        }
    }
}
