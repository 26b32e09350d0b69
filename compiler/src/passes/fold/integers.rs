//! Rules on integers; they wrap, so all of these hold for every value.

use super::simpler::{Operand, Simpler};
use crate::analysis::Ranges;
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Constant, Opcode};
use crate::ir::wrap;
use crate::mutants::mutant;

/// Operations that are looked through for what the lowest bits are.
const DEPTH: usize = 6;

/// A simpler equal of an instruction with integer operands.
pub fn simpler(kernel: &Kernel, inst: Inst, ranges: &mut Ranges) -> Option<Simpler> {
    let data = &kernel.insts[inst];
    let opcode = data.opcode;
    let [a, b] = data.arguments[..] else { return unary(kernel, opcode, &data.arguments) };
    let ty = kernel.value_type(a);
    let zero = Simpler::Constant(Constant::Int(ty, 0));
    if a == b {
        match opcode {
            Opcode::Sub | Opcode::Xor => return Some(zero),
            Opcode::Min | Opcode::Max | Opcode::And | Opcode::Or => return Some(Simpler::Value(a)),
            Opcode::Eq | Opcode::Le | Opcode::Ge => return Some(Simpler::Constant(Constant::Bool(true))),
            Opcode::Ne | Opcode::Lt | Opcode::Gt => return Some(Simpler::Constant(Constant::Bool(false))),
            _ => {}
        }
    }
    if kernel.int_of(a).is_some() {
        if commutes(opcode) {
            // Literals stand to the right, where the other rules look.
            return Some(Simpler::Inst(opcode, vec![Operand::Value(b), Operand::Value(a)]));
        }
        if kernel.int_of(a) == Some(0)
            && matches!(opcode, Opcode::Div | Opcode::Rem | Opcode::Shl | Opcode::Shr)
        {
            return Some(zero);
        }
    }
    if let Some(literal) = kernel.int_of(b)
        && let Some(simpler) = with_literal(kernel, opcode, a, b, literal, ranges)
    {
        return Some(simpler);
    }
    ordered(kernel, opcode, a, b, ranges)
}

fn commutes(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, Add | Mul | Min | Max | And | Or | Xor | Eq | Ne)
}

fn unary(kernel: &Kernel, opcode: Opcode, arguments: &[Value]) -> Option<Simpler> {
    let inner = kernel.definition_data(*arguments.first()?)?;
    let twice = inner.opcode == opcode && matches!(opcode, Opcode::Neg | Opcode::Not);
    twice.then(|| Simpler::Value(inner.arguments[0]))
}

/// Rules for a literal to the right.
fn with_literal(
    kernel: &Kernel,
    opcode: Opcode,
    a: Value,
    b: Value,
    literal: i128,
    ranges: &mut Ranges,
) -> Option<Simpler> {
    let ty = kernel.value_type(a);
    let constant = |value| Some(Simpler::Constant(Constant::Int(ty, value)));
    let all_ones = wrap(ty, -1);
    match (opcode, literal) {
        (Opcode::Add | Opcode::Sub | Opcode::Or | Opcode::Xor | Opcode::Shl | Opcode::Shr, 0)
        | (Opcode::Mul | Opcode::Div, 1) => return Some(Simpler::Value(a)),
        (Opcode::Mul | Opcode::And | Opcode::Div | Opcode::Rem, 0) | (Opcode::Rem, 1) => return constant(0),
        (Opcode::And, ones) if ones == all_ones => return Some(Simpler::Value(a)),
        (Opcode::Or, ones) if ones == all_ones => return constant(all_ones),
        _ => {}
    }
    // (x + 1) + 2, and likewise for other associative ops.
    if matches!(opcode, Opcode::Add | Opcode::Mul | Opcode::And | Opcode::Or | Opcode::Xor)
        && let Some(inner) = kernel.definition_data(a).filter(|inner| inner.opcode == opcode)
        && let Some(first) = kernel.int_of(inner.arguments[1])
    {
        let both = match opcode {
            Opcode::Add => first + literal,
            Opcode::Mul => first.wrapping_mul(literal),
            Opcode::And => first & literal,
            Opcode::Or => first | literal,
            _ => first ^ literal,
        };
        let both = Operand::New(Constant::Int(ty, wrap(ty, both)));
        return Some(Simpler::Inst(opcode, vec![Operand::Value(inner.arguments[0]), both]));
    }
    // (x + 2) - 1 and (x - 2) + 1.
    if let (Opcode::Add | Opcode::Sub, Some(inner)) = (opcode, kernel.definition_data(a))
        && matches!(inner.opcode, Opcode::Add | Opcode::Sub)
        && let Some(first) = kernel.int_of(inner.arguments[1])
    {
        let signed = |opcode: Opcode, value: i128| if opcode == Opcode::Add { value } else { -value };
        let both = signed(inner.opcode, first) + signed(opcode, literal);
        let (opcode, both) = if both < 0 { (Opcode::Sub, -both) } else { (Opcode::Add, both) };
        let both = Operand::New(Constant::Int(ty, wrap(ty, both)));
        return Some(Simpler::Inst(opcode, vec![Operand::Value(inner.arguments[0]), both]));
    }
    if let Some(simpler) = low_bits(kernel, opcode, a, literal, ranges) {
        return Some(simpler);
    }
    let divides = matches!(opcode, Opcode::Div | Opcode::Rem);
    let power = literal > 1 && (literal as u128).is_power_of_two();
    let positive = mutant!("fold: a quotient of negatives is a shift", ranges.of(kernel, a).low >= 0, true);
    if divides && power && kernel.value_type(b) == ty && positive {
        let shift = Constant::Int(Scalar::I32, literal.trailing_zeros().into());
        let mask = Constant::Int(ty, literal - 1);
        match opcode {
            Opcode::Div => {
                return Some(Simpler::Inst(Opcode::Shr, vec![Operand::Value(a), Operand::New(shift)]));
            }
            Opcode::Rem => {
                return Some(Simpler::Inst(Opcode::And, vec![Operand::Value(a), Operand::New(mask)]));
            }
            _ => {}
        }
    }
    None
}

