//! One lawful evaluation instead of a bound: the kernel's own rounding, operation by operation.
//!
//! A bound adds up what every rounding could do at its worst. Over many iterations that says nothing any more: it
//! grows past the value itself. What remains is the definition: a device may fuse a product with the sum that it
//! feeds, may be off by the promised ulp in a function, and may add the terms of a reduction in any order. Each way
//! of using these freedoms is a [`Rounding`]; evaluated with one, a kernel has definite values and no bounds.

use super::bound::Format;
use super::evaluator::{Evaluator, Run};
use super::value::{Number, Plain, Value};
use crate::check::typed::*;
use crate::check::walk::{Node, walk_block, walk_statements};
use crate::syntax::ast::ReduceOp;
use rustc_hash::FxHashMap;

/// How a device uses its freedoms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// Functions and reductions as written: rounded to nearest, term by term. Of the places where a product feeds a
    /// sum ([`fusable_sites`]), those whose bit is set are fused, each time that they are reached.
    Fused(u64),
    /// By chance, the same for the same seed: fused or not at each step, functions anywhere within their promise,
    /// partial sums rounded up or down.
    Chance(u64),
}

impl Rounding {
    /// A number in -1..1 that hangs on the seed and `salt`; 0 unless by chance.
    fn noise(self, salt: u64) -> f64 {
        match self {
            Rounding::Fused(_) => 0.0,
            Rounding::Chance(seed) => {
                let words = crate::builtins::random::words(seed, salt);
                f64::from(words[0] as i32) / f64::from(1u32 << 31)
            }
        }
    }

    pub(super) fn is_by_chance(self) -> bool {
        matches!(self, Rounding::Chance(_))
    }

    /// A function's result, of which the device promises to be within `promise` of `exact`.
    pub(super) fn function(self, format: Format, exact: f64, promise: f64) -> f64 {
        format.round(exact + promise * self.noise(exact.to_bits()))
    }

    /// A partial sum or product: `exact + lost`, rounded.
    pub(super) fn partial(self, format: Format, exact: f64, lost: f64) -> f64 {
        let rounded = format.round(exact);
        let whole = rounded == exact && (lost == 0.0 || lost.is_nan());
        if whole || !rounded.is_finite() {
            return rounded;
        }
        let noise = self.noise(exact.to_bits() ^ lost.to_bits().rotate_left(7));
        format.round(exact + 0.5 * noise * format.spacing(exact))
    }
}

/// Where products feed sums: a bit of [`Rounding::Fused`] each, by the place of the product's expression.
#[derive(Default)]
pub(super) struct Sites {
    /// [`SHARED`] where the product has other uses: there it is fused by chance alone.
    bits: FxHashMap<*const Expr, u32>,
    count: u32,
}

const SHARED: u32 = u32::MAX;

impl Sites {
    pub fn of(kernel: &Kernel) -> Sites {
        let mut uses = vec![0u32; kernel.locals.len()];
        let mut products = vec![false; kernel.locals.len()];
        walk_all(kernel, &mut |node| match node {
            Node::Expr(Expr { kind: ExprKind::Local(local), .. }) => uses[local.as_u32() as usize] += 1,
            Node::Stmt(Stmt { kind: StmtKind::Let { local, value }, .. }) => {
                products[local.as_u32() as usize] |= is_product(value, &[]);
            }
            Node::Stmt(Stmt { kind: StmtKind::Assign { local, path, value }, .. }) if path.is_empty() => {
                products[local.as_u32() as usize] |= is_product(value, &[]);
            }
            _ => {}
        });
        let mut sites = Sites::default();
        let mut add = |expr: &Expr| {
            if is_product(expr, &products) {
                let shared = matches!(expr.kind, ExprKind::Local(local) if uses[local.as_u32() as usize] > 1);
                sites.bits.insert(expr, if shared { SHARED } else { sites.count });
                sites.count += u32::from(!shared);
            }
        };
        walk_all(kernel, &mut |node| match node {
            Node::Expr(Expr {
                kind: ExprKind::Binary { op: BinaryOp::Add | BinaryOp::Sub, left, right },
                ..
            }) => {
                add(left);
                add(right);
            }
            Node::Expr(Expr {
                kind: ExprKind::Reduce { op: Reducer::BuiltIn(ReduceOp::Sum), body, .. },
                ..
            }) => add(body),
            _ => {}
        });
        sites
    }
}

/// Visits what a kernel does, and what its own reductions do.
fn walk_all<'a>(kernel: &'a Kernel, visit: &mut dyn FnMut(Node<'a>)) {
    walk_statements(&kernel.body, visit);
    kernel.reductions.values().for_each(|reduction| walk_block(&reduction.body, visit));
}

/// How many places of a kernel have a product that feeds a sum.
pub fn fusable_sites(kernel: &Kernel) -> u32 {
    Sites::of(kernel).count
}

