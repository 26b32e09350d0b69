//! Quotients and remainders of sums that are multiples of the divisor, but for a constant.

use super::classes::before;
use crate::analysis::{Affine, Atom, DIMENSION_LIMIT, Polynomial, Ranges};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::{Expr, SymbolKind};
use crate::mutants::mutant;
use cranelift_entity::EntityRef;

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

/// Computes quotients and remainders in a block, and inside, without a division where sums say them.
pub fn simplify(kernel: &mut Kernel, block: Block) {
    let mut open = Vec::new();
    kernel.walk(block, &mut |block, inst| {
        if matches!(kernel.insts[inst].opcode, Opcode::Div | Opcode::Rem) {
            open.push((block, inst));
        }
    });
    // One after the other: a sum can have a quotient in it.
    for (block, inst) in open {
        let Some(form) = simpler(kernel, inst) else { continue };
        let result = kernel.insts[inst].results[0];
        let value = before(kernel, block, inst, |emit| emitted(emit, &form));
        if let Some(value) = value {
            kernel.replace_uses(result, value);
        }
    }
}

/// What a quotient or remainder is, where its dividend is a multiple of the literal divisor plus a constant.
fn simpler(kernel: &Kernel, inst: Inst) -> Option<Polynomial> {
    let data = &kernel.insts[inst];
    let [dividend, divisor] = data.arguments[..] else { return None };
    let divisor = kernel.int_of(divisor).filter(|divisor| *divisor > 0)?;
    if kernel.value_type(dividend) != Scalar::I64 {
        return None;
    }
    let form = Affine::new(kernel).form(dividend);
    let mut ranges = Ranges::new(kernel);
    if !is_real(kernel, &mut ranges, &form) {
        return None;
    }
    let rest = form.constant_term().rem_euclid(divisor);
    let quotient = form.add_constant(-rest)?.divided_exactly(divisor)?;
    // Quotients are rounded toward zero.
    let is_rounded_down = rest == 0 || ranges.of(kernel, dividend).low >= 0;
    let is_rounded_down = mutant!("split_residues: quotients are rounded down", is_rounded_down, true);
    is_rounded_down.then(|| if data.opcode == Opcode::Div { quotient } else { Polynomial::constant(rest) })
}

/// Emits a polynomial; `None` where a number in it is too large.
pub fn emitted(emit: &mut Emit<'_>, form: &Polynomial) -> Option<Value> {
    let factors = form.terms().iter().map(|(_, factor)| i64::try_from(*factor).ok());
    let factors: Vec<i64> = factors.collect::<Option<_>>()?;
    let mut sum = emit.int(0);
    for ((monomial, _), factor) in form.terms().iter().zip(factors) {
        let mut product = emit.int(1);
        for atom in monomial.atoms() {
            let value = match atom {
                Atom::Value(value) => *value,
                Atom::Symbol(symbol) => emit.expression(&Expr::Symbol(symbol.index())),
            };
            product = emit.mul(product, value);
        }
        sum = match factor {
            -1 => emit.sub(sum, product),
            factor => {
                let term = emit.mul_int(product, factor);
                emit.add(sum, term)
            }
        };
    }
    Some(sum)
}