/// Where `x` is even, `(x + 3) >> 1` is `(x >> 1) + 1`, as `(y + 4) >> 1` is `(y >> 1) + 2`; `(x + 3) & 1` is 1, and
/// `(x + y) & 1` is `y & 1`: neighbours of a vector share what is divided by two, rows of a tile the swizzle of their columns.
fn low_bits(
    kernel: &Kernel,
    opcode: Opcode,
    a: Value,
    literal: i128,
    ranges: &mut Ranges,
) -> Option<Simpler> {
    let sum = kernel.definition_data(a).filter(|inner| inner.opcode == Opcode::Add);
    let sum = sum.and_then(|sum| Some((sum.arguments[0], kernel.int_of(sum.arguments[1])?)));
    let (base, added) = sum.unwrap_or((a, 0));
    let ty = kernel.value_type(a);
    let zeros = trailing_zeros(kernel, base, 0);
    match opcode {
        Opcode::Shr if added != 0 && (1..64).contains(&literal) => {
            let bits = literal as u32;
            let range = ranges.of(kernel, base);
            let fits = |value: i128| wrap(ty, value) == value;
            let is_exact = fits(range.low + added) && fits(range.high + added);
            // Nothing of one of the two is shifted out.
            let zeros = zeros.max(added.trailing_zeros());
            let enough = mutant!("fold: a bit too many is shifted out", zeros >= bits, zeros + 1 >= bits);
            if !(enough && is_exact) {
                return None;
            }
            let shift = Constant::Int(Scalar::I32, literal);
            let rest = Operand::New(Constant::Int(ty, added >> bits));
            Some(Simpler::Inst(Opcode::Add, vec![Operand::Of(Opcode::Shr, base, shift), rest]))
        }
        Opcode::And => {
            let is_mask = literal > 0 && (literal as u128 + 1).is_power_of_two();
            let bits = (literal as u128 + 1).trailing_zeros();
            if is_mask && bits <= zeros {
                return Some(Simpler::Constant(Constant::Int(ty, wrap(ty, added & literal))));
            }
            let sum = kernel.definition_data(a).filter(|inner| is_mask && inner.opcode == Opcode::Add)?;
            let enough = mutant!("fold: a bit too many is masked out", bits, bits - 1);
            let adds_nothing = |at: usize| trailing_zeros(kernel, sum.arguments[at], 0) >= enough;
            let at = (0..2).find(|at| adds_nothing(*at))?;
            let mask = Operand::New(Constant::Int(ty, literal));
            Some(Simpler::Inst(Opcode::And, vec![Operand::Value(sum.arguments[1 - at]), mask]))
        }
        _ => None,
    }
}

/// How many of the lowest bits of an integer are 0, as far as its operations say.
fn trailing_zeros(kernel: &Kernel, value: Value, depth: usize) -> u32 {
    if let Some(literal) = kernel.int_of(value) {
        return literal.trailing_zeros().min(64);
    }
    let Some(data) = kernel.definition_data(value).filter(|_| depth < DEPTH) else { return 0 };
    let of = |at: usize| trailing_zeros(kernel, data.arguments[at], depth + 1);
    match data.opcode {
        Opcode::Add | Opcode::Sub | Opcode::Or => of(0).min(of(1)),
        Opcode::Mul => of(0) + of(1),
        Opcode::And => of(0).max(of(1)),
        Opcode::Shl => {
            let bits = kernel.int_of(data.arguments[1]).and_then(|bits| u32::try_from(bits).ok());
            of(0) + bits.unwrap_or(0)
        }
        Opcode::Cast if kernel.value_type(data.arguments[0]).is_integer() => of(0),
        _ => 0,
    }
}

/// Comparisons, minima and remainders that the ranges decide.
fn ordered(kernel: &Kernel, opcode: Opcode, a: Value, b: Value, ranges: &mut Ranges) -> Option<Simpler> {
    use Opcode::{Eq, Ge, Gt, Le, Lt, Max, Min, Ne, Rem};
    if !matches!(opcode, Eq | Ne | Lt | Le | Gt | Ge | Min | Max | Rem) {
        return None;
    }
    let (x, y) = (ranges.of(kernel, a), ranges.of(kernel, b));
    let (below, not_above) = (x.high < y.low, x.high <= y.low);
    let below = mutant!("fold: a range ends one too early", below, not_above);
    let (above, not_below) = (x.low > y.high, x.low >= y.high);
    let known = match opcode {
        Min if not_above => return Some(Simpler::Value(a)),
        Min if not_below => return Some(Simpler::Value(b)),
        Max if not_below => return Some(Simpler::Value(a)),
        Max if not_above => return Some(Simpler::Value(b)),
        // Less than the divisor already.
        Rem if x.low >= 0 && below => return Some(Simpler::Value(a)),
        Lt if below => true,
        Lt if not_below => false,
        Le if not_above => true,
        Le if above => false,
        Gt if above => true,
        Gt if not_above => false,
        Ge if not_below => true,
        Ge if below => false,
        Eq if below || above => false,
        Ne if below || above => true,
        _ => return None,
    };
    Some(Simpler::Constant(Constant::Bool(known)))
}
