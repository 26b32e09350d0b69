//! Refusing items whose syntax tree would be too high, before it is built.
//!
//! The parser and every walk over the tree recurse, and the stack of a thread is finite. This pass bounds,
//! from the tokens alone and in linear time, how deep brackets nest (which bounds the parser) and how high
//! the tree gets (which bounds everything that comes after, dropping the tree included). The height follows
//! from how operators bind: `a * b + c * d + …` grows by one with each `+`.

use super::token::{Token, TokenKind};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;

/// Brackets within brackets.
pub const MAX_DEPTH: usize = 64;

/// Height of an expression: operators in a row that bind alike, plus what stands in their operands.
pub const MAX_HEIGHT: usize = 256;

/// How much a link of an `else if` chain adds: a block within a block.
const LINK: usize = 2;

/// What signs, postfixes and `else` values belong to: they bind tighter than all between operands.
const OPERAND: usize = 11;

/// A run of tokens between separators.
#[derive(Clone, Copy, Default)]
struct Run {
    /// For each way to bind, the operators of the operand that goes on, and the height of the highest one's operand
    /// that is complete.
    operators: [usize; OPERAND + 1],
    within: [usize; OPERAND + 1],
}

impl Run {
    /// Of what is bound tighter than `level` since the last operator that is not.
    fn height_above(&self, level: usize) -> usize {
        (level + 1..=OPERAND)
            .rev()
            .fold(0, |height, level| self.operators[level] + self.within[level].max(height))
    }

    fn height(&self) -> usize {
        self.height_above(0)
    }

    /// An operator between operands: what is bound tighter is an operand of it.
    fn operator(&mut self, level: usize) {
        self.within[level] = self.within[level].max(self.height_above(level));
        self.operators[level] += 1;
        self.operators[level + 1..].fill(0);
        self.within[level + 1..].fill(0);
    }

    /// Something in brackets, or an `if` with its branches.
    fn operand(&mut self, height: usize) {
        self.within[OPERAND] = self.within[OPERAND].max(height);
    }
}

/// One open bracket, or an `if` of which not all is read.
struct Frame {
    run: Run,
    highest: usize,
    /// The bracket, or `if`.
    kind: TokenKind,
    /// Of an `if`: its `else`s so far.
    links: usize,
    /// Of an `if`: the token before was the end of a branch.
    after_branch: bool,
}

impl Frame {
    fn new(kind: TokenKind) -> Self {
        Frame { run: Run::default(), highest: 0, kind, links: 0, after_branch: false }
    }

    fn height(&self) -> usize {
        LINK * self.links + self.highest.max(self.run.height())
    }

    /// Begins a new run.
    fn separate(&mut self) {
        self.highest = self.highest.max(self.run.height());
        self.run = Run::default();
    }
}

/// Checks one item's tokens (balanced, with line ends) and says what is too deep.
pub fn check(tokens: &[Token]) -> Option<Diagnostic> {
    use TokenKind as T;
    let mut frames = vec![Frame::new(T::OpenBrace)];
    let mut depth = 0;
    // Whether the token before can be the end of an operand: `-` is a sign where it is not.
    let mut operand = false;
    for token in tokens {
        let kind = token.kind;
        // An `if` ends behind a branch that no `else` follows, or where what it stands in ends.
        while let Some(frame) = frames.last()
            && frame.kind == T::If
            && (frame.after_branch && kind != T::Else || kind.is_closing() || is_separator(kind))
        {
            let height = frame.height() + 1;
            frames.pop();
            frames.last_mut()?.run.operand(height);
        }
        if kind.is_opening() {
            depth += 1;
            if depth > MAX_DEPTH {
                let what = format!("brackets nest deeper than {MAX_DEPTH} levels");
                return Some(too_deep(
                    token.span,
                    what,
                    "name parts of it with `let`, or move them into a `fn`",
                ));
            }
            frames.push(Frame::new(kind));
            operand = false;
            continue;
        }
        if kind == T::If {
            match frames.last_mut() {
                // `else if`: the same `if` goes on.
                Some(frame) if frame.kind == T::If && frame.links > 0 && frame.run.height() == 0 => {}
                _ => frames.push(Frame::new(T::If)),
            }
            operand = false;
            continue;
        }
        if kind.is_closing() && frames.len() > 1 {
            depth -= 1;
            let closed = frames.pop()?;
            let frame = frames.last_mut()?;
            frame.run.operand(closed.height() + 1);
            if frame.kind == T::If && closed.kind == T::OpenBrace {
                frame.separate();
                frame.after_branch = true;
            } else {
                // `a[i][j]` and `f(x)(y)` grow with every pair; blocks beside each other do not.
                frame.run.operators[OPERAND] += usize::from(closed.kind != T::OpenBrace);
            }
        }
        let frame = frames.last_mut()?;
        if is_separator(kind) || kind.is_assignment() {
            frame.separate();
        } else if kind == T::Else && frame.kind == T::If && frame.after_branch {
            frame.links += 1;
            frame.after_branch = false;
        } else if let Some(level) = kind.binding().filter(|_| operand || kind != T::Minus) {
            frame.run.operator(level);
        } else if matches!(kind, T::Minus | T::Bang | T::Dot | T::Else) {
            frame.run.operators[OPERAND] += 1;
        }
        operand = kind.is_closing() || matches!(kind, T::Name | T::Int | T::Float | T::True | T::False);
        if frame.height() > MAX_HEIGHT {
            let (what, help) = if frame.kind == T::If && LINK * frame.links > MAX_HEIGHT / 2 {
                (
                    format!(
                        "{} times `else` in a row, which with the branches is higher than {MAX_HEIGHT} levels",
                        frame.links
                    ),
                    "choose between two shorter chains: `if … { if … else … } else { if … else … }`",
                )
            } else {
                (
                    format!("more than {MAX_HEIGHT} operators in a row, with what stands in their operands"),
                    "put parentheses around parts of it, `(a + … + b) + (c + … + d)`, or name parts with `let`",
                )
            };
            return Some(too_deep(token.span, what, help));
        }
    }
    None
}

