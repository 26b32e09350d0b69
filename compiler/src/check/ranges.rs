//! Ranges of index names: explicit ones, and those inferred from the dimensions that a name subscripts bare.

use super::elaborator::{Elaborator, axis, int64};
use super::evaluate::evaluate;
use super::occurrences::{Node, Occurrence, Within};
use super::polynomial::{difference, same_value};
use super::spell::spell_ranged;
use super::typed::{Axis, BinaryOp, Expr, ExprKind, IndexId, Type};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, AxisDecl, Ident, Range};

/// Where a name is bound that has no range of its own.
#[derive(Clone, Copy)]
pub(super) enum BoundBy<'e> {
    /// On the left side of an assignment, which is this.
    Left(&'e ast::Expr),
    /// By a `forall`, a reduction or a local array.
    Axes,
}

/// An inferred (or written) range; the second of each pair is exclusive.
pub(super) struct Bounds {
    pub low: Expr,
    pub high: Expr,
    /// Written with `..=`.
    pub closed: bool,
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// The axes of a `forall`, a reduction or a local array, bound in the current scope. Names without a range
    /// get theirs from their bare occurrences under `nodes`. Where one cannot be had it is poisoned and the
    /// result is `None`; the caller still elaborates the body, for its mistakes.
    pub fn axes(&mut self, decls: &'a [AxisDecl], nodes: &[Node<'a>]) -> Option<Vec<Axis>> {
        let open: Vec<&str> =
            decls.iter().filter(|decl| decl.range.is_none()).map(|decl| decl.name.name.as_str()).collect();
        let found = self.occurrences(&open, nodes);
        let mut axes = Vec::with_capacity(decls.len());
        let mut sound = true;
        let mut next_open = 0;
        for decl in decls {
            let bounds = match &decl.range {
                Some(range) => self.explicit_range(range, false),
                None => {
                    next_open += 1;
                    // A name that is taken is refused for that alone.
                    if !self.fresh_index_name(&decl.name) {
                        sound = false;
                        continue;
                    }
                    self.inferred_range(&decl.name, next_open - 1, &found, (BoundBy::Axes, nodes))
                }
            };
            match bounds {
                Some(bounds) => {
                    let index = self.bind_index(&decl.name);
                    axes.push(axis(index, bounds));
                }
                None => {
                    self.failed = true;
                    sound = false;
                    if decl.range.is_none() || self.fresh_index_name(&decl.name) {
                        self.bind(&decl.name, super::scope::Binding::Poisoned);
                    }
                }
            }
        }
        sound.then_some(axes)
    }

    /// `lo..hi`, `lo..=hi` or `n`.
    /// `down`: of a loop that counts down, from the first end to the second one. The bounds are those of its counter, which
    /// counts up: both ends [turned around](Self::turned_around).
    pub fn explicit_range(&mut self, range: &'a Range, down: bool) -> Option<Bounds> {
        let low = match &range.low {
            Some(low) => self.index_expr(low),
            None => Some(int64(0, range.span)),
        };
        let high = self.index_expr(&range.high);
        let (mut low, mut high) = (low?, high?);
        if down {
            (low, high) = (self.turned_around(low), self.turned_around(high));
        }
        if range.inclusive {
            let span = high.span;
            let one = int64(1, span);
            high = self.make(
                ExprKind::Binary { op: BinaryOp::Add, left: Box::new(high), right: Box::new(one) },
                Type::I64,
                span,
            );
            high = fold(high);
        }
        if let (ExprKind::Int(first), ExprKind::Int(end)) = (&low.kind, &high.kind)
            && first > end
            && !(range.inclusive && *end == i128::from(i64::MIN))
        {
            self.report(
                Diagnostic::warning(
                    codes::W0301,
                    range.span,
                    match down {
                        true => {
                            "this range is always empty: it starts below its end, and the step is negative"
                                .into()
                        }
                        false => {
                            format!("this range is always empty: it starts at {first} and ends before {end}")
                        }
                    },
                    "nothing runs here",
                )
                .help(match down {
                    true => "swap its ends, or remove the loop",
                    false => "swap its ends, count down with `for k in … step -1`, or remove the loop",
                }),
            );
        }
        Some(Bounds { low, high, closed: range.inclusive })
    }

    /// `-1 - value`, which no i64 makes wrap around, and which is its own inverse.
    pub fn turned_around(&mut self, value: Expr) -> Expr {
        let span = value.span;
        let (left, right) = (Box::new(int64(-1, span)), Box::new(value));
        let kind = ExprKind::Binary { op: BinaryOp::Sub, left, right };
        fold(self.make(kind, Type::I64, span))
    }

    /// From the bare occurrences of the name at `position` in the list that was searched for. `None`: reported,
    /// or it depends on something that is reported elsewhere.
    pub fn inferred_range(
        &mut self,
        name: &Ident,
        position: usize,
        found: &[Occurrence],
        (place, nodes): (BoundBy<'_>, &[Node<'a>]),
    ) -> Option<Bounds> {
        let all = found.iter().filter(|occurrence| occurrence.name == position);
        let plain: Vec<&Occurrence> = all.clone().filter(|occurrence| !occurrence.guarded).collect();
        let used = if plain.is_empty() { all.collect() } else { plain };
        if used.is_empty() {
            let help = self.range_for(name, nodes);
            self.report(
                Diagnostic::error(
                    codes::E0303,
                    name.span,
                    format!("the range of `{}` cannot be inferred", name.name),
                    "it never stands bare as a subscript",
                )
                .help(help),
            );
            return None;
        }
        let known: Vec<(&Occurrence, &Expr)> =
            used.iter().filter_map(|occurrence| Some((*occurrence, occurrence.extent.as_ref()?))).collect();
        let Some(((first, extent), rest)) = known.split_first() else {
            self.unexplained.push((name.name.clone(), name.span));
            return None;
        };
        for (other, other_extent) in rest {
            if !same_value(extent, other_extent, &self.equalities) {
                self.report_disagreement(name, place, (first, extent), (other, other_extent));
                return None;
            }
        }
        let high = Expr { span: first.span, ..(*extent).clone() };
        Some(Bounds { low: int64(0, first.span), high, closed: false })
    }

    /// Ranges that could not be inferred because an array was unknown are not reported where that array is. If in
    /// the end nothing was reported at all (an array that only exists inside the range), they are.
    pub fn report_unexplained(&mut self) {
        if !self.failed || self.checker.has_errors() {
            return;
        }
        let extent = self.some_extent();
        for (name, span) in std::mem::take(&mut self.unexplained) {
            self.report(
                Diagnostic::error(
                    codes::E0303,
                    span,
                    format!("the range of `{name}` cannot be inferred"),
                    "what it subscripts is not known out here",
                )
                .help(format!("give its range: `{name} in {extent}`")),
            );
        }
    }

    /// What range to give a name that never stands bare: that of the axis that it says something about.
    fn range_for(&self, name: &Ident, nodes: &[Node<'a>]) -> String {
        let name = &name.name;
        match self.within_subscripts(name, nodes) {
            Some(Within { access, extent: Some(extent), guarded: false }) => {
                return format!(
                    "give its range: `{name} in {}`; where `{access}` would be outside, `{access} else 0.0` has a value",
                    self.describe(&extent)
                );
            }
            Some(Within { extent: Some(extent), guarded: true, .. }) => {
                return format!("give its range: `{name} in {}`", self.describe(&extent));
            }
            _ => {}
        }
        match self.within_ranges(name, nodes) {
            Some((inner, Occurrence { extent: Some(extent), axis, array, .. })) => format!(
                "give its range: `{name} in {}`, since it bounds `{inner}`, which runs along axis {axis} of `{array}`",
                self.describe(&extent)
            ),
            _ => format!("give its range: `{name} in {}`", self.some_extent()),
        }
    }

    /// The first dimension, for examples; a number where there is none.
    fn some_extent(&self) -> String {
        self.kernel.dims.values().next().map_or("10".to_string(), |dim| dim.name.clone())
    }

    fn report_disagreement(
        &mut self,
        name: &Ident,
        place: BoundBy<'_>,
        (first, first_extent): (&Occurrence, &Expr),
        (other, other_extent): (&Occurrence, &Expr),
    ) {
        let one = self.describe(first_extent);
        let two = self.describe(other_extent);
        self.report(
            Diagnostic::error(
                codes::E0302,
                other.span,
                format!("`{}` would run over `{one}` and over `{two}`", name.name),
                format!("axis {} of `{}` has extent `{two}`", other.axis, other.array),
            )
            .label(first.span, format!("axis {} of `{}` has extent `{one}`", first.axis, first.array))
            .help(match place {
                // They may be equal; `d` and `2 * d` are so at 0 alone.
                _ if difference(first_extent, other_extent).is_none_or(|d| d.terms().len() > 1) => {
                    format!(
                        "give its range: `{} in 0..{one}`, or state `where {one} == {two}` if they are equal",
                        name.name
                    )
                }
                BoundBy::Left(target) => {
                    format!(
                        "give its range on the left side: `{} = …`",
                        spell_ranged(target, &name.name, &one)
                    )
                }
                BoundBy::Axes => format!("give its range where it is bound: `{} in {one}`", name.name),
            }),
        );
    }

    /// A shape expression as text: dimensions and parameters by name.
    pub fn describe(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Int(value) => value.to_string(),
            ExprKind::Dim(id) => self.kernel.dims[*id].name.clone(),
            ExprKind::Param(id) => self.kernel.params[*id].name.clone(),
            ExprKind::Index(id) => self.kernel.indices[*id].name.clone(),
            ExprKind::Local(id) => self.kernel.locals[*id].name.clone(),
            ExprKind::Cast { operand, .. } => self.describe(operand),
            ExprKind::Negate(operand) => format!("-{}", self.describe_operand(operand)),
            ExprKind::Binary { op, left, right } => {
                let op = match op {
                    BinaryOp::Add => "+",
                    BinaryOp::Sub => "-",
                    BinaryOp::Mul => "*",
                    BinaryOp::Div => "/",
                    BinaryOp::Rem => "%",
                    BinaryOp::And => "&",
                    BinaryOp::Or => "|",
                    BinaryOp::Xor => "^",
                    BinaryOp::Shl => "<<",
                    BinaryOp::Shr => ">>",
                };
                format!("{} {op} {}", self.describe_operand(left), self.describe_operand(right))
            }
            ExprKind::Call { builtin, arguments } => {
                let arguments: Vec<String> =
                    arguments.iter().map(|argument| self.describe(argument)).collect();
                format!("{}({})", builtin.name(), arguments.join(", "))
            }
            _ => "…".to_string(),
        }
    }

    pub fn describe_operand(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Binary { .. } => format!("({})", self.describe(expr)),
            _ => self.describe(expr),
        }
    }

    /// Refuses axes that the host could not evaluate before a launch over the whole grid; a later axis' range may
    /// use an earlier axis' name. Kernel-level `let` names are replaced by their values.
    pub fn grid_axes(&mut self, axes: Vec<Axis>) -> Option<Vec<Axis>> {
        if !self.at_kernel_level {
            return Some(axes);
        }
        let mut allowed: Vec<IndexId> = Vec::with_capacity(axes.len());
        let mut result = Vec::with_capacity(axes.len());
        for axis in axes {
            let low = self.launch_bound(axis.low.clone(), &allowed);
            let high = self.launch_bound(axis.high.clone(), &allowed);
            allowed.push(axis.index);
            result.push(Axis { low: low?, high: high?, ..axis });
        }
        Some(result)
    }

    /// A bound that the host evaluates, or an error that names what it cannot know.
    pub fn launch_bound(&mut self, bound: Expr, allowed: &[IndexId]) -> Option<Expr> {
        match self.host_expr(&bound, allowed) {
            Ok(bound) => Some(bound),
            Err(culprit) if culprit.too_long => self.refuse(culprit.too_long()),
            Err(culprit) => self.refuse(data_dependent(bound.span, culprit.span)),
        }
    }
}

fn data_dependent(span: Span, culprit: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        codes::E0308,
        span,
        "the size of a launch cannot depend on data that is computed on the device",
        "this bound must be known before the kernel is launched",
    )
    .help("pass the bound as an integer parameter, or loop inside a `forall`");
    if culprit == span { diagnostic } else { diagnostic.label(culprit, "this is only known on the device") }
}

/// A constant integer expression as a literal; anything else as it is.
pub(super) fn fold(expr: Expr) -> Expr {
    if matches!(expr.kind, ExprKind::Int(_)) {
        return expr;
    }
    match evaluate(&expr).and_then(|value| value.as_int()) {
        Some(value) => Expr { kind: ExprKind::Int(value), ..expr },
        None => expr,
    }
}
