//! `allow W0601` and `deny W0601`: what becomes of warnings about the kernel, and about the schedule itself.

use crate::check::elaborator::Elaborator;
use crate::check::items::nearest_or;
use crate::check::typed::LevelDirective;
use crate::diagnostic::levels::{self, Level};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, DirectiveValue};

impl<'a> Elaborator<'_, 'a> {
    pub(super) fn level_directive(
        &mut self,
        directive: &'a ast::Directive,
        seen: &mut Vec<(String, Span)>,
        out: &mut Vec<LevelDirective>,
    ) {
        let word = directive.name.name.as_str();
        let level = if word == "allow" { Level::Allow } else { Level::Deny };
        if directive.arguments.is_empty() {
            let _: Option<()> = self.malformed(directive.span, word);
        }
        for argument in &directive.arguments {
            let (DirectiveValue::Name(name), None, true) =
                (&argument.subject, &argument.value, argument.modifiers.is_empty())
            else {
                let _: Option<()> = self.malformed(argument.span, word);
                continue;
            };
            let Some(code) = levels::warning(&name.name).filter(|code| code.0 == name.name) else {
                let known = levels::warnings();
                let help = nearest_or(&name.name, &known, format!("the warnings are {}", known.join(", ")));
                self.report(
                    Diagnostic::error(
                        codes::E0518,
                        name.span,
                        format!("there is no warning `{}`", name.name),
                        "not the code of a warning",
                    )
                    .help(help),
                );
                continue;
            };
            self.once(&format!("the level of {code}", code = code.0), name.span, seen);
            out.push(LevelDirective { level, code, span: name.span });
        }
    }
}