/// Whether an expression is a product of floats, or a name (of those marked) that was given one.
fn is_product(expr: &Expr, products: &[bool]) -> bool {
    match &expr.kind {
        ExprKind::Binary { op: BinaryOp::Mul, .. } => {
            expr.ty.as_scalar().is_some_and(|scalar| scalar.is_float())
        }
        ExprKind::Local(local) => products.get(local.as_u32() as usize) == Some(&true),
        ExprKind::Negate(operand) => is_product(operand, products),
        ExprKind::Block(block) => block.value.as_ref().is_some_and(|value| is_product(value, products)),
        _ => false,
    }
}

/// A term of a sum: its value, and what it is the product of.
#[derive(Clone, Copy)]
pub(super) struct Term {
    pub value: Number,
    pub factors: Option<(Plain, Plain)>,
}

impl<'a> Evaluator<'a> {
    /// A sum or difference of floats, with one of its products fused where the rounding says so: the first of two.
    pub(super) fn fused_sum(&mut self, op: BinaryOp, left: &'a Expr, right: &'a Expr) -> Run<Option<Number>> {
        let (first, second) = (self.term(left)?, self.term(right)?);
        let minus = op == BinaryOp::Sub;
        if let Some((a, b)) = self.factors_to_fuse(left, &first) {
            let addend = if minus { negated(second.value.value) } else { second.value.value };
            return Ok(fma(a, b, addend).map(Number::exact));
        }
        if let Some((a, b)) = self.factors_to_fuse(right, &second) {
            let a = if minus { negated(a) } else { a };
            return Ok(fma(a, b, first.value.value).map(Number::exact));
        }
        Ok(super::arithmetic::binary(op, first.value, second.value, &self.model))
    }

    /// What a term is the product of, if this rounding fuses it with the sum.
    pub(super) fn factors_to_fuse(&self, expr: &Expr, term: &Term) -> Option<(Plain, Plain)> {
        let (a, b) = term.factors?;
        let bit = *self.sites.bits.get(&std::ptr::from_ref(expr))?;
        let fuses = match self.model.rounding? {
            Rounding::Fused(bits) => bit != SHARED && bits >> bit.min(63) & 1 == 1,
            chance => {
                let salt = a.as_float()?.to_bits() ^ b.as_float()?.to_bits().rotate_left(17);
                chance.noise(salt ^ u64::from(bit)) > 0.0
            }
        };
        fuses.then_some((a, b))
    }

    pub(super) fn term(&mut self, expr: &'a Expr) -> Run<Term> {
        match &expr.kind {
            ExprKind::Binary { op: BinaryOp::Mul, left, right } if is_product(expr, &[]) => {
                self.step()?;
                let (a, b) = (self.number(left)?, self.number(right)?);
                match super::arithmetic::binary(BinaryOp::Mul, a, b, &self.model) {
                    Some(value) => Ok(Term { value, factors: Some((a.value, b.value)) }),
                    None => self.malformed("an operation does not take operands of these types", expr.span),
                }
            }
            ExprKind::Negate(operand) => {
                let term = self.term(operand)?;
                Ok(Term {
                    value: Number { value: negated(term.value.value), ..term.value },
                    factors: term.factors.map(|(a, b)| (negated(a), b)),
                })
            }
            ExprKind::Block(Block { statements, value: Some(value) }) => {
                self.statements(statements)?;
                self.term(value)
            }
            ExprKind::Local(local) => {
                let factors = self.products.get(local.as_u32() as usize).copied().flatten();
                Ok(Term { value: self.number(expr)?, factors })
            }
            _ => Ok(Term { value: self.number(expr)?, factors: None }),
        }
    }

    /// The value that a name is given; what it is the product of is kept beside it.
    pub(super) fn given(&mut self, local: LocalId, value: &'a Expr) -> Run<Value> {
        let at = local.as_u32() as usize;
        let bounded = self.model.rounding.is_none();
        if bounded || !value.ty.as_scalar().is_some_and(|scalar| scalar.is_float()) {
            return self.value(value);
        }
        let term = self.term(value)?;
        if let Some(kept) = self.products.get_mut(at) {
            *kept = term.factors;
        }
        Ok(Value::Number(term.value))
    }
}

fn negated(value: Plain) -> Plain {
    match value {
        Plain::F32(a) => Plain::F32(-a),
        Plain::F64(a) => Plain::F64(-a),
        Plain::I32(a) => Plain::I32(a.wrapping_neg()),
        Plain::I64(a) => Plain::I64(a.wrapping_neg()),
        Plain::U32(a) => Plain::U32(a.wrapping_neg()),
        Plain::U64(a) => Plain::U64(a.wrapping_neg()),
        Plain::Bool(a) => Plain::Bool(a),
    }
}

/// `a * b + c`, rounded once.
pub(super) fn fma(a: Plain, b: Plain, c: Plain) -> Option<Plain> {
    match (a, b, c) {
        (Plain::F32(a), Plain::F32(b), Plain::F32(c)) => Some(Plain::F32(libm::fmaf(a, b, c))),
        (Plain::F64(a), Plain::F64(b), Plain::F64(c)) => Some(Plain::F64(libm::fma(a, b, c))),
        _ => None,
    }
}
