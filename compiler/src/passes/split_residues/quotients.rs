//! Quotients and remainders of sums that are multiples of the divisor, but for a part that is less.

use crate::algebra::Interval;
use crate::analysis::{Affine, Atom, DIMENSION_LIMIT, Polynomial, Ranges};
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::SymbolKind;
use crate::mutants::mutant;
use crate::passes::insert::{before, emitted};

/// Numbers beyond which sums might not fit 64 bits.
const LARGE: i128 = 1 << 62;

/// Whether a polynomial is the number that the device computes: nothing in it is so large that it wraps around.
pub fn is_real(kernel: &Kernel, ranges: &mut Ranges, form: &Polynomial) -> bool {
    let mut size = |atom: &Atom| match atom {
        Atom::Value(value) => {
            let range = ranges.of(kernel, *value);
            range.low.unsigned_abs().max(range.high.unsigned_abs())
        }
        Atom::Symbol(symbol) => match kernel.symbols[*symbol].kind {
            SymbolKind::Dim { .. } => DIMENSION_LIMIT.unsigned_abs().into(),
            _ => u128::MAX,
        },
    };
    let mut all = 0u128;
    for (monomial, factor) in form.terms() {
        let mut term = factor.unsigned_abs();
        for atom in monomial.atoms() {
            term = term.saturating_mul(size(atom));
        }
        all = all.saturating_add(term);
    }
    all < LARGE.unsigned_abs()
}

/// A quotient, or a remainder, by a literal: what is divided, the divisor, and whether it is the remainder.
pub fn divided(kernel: &Kernel, inst: Inst) -> Option<(Value, i64, bool)> {
    let data = &kernel.insts[inst];
    let [dividend, divisor] = data.arguments[..] else { return None };
    let divisor = i64::try_from(kernel.int_of(divisor)?).ok()?;
    let (divisor, is_remainder) = match data.opcode {
        Opcode::Div => (divisor, false),
        Opcode::Rem => (divisor, true),
        Opcode::Shr if (0..32).contains(&divisor) => (1 << divisor, false),
        Opcode::And if (0..1 << 32).contains(&divisor) && (divisor + 1).count_ones() == 1 => {
            (divisor + 1, true)
        }
        _ => return None,
    };
    (divisor > 1).then_some((dividend, divisor, is_remainder))
}

/// Computes quotients and remainders in a block, and inside, without a division where sums say them.
pub fn simplify(kernel: &mut Kernel, block: Block) {
    let mut open = Vec::new();
    kernel.walk(block, &mut |block, inst| {
        if divided(kernel, inst).is_some() {
            open.push((block, inst));
        }
    });
    // One after the other: a sum can have a quotient in it.
    for (block, inst) in open {
        let Some(form) = simpler(kernel, inst) else { continue };
        let result = kernel.insts[inst].results[0];
        let value = before(kernel, block, inst, |emit| emitted(emit, &form));
        if let Some(value) = value.flatten() {
            kernel.replace_uses(result, value);
        }
    }
}

/// What a quotient or remainder is, where its dividend is a multiple of the literal divisor and something from 0 to below it.
fn simpler(kernel: &Kernel, inst: Inst) -> Option<Polynomial> {
    let (dividend, divisor, is_remainder) = divided(kernel, inst)?;
    if kernel.value_type(dividend) != Scalar::I64 {
        return None;
    }
    let form = Affine::new(kernel).form(dividend);
    let mut ranges = Ranges::new(kernel);
    if !is_real(kernel, &mut ranges, &form) {
        return None;
    }
    let divisor = i128::from(divisor);
    let constant = form.constant_term().rem_euclid(divisor);
    let (mut rest, mut bounds) = (Polynomial::constant(constant), Interval::new(constant, constant));
    for (monomial, factor) in form.terms() {
        if factor % divisor == 0 || monomial.atoms().is_empty() {
            continue;
        }
        let [Atom::Value(value)] = monomial.atoms() else { return None };
        rest = rest.add(&Polynomial::atom(Atom::Value(*value)).scale(*factor)?)?;
        bounds = bounds.add(ranges.of(kernel, *value).multiply(Interval::new(*factor, *factor)));
    }
    if bounds.low < 0 || bounds.high >= divisor {
        return None;
    }
    let quotient = form.subtract(&rest)?.divided_exactly(divisor)?;
    // Quotients are rounded toward zero, shifts down.
    let rounds_down = matches!(kernel.insts[inst].opcode, Opcode::Shr | Opcode::And)
        || rest.is_zero()
        || ranges.of(kernel, dividend).low >= 0;
    let rounds_down = mutant!("split_residues: quotients are rounded down", rounds_down, true);
    rounds_down.then_some(if is_remainder { rest } else { quotient })
}
