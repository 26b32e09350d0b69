//! Where blocks of a range begin and end, and which of them an element's range ends in.
//!
//! ```text
//! a prefix    first ................ block ........ index + offset         the blocks before it, and what is left
//! a suffix    index + offset .. block ........................ last        what is left, and the blocks behind it
//! ```

use crate::analysis::{Atom, Polynomial};
use crate::ir::kernel::Kernel;
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntityRef;

/// The ranges of all elements: one end moves with an index.
pub struct Range {
    /// Whether it is the lower end that moves.
    pub is_suffix: bool,
    /// Where the range of all terms that there are begins, and what it stays below. The first block begins there.
    pub first: Polynomial,
    pub last: Polynomial,
    /// Where an element stands, counted so that its block is the quotient by the length of a block.
    pub place: Polynomial,
    /// Whether some are below 0.
    pub may_be_below: bool,
    /// What all places stay below.
    pub places: Polynomial,
    /// Whether an empty loop may have terms here all the same.
    pub needs_elements: bool,
}

impl Range {
    /// Of a reduction's range in a loop along an index; `None` where not just one end moves with it, or the host does
    /// not know the rest.
    pub fn of(
        kernel: &Kernel,
        index: Atom,
        ends: [&Polynomial; 2],
        around: [Polynomial; 2],
    ) -> Option<Range> {
        let is_suffix = ends[0].contains(index);
        let [moving, fixed] = if is_suffix { ends } else { [ends[1], ends[0]] };
        let (factor, offset) = moving.split(index)?;
        let is_known = [&offset, fixed, &around[0], &around[1]].iter().all(|form| is_known(kernel, form));
        if factor.as_constant() != Some(1) || !is_known {
            return None;
        }
        let index = Polynomial::atom(index);
        if is_suffix { suffix(&index, offset, fixed, around) } else { prefix(&index, offset, fixed, around) }
    }
}

/// From `first` to the index and an offset.
fn prefix(
    index: &Polynomial,
    offset: Polynomial,
    first: &Polynomial,
    [low, high]: [Polynomial; 2],
) -> Option<Range> {
    let last = high.add(&offset)?.add_constant(-1)?;
    // How many terms the first element has, less one.
    let more = low.add(&offset)?.subtract(first)?.add_constant(-1)?;
    let more = more.as_constant();
    // Blocks end with the last one of an element's own, or right before it where the first element has none.
    let has_none = more == Some(-1);
    let (place, places) = match has_none {
        true => (index.subtract(&low)?, high.subtract(&low)?),
        false => (index.add(&offset)?.subtract(first)?.add_constant(-1)?, last.subtract(first)?),
    };
    Some(Range {
        is_suffix: false,
        first: first.clone(),
        last,
        place,
        may_be_below: !has_none && more.is_none_or(|more| more < 0),
        places,
        needs_elements: more.is_none_or(|more| more > 0),
    })
}

/// From the index and an offset to `last`.
fn suffix(
    index: &Polynomial,
    offset: Polynomial,
    last: &Polynomial,
    [low, high]: [Polynomial; 2],
) -> Option<Range> {
    // How many terms the last element has, less one.
    let more = last.subtract(&high)?.subtract(&offset)?.as_constant();
    Some(Range {
        is_suffix: true,
        first: low.add(&offset)?,
        last: last.clone(),
        place: index.subtract(&low)?,
        may_be_below: false,
        places: high.subtract(&low)?,
        needs_elements: more.is_none_or(|more| more > 0),
    })
}

/// Whether the host knows all that a form is made of.
fn is_known(kernel: &Kernel, form: &Polynomial) -> bool {
    form.atoms().into_iter().all(|atom| match atom {
        Atom::Symbol(_) => true,
        Atom::Value(value) => kernel.symbolic(value).is_some(),
    })
}

/// What the host computes of sizes alone.
pub fn host(form: &Polynomial) -> Option<Expr> {
    let mut sum = Expr::Int(0);
    for (monomial, factor) in form.terms() {
        let mut term = Expr::Int(i64::try_from(*factor).ok()?);
        for atom in monomial.atoms() {
            let Atom::Symbol(symbol) = atom else { return None };
            term = Expr::binary(BinaryOp::Mul, term, Expr::Symbol(symbol.index()));
        }
        sum = if sum == Expr::Int(0) { term } else { Expr::binary(BinaryOp::Add, sum, term) };
    }
    Some(sum)
}
