//! Which powers of two divide a value: what alignment is proved by.

use super::known::{Known, MOST, power_of_two};
use super::polynomial::{Atom, Polynomial};
use super::products::{Factors, Products, factors};
use crate::ir::FoundOwners;
use crate::ir::entities::{Launch, Value};
use crate::ir::kernel::{Definition, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

/// Divisors of the i64 values of one launch, computed when asked for.
pub struct Multiples {
    values: FxHashMap<Value, u64>,
    known: Known,
    products: Products,
    /// Taken for multiples beyond what is known.
    supposed: FxHashMap<usize, u64>,
    owners: FoundOwners,
}

impl Multiples {
    /// With the kernel's facts and those of the launch.
    pub fn new(kernel: &Kernel, launch: Launch) -> Self {
        let known = Known::new(kernel, Some(launch));
        let products = Products::by(kernel.conditions(Some(launch)));
        let (values, supposed) = (FxHashMap::default(), FxHashMap::default());
        Self { values, known, products, supposed, owners: FoundOwners::default() }
    }

    /// Takes it that a power of two divides a value.
    pub fn suppose(&mut self, value: Value, divisor: u64) {
        self.values.insert(value, divisor.min(MOST));
    }

    /// Takes it that a power of two divides a symbol, or what is computed of symbols. Before the first question.
    pub fn suppose_size(&mut self, size: &Expr, divisor: u64) {
        if let Expr::Symbol(symbol) = size {
            let known = self.supposed.entry(*symbol).or_insert(1);
            *known = (*known).max(divisor.min(MOST));
        }
        self.products.suppose(size, divisor.min(MOST));
    }

    fn of_product(&self, product: &Factors) -> u64 {
        self.products.divisor(product, |symbol| self.known.divisor(symbol, &self.supposed))
    }

    /// A power of two that divides the i64 value, whatever the input; at least 1.
    pub fn of(&mut self, kernel: &Kernel, value: Value) -> u64 {
        self.within(kernel, value, 48)
    }

    /// A power of two that divides a sum of products of values.
    pub fn of_form(&mut self, kernel: &Kernel, form: &Polynomial) -> u64 {
        let mut all = MOST;
        for (monomial, factor) in form.terms() {
            let mut product = power_of_two(factor.unsigned_abs());
            for atom in monomial.atoms() {
                let divisor = match atom {
                    Atom::Value(value) => self.of(kernel, *value),
                    Atom::Symbol(symbol) => self.known.divisor(symbol.index(), &self.supposed),
                };
                product = product.saturating_mul(divisor).min(MOST);
            }
            all = all.min(product);
        }
        all
    }

    /// A power of two that divides a host expression.
    pub fn of_expression(&self, expr: &Expr) -> u64 {
        if let Some(factors) = factors(expr) {
            return self.of_product(&factors);
        }
        let of_parts = match expr {
            Expr::Int(value) => power_of_two(value.unsigned_abs().into()),
            Expr::Symbol(symbol) => self.known.divisor(*symbol, &self.supposed),
            Expr::Unary(_, operand) => self.of_expression(operand),
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.of_expression(left), self.of_expression(right));
                match op {
                    BinaryOp::Mul => left.saturating_mul(right).min(MOST),
                    BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max => left.min(right),
                    _ => 1,
                }
            }
            Expr::Float(_) | Expr::Bool(_) => 1,
        };
        of_parts.max(self.products.of_other(expr))
    }

    fn within(&mut self, kernel: &Kernel, value: Value, depth: u32) -> u64 {
        if let Some(known) = self.values.get(&value) {
            return *known;
        }
        if depth == 0 {
            return 1;
        }
        let divisor = match kernel.values[value].definition {
            Definition::Result(inst, position) => {
                let data = &kernel.insts[inst];
                let operand = |this: &mut Self, at: usize| this.within(kernel, data.arguments[at], depth - 1);
                match (data.opcode, &data.payload) {
                    (Opcode::Const, _) => {
                        kernel.int_of(value).map_or(1, |int| power_of_two(int.unsigned_abs()))
                    }
                    (_, Payload::Symbol(symbol)) => self.known.divisor(symbol.index(), &self.supposed),
                    (Opcode::Add | Opcode::Sub | Opcode::Min | Opcode::Max, _) => {
                        operand(self, 0).min(operand(self, 1))
                    }
                    (Opcode::Mul, _) => {
                        let of_operands = operand(self, 0).saturating_mul(operand(self, 1)).min(MOST);
                        let (mut symbols, mut others) = (Factors::new(), Vec::new());
                        split_product(kernel, value, &mut symbols, &mut others);
                        symbols.sort_unstable();
                        let of_symbols = self.of_product(&symbols);
                        let of_others = |this: &mut Self, all: u64, other: Value| {
                            all.saturating_mul(this.within(kernel, other, depth - 1)).min(MOST)
                        };
                        let of_all =
                            others.into_iter().fold(of_symbols, |all, other| of_others(self, all, other));
                        of_operands.max(of_all)
                    }
                    (Opcode::Neg, _) => operand(self, 0),
                    (Opcode::Select, _) => operand(self, 1).min(operand(self, 2)),
                    (Opcode::And, _) => operand(self, 0).max(operand(self, 1)),
                    (Opcode::Shl, _) => match kernel.int_of(data.arguments[1]) {
                        Some(amount @ 0..=19) => (operand(self, 0) << amount).min(MOST),
                        _ => 1,
                    },
                    // What a loop or a branch leaves: what was there before, or what one of its regions ends with.
                    (Opcode::For | Opcode::If, _) => {
                        let at = usize::from(position);
                        let before = (data.opcode == Opcode::For).then(|| data.arguments[3 + at]);
                        let ends = data.regions.iter().map(|region| kernel.yields(*region)[at]);
                        let all: Vec<Value> = before.into_iter().chain(ends).collect();
                        let least = |least: u64, value| least.min(self.within(kernel, value, depth - 1));
                        all.into_iter().fold(MOST, least)
                    }
                    _ => 1,
                }
            }
            // A loop's index: its first value and its step.
            Definition::Param(block, position) => {
                let owner = self.owners.of(kernel, block);
                match owner.map(|inst| (inst, kernel.insts[inst].opcode)) {
                    Some((inst, Opcode::For)) if position == 0 => {
                        let data = &kernel.insts[inst];
                        let (low, step) = (data.arguments[0], data.arguments[2]);
                        self.within(kernel, low, depth - 1).min(self.within(kernel, step, depth - 1))
                    }
                    _ => 1,
                }
            }
        };
        self.values.insert(value, divisor);
        divisor
    }
}

/// The factors of a product of products: symbols, and other values.
fn split_product(kernel: &Kernel, value: Value, symbols: &mut Factors, others: &mut Vec<Value>) {
    let data = kernel.definition_data(value);
    match data.map(|data| (data.opcode, &data.payload, &data.arguments)) {
        Some((Opcode::Mul, _, arguments)) => {
            arguments.iter().for_each(|factor| split_product(kernel, *factor, symbols, others));
        }
        Some((_, Payload::Symbol(symbol), _)) => symbols.push(symbol.index()),
        _ => others.push(value),
    }
}
