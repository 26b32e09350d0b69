//! What holds from the launch on: the kernel's `where` facts and the extents of its arrays.
//!
//! An equality that determines a dimension or a parameter (`n == 2 * h`, `k % 32 == 0`) becomes its definition,
//! used wherever the name stands; everything else is a fact.

use super::vocabulary::{DIMENSION_LIMIT, Interval, Operation, Poly};
use super::walker::Walker;
use crate::algebra::Injective;
use crate::check::typed::*;
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};

impl Walker<'_> {
    /// Learns the facts and extents of the kernel. The launch checks hold them without wrapping.
    pub fn learn_assumptions(&mut self) {
        self.exact = true;
        let kernel = self.kernel;
        for fact in &kernel.facts {
            let truth = self.condition(&mut fact.condition.clone());
            self.definitions.learn(&mut self.facts.atoms, &truth.yes);
        }
        for fact in &kernel.facts {
            self.learn_limits(&fact.condition);
        }
        self.learn_extents();
        for fact in &kernel.facts {
            let truth = self.condition(&mut fact.condition.clone());
            for known in &truth.yes {
                let opposite = known.negate().and_then(|negated| negated.add_constant(-1));
                if !self.facts.is_contradictory() && opposite.is_some_and(|goal| self.facts.proves(&goal)) {
                    self.report_never(fact);
                    break;
                }
                self.facts.assume(known.clone());
            }
        }
        // Facts about parameters may have made more of the extents known to be in range.
        self.exact = false;
    }

    /// Takes the kernel's facts about values for true, and gives each a site for its check.
    pub fn learn_injections(&mut self) {
        let kernel = self.kernel;
        self.exact = true;
        for (number, injection) in kernel.injections.iter().enumerate() {
            let (low, high) =
                (self.integer(&mut injection.low.clone()), self.integer(&mut injection.high.clone()));
            self.facts.injective.push(Injective { operation: Operation::Load(injection.array), low, high });
            let array = &kernel.arrays[injection.array];
            self.sites.push(Site {
                span: injection.span,
                array: array.name.clone(),
                axis: 0,
                unsigned: array.ty.as_scalar() == Some(Scalar::U64),
                injection: Some(number),
                assertion: None,
                print: None,
                printed: false,
            });
        }
        self.exact = false;
    }

    fn report_never(&mut self, fact: &Fact) {
        self.diagnostics.push(
            Diagnostic::error(
                codes::E0410,
                fact.span,
                format!("the fact `{}` can never hold", fact.text),
                "no launch would pass this check",
            )
            .help("dimensions are at least 0 and below 2^48; state a fact that some launch satisfies"),
        );
    }

    /// The launch checks that what it evaluates does not wrap around: a narrow type says something of the operands.
    fn learn_limits(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Binary { left, right, .. } => {
                self.learn_limits(left);
                self.learn_limits(right);
            }
            ExprKind::Negate(operand) | ExprKind::Cast { operand, .. } => self.learn_limits(operand),
            ExprKind::Compare { left, right, .. } => {
                self.learn_limits(left);
                self.learn_limits(right);
            }
            // Where the left side decides, the right one is not evaluated.
            ExprKind::Logical { left, .. } => self.learn_limits(left),
            _ => {}
        }
        let computes = match &expression.kind {
            ExprKind::Binary { op, .. } => matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul),
            ExprKind::Negate(_) => true,
            _ => false,
        };
        let scalar = expression.ty.as_scalar().filter(|scalar| scalar.is_integer() && scalar.size() < 8);
        if let Some(scalar) = scalar.filter(|_| computes) {
            let value = self.integer(&mut expression.clone());
            let range = Interval::of(scalar);
            self.assume_between(&value, range.low, range.high);
        }
    }

    /// Evaluates every extent, and assumes of it what the launch checks.
    fn learn_extents(&mut self) {
        let kernel = self.kernel;
        // A definition must keep its name's own range.
        for (atom, value) in self.definitions.all() {
            let range = self.facts.atoms.get(atom).range;
            self.assume_between(&value, range.low, range.high);
        }
        for (array, data) in &kernel.arrays {
            data.extents.iter().for_each(|extent| self.learn_limits(extent));
            let extents: Vec<Poly> =
                data.extents.iter().map(|extent| self.integer(&mut extent.clone())).collect();
            // The product of some extents is no more than that of all, since one of 0 counts as 1.
            (0..extents.len()).for_each(|first| self.assume_products(&extents[first..]));
            self.extents[array] = extents;
        }
    }

    /// Assumes of the first extent, of the first two, and so on, that there are no more elements than an array may have.
    fn assume_products(&mut self, extents: &[Poly]) {
        let mut product = Poly::constant(1);
        for extent in extents {
            let Some(more) = product.multiply(extent) else { return };
            product = more;
            self.assume_between(&product, 0, DIMENSION_LIMIT - 1);
        }
    }

    fn assume_between(&mut self, value: &Poly, low: i128, high: i128) {
        let above = value.add_constant(-low);
        let below = value.negate().and_then(|negated| negated.add_constant(high));
        for fact in [above, below].into_iter().flatten() {
            if !self.facts.all().contains(&fact) {
                self.facts.assume(fact);
            }
        }
    }
}
