//! The sides of what is summed up.

use super::axes::Moves;
use super::bits::AxisBits;
use super::exact::{Exact, exact};
use super::parts::{Product, Side, Terms};
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::kernel::{InstData, Kernel};
use crate::ir::op::{Combiner, Constant, Effect, Opcode};

/// Products of one sum, at most.
const MOST_PRODUCTS: usize = 16;

/// The sides of a term, and the conditions without which it is left out; `None` where there are no two of them.
pub fn split(moves: &mut Moves<'_>, term: Value, combiner: Combiner) -> Option<(Terms, Vec<Value>)> {
    if !moves.of(term).is_pure() {
        return None;
    }
    let mut masks = Vec::new();
    let inner = unmasked(moves.kernel, term, combiner, &mut masks);
    let products = (combiner == Combiner::Add).then(|| products(moves, inner)).flatten();
    let plain = plain(moves, inner);
    let parallel = |side: &Side| side.moves.without(moves.reduced()).axes();
    let has_reuse = |left: &Side, right: &Side| {
        let (left, right) = (parallel(left), parallel(right));
        !left.has_all(right) && !right.has_all(left)
    };
    let of_plain = plain.as_ref().is_some_and(|(left, right)| has_reuse(left, right));
    let terms = match products {
        // The square of a difference is no product of two sides, but the difference has them.
        Some(products) if !of_plain || products.iter().any(|it| has_reuse(&it.left, &it.right)) => {
            Terms::Products(products)
        }
        _ => {
            let (left, right) = plain?;
            Terms::Plain { left, right }
        }
    };
    Some((terms, masks))
}

/// The value without the conditions without which it is what adds nothing.
fn unmasked(kernel: &Kernel, mut value: Value, combiner: Combiner, masks: &mut Vec<Value>) -> Value {
    while let Some((condition, then)) = masked_by(kernel, value, combiner) {
        masks.push(condition);
        value = then;
    }
    value
}

/// The condition without which a value is what adds nothing, and what it is else.
pub fn masked_by(kernel: &Kernel, value: Value, combiner: Combiner) -> Option<(Value, Value)> {
    let data = kernel.definition_data(value)?;
    let (then, otherwise) = match data.opcode {
        Opcode::Select => (data.arguments[1], data.arguments[2]),
        Opcode::If => {
            let at = data.results.iter().position(|result| *result == value)?;
            let [then, otherwise] = data.regions[..] else { return None };
            (*kernel.yields(then).get(at)?, *kernel.yields(otherwise).get(at)?)
        }
        _ => return None,
    };
    let is_one = combiner.width() == 1 && adds_nothing(kernel, otherwise, combiner);
    is_one.then(|| (data.arguments[0], then))
}

/// The condition without which all terms of a reduction are what adds nothing, and what they are else.
pub fn common_mask(kernel: &Kernel, terms: &[Value], combiners: &[Combiner]) -> Option<(Value, Vec<Value>)> {
    let each = terms.iter().zip(combiners).map(|(term, combiner)| masked_by(kernel, *term, *combiner));
    let (masks, then): (Vec<_>, Vec<_>) = each.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let first = *masks.first()?;
    masks.iter().all(|mask| *mask == first).then_some((first, then))
}

/// Whether a value is what adds nothing; of floats 0 does, but for the sign of a sum of zeros.
pub fn adds_nothing(kernel: &Kernel, value: Value, combiner: Combiner) -> bool {
    let Some(constant) = kernel.constant_of(value) else { return false };
    let identity = combiner.identity(kernel.value_type(value));
    let zero = match constant {
        Constant::F32(bits) => f32::from_bits(bits) == 0.0,
        Constant::F64(bits) => f64::from_bits(bits) == 0.0,
        _ => false,
    };
    Some(constant) == identity || combiner == Combiner::Add && zero
}

/// A value as a sum of products, each of which has two sides.
fn products(moves: &mut Moves<'_>, value: Value) -> Option<Vec<Product>> {
    let mut open = vec![(value, false)];
    let mut found: Vec<Product> = Vec::new();
    while let Some((value, is_negative)) = open.pop() {
        match moves.kernel.definition_data(value) {
            Some(InstData { opcode: Opcode::Add, arguments, .. }) => {
                open.extend([(arguments[1], is_negative), (arguments[0], is_negative)]);
            }
            Some(InstData { opcode: Opcode::Sub, arguments, .. }) => {
                open.extend([(arguments[1], !is_negative), (arguments[0], is_negative)]);
            }
            Some(InstData { opcode: Opcode::Neg, arguments, .. }) => open.push((arguments[0], !is_negative)),
            _ => {
                let mut product = product(moves, value, is_negative)?;
                if let Some(first) = found.first() {
                    let overlap = |left: &Side, right: &Side| {
                        let both = |one: &Side, other: &Side| one.moves.intersection(other.moves).count();
                        both(left, &first.left) + both(right, &first.right)
                    };
                    if overlap(&product.right, &product.left) > overlap(&product.left, &product.right) {
                        std::mem::swap(&mut product.left, &mut product.right);
                    }
                }
                found.push(product);
            }
        }
        if found.len() + open.len() > MOST_PRODUCTS {
            return None;
        }
    }
    Some(found)
}

