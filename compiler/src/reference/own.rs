//! Reductions of the file's own. What rounding may do to them follows from no formula, since nobody knows what they
//! compute: it is *measured*. Terms are folded once in `f64`, which gives the value; and [`TREES`] times in the
//! kernel's own rounding, each time in another random tree, with products fused by chance. [`ROOM`] times the spread of
//! all these, and two units in the last place of the largest number that stood in its place on the way, is the bound: where
//! most sums are exact, a few trees may all miss one that is not. Where terms have bounds themselves, trees take them at
//! their ends: all at the upper one, all at the lower one, or each by chance.
//!
//! Integers and `bool`s must be the same in all trees; otherwise they are uncertain.
//!
//! Of what was combined a sample is kept, on which the user's promises are tried ([`Evaluator::broken_laws`]).

use super::bound::Format;
use super::evaluator::{Evaluator, Run};
use super::rounding::Rounding;
use super::value::{Number, Plain, Value};
use crate::builtins::random::bits;
use crate::check::typed::*;
use crate::check::walk::{Node, walk_block};
use crate::data::Scalar;

/// Random trees.
pub(super) const TREES: usize = 6;

/// How many times the spread the bound is.
const ROOM: f64 = 8.0;

/// Tries of each promise.
const TRIES: u32 = 64;

/// How far both sides of a promise may be from each other, as a part of the greatest number that takes part: in `f64`,
/// and in the kernel's own rounding.
const WIDE_ROOM: f64 = 1e-6;
const OWN_ROOM: f64 = 1e-2;

/// A promise that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokenLaw {
    /// The reduction's name.
    pub reduction: String,
    /// `is not associative`, `does not commute`, `is changed by what it starts from`.
    pub what: &'static str,
    /// The values for which it does not hold, by their names.
    pub values: Vec<(&'static str, String)>,
    /// Both sides: how they are written, and what they are.
    pub sides: [(String, String); 2],
}

impl std::fmt::Display for BrokenLaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values: Vec<String> =
            self.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let [(left, is), (right, other)] = &self.sides;
        write!(
            f,
            "the reduction `{}` {}: for {}, `{left}` is {is} and `{right}` is {other}",
            self.reduction,
            self.what,
            values.join(", ")
        )
    }
}

