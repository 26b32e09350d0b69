//! `schedule k where m >= 4096 { … }`: the sizes for which a schedule counts.

use crate::check::elaborator::{Elaborator, Home};
use crate::check::spell::spell;
use crate::check::typed::{Condition, Expr, ExprKind, Type};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::ast::{self, ScheduleItem};

/// What stands behind `where`, as the source says it; nothing where there is no `where`.
pub(super) fn condition_text(item: &ScheduleItem) -> String {
    let texts: Vec<String> = item.conditions.iter().map(spell).collect();
    texts.join(", ")
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// The conditions behind `where` as one; `None` where one of them is wrong.
    pub(super) fn schedule_condition(&mut self, item: &'a ScheduleItem) -> Option<Condition> {
        let mut known = Vec::with_capacity(item.conditions.len());
        for condition in &item.conditions {
            known.push(self.size_condition(condition));
        }
        let (first, last) = (item.conditions.first()?, item.conditions.last()?);
        let known = known.into_iter().collect::<Option<Vec<Expr>>>()?;
        let value = known.into_iter().reduce(|left, right| {
            let span = left.span.to(right.span);
            let kind = ExprKind::Logical { and: true, left: left.into(), right: right.into() };
            Expr { kind, ty: Type::BOOL, span }
        })?;
        Some(Condition { value, text: condition_text(item), span: first.span.to(last.span) })
    }

    fn size_condition(&mut self, condition: &'a ast::Expr) -> Option<Expr> {
        let home = std::mem::replace(&mut self.home, Home::Shape);
        self.index_context = true;
        let value = self.expr_of(condition, &Type::BOOL, "the condition of a schedule");
        self.index_context = false;
        self.home = home;
        match self.host_expr(&value?, &[]) {
            Ok(value) => Some(value),
            Err(culprit) => self.refuse(
                Diagnostic::error(
                    codes::E0520,
                    condition.span,
                    "the condition of a schedule can only speak of dimensions, scalar parameters and constants",
                    "decides which code a launch runs",
                )
                .label(culprit.span, "this is not known when the kernel is called")
                .help("ask for sizes and scalar parameters only, such as `where m >= 4096`"),
            ),
        }
    }

    /// `layout`, `allow` and `deny` say something of the kernel, whatever its sizes.
    pub(super) fn whatever_the_sizes(&mut self, directive: &'a ast::Directive) {
        let word = &directive.name.name;
        let (why, help) = match word.as_str() {
            "layout" => (
                "arrays lie in memory before anybody knows what a launch needs",
                "write it in the schedule without `where`: it holds for all sizes",
            ),
            _ => (
                "a warning is about the kernel, not about some of its sizes",
                "write it in the schedule without `where`",
            ),
        };
        self.report(
            Diagnostic::error(
                codes::E0521,
                directive.span,
                format!("`{word}` cannot depend on sizes: {why}"),
                "in a schedule for some sizes",
            )
            .help(help),
        );
    }
}
