//! Bounds: each subscript is proved to lie inside its extent, or is checked on the device; one that never does
//! is an error.

use super::vocabulary::Poly;
use super::walker::Walker;
use crate::check::typed::*;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;

/// What happens to an access outside of the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// The device reports it.
    Checked,
    /// The `else` value stands.
    Guarded,
}

enum Verdict {
    Inside,
    Unknown,
    /// For every iteration that there is.
    Never,
}

impl Walker<'_> {
    /// Walks the subscripts of an access and marks each; gives them.
    pub fn access(&mut self, access: &mut Access, outside: Outside) -> Vec<Poly> {
        let mut place = Vec::with_capacity(access.subscripts.len());
        for (axis, (subscript, check)) in access.subscripts.iter_mut().zip(&mut access.checks).enumerate() {
            let index = self.integer(subscript);
            let extent = self.extents[access.array].get(axis).cloned().unwrap_or_default();
            *check = match (self.verdict(&index, &extent), outside) {
                (Verdict::Inside, _) => BoundsCheck::Proved,
                (_, Outside::Guarded) => BoundsCheck::Guarded,
                (Verdict::Unknown, Outside::Checked) => {
                    let array = self.kernel.arrays[access.array].name.clone();
                    BoundsCheck::Runtime(self.sites.push(Site::new(subscript, array, axis)))
                }
                (Verdict::Never, Outside::Checked) => {
                    self.report_outside(access.array, axis, subscript.span);
                    BoundsCheck::Proved
                }
            };
            place.push(index);
        }
        place
    }

    fn verdict(&mut self, index: &Poly, extent: &Poly) -> Verdict {
        let last = extent.subtract(index).and_then(|room| room.add_constant(-1));
        if self.facts.proves(index) && last.as_ref().is_some_and(|room| self.facts.proves(room)) {
            return Verdict::Inside;
        }
        let below = index.negate().and_then(|negated| negated.add_constant(-1));
        let above = index.subtract(extent);
        if [below, above].into_iter().flatten().any(|goal| self.facts.proves(&goal)) {
            return Verdict::Never;
        }
        Verdict::Unknown
    }

    fn report_outside(&mut self, array: ArrayId, axis: usize, span: Span) {
        let array = &self.kernel.arrays[array];
        self.diagnostics.push(
            Diagnostic::error(
                codes::E0401,
                span,
                format!("this subscript of `{}` is always outside of the array", array.name),
                format!("never inside axis {axis} of `{}`", array.name),
            )
            .label(array.span, format!("`{}` has its extents here", array.name))
            .help(format!(
                "subscripts run from 0 to the extent minus 1; for a value outside write `{}[…] else 0`",
                array.name
            )),
        );
    }

    /// The check for a subscript into a fixed array of a struct.
    pub fn element(
        &mut self,
        index: &Poly,
        length: u64,
        subscript: &Expr,
        name: &str,
        outside: Outside,
    ) -> BoundsCheck {
        match (self.verdict(index, &Poly::constant(length as i128)), outside) {
            (Verdict::Inside, _) => BoundsCheck::Proved,
            (_, Outside::Guarded) => BoundsCheck::Guarded,
            (Verdict::Never, Outside::Checked) => {
                self.diagnostics.push(
                    Diagnostic::error(
                        codes::E0402,
                        subscript.span,
                        format!("this subscript into a fixed array of `{name}` is always outside"),
                        format!("the array has {length} elements"),
                    )
                    .help(match length {
                        0 => String::from("a fixed array without elements has nothing to read"),
                        _ => format!("use a subscript from 0 to {}", length - 1),
                    }),
                );
                BoundsCheck::Proved
            }
            (Verdict::Unknown, Outside::Checked) => {
                BoundsCheck::Runtime(self.sites.push(Site::new(subscript, name.to_string(), 0)))
            }
        }
    }
}
