//! `hint` lines: the directives of a kernel's schedule, with names in quotes.

use super::cursor::Parser;
use super::error::ParseError;
use super::span::{PrintOptions, print_span};
use crate::ir::schedule::{Directive, Outcome, Placement, Schedule, Scheduled};
use std::fmt::Write as _;

pub(super) fn print_schedule(text: &mut String, schedule: &Schedule, options: PrintOptions) {
    for scheduled in &schedule.directives {
        let directive = &scheduled.directive;
        let _ = write!(text, "    hint {}", directive.word());
        if let Some(subject) = directive.subject() {
            let _ = write!(text, " {subject:?}");
        }
        let _ = match directive {
            Directive::Block(number)
            | Directive::Tile { size: number, .. }
            | Directive::PerThread { count: number, .. }
            | Directive::Unroll { factor: Some(number), .. }
            | Directive::Vectorize { width: number, .. }
            | Directive::Warps { count: number, .. }
            | Directive::Split { pieces: number, .. } => write!(text, " {number}"),
            Directive::Order(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                write!(text, " [{}]", names.join(", "))
            }
            Directive::Stage { place, depth, .. } => {
                let _ = place.map_or(Ok(()), |place| write!(text, " {place}"));
                depth.map_or(Ok(()), |depth| write!(text, " depth {depth}"))
            }
            // Lowering carries these out: the buffer has them.
            Directive::Unroll { factor: None, .. }
            | Directive::Atomic { .. }
            | Directive::FastMath
            | Directive::Tf32
            | Directive::Layout { .. }
            | Directive::Cache { .. } => Ok(()),
        };
        let _ = writeln!(text, "{}", print_span(scheduled.span, options));
    }
}

impl Parser<'_> {
    /// What stands after `hint`.
    pub(super) fn hint(&mut self) -> Result<(), ParseError> {
        let wanted = "a directive";
        let word = self.word(wanted)?;
        let directive = match word {
            "block" => Directive::Block(self.int()?),
            "order" => Directive::Order(self.list("[", "]", |parser| parser.string())?),
            "tile" => Directive::Tile { axis: self.string()?, size: self.int()? },
            "per_thread" => Directive::PerThread { axis: self.string()?, count: self.int()? },
            "vectorize" => Directive::Vectorize { axis: self.string()?, width: self.int()? },
            "warps" => Directive::Warps { axis: self.string()?, count: self.int()? },
            "split" => Directive::Split { axis: self.string()?, pieces: self.int()? },
            "atomic" => Directive::Atomic { array: self.string()? },
            "fast_math" => Directive::FastMath,
            "tf32" => Directive::Tf32,
            "unroll" => Directive::Unroll { axis: self.string()?, factor: self.int().ok() },
            "stage" => {
                let array = self.string()?;
                let place = if self.take_word("pad") {
                    Some(Placement::Pad(self.int()?))
                } else if self.take_word("swizzle") {
                    Some(Placement::Swizzle)
                } else {
                    None
                };
                let depth = if self.take_word("depth") { Some(self.int()?) } else { None };
                Directive::Stage { array, place, depth }
            }
            _ => return Err(self.unexpected_before(wanted)),
        };
        let scheduled = Scheduled { directive, span: self.span()?, outcome: Outcome::Open };
        self.kernel.schedule.directives.push(scheduled);
        Ok(())
    }
}
