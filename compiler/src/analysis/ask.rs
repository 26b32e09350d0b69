//! What passes may know of the sizes that a kernel is compiled for: whether conditions hold.
//!
//! Each answer that does not follow from what is known anyway becomes part of the kernel's guard. Code relies on what
//! holds; what does not hold, and what it was merely chosen by, says for which sizes other code would be better.

use super::grid::{GRID_LIMITS, upper_bound};
use super::known::Known;
use crate::ir::entities::Launch;
use crate::ir::kernel::Kernel;
use crate::manifest::{BinaryOp, Expr, Value};

/// Whether conditions hold for the sizes that a kernel is compiled for.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// They hold. The launch may rely on those that were asked for that.
    Yes,
    No,
    /// The plan has to find out by this condition, and may do so in a branch: the counter of a repeat decides, or code
    /// that is right for all sizes asks for what nearly all of them have.
    InPlan(Expr),
}

/// Conditions on sizes, for one decision of a pass.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Conditions {
    /// Where these do not hold the code is not as good as it could be.
    preferred: Vec<Expr>,
    /// Where these do not hold the code is wrong.
    needed: Vec<Expr>,
    /// The same, of what holds nearly always: that an array is not empty, that the hardware has so many blocks.
    expected: Vec<Expr>,
}

impl Conditions {
    /// Of nothing: they hold.
    pub fn new() -> Self {
        Self::default()
    }

    /// And the code is wrong elsewhere. Parts of a conjunction are conditions of their own.
    pub fn needs(mut self, condition: Expr) -> Self {
        add(&mut self.needed, &condition);
        self
    }

    /// And the code is wrong elsewhere, which is nearly nowhere.
    pub fn expects(mut self, condition: Expr) -> Self {
        add(&mut self.expected, &condition);
        self
    }

    /// And the code is worse elsewhere, and right.
    pub fn prefers(mut self, condition: Expr) -> Self {
        add(&mut self.preferred, &condition);
        self
    }

    /// These and others.
    pub fn and(mut self, others: &Self) -> Self {
        others.preferred.iter().for_each(|condition| add(&mut self.preferred, condition));
        others.needed.iter().for_each(|condition| add(&mut self.needed, condition));
        others.expected.iter().for_each(|condition| add(&mut self.expected, condition));
        self
    }

    /// And the code is wrong where an expression is less.
    pub fn needs_at_least(self, value: &Expr, least: i64) -> Self {
        self.needs(Expr::binary(BinaryOp::GreaterEqual, value.clone(), Expr::Int(least)))
    }

    /// And the code is worse where an expression is less.
    pub fn prefers_at_least(self, value: &Expr, least: i64) -> Self {
        self.prefers(Expr::binary(BinaryOp::GreaterEqual, value.clone(), Expr::Int(least)))
    }

    /// And the code is wrong where the hardware has not so many blocks.
    pub fn fits_grid(self, grid: &[Expr; 3]) -> Self {
        let beyond =
            |(count, limit): &(&Expr, i64)| upper_bound(count).is_none_or(|most| most > i128::from(*limit));
        let counts = grid.iter().zip(GRID_LIMITS).filter(beyond);
        counts.fold(self, |conditions, (count, limit)| {
            conditions.expects(Expr::binary(BinaryOp::LessEqual, count.clone(), Expr::Int(limit)))
        })
    }

    /// Whether they never hold, whatever the sizes.
    pub fn are_impossible(&self) -> bool {
        let no = |condition: &Expr| condition.evaluate(&[]) == Some(Value::Bool(false));
        self.all().any(no)
    }

    fn all(&self) -> impl Iterator<Item = &Expr> {
        self.preferred.iter().chain(&self.needed).chain(&self.expected)
    }
}

fn joined<'c>(conditions: impl Iterator<Item = &'c Expr>) -> Expr {
    let all = conditions.cloned().reduce(|left, right| Expr::binary(BinaryOp::And, left, right));
    all.unwrap_or(Expr::Bool(true))
}

fn add(known: &mut Vec<Expr>, condition: &Expr) {
    for part in condition.parts() {
        if !known.contains(part) && *part != Expr::Bool(true) {
            known.push(part.clone());
        }
    }
}

/// Whether conditions hold in a launch. They are asked one by one, and none after the first that does not hold.
pub fn ask(kernel: &mut Kernel, launch: Launch, conditions: &Conditions) -> Answer {
    if conditions.are_impossible() {
        return Answer::No;
    }
    if conditions.all().any(|condition| kernel.names_counter(condition)) {
        return match hold_anyway(kernel, launch, conditions.all()) {
            true => Answer::Yes,
            false => Answer::InPlan(joined(conditions.all())),
        };
    }
    let yes = conditions.preferred.iter().all(|condition| is_preferred(kernel, launch, condition))
        && conditions.needed.iter().all(|condition| may_rely_on(kernel, Some(launch), condition));
    if !yes {
        return Answer::No;
    }
    if kernel.specialization.is_general() {
        return match hold_anyway(kernel, launch, conditions.expected.iter()) {
            true => Answer::Yes,
            false => Answer::InPlan(joined(conditions.expected.iter())),
        };
    }
    match conditions.expected.iter().all(|condition| may_rely_on(kernel, Some(launch), condition)) {
        true => Answer::Yes,
        false => Answer::No,
    }
}

