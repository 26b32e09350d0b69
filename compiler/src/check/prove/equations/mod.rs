//! Whether equations between integers can hold where facts do: the proof that two iterations meet nowhere.
//!
//! The equations say that both iterations touch one element, and what the conditions on their paths say of equality:
//! `(i + j) % 2 == color` in the one and in the other. All numbers are integers without bounds: what wraps around is equal to
//! its exact value but for a multiple of a power of two, an unknown of its own. Five rules make more of the equations,
//! until one of them has no solution, or a fact fails:
//!
//! - *divisibility*: coefficients have a common divisor that the constant has not. Red-black sweeps: `2*q - 2*p + 1 = 0`.
//! - *digits* (`digits.rs`): of `m*a + b = 0` with `-m < b < m` follow `a = 0` and `b = 0`. Butterflies:
//!   `2*j*m + k = 2*p*m + m + q` with `k < m`, `q < m` is `2*j = 2*p + 1` and `k = q`.
//! - *solving* (`system.rs`): an atom of coefficient 1 or -1 is replaced everywhere, also inside of the definitions of other atoms,
//!   so that operations of equal operands are one atom.
//! - *coprime factors* (`system.rs`): of `m*a + c*b = 0`, where `m` and `c` have no common divisor, follow `b = m*t` and
//!   `a = -c*t`. `(i + 3*p) % 5 = (i + 3*j) % 5` is `3*(p - j) = 5*q`, so `p - j` is a multiple of 5.
//! - *definitions* (`definitions.rs`): operations that wrap around, and operations on bits. Of `a`, `b` and `a ^ b` each is
//!   the exclusive or of the other two: from `i = p ^ j` follows `i ^ j = p`.
//!
//! Every equation follows from those before it, so where no rule applies any more, nothing is lost but strength.

mod definitions;
mod digits;
mod exclusive;
mod system;

use super::nonzero::divides_never;
use super::vocabulary::{Facts, Poly};
use system::System;

/// Applications of a rule.
const MAX_STEPS: u32 = 60;

/// Whether the equations cannot all hold where everything that is known does.
pub fn never_hold(facts: &mut Facts, equations: &[Poly], known: &[Poly]) -> bool {
    let mark = facts.mark();
    let never = is_contradictory(&mut System::new(facts, equations, known));
    facts.forget_since(mark);
    never
}

fn is_contradictory(system: &mut System) -> bool {
    for _ in 0..MAX_STEPS {
        system.tidy();
        if system.equations.iter().any(divides_never) {
            return true;
        }
        if !(system.split_digits()
            || system.compare_exclusive()
            || system.solve_one()
            || system.divide_coprime()
            || system.define())
        {
            break;
        }
    }
    system.refuted()
}