fn is_separator(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::LineEnd | TokenKind::Semicolon | TokenKind::Comma)
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
    fn operands_of_one_operator_count_by_their_highest() {
        assert!(!refused(&"x[i] + ".repeat(250)));
        assert!(!refused(&"x[i] * y[i - 1] * z[-i] + ".repeat(250)));
        assert!(!refused(&format!("({}a) + ", "x[i] + ".repeat(100)).repeat(100)));
        assert!(!refused(&format!("a * ({}a) < 1 && ", "x[i] - ".repeat(100)).repeat(100)));
        assert!(!refused(&"if i % 3 == 1 && x[i] < 1.0 { y[i] += 2.0 * x[i] } else ".repeat(100)));
        // Each has more operands than there is room for, of which no operator splits all.
        let term = format!("{}a", "a * ".repeat(150));
        assert!(refused(&format!("{term} + {}a", "a + ".repeat(150))));
        assert!(refused(&format!("{}{term}", "a + ".repeat(150))));
        assert!(refused(&format!("{}({}a)", "a + ".repeat(150), "a + ".repeat(150))));
        assert!(refused(&format!("a{} + {}a", "[i]".repeat(150), "a + ".repeat(150))));
        assert!(refused(&format!("if a {{ }} else {{ }} + {}", "if a { } else ".repeat(130))));
    }

    #[test]
    fn depth_and_height_are_bounded_and_neighbours_are_not() {
        assert!(refused(&"(".repeat(MAX_DEPTH + 1)));
        assert!(!refused(&("(".repeat(MAX_DEPTH) + &")".repeat(MAX_DEPTH))));
        assert!(refused(&"- ".repeat(300)));
        assert!(refused(&"a + ".repeat(300)));
        assert!(refused(&format!("a{}", "[i]".repeat(300))));
        assert!(refused(&"if a { } else ".repeat(200)));
        assert!(refused(&"if a { } else { 1 } + ".repeat(300)));
        assert!(refused(&"a[0] else ".repeat(300)));
        assert!(refused(&"a as i32 * ".repeat(300)));
        // What the message says to write instead.
        let part = format!("({}a)", "a + ".repeat(150));
        assert!(!refused(&format!("{part} + {part} + {part}")));
        let chain = format!("if a {{ 1 }} {}", "else if a { 1 } ".repeat(120));
        assert!(!refused(&format!("if b {{ {chain} else {{ 1 }} }} else {{ {chain} else {{ 1 }} }}")));
        assert!(refused(&format!("{chain}{chain} else {{ 1 }}").replace("} if", "} else if")));
        assert!(!refused(&"a + b; ".repeat(300)));
        assert!(!refused(&format!("f({})", "a + b, ".repeat(300))));
        assert!(!refused(&"for i in n { a += b; } ; ".repeat(300)));
    }
}
