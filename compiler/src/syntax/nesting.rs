//! Refusing items whose syntax tree would be too high, before it is built.
//!
//! The parser and every walk over the tree recurse, and the stack of a thread is finite. This pass bounds,
//! from the tokens alone and in linear time, how deep brackets nest (which bounds the parser) and how high
//! the tree gets (which bounds everything that comes after, dropping the tree included). The bound on the
//! height counts every operator of an expression, whatever its precedence.

use super::token::{Token, TokenKind};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;

/// Brackets within brackets.
pub const MAX_DEPTH: usize = 64;

/// Height of an expression: operators in a row plus brackets around and within them.
pub const MAX_HEIGHT: usize = 256;

/// A run of tokens between separators.
#[derive(Clone, Copy, Default)]
struct Segment {
    /// Operators directly in the run, and the height of the highest bracket within it.
    operators: usize,
    within: usize,
}

/// One open bracket.
struct Frame {
    segment: Segment,
    highest: usize,
    kind: TokenKind,
}

/// Checks one item's tokens (balanced, with line ends) and says what is too deep.
pub fn check(tokens: &[Token]) -> Option<Diagnostic> {
    use TokenKind as T;
    let mut frames = vec![Frame { segment: Segment::default(), highest: 0, kind: T::OpenBrace }];
    for token in tokens {
        let kind = token.kind;
        if kind.is_opening() {
            if frames.len() > MAX_DEPTH {
                let what = format!("brackets nest deeper than {MAX_DEPTH} levels");
                return Some(too_deep(
                    token.span,
                    what,
                    "name parts of it with `let`, or move them into a `fn`",
                ));
            }
            frames.push(Frame { segment: Segment::default(), highest: 0, kind });
            continue;
        }
        if kind.is_closing() && frames.len() > 1 {
            let Some(closed) = frames.pop() else { continue };
            let height = closed.highest.max(closed.segment.operators + closed.segment.within) + 1;
            let Some(frame) = frames.last_mut() else { continue };
            frame.segment.within = frame.segment.within.max(height);
            // `a[i][j]` and `f(x)(y)` grow with every pair; blocks beside each other do not.
            frame.segment.operators += usize::from(closed.kind != T::OpenBrace);
        }
        let Some(frame) = frames.last_mut() else { continue };
        let segment = &mut frame.segment;
        if matches!(kind, T::LineEnd | T::Semicolon | T::Comma) || kind.is_assignment() {
            frame.highest = frame.highest.max(segment.operators + segment.within);
            *segment = Segment::default();
            continue;
        }
        if kind == T::Else {
            // A link of an `else if` chain is a block within a block.
            segment.operators += 2;
        } else if kind.is_binary_operator() || matches!(kind, T::Bang | T::Dot | T::As) {
            segment.operators += 1;
        }
        if segment.operators + segment.within > MAX_HEIGHT {
            let what = format!("more than {MAX_HEIGHT} operators in a row, brackets included");
            let help =
                "put parentheses around parts of it, `(a + … + b) + (c + … + d)`, or name parts with `let`";
            return Some(too_deep(token.span, what, help));
        }
    }
    None
}

fn too_deep(span: Span, what: String, help: &str) -> Diagnostic {
    Diagnostic::error(codes::E0013, span, what, "the limit is passed here").help(help)
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;
    use crate::diagnostic::Diagnostics;
    use crate::source::SourceFile;

    fn refused(text: &str) -> bool {
        let tokens = lex(&SourceFile::new("t.krn", text), &mut Diagnostics::new());
        check(&tokens).is_some()
    }

    #[test]
    fn depth_and_height_are_bounded_and_neighbours_are_not() {
        assert!(refused(&"(".repeat(MAX_DEPTH + 1)));
        assert!(!refused(&("(".repeat(MAX_DEPTH) + &")".repeat(MAX_DEPTH))));
        assert!(refused(&"- ".repeat(300)));
        assert!(refused(&"a + ".repeat(300)));
        assert!(refused(&format!("a{}", "[i]".repeat(300))));
        assert!(refused(&"if a { } else ".repeat(200)));
        // What the message says to write instead.
        let part = format!("({}a)", "a + ".repeat(150));
        assert!(!refused(&format!("{part} + {part} + {part}")));
        assert!(!refused(&"a + b; ".repeat(300)));
        assert!(!refused(&format!("f({})", "a + b, ".repeat(300))));
        assert!(!refused(&"for i in n { a += b; } ; ".repeat(300)));
    }
}