/// A promise, as it is tried on some values.
struct Law<'v> {
    what: &'static str,
    /// How many of the values take part.
    count: usize,
    sides: [(String, &'v Value); 2],
    /// The values that it comes from.
    around: Vec<&'v Value>,
}

/// Terms in the places where threads could have them, each of which has combined its own so far.
struct Tree {
    /// Where terms go by chance, and how products are fused.
    seed: u64,
    /// How the bounds of terms are taken; `None` where they are left out.
    shift: Option<Shift>,
    places: Vec<Value>,
    count: u64,
    /// For each number of a value the largest that has come of combining.
    largest: Vec<f64>,
}

#[derive(Clone, Copy)]
enum Shift {
    Up,
    Down,
    Chance,
}

impl Tree {
    fn new(number: usize, seed: u64, identity: &Value) -> Self {
        let shift =
            [None, Some(Shift::Up), Some(Shift::Down)].get(number).copied().unwrap_or(Some(Shift::Chance));
        let places = vec![identity.clone(); [1, 32, 7, 64, 2, 256][number % 6]];
        Self { seed, shift, places, count: 0, largest: Vec::new() }
    }
}

impl<'a> Evaluator<'a> {
    /// The value of a reduction of the file's own, with its bound.
    pub(super) fn own(&mut self, reduction: ReductionId, axes: &'a [Axis], body: &'a Expr) -> Run<Value> {
        let data = &self.kernel.reductions[reduction];
        let rounding = self.model.rounding;
        let identity = self.exact_value(&data.identity)?;
        let mut trees: Vec<Tree> = match rounding {
            Some(Rounding::Chance(seed)) => vec![Tree::new((seed % 6) as usize, seed, &identity)],
            Some(Rounding::Fused(_)) => vec![Tree::new(0, 0, &identity)],
            None => (0..TREES).map(|number| Tree::new(number, 1 + number as u64, &identity)).collect(),
        };
        let wide = rounding.is_none() && is_widened(self.program, data);
        let mut whole = wide.then(|| widened(&identity));
        let mut loose = false;
        let uncertain = self.each(axes, &mut |this| {
            let term = this.value(body)?;
            each_number(&term, &mut |number| loose |= number.is_uncertain());
            if rounding.is_none() {
                this.combined[reduction.as_u32() as usize].add(&term);
            }
            if let Some(known) = &mut whole {
                *known = this.widely(|this| this.combine(data, known, &widened(&term)))?;
            }
            for tree in &mut trees {
                this.take(data, tree, &term)?;
            }
            Ok(())
        })?;
        let mut found = Vec::with_capacity(trees.len());
        let mut largest = Vec::new();
        for tree in &mut trees {
            found.push(self.finished(data, tree)?);
            tree.largest.iter().enumerate().for_each(|(at, number)| keep_larger(&mut largest, at, *number));
        }
        if rounding.is_some() {
            return Ok(found.swap_remove(0));
        }
        let value = whole.as_ref().unwrap_or(&found[0]);
        let picks = picks(&data.body);
        let mut result = self.bounded(value, &found, (picks, &mut largest.into_iter()));
        if uncertain || loose {
            result.taint();
        }
        Ok(result)
    }

    fn exact_value(&mut self, expr: &'a Expr) -> Run<Value> {
        let wide = std::mem::replace(&mut self.wide, false);
        let value = self.value(expr);
        self.wide = wide;
        value
    }

    /// Evaluates something in `f64`.
    fn widely<T>(&mut self, evaluate: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        let rounding = self.model.rounding.replace(Rounding::Fused(0));
        self.wide = true;
        let value = evaluate(self);
        self.wide = false;
        self.model.rounding = rounding;
        value
    }

    /// Two values combined, as the model and the width are.
    fn combine(&mut self, data: &'a Reduction, a: &Value, b: &Value) -> Run<Value> {
        for (param, value) in data.params.iter().zip([a, b]) {
            self.locals[param.as_u32() as usize] = value.clone();
        }
        self.block_value(&data.body, data.span)
    }

    fn combine_by_chance(&mut self, data: &'a Reduction, seed: u64, a: &Value, b: &Value) -> Run<Value> {
        let own = self.model.rounding;
        self.model.rounding = Some(own.unwrap_or(Rounding::Chance(seed)));
        let value = self.combine(data, a, b);
        self.model.rounding = own;
        value
    }

    /// One more term for a tree.
    fn take(&mut self, data: &'a Reduction, tree: &mut Tree, term: &Value) -> Run<()> {
        tree.count += 1;
        let chance = bits(tree.seed, tree.count);
        let place = chance as usize % tree.places.len();
        let term = shifted(term, tree.shift, &mut bits(tree.seed ^ 0x5bd1, tree.count));
        let known = &tree.places[place];
        let (a, b) = if chance >> 31 == 0 { (known, &term) } else { (&term, known) };
        tree.places[place] = self.combine_by_chance(data, tree.seed, a, b)?;
        keep_largest(&mut tree.largest, &tree.places[place]);
        Ok(())
    }

    /// What all places of a tree have, in a random order.
    fn finished(&mut self, data: &'a Reduction, tree: &mut Tree) -> Run<Value> {
        let mut count = tree.count;
        while tree.places.len() > 1 {
            count += 1;
            let at = bits(tree.seed, count) as usize % (tree.places.len() - 1);
            let next = tree.places.remove(at + 1);
            tree.places[at] = self.combine_by_chance(data, tree.seed, &tree.places[at].clone(), &next)?;
            keep_largest(&mut tree.largest, &tree.places[at]);
        }
        Ok(tree.places.swap_remove(0))
    }

    /// The value in the kernel's types, with bounds from what trees gave.
    fn bounded(
        &mut self,
        value: &Value,
        trees: &[Value],
        (picks, largest): (bool, &mut dyn Iterator<Item = f64>),
    ) -> Value {
        let part = |value: &Value, at: usize| match value {
            Value::Parts(parts) => parts.get(at).cloned(),
            Value::Number(_) => None,
        };
        match value {
            Value::Parts(parts) => {
                let one = |(at, value): (usize, &Value)| {
                    let trees: Vec<Value> = trees.iter().filter_map(|tree| part(tree, at)).collect();
                    self.bounded(value, &trees, (picks, &mut *largest))
                };
                Value::Parts(parts.iter().enumerate().map(one).collect())
            }
            Value::Number(number) => {
                let known: Vec<Number> = trees.iter().filter_map(Value::number).collect();
                let number = bound_of(*number, &known, picks, largest.next().unwrap_or(0.0));
                self.undecided |= number.is_uncertain();
                Value::Number(number)
            }
        }
    }

    /// The promises of own reductions that do not hold of what was combined.
    pub(super) fn broken_laws(&mut self) -> Vec<BrokenLaw> {
        let kernel = self.kernel;
        let mut broken = Vec::new();
        for (id, data) in &kernel.reductions {
            let kept = self.combined[id.as_u32() as usize].take();
            if kept.is_empty() {
                continue;
            }
            let wide = is_widened(self.program, data);
            // What cannot be evaluated has been reported by the evaluation itself.
            broken.extend(self.first_broken(data, &kept, wide).ok().flatten());
        }
        broken
    }

    fn first_broken(&mut self, data: &'a Reduction, kept: &[Value], wide: bool) -> Run<Option<BrokenLaw>> {
        let start = self.exact_value(&data.identity)?;
        let exact = |value: &Value| if wide { widened(value) } else { without_bounds(value) };
        let kept: Vec<Value> = kept.iter().map(exact).collect();
        let start = exact(&start);
        let mut number = 0u64;
        for _ in 0..TRIES {
            // Each of a few terms together.
            let mut some = |this: &mut Self| -> Run<Value> {
                number += 1;
                let mut value = kept[bits(11, 8 * number) as usize % kept.len()].clone();
                for more in 0..bits(12, number) % 4 {
                    let next = &kept[bits(11, 8 * number + 1 + u64::from(more)) as usize % kept.len()];
                    value = this.together(data, wide, &value, next)?;
                }
                Ok(value)
            };
            let (a, b, c) = (some(self)?, some(self)?, some(self)?);
            let ab = self.together(data, wide, &a, &b)?;
            let ba = self.together(data, wide, &b, &a)?;
            let bc = self.together(data, wide, &b, &c)?;
            let left = self.together(data, wide, &ab, &c)?;
            let right = self.together(data, wide, &a, &bc)?;
            let before = self.together(data, wide, &start, &a)?;
            let after = self.together(data, wide, &a, &start)?;
            let name = &data.name;
            let given = [("a", &a), ("b", &b), ("c", &c)];
            let once = |text: String, value| Law {
                what: "is changed by what it starts from",
                count: 1,
                sides: [(text, value), ("a".to_string(), &a)],
                around: vec![&a],
            };
            let laws = [
                Law {
                    what: "is not associative",
                    count: 3,
                    sides: [
                        (format!("{name}({name}(a, b), c)"), &left),
                        (format!("{name}(a, {name}(b, c))"), &right),
                    ],
                    around: vec![&a, &b, &c, &ab, &bc],
                },
                Law {
                    what: "does not commute",
                    count: 2,
                    sides: [(format!("{name}(a, b)"), &ab), (format!("{name}(b, a)"), &ba)],
                    around: vec![&a, &b],
                },
                once(format!("{name}(a, from)"), &after),
                once(format!("{name}(from, a)"), &before),
            ];
            for Law { what, count, sides, around } in laws {
                let room = if wide { WIDE_ROOM } else { OWN_ROOM };
                if is_near(sides[0].1, sides[1].1, &around, room) {
                    continue;
                }
                let shown = |value: &Value| show(self.program, &data.ty, value);
                return Ok(Some(BrokenLaw {
                    reduction: name.clone(),
                    what,
                    values: given[..count].iter().map(|(name, value)| (*name, shown(value))).collect(),
                    sides: sides.map(|(text, value)| (text, shown(value))),
                }));
            }
        }
        Ok(None)
    }

    fn together(&mut self, data: &'a Reduction, wide: bool, a: &Value, b: &Value) -> Run<Value> {
        match wide {
            true => self.widely(|this| this.combine(data, a, b)),
            false => self.combine_by_chance(data, 0, a, b),
        }
    }
}

/// Whether a reduction can be evaluated in `f64`: it neither looks at bits nor rounds to narrow types.
fn is_widened(program: &Program, data: &Reduction) -> bool {
    fn is_narrow(program: &Program, ty: &Type) -> bool {
        match ty {
            Type::Scalar(scalar) => scalar.is_narrow() && scalar.is_float(),
            Type::Struct(id) => program.structs[*id].fields.iter().any(|field| is_narrow(program, &field.ty)),
            Type::Array(element, _) => is_narrow(program, element),
        }
    }
    let mut wide = !is_narrow(program, &data.ty);
    walk_block(&data.body, &mut |node| {
        let Node::Expr(expr) = node else { return };
        wide &= match &expr.kind {
            ExprKind::Call { builtin, .. } => {
                !matches!(builtin, Builtin::ToBits | Builtin::FromBits | Builtin::Rand | Builtin::RandNormal)
            }
            ExprKind::Cast { to, .. } => !(to.is_narrow() && to.is_float()),
            ExprKind::StructLiteral { .. } => !is_narrow(program, &expr.ty),
            _ => true,
        };
    });
    wide
}

/// Whether a reduction's floats are always some of those that it is given: then nothing is rounded.
fn picks(body: &Block) -> bool {
    let mut picks = true;
    walk_block(body, &mut |node| {
        let Node::Expr(expr) = node else { return };
        let float = expr.ty.as_scalar().is_some_and(Scalar::is_float);
        picks &= match &expr.kind {
            ExprKind::Binary { .. } | ExprKind::Cast { .. } => !float,
            ExprKind::Call { builtin, .. } => {
                !float
                    || matches!(
                        builtin,
                        Builtin::Min | Builtin::Max | Builtin::Clamp | Builtin::Select | Builtin::Abs
                    )
            }
            _ => true,
        };
    });
    picks
}

fn each_number(value: &Value, visit: &mut dyn FnMut(Number)) {
    match value {
        Value::Number(number) => visit(*number),
        Value::Parts(parts) => parts.iter().for_each(|part| each_number(part, visit)),
    }
}

/// Keeps for each number of a value the largest so far.
fn keep_largest(largest: &mut Vec<f64>, value: &Value) {
    let mut at = 0;
    each_number(value, &mut |number| {
        keep_larger(largest, at, number.value.as_float().map_or(0.0, f64::abs));
        at += 1;
    });
}

fn keep_larger(largest: &mut Vec<f64>, at: usize, number: f64) {
    if largest.len() <= at {
        largest.resize(at + 1, 0.0);
    }
    if number.is_finite() {
        largest[at] = largest[at].max(number);
    }
}

fn map_numbers(value: &Value, map: &mut dyn FnMut(Number) -> Number) -> Value {
    match value {
        Value::Number(number) => Value::Number(map(*number)),
        Value::Parts(parts) => Value::Parts(parts.iter().map(|part| map_numbers(part, map)).collect()),
    }
}

fn without_bounds(value: &Value) -> Value {
    map_numbers(value, &mut |number| Number::exact(number.value))
}

/// `f32` as `f64`, without bounds.
fn widened(value: &Value) -> Value {
    map_numbers(value, &mut |number| match number.value {
        Plain::F32(value) => Number::exact(Plain::F64(f64::from(value))),
        other => Number::exact(other),
    })
}

/// A term somewhere within its bounds, without them.
fn shifted(value: &Value, shift: Option<Shift>, chance: &mut u32) -> Value {
    map_numbers(value, &mut |number| {
        *chance = chance.rotate_left(1);
        let part = match shift {
            None => 0.0,
            Some(Shift::Up) => 1.0,
            Some(Shift::Down) => -1.0,
            Some(Shift::Chance) if *chance & 1 == 0 => 1.0,
            Some(Shift::Chance) => -1.0,
        };
        let moved = match (number.value, number.error) {
            (value, error) if error == 0.0 || !error.is_finite() => value,
            (Plain::F32(value), error) => Plain::F32((f64::from(value) + part * error) as f32),
            (Plain::F64(value), error) => Plain::F64(value + part * error),
            (value, _) => value,
        };
        Number::exact(moved)
    })
}

fn same(a: Plain, b: Plain) -> bool {
    match (a.as_float(), b.as_float()) {
        (Some(a), Some(b)) => a == b || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

/// A scalar of the result, from the fold in `f64` or in the kernel's own type, and from the trees.
fn bound_of(whole: Number, trees: &[Number], picks: bool, largest: f64) -> Number {
    let Some(own) = trees.first().map(|number| number.value.scalar()) else { return whole };
    let value = match (own, whole.value) {
        (Scalar::F32, Plain::F64(value)) => Plain::F32(value as f32),
        (_, value) => value,
    };
    let agree = trees.iter().all(|tree| same(tree.value, value));
    let (Some(format), Some(middle)) = (Format::of(own), value.as_float()) else {
        return Number::exact(value).uncertain_if(!agree);
    };
    if agree && (picks || !middle.is_finite()) {
        return Number::exact(value);
    }
    let away = |tree: &Number| tree.value.as_float().map_or(f64::INFINITY, |tree| (tree - middle).abs());
    let spread = trees
        .iter()
        .map(away)
        .fold(0.0, |most: f64, next| if next.is_nan() { f64::INFINITY } else { most.max(next) });
    Number::within(value, ROOM * spread + 2.0 * format.spacing(middle.abs().max(largest)))
}

/// Whether two values are the same but for rounding, beside the numbers that they come from.
fn is_near(left: &Value, right: &Value, around: &[&Value], room: f64) -> bool {
    match (left, right) {
        (Value::Parts(left), Value::Parts(right)) => {
            left.iter().zip(right).enumerate().all(|(at, (left, right))| {
                let around: Vec<&Value> = around
                    .iter()
                    .filter_map(|value| match value {
                        Value::Parts(parts) => parts.get(at),
                        Value::Number(_) => None,
                    })
                    .collect();
                is_near(left, right, &around, room)
            })
        }
        (Value::Number(left), Value::Number(right)) => {
            let (Some(a), Some(b)) = (left.value.as_float(), right.value.as_float()) else {
                return left.value == right.value;
            };
            if same(left.value, right.value) {
                return true;
            }
            let numbers = around.iter().filter_map(|value| value.number()?.value.as_float());
            let greatest = numbers
                .chain([a, b])
                .filter(|number| number.is_finite())
                .fold(0.0, |most: f64, next| most.max(next.abs()));
            (a - b).abs() <= room * greatest
        }
        _ => false,
    }
}

/// A value as the user would write it.
fn show(program: &Program, ty: &Type, value: &Value) -> String {
    match (ty, value) {
        (Type::Struct(id), Value::Parts(parts)) => {
            let def = &program.structs[*id];
            let fields = def.fields.iter().zip(parts);
            let fields: Vec<String> = fields
                .map(|(field, part)| format!("{}: {}", field.name, show(program, &field.ty, part)))
                .collect();
            format!("{} {{ {} }}", def.name, fields.join(", "))
        }
        (Type::Array(element, _), Value::Parts(parts)) => {
            let items: Vec<String> = parts.iter().map(|part| show(program, element, part)).collect();
            format!("[{}]", items.join(", "))
        }
        (_, Value::Number(Number { value: Plain::F64(value), .. })) if *ty == Type::F32 => {
            format!("{:?}", *value as f32)
        }
        (_, Value::Number(number)) => number.value.show(),
        (_, Value::Parts(_)) => String::new(),
    }
}
