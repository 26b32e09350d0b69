//! Which powers of two divide what is computed of sizes, where no condition says it of the sizes: `h * w` is a multiple of 4
//! where `(h * w) % 4 == 0` holds, and `w / 2` where `(w / 2) % 4 == 0` does.

use super::known::{MOST, power_of_two};
use crate::manifest::{BinaryOp, Expr};

/// The symbols of a product, in the order of their numbers; one stands there as often as it is a factor.
pub type Factors = Vec<usize>;

/// Expressions of which conditions give a divisor.
#[derive(Default)]
pub struct Products {
    known: Vec<(Factors, u64)>,
    /// Of what is no product.
    others: Vec<(Expr, u64)>,
}

impl Products {
    /// By conditions that hold.
    pub fn by<'a>(conditions: impl Iterator<Item = &'a Expr>) -> Self {
        let mut products = Self::default();
        conditions.for_each(|condition| products.learn(condition));
        products
    }

    fn learn(&mut self, condition: &Expr) {
        let Expr::Binary(op, left, right) = condition else { return };
        match (op, &**left, &**right) {
            (BinaryOp::And, left, right) => {
                self.learn(left);
                self.learn(right);
            }
            (BinaryOp::Equal, Expr::Binary(BinaryOp::Rem, product, divisor), Expr::Int(0)) => {
                if let Expr::Int(divisor) = **divisor {
                    self.suppose(product, power_of_two(divisor.unsigned_abs().into()));
                }
            }
            (BinaryOp::Equal, product, Expr::Int(value)) => {
                self.suppose(product, power_of_two(value.unsigned_abs().into()));
            }
            _ => {}
        }
    }

    /// Takes it that a power of two divides an expression. Of symbols and literals nothing is taken.
    pub fn suppose(&mut self, size: &Expr, divisor: u64) {
        match factors(size) {
            Some(factors) if factors.len() > 1 => self.known.push((factors, divisor)),
            None if !matches!(size, Expr::Int(_)) => self.others.push((size.clone(), divisor)),
            _ => {}
        }
    }

    /// What is known to divide an expression that is no product; at least 1.
    pub fn of_other(&self, size: &Expr) -> u64 {
        let same = self.others.iter().filter(|(known, _)| known == size);
        same.map(|(_, divisor)| *divisor).max().unwrap_or(1)
    }

    /// A power of two that divides a product, by those that divide its factors.
    pub fn divisor(&self, product: &Factors, of_factor: impl Fn(usize) -> u64) -> u64 {
        let all = |factors: &[usize]| {
            factors.iter().fold(1u64, |sum, factor| sum.saturating_mul(of_factor(*factor)).min(MOST))
        };
        let with_known = |(part, divisor): &(Factors, u64)| {
            without(product, part).map(|rest| divisor.saturating_mul(all(&rest)).min(MOST))
        };
        self.known.iter().filter_map(with_known).chain([all(product)]).max().unwrap_or(1)
    }
}

/// The symbols of a product; `None` where it is something else.
pub fn factors(expr: &Expr) -> Option<Factors> {
    match expr {
        Expr::Symbol(symbol) => Some(vec![*symbol]),
        Expr::Binary(BinaryOp::Mul, left, right) => {
            let mut all = factors(left)?;
            all.extend(factors(right)?);
            all.sort_unstable();
            Some(all)
        }
        _ => None,
    }
}

/// What is left of a product without some of its factors; `None` where it lacks one of them.
fn without(product: &Factors, part: &Factors) -> Option<Factors> {
    let mut rest = product.clone();
    for factor in part {
        let at = rest.iter().position(|known| known == factor)?;
        rest.remove(at);
    }
    Some(rest)
}
