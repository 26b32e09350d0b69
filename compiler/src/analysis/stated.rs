//! A kernel's guard as it is written down: without conditions that others imply.
//!
//! Passes ask as they go, and a later answer is often the sharper one: `cols > 512`, then `cols > 1024`. For the launch
//! both hold where the second one does.

use super::known::Known;
use crate::ir::kernel::Kernel;
use crate::manifest::{Expr, Guard};

/// Operators and operands of a condition that is looked at. Formulas that compare what tiles cost are longer: they imply
/// nothing that is short, and a proof of them takes long.
const MOST_TERMS: usize = 16;

/// The guard that holds for the same sizes, as far as facts hold. What is relied on implies all that the code relies on,
/// whatever it was chosen by.
pub fn stated_guard(kernel: &Kernel) -> Guard {
    let guard = kernel.specialization.guard();
    let relies_on = without_implied(kernel, &[], &guard.relies_on);
    let chosen_by = without_implied(kernel, &relies_on, &guard.chosen_by);
    Guard { relies_on, chosen_by }
}

/// The conditions that neither the given ones nor the others of them imply.
fn without_implied(kernel: &Kernel, given: &[Expr], conditions: &[Expr]) -> Vec<Expr> {
    let mut kept: Vec<&Expr> = conditions.iter().collect();
    let mut at = 0;
    while at < kept.len() {
        let candidate = kept[at];
        let others = kept.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, known)| *known);
        let related = |other: &&Expr| is_short(other) && shares_symbol(candidate, other);
        let others: Vec<&Expr> = given.iter().chain(others).filter(related).collect();
        let implied =
            is_short(candidate) && !others.is_empty() && Known::by(kernel, &others).holds(kernel, candidate);
        match implied {
            true => drop(kept.remove(at)),
            false => at += 1,
        }
    }
    kept.into_iter().cloned().collect()
}

fn is_short(expr: &Expr) -> bool {
    terms(expr) <= MOST_TERMS
}

fn terms(expr: &Expr) -> usize {
    match expr {
        Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) | Expr::Symbol(_) => 1,
        Expr::Unary(_, operand) => 1 + terms(operand),
        Expr::Binary(_, left, right) => 1 + terms(left) + terms(right),
    }
}

fn shares_symbol(one: &Expr, other: &Expr) -> bool {
    let mut symbols = Vec::new();
    one.each_symbol(&mut |symbol| symbols.push(symbol));
    let mut shares = false;
    other.each_symbol(&mut |symbol| shares |= symbols.contains(&symbol));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::kernel::SymbolData;
    use crate::manifest::{BinaryOp, SymbolKind};
    use crate::source::Span;

    /// A kernel of two dimensions with a guard.
    fn stated(relies_on: &[(BinaryOp, Expr, i64)], chosen_by: &[(BinaryOp, Expr, i64)]) -> String {
        let mut kernel =
            crate::ir::builder::KernelBuilder::new("k".to_string(), Span::default()).finish(Vec::new());
        for name in ["m", "n"] {
            kernel.symbols.push(SymbolData {
                name: name.to_string(),
                kind: SymbolKind::Dim { argument: 0, axis: 0, extent: Default::default() },
                scalar: crate::data::Scalar::I64,
            });
        }
        let condition =
            |(op, left, right): &(BinaryOp, Expr, i64)| Expr::binary(*op, left.clone(), Expr::Int(*right));
        relies_on.iter().for_each(|known| kernel.specialization.relies_on(condition(known)));
        chosen_by.iter().for_each(|known| kernel.specialization.chosen_by(condition(known)));
        let guard = stated_guard(&kernel);
        let words = |conditions: &[Expr]| {
            let all: Vec<String> = conditions.iter().map(|known| known.in_words(&["m", "n"])).collect();
            all.join(", ")
        };
        format!("{}; {}", words(&guard.relies_on), words(&guard.chosen_by))
    }

    #[test]
    fn what_others_imply_is_left_out() {
        let (m, n) = (|| Expr::Symbol(0), || Expr::Symbol(1));
        let rest = |value: Expr| Expr::binary(BinaryOp::Rem, value, Expr::Int(4));
        use BinaryOp::{Equal, Greater, GreaterEqual, Less, NotEqual};
        for (relies_on, chosen_by, said) in [
            (
                vec![],
                vec![(NotEqual, n(), 2048), (Greater, n(), 512), (Greater, n(), 1024)],
                "; n != 2048, n > 1024",
            ),
            (vec![(Equal, rest(n()), 0), (Equal, n(), 4096)], vec![(GreaterEqual, n(), 32)], "n == 4096; "),
            // Code relies on what it says, not on what it was chosen by.
            (vec![(GreaterEqual, n(), 32)], vec![(GreaterEqual, n(), 64)], "n >= 32; n >= 64"),
            (vec![(Equal, rest(n()), 0)], vec![(Equal, rest(m()), 0)], "n % 4 == 0; m % 4 == 0"),
            // Of two that say the same one stays.
            (vec![], vec![(Greater, m(), 7), (GreaterEqual, m(), 8), (Less, m(), 100)], "; m >= 8, m < 100"),
        ] {
            assert_eq!(stated(&relies_on, &chosen_by), said);
        }
    }
}