/// The factors of a product, in their order.
fn factors(kernel: &Kernel, value: Value, found: &mut Vec<Value>) {
    match kernel.definition_data(value) {
        Some(InstData { opcode: Opcode::Mul, arguments, .. }) if found.len() < MOST_PRODUCTS => {
            factors(kernel, arguments[0], found);
            factors(kernel, arguments[1], found);
        }
        _ => found.push(value),
    }
}

/// A value as a product of two sides.
fn product(moves: &mut Moves<'_>, value: Value, is_negative: bool) -> Option<Product> {
    let mut all = Vec::new();
    factors(moves.kernel, value, &mut all);
    let reduced = moves.reduced();
    let (mut inside, mut outside): (Vec<Value>, Vec<Value>) =
        all.iter().copied().partition(|factor| moves.of(*factor).intersection(reduced).count() > 0);
    if inside.len() == 1 {
        // A factor that is the same for all terms is a side where there is no other one.
        let at = outside.iter().position(|factor| moves.of(*factor).count() > 0)?;
        let other = outside.remove(at);
        let is_before = |one: &Value, other: &Value| {
            let place = |factor: &Value| all.iter().position(|known| known == factor);
            place(one) < place(other)
        };
        inside.insert(usize::from(is_before(&inside[0], &other)), other);
    }
    let parallel: Vec<AxisBits> =
        inside.iter().map(|factor| moves.of(*factor).axes().without(reduced)).collect();
    let pairs = (0..inside.len()).flat_map(|left| (left + 1..inside.len()).map(move |right| (left, right)));
    // The pair whose sides have the most axes of their own.
    let (left, right) = pairs.rev().max_by_key(|(left, right)| {
        let own = |one: usize, other: usize| parallel[one].without(parallel[other]).count();
        let (left, right) = (own(*left, *right), own(*right, *left));
        (left.min(right), left + right)
    })?;
    let mut sides = [vec![inside[left]], vec![inside[right]]];
    let mut of_sides = [left, right].map(|at| moves.of(inside[at]));
    for (at, factor) in inside.iter().enumerate().filter(|(at, _)| *at != left && *at != right) {
        let own = moves.of(*factor);
        let more = of_sides.map(|side| {
            let more = own.without(side).axes();
            (more.without(reduced).count(), more.count())
        });
        let side = usize::from(more[1] < more[0]);
        of_sides[side] = of_sides[side].union(own);
        let place = if side == 0 && at < left || side == 1 && at < right { 0 } else { sides[side].len() };
        sides[side].insert(place, *factor);
    }
    let [left, right] = sides.map(|values| side(moves, values));
    Some(Product { is_negative, left, right, outside })
}

fn side(moves: &mut Moves<'_>, values: Vec<Value>) -> Side {
    let mut side =
        Side { moves: AxisBits::NONE, exact: Exact::ALL, is_gathered: false, is_guarded: false, values };
    for value in &side.values {
        side.moves = side.moves.union(moves.of(*value));
        side.exact = side.exact.both(exact(moves.kernel, *value));
        let (gathered, guarded) = moves.loads(*value);
        side.is_gathered |= gathered;
        side.is_guarded |= guarded;
    }
    if side.values.len() > 1 {
        // Products are rounded.
        side.exact = Exact::of(side.values.first().map_or(Scalar::F32, |it| moves.kernel.value_type(*it)));
    }
    side
}

/// The operands of other code: the largest parts of a value that lack an axis of it.
fn plain(moves: &mut Moves<'_>, value: Value) -> Option<(Side, Side)> {
    let reduced = moves.reduced();
    let all = moves.of(value).axes().without(reduced);
    let mut operands: Vec<(Value, AxisBits)> = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let own = moves.of(value).axes().without(reduced);
        let inside = moves.kernel.definition_data(value).filter(|data| {
            own == all && data.opcode.info().effect == Effect::Pure && !data.arguments.is_empty()
        });
        match inside {
            Some(data) => open.extend(data.arguments.iter().rev()),
            None if moves.of(value).count() > 0 && operands.iter().all(|(known, _)| *known != value) => {
                operands.push((value, own));
            }
            None => {}
        }
    }
    let left = operands.first()?.1;
    let right = operands.iter().map(|(_, own)| *own).find(|own| !left.has_all(*own))?;
    let is_right = |own: AxisBits| !left.has_all(own) && right.has_all(own);
    let (right, left): (Vec<_>, Vec<_>) = operands.into_iter().partition(|(_, own)| is_right(*own));
    let values = |operands: Vec<(Value, AxisBits)>| operands.into_iter().map(|(value, _)| value).collect();
    let (left, right): (Vec<Value>, Vec<Value>) = (values(left), values(right));
    let of_operands = |moves: &mut Moves<'_>, values: Vec<Value>| {
        let types = values.iter().map(|value| exact(moves.kernel, *value));
        let types = types.fold(Exact::ALL, Exact::both);
        Side { exact: types, ..side(moves, values) }
    };
    Some((of_operands(moves, left), of_operands(moves, right)))
}
