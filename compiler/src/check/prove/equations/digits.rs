//! Mixed radix: an equation of which two digits can be told apart.

use crate::check::prove::vocabulary::{Atom, Facts, Function, Key, Poly};
use crate::mutants::mutant;

/// Steps for each proof that what is left is less than the modulus.
const BOUND_BUDGET: u32 = 120;
/// Moduli that are tried.
const MAX_MODULI: usize = 10;

/// A quotient whose dividend stands in an equation.
struct Division {
    quotient: Atom,
    dividend: Poly,
    divisor: Poly,
}

/// `[a, b]`, both of which are 0 where `equation` is: it is `m*a + b`, and of `b` is shown that `-m < b < m`.
pub fn split(facts: &mut Facts, known: &[Poly], equation: &Poly) -> Option<[Poly; 2]> {
    let divisions = divisions(facts, known, equation);
    let moduli = moduli(facts, equation, &divisions);
    if moduli.is_empty() {
        return None;
    }
    // First without products, which lead the search far around; most indices have bounds of their own.
    let linear: Vec<Poly> = known.iter().filter(|fact| is_linear(fact)).cloned().collect();
    let mut attempts = vec![linear.as_slice()];
    attempts.extend((linear.len() < known.len()).then_some(known));
    attempts.into_iter().find_map(|assumed| {
        let mark = facts.mark();
        facts.assume_all(assumed);
        let found = moduli.iter().find_map(|modulus| at_modulus(facts, equation, &divisions, modulus));
        facts.forget_since(mark);
        found
    })
}

fn is_linear(poly: &Poly) -> bool {
    poly.terms().iter().all(|(monomial, _)| monomial.degree() <= 1)
}

fn at_modulus(
    facts: &mut Facts,
    equation: &Poly,
    divisions: &[Division],
    modulus: &Poly,
) -> Option<[Poly; 2]> {
    let mut high = equation.divided_by_term(modulus)?;
    // A dividend is its quotient times the modulus, and what remains.
    let mut rest = equation.clone();
    for division in divisions.iter().filter(|division| division.divisor == *modulus) {
        if let Some(times) = times_in(&rest, &division.dividend) {
            rest = rest.add_scaled(&division.dividend, -times)?;
            high = high.add_scaled(&Poly::atom(division.quotient), times)?;
        }
    }
    let low = equation.subtract(&high.multiply(modulus)?)?;
    let mut candidates = vec![(high.clone(), low.clone())];
    if let Some(by) = modulus.as_constant() {
        // The constant may count for either digit.
        for carry in [low.constant_term().div_euclid(by), low.constant_term().div_euclid(by) + 1] {
            let moved = low.add_constant(-carry.checked_mul(by)?)?;
            if carry != 0 {
                candidates.push((high.add_constant(carry)?, moved));
            }
        }
    }
    candidates.into_iter().find_map(|(high, low)| {
        let less =
            !high.is_zero() && is_less(facts, &low, modulus)? && is_less(facts, &low.negate()?, modulus)?;
        less.then_some([high, low])
    })
}

/// Whether `value < modulus`.
fn is_less(facts: &mut Facts, value: &Poly, modulus: &Poly) -> Option<bool> {
    let room = modulus.subtract(value)?.add_constant(mutant!("prove: a digit may be the radix", -1, 0))?;
    Some(facts.proves_within(&room, BOUND_BUDGET))
}

/// The quotients, in the equation and in what is known, whose dividends stand in the equation.
fn divisions(facts: &Facts, known: &[Poly], equation: &Poly) -> Vec<Division> {
    let mut atoms: Vec<Atom> = known.iter().chain([equation]).flat_map(Poly::atoms).collect();
    atoms.sort_unstable();
    atoms.dedup();
    let division = |quotient: Atom| {
        let Key::Apply(Function::Quotient, arguments) = &facts.atoms.get(quotient).key else { return None };
        let [dividend, divisor] = arguments.as_slice() else { return None };
        let one_term = matches!(divisor.terms(), [(_, 1..)]);
        let stands = one_term && times_in(equation, dividend).is_some();
        stands.then(|| Division { quotient, dividend: dividend.clone(), divisor: divisor.clone() })
    };
    atoms.into_iter().filter_map(division).collect()
}

/// How often `part` stands in `whole`, constants apart.
fn times_in(whole: &Poly, part: &Poly) -> Option<i128> {
    let mut terms = part.terms().iter().filter(|(monomial, _)| monomial.degree() > 0);
    let (first, factor) = terms.next()?;
    let times = whole.coefficient(first).checked_div(*factor)?;
    let all = part
        .terms()
        .iter()
        .filter(|(monomial, _)| monomial.degree() > 0)
        .all(|(monomial, factor)| factor.checked_mul(times) == Some(whole.coefficient(monomial)));
    (times != 0 && all).then_some(times)
}

/// What may be the radix: what quotients divide by, a factor of a product, a coefficient.
fn moduli(facts: &Facts, equation: &Poly, divisions: &[Division]) -> Vec<Poly> {
    let mut moduli: Vec<Poly> = divisions.iter().map(|division| division.divisor.clone()).collect();
    for (monomial, coefficient) in equation.terms() {
        if monomial.degree() >= 2 {
            for atom in monomial.atoms() {
                let factor = Poly::atom(*atom);
                let content = equation.divided_by_term(&factor).map_or(1, |of| of.content());
                let scaled = [Some(factor.clone()), factor.scale(content), factor.scale(coefficient.abs())];
                moduli.extend(scaled.into_iter().flatten());
            }
        } else if monomial.degree() == 1 && coefficient.abs() > 1 {
            moduli.push(Poly::constant(coefficient.abs()));
        }
    }
    let mut distinct: Vec<Poly> = Vec::new();
    for modulus in moduli {
        let positive = facts.range(&modulus).high >= 1;
        if positive && !modulus.is_zero() && !distinct.contains(&modulus) && distinct.len() < MAX_MODULI {
            distinct.push(modulus);
        }
    }
    distinct
}
