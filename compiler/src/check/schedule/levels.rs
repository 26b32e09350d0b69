//! `allow W0601` and `deny W0601`: what becomes of warnings about the kernel, and about the schedule itself; in a schedule
//! without a kernel, of all in the file.

use super::{given_twice, malformed};
use crate::check::items::Checker;
use crate::check::typed::LevelDirective;
use crate::diagnostic::levels::{self, Level};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, DirectiveValue, Item};

impl<'a> Checker<'a> {
    /// What the schedules without a kernel say of warnings, in source order.
    pub fn levels_of_file(&mut self) -> Vec<LevelDirective> {
        let file = self.file;
        let (mut levels, mut seen) = (Vec::new(), Vec::new());
        for item in &file.items {
            let Item::Schedule(item) = item else { continue };
            if item.kernel.is_some() {
                continue;
            }
            if let Some(target) = &item.target {
                self.only_levels(target.span, "a target");
            }
            if let Some(condition) = item.conditions.first() {
                self.only_levels(condition.span, "a condition on sizes");
            }
            for directive in &item.directives {
                match directive.name.name.as_str() {
                    "allow" | "deny" => self.level_directive(directive, &mut seen, &mut levels),
                    word => self.only_levels(directive.span, &format!("`{word}`")),
                }
            }
        }
        levels
    }

    fn only_levels(&mut self, span: Span, what: &str) {
        self.report(
            Diagnostic::error(
                codes::E0519,
                span,
                format!("{what} in the schedule of the whole file"),
                "about a kernel, and none is named",
            )
            .help("name the kernel, `schedule transpose { … }`; for all kernels there are `allow W0601` and `deny W0601`"),
        );
    }

    pub(super) fn level_directive(
        &mut self,
        directive: &'a ast::Directive,
        seen: &mut Vec<(String, Span)>,
        out: &mut Vec<LevelDirective>,
    ) {
        let word = directive.name.name.as_str();
        let level = if word == "allow" { Level::Allow } else { Level::Deny };
        if directive.arguments.is_empty() {
            self.report(malformed(directive.span, word));
        }
        for argument in &directive.arguments {
            let (DirectiveValue::Name(name), None, true) =
                (&argument.subject, &argument.value, argument.modifiers.is_empty())
            else {
                self.report(malformed(argument.span, word));
                continue;
            };
            let Some(code) = levels::warning(&name.name).filter(|code| code.0 == name.name) else {
                let known = levels::warnings();
                self.report(
                    Diagnostic::error(
                        codes::E0518,
                        name.span,
                        format!("there is no warning `{}`", name.name),
                        "not the code of a warning",
                    )
                    .nearest_or(
                        &name.name,
                        known.iter().copied(),
                        format!("the warnings are {}", known.join(", ")),
                    ),
                );
                continue;
            };
            if let Some(twice) = given_twice(&format!("the level of {}", code.0), name.span, seen) {
                self.report(twice);
            }
            out.push(LevelDirective { level, code, span: name.span });
        }
    }
}
