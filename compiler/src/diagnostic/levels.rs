//! What becomes of a warning: shown, left out, or made an error. The file says it for a part of the text (`allow` and
//! `deny` in a schedule), the caller for the whole file.
//!
//! What stands in the file counts before what the caller says, and a code before all warnings together.

use super::{Code, Diagnostics, Severity, codes};
use crate::source::Span;

/// What becomes of a warning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Left out.
    Allow,
    /// An error.
    Deny,
}

/// What the file says of one code, for warnings within some spans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScopedLevel {
    pub code: Code,
    pub level: Level,
    pub scopes: Vec<Span>,
}

/// What the caller says for a whole file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Levels {
    /// Of one code each; the last one counts.
    pub codes: Vec<(Code, Level)>,
    /// What becomes of all warnings of which nothing else is said.
    pub all: Option<Level>,
}

/// The warning of this name, in any case; none for errors and unknown codes.
pub fn warning(name: &str) -> Option<Code> {
    let known = codes::ALL.iter().map(|(code, ..)| *code);
    known.filter(is_warning).find(|code| code.0.eq_ignore_ascii_case(name))
}

/// The names of all warnings.
pub fn warnings() -> Vec<&'static str> {
    codes::ALL.iter().map(|(code, ..)| *code).filter(is_warning).map(|code| code.0).collect()
}

fn is_warning(code: &Code) -> bool {
    code.0.starts_with('W')
}

impl Levels {
    /// What becomes of warnings of this code, where the file says nothing.
    pub fn of(&self, code: Code) -> Option<Level> {
        let said = self.codes.iter().rev().find(|(known, _)| *known == code).map(|(_, level)| *level);
        said.or(self.all)
    }
}

/// Leaves out the warnings that are allowed and makes errors of those that are denied. Of two settings of a file for one
/// place the later one counts.
pub fn apply(diagnostics: Diagnostics, file: &[ScopedLevel], caller: &Levels) -> Diagnostics {
    let mut kept = Diagnostics::new();
    for mut diagnostic in diagnostics.list {
        if diagnostic.severity == Severity::Warning {
            let at = diagnostic.primary.span;
            let within = |span: &Span| span.start <= at.start && at.end <= span.end;
            let said = file
                .iter()
                .rev()
                .find(|said| said.code == diagnostic.code && said.scopes.iter().any(within))
                .map(|said| said.level);
            match said.or_else(|| caller.of(diagnostic.code)) {
                Some(Level::Allow) => continue,
                Some(Level::Deny) => diagnostic.severity = Severity::Error,
                None => {}
            }
        }
        kept.push(diagnostic);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::Diagnostic;
    use super::*;

    fn outcome(file: &[ScopedLevel], caller: &Levels) -> Vec<(Code, Severity)> {
        let mut all = Diagnostics::new();
        all.push(Diagnostic::warning(codes::W0101, Span::new(2, 4), "unused", "here"));
        all.push(Diagnostic::warning(codes::W0501, Span::new(12, 14), "broken", "here"));
        all.push(Diagnostic::error(codes::E0101, Span::new(3, 4), "unknown", "here"));
        apply(all, file, caller).iter().map(|one| (one.code, one.severity)).collect()
    }

    #[test]
    fn the_file_goes_before_the_caller_and_a_code_before_all() {
        let (warning, error) = (Severity::Warning, Severity::Error);
        let rest = (codes::E0101, error);
        let nothing = Levels::default();
        let expected = [(codes::W0101, warning), (codes::W0501, warning), rest];
        assert_eq!(outcome(&[], &nothing), expected);
        let all = Levels { codes: vec![(codes::W0501, Level::Allow)], all: Some(Level::Deny) };
        assert_eq!(outcome(&[], &all), [(codes::W0101, error), rest]);
        let scoped = |level, span| ScopedLevel { code: codes::W0101, level, scopes: vec![span] };
        let allowed = [scoped(Level::Allow, Span::new(0, 10))];
        assert_eq!(outcome(&allowed, &all), [rest]);
        let elsewhere = [scoped(Level::Allow, Span::new(3, 10))];
        assert_eq!(outcome(&elsewhere, &all), [(codes::W0101, error), rest]);
        let none = Levels { codes: vec![(codes::W0501, Level::Deny)], all: Some(Level::Allow) };
        assert_eq!(outcome(&[], &none), [(codes::W0501, error), rest]);
        let denied = [scoped(Level::Deny, Span::new(0, 10))];
        assert_eq!(outcome(&denied, &nothing), [(codes::W0101, error), (codes::W0501, warning), rest]);
    }

    #[test]
    fn only_warnings_have_levels() {
        assert_eq!(warning("w0501"), Some(codes::W0501));
        assert_eq!(warning("E0501"), None);
        assert_eq!(warning("W9999"), None);
        assert!(warnings().contains(&"W0101"));
    }
}