/// Whether a condition on sizes and parameters holds for all that the kernel is compiled for. Parts of a conjunction are
/// asked one by one, and none after the first that does not hold.
pub fn holds(kernel: &mut Kernel, condition: &Expr) -> bool {
    condition.parts().into_iter().all(|part| may_rely_on(kernel, None, part))
}

/// Whether conditions follow from what is known of all sizes.
fn hold_anyway<'c>(kernel: &Kernel, launch: Launch, mut conditions: impl Iterator<Item = &'c Expr>) -> bool {
    let mut known = Known::new(kernel, Some(launch));
    conditions
        .all(|condition| condition.evaluate(&[]) == Some(Value::Bool(true)) || known.holds(kernel, condition))
}

/// In which of the ranges that the edges divide an expression lies: 0 below the first, one more from each on. The edges
/// rise. The last one where a repeat's counter decides, or nothing is known.
pub fn bucket(kernel: &mut Kernel, launch: Launch, expr: &Expr, edges: &[i64]) -> usize {
    let reaches = |edge: &i64| Expr::binary(BinaryOp::GreaterEqual, expr.clone(), Expr::Int(*edge));
    if kernel.names_counter(expr) {
        return edges.len();
    }
    edges.iter().take_while(|edge| is_preferred(kernel, launch, &reaches(edge))).count()
}

/// The value of an expression, if that is one from 0 to `most`, on which code may rely: each has code of its own. `None` too
/// for code that is right for all sizes.
pub fn exact(kernel: &mut Kernel, expr: &Expr, most: i64) -> Option<i64> {
    if kernel.specialization.is_general() || kernel.names_counter(expr) {
        return None;
    }
    let is = |op, number: i64| Expr::binary(op, expr.clone(), Expr::Int(number));
    let mut values = 0..=most;
    let holds = |kernel: &Kernel, condition: &Expr| kernel.specialization.evaluate(condition) == Some(true);
    if let Some(value) = values.find(|value| holds(kernel, &is(BinaryOp::Equal, *value))) {
        kernel.specialization.relies_on(is(BinaryOp::Equal, value));
        return Some(value);
    }
    let outside = [is(BinaryOp::Greater, most), is(BinaryOp::Less, 0)];
    if let Some(other) = outside.into_iter().find(|condition| holds(kernel, condition)) {
        kernel.specialization.chosen_by(other);
    }
    None
}

fn is_preferred(kernel: &mut Kernel, launch: Launch, condition: &Expr) -> bool {
    if let Some(Value::Bool(holds)) = condition.evaluate(&[]) {
        return holds;
    }
    let opposite = condition.negated(compares_integers(kernel, condition));
    let mut known = Known::of_choices(kernel, Some(launch));
    if known.holds(kernel, condition) {
        return true;
    }
    if known.holds(kernel, &opposite) {
        return false;
    }
    // Of sizes of which nothing is known most are large.
    let holds = kernel.specialization.evaluate(condition);
    let holds = holds.or_else(|| (!kernel.specialization.knows(condition)).then_some(true));
    if let Some(holds) = holds {
        let held = if holds { condition.clone() } else { opposite };
        kernel.specialization.chosen_by(held);
    }
    // What overflows would not hold at the launch either.
    holds.unwrap_or(true)
}

fn may_rely_on(kernel: &mut Kernel, launch: Option<Launch>, condition: &Expr) -> bool {
    if let Some(Value::Bool(holds)) = condition.evaluate(&[]) {
        return holds;
    }
    if Known::new(kernel, launch).holds(kernel, condition) {
        return true;
    }
    let opposite = condition.negated(compares_integers(kernel, condition));
    if Known::of_choices(kernel, launch).holds(kernel, &opposite) {
        return false;
    }
    let holds =
        !kernel.specialization.is_general() && kernel.specialization.evaluate(condition) == Some(true);
    match holds {
        true => kernel.specialization.relies_on(condition.clone()),
        false => {
            kernel.specialization.chosen_by(opposite);
            // That a length is another one is no advice.
            if !is_a_length(condition) {
                kernel.specialization.misses(condition.clone());
            }
        }
    }
    holds
}

/// Whether a condition says how long something is, to the element.
fn is_a_length(condition: &Expr) -> bool {
    match condition {
        Expr::Binary(BinaryOp::Equal, left, right) => matches!(**right, Expr::Int(_)) && !has_remainder(left),
        _ => false,
    }
}

fn has_remainder(expr: &Expr) -> bool {
    match expr {
        Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) | Expr::Symbol(_) => false,
        Expr::Unary(_, operand) => has_remainder(operand),
        Expr::Binary(op, left, right) => *op == BinaryOp::Rem || has_remainder(left) || has_remainder(right),
    }
}

/// Whether what a condition compares are integers, of which one is at most another or greater.
fn compares_integers(kernel: &Kernel, expr: &Expr) -> bool {
    match expr {
        Expr::Int(_) => true,
        Expr::Float(_) | Expr::Bool(_) => false,
        Expr::Symbol(symbol) => {
            kernel.symbols.values().nth(*symbol).is_some_and(|symbol| symbol.scalar.is_integer())
        }
        Expr::Unary(_, operand) => compares_integers(kernel, operand),
        Expr::Binary(_, left, right) => compares_integers(kernel, left) && compares_integers(kernel, right),
    }
}
