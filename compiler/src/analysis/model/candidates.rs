//! The values that sizes are looked for among: large round ones first, then those that the literals of conditions ask for.

use crate::algebra::greatest_common_divisor;
use crate::manifest::{BinaryOp, Expr, UnaryOp, Value};

/// Sizes of a dimension that are tried last.
const ODD: [i64; 7] = [96, 48, 12, 3, 5, 7, 9];
/// So many times less than the usual size is still a large one.
const STILL_LARGE: i64 = 16;
/// Literals that are looked at: what is tried grows with their cube.
const MOST_LITERALS: usize = 6;

/// What the literals of conditions say of the values where the conditions begin and end to hold.
#[derive(Default)]
pub struct Literals {
    integers: Vec<i64>,
    floats: Vec<f64>,
    /// Those that something is divided or multiplied by.
    factors: Vec<i64>,
}

impl Literals {
    pub fn of<'e>(conditions: impl Iterator<Item = &'e Expr>) -> Self {
        let mut literals = Self::default();
        conditions.for_each(|condition| literals.add(condition));
        literals.factors.truncate(MOST_LITERALS);
        let common =
            literals.factors.iter().try_fold(1, |common: i64, factor| least_multiple(common, *factor));
        if let Some(common) = common.filter(|_| literals.factors.len() > 1) {
            note(&mut literals.factors, common);
        }
        literals
    }

    fn add(&mut self, expr: &Expr) {
        match expr {
            Expr::Int(value) => note(&mut self.integers, *value),
            Expr::Float(value) => note(&mut self.floats, *value),
            Expr::Bool(_) | Expr::Symbol(_) => {}
            Expr::Unary(_, operand) => self.add(operand),
            Expr::Binary(op, left, right) => {
                use BinaryOp::{CeilDiv, Div, Mul, Rem};
                if matches!(op, CeilDiv | Div | Mul | Rem) {
                    for side in [left, right] {
                        if let Expr::Int(factor @ 2..) = **side {
                            note(&mut self.factors, factor);
                        }
                    }
                }
                self.add(left);
                self.add(right);
            }
        }
    }

    /// Values near the literals.
    fn near(&self) -> impl Iterator<Item = i64> {
        self.integers.iter().flat_map(|value| [*value, value.saturating_add(1), value.saturating_sub(1)])
    }

    fn powers(&self) -> impl Iterator<Item = i64> {
        let power = |value: &i64| u64::try_from(*value).ok()?.checked_next_power_of_two();
        self.integers.iter().filter_map(move |value| i64::try_from(power(value)?).ok())
    }

    /// Multiples of the factors, and what is a literal more, near a size and near the literals.
    fn multiples(&self, first: i64) -> Vec<i64> {
        let mut found = Vec::new();
        let literals = || self.integers.iter().copied().take(MOST_LITERALS);
        for near in std::iter::once(first).chain(literals()) {
            for factor in &self.factors {
                let rests = std::iter::once(0).chain(literals().filter(|rest| (1..*factor).contains(rest)));
                for rest in rests {
                    let below = near - near.rem_euclid(*factor);
                    found.extend([below.checked_add(rest), below.saturating_add(*factor).checked_add(rest)]);
                }
            }
        }
        let found = found.into_iter().flatten();
        found
            .chain(literals().flat_map(|more| [first.saturating_add(more), first.saturating_sub(more)]))
            .collect()
    }

    /// For a dimension whose size is mostly `first`: large ones before small ones, and round ones before others.
    pub fn dimensions(&self, first: i64) -> Vec<i64> {
        let down = std::iter::successors(Some(first), |size| (*size > 1).then_some(size / 2));
        let up = [first * 2, first * 4].into_iter().chain(self.powers().filter(|power| *power > first));
        let (multiples, is_large) = (self.multiples(first), |size: &i64| *size >= first / STILL_LARGE);
        let all = down.clone().chain(up).chain(multiples.iter().copied()).filter(is_large);
        let small = multiples.iter().copied().filter(|size| *size > 0);
        each_once(all.chain(down).chain(small).chain(ODD).chain(self.near()).filter(|size| *size >= 0))
    }

    /// For an integer parameter.
    pub fn integers(&self) -> Vec<i64> {
        let usual = [1, 2, 3, 4, 8, 16, 32, 64, 100, 128, 1024];
        let near: Vec<i64> = self.powers().chain(self.near()).chain(self.multiples(1024)).collect();
        let positive = near.iter().copied().filter(|value| *value > 0);
        each_once(usual.into_iter().chain(positive).chain([0, -1]).chain(near.iter().copied()))
    }

    /// For a float parameter.
    pub fn floats(&self) -> Vec<f64> {
        let mut usual = vec![1.0, 0.5, 2.0, 0.0, -1.0, 1e-5, 100.0];
        let floats = self.floats.iter().copied().chain(self.integers.iter().map(|value| *value as f64));
        usual.extend(
            floats.flat_map(|value| [value, value * 2.0, value / 2.0, -value, value + 1.0, value - 1.0]),
        );
        usual
    }
}

fn note<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if !list.contains(&value) {
        list.push(value);
    }
}

fn each_once(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut all = Vec::new();
    values.for_each(|value| note(&mut all, value));
    all
}

fn least_multiple(a: i64, b: i64) -> Option<i64> {
    let divisor = greatest_common_divisor(a.into(), b.into());
    i64::try_from(i128::from(a) / divisor * i128::from(b)).ok()
}

/// The only integer that the next symbol can be for an equality to hold, where those before it have these values; `None` of
/// what is no equality, or not linear in that symbol. No integer is `Some(None)`.
pub fn solved(condition: &Expr, values: &[Value]) -> Option<Option<i64>> {
    let Expr::Binary(BinaryOp::Equal, left, right) = condition else { return None };
    let mut tried = values.to_vec();
    tried.push(Value::Int(0));
    let mut difference = |value: i128| {
        *tried.last_mut()? = Value::Int(value);
        polynomial(left, &tried)?.checked_sub(polynomial(right, &tried)?)
    };
    let (rest, one, two) = (difference(0)?, difference(1)?, difference(2)?);
    let slope = one.checked_sub(rest)?;
    // What is linear at three places may be of the third degree.
    let is_linear =
        two.checked_sub(one)? == slope && difference(7)?.checked_sub(rest)? == slope.checked_mul(7)?;
    if !is_linear || slope == 0 {
        return None;
    }
    Some((rest % slope == 0).then(|| i64::try_from(-(rest / slope)).ok()).flatten())
}

/// The value of a sum of products.
fn polynomial(expr: &Expr, values: &[Value]) -> Option<i128> {
    match expr {
        Expr::Int(_) | Expr::Symbol(_) => expr.evaluate_int(values),
        Expr::Unary(UnaryOp::Negate, operand) => polynomial(operand, values)?.checked_neg(),
        Expr::Binary(op, left, right) => {
            let (left, right) = (polynomial(left, values)?, polynomial(right, values)?);
            match op {
                BinaryOp::Add => left.checked_add(right),
                BinaryOp::Sub => left.checked_sub(right),
                BinaryOp::Mul => left.checked_mul(right),
                _ => None,
            }
        }
        _ => None,
    }
}
