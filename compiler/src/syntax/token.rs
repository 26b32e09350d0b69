//! The words of the language: one fieldless kind per token, and tokens as kind and span.
//!
//! A token carries no text: whoever needs a name or a number slices the source with the token's span. So
//! tokens are small, copying them is free, and a set of kinds fits into one machine word or two.

use crate::source::Span;

/// One token of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
    /// Whether this is the first token on its line.
    pub starts_line: bool,
}

macro_rules! token_kinds {
    ($($group:ident { $($(#[$doc:meta])* $kind:ident $text:literal)* })*) => {
        /// What a token is. The numbering is the order of this table.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum TokenKind {
            $($($(#[$doc])* $kind,)*)*
        }

        impl TokenKind {
            /// Every kind, in numeric order.
            pub const ALL: &[TokenKind] = &[$($(TokenKind::$kind,)*)*];

            /// The token as the user writes it, or for tokens with varying text what they are called.
            pub const fn text(self) -> &'static str {
                match self {
                    $($(TokenKind::$kind => $text,)*)*
                }
            }

            const fn group(self) -> Group {
                match self {
                    $($(TokenKind::$kind => Group::$group,)*)*
                }
            }
        }
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Varying,
    Keyword,
    Item,
    Bracket,
    Binary,
    Assign,
    Mark,
}

token_kinds! {
    Varying {
        Name "a name"
        /// A reduction word before `(` with axes and `:`; `brackets.rs` finds them.
        Reduce "a reduction"
        Int "an integer"
        Float "a number"
        /// What the lexer could not read; reported already.
        Error "unreadable text"
        /// A line end that ends a statement; `layout.rs` puts them in.
        LineEnd "the end of the line"
    }
    Keyword {
        For "for"
        Where "where"
        Inout "inout"
        Let "let"
        Var "var"
        Forall "forall"
        In "in"
    }
    Mark {
        /// The word `step` after the range of a `for`; `brackets.rs` finds it. Elsewhere it is a name.
        Step "step"
    }
    Mark {
        /// The word `from` after the result type of a reduction; `brackets.rs` finds it. Elsewhere it is a name.
        From "from"
    }
    Keyword {
        While "while"
        Break "break"
        Assert "assert"
        Print "print"
        If "if"
        Else "else"
        As "as"
        True "true"
        False "false"
    }
    Item {
        Struct "struct"
        Fn "fn"
        Reduction "reduction"
        Const "const"
        Static "static"
        Kernel "kernel"
        Schedule "schedule"
    }
    Bracket {
        OpenParen "("
        CloseParen ")"
        OpenBracket "["
        CloseBracket "]"
        OpenBrace "{"
        CloseBrace "}"
    }
    Binary {
        Plus "+"
        Minus "-"
        Star "*"
        Slash "/"
        Percent "%"
        ShiftLeft "<<"
        ShiftRight ">>"
        Ampersand "&"
        Pipe "|"
        Caret "^"
        AndAnd "&&"
        OrOr "||"
        EqualEqual "=="
        NotEqual "!="
        Less "<"
        LessEqual "<="
        Greater ">"
        GreaterEqual ">="
    }
    Assign {
        Assign "="
        PlusAssign "+="
        MinusAssign "-="
        StarAssign "*="
        SlashAssign "/="
        PercentAssign "%="
        ShiftLeftAssign "<<="
        ShiftRightAssign ">>="
        MinAssign "min="
        MaxAssign "max="
        AndAssign "&="
        OrAssign "|="
        XorAssign "^="
    }
    Mark {
        Bang "!"
        Comma ","
        Colon ":"
        Semicolon ";"
        Arrow "->"
        Dot "."
        DotDot ".."
        DotDotEqual "..="
    }
}

impl TokenKind {
    /// Any reserved word.
    pub const fn is_keyword(self) -> bool {
        matches!(self.group(), Group::Keyword | Group::Item)
    }

    /// The first word of an item: `struct fn reduction const static kernel schedule`.
    pub const fn starts_item(self) -> bool {
        matches!(self.group(), Group::Item)
    }

    pub const fn is_binary_operator(self) -> bool {
        matches!(self.group(), Group::Binary)
    }

    /// How tight an operator between operands binds, from 1 for the loosest, as the parser has it; `None` for what is none.
    pub const fn binding(self) -> Option<usize> {
        use TokenKind as T;
        Some(match self {
            T::OrOr => 1,
            T::AndAnd => 2,
            T::EqualEqual | T::NotEqual | T::Less | T::LessEqual | T::Greater | T::GreaterEqual => 3,
            T::Pipe => 4,
            T::Caret => 5,
            T::Ampersand => 6,
            T::ShiftLeft | T::ShiftRight => 7,
            T::Plus | T::Minus => 8,
            T::Star | T::Slash | T::Percent => 9,
            T::As => 10,
            _ => return None,
        })
    }

    /// `=` and its relatives.
    pub const fn is_assignment(self) -> bool {
        matches!(self.group(), Group::Assign)
    }

    pub const fn is_opening(self) -> bool {
        matches!(self, TokenKind::OpenParen | TokenKind::OpenBracket | TokenKind::OpenBrace)
    }

    pub const fn is_closing(self) -> bool {
        matches!(self, TokenKind::CloseParen | TokenKind::CloseBracket | TokenKind::CloseBrace)
    }

    /// The closing bracket of an opening one; every other kind is its own.
    pub const fn closer(self) -> TokenKind {
        match self {
            TokenKind::OpenParen => TokenKind::CloseParen,
            TokenKind::OpenBracket => TokenKind::CloseBracket,
            TokenKind::OpenBrace => TokenKind::CloseBrace,
            other => other,
        }
    }

    /// The keyword that this word is, if it is one.
    pub fn keyword(word: &str) -> Option<TokenKind> {
        Some(match word {
            "for" => TokenKind::For,
            "where" => TokenKind::Where,
            "inout" => TokenKind::Inout,
            "let" => TokenKind::Let,
            "var" => TokenKind::Var,
            "forall" => TokenKind::Forall,
            "in" => TokenKind::In,
            "while" => TokenKind::While,
            "break" => TokenKind::Break,
            "assert" => TokenKind::Assert,
            "print" => TokenKind::Print,
            "if" => TokenKind::If,
            "else" => TokenKind::Else,
            "as" => TokenKind::As,
            "true" => TokenKind::True,
            "false" => TokenKind::False,
            "struct" => TokenKind::Struct,
            "fn" => TokenKind::Fn,
            "reduction" => TokenKind::Reduction,
            "const" => TokenKind::Const,
            "static" => TokenKind::Static,
            "kernel" => TokenKind::Kernel,
            "schedule" => TokenKind::Schedule,
            _ => return None,
        })
    }

    /// How a message names this kind: `` `)` ``, `a name`, `the end of the line`.
    pub fn describe(self) -> String {
        match self.group() {
            Group::Varying => self.text().to_string(),
            _ => format!("`{}`", self.text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_by_its_text() {
        for kind in TokenKind::ALL.iter().copied().filter(|kind| kind.is_keyword()) {
            assert_eq!(TokenKind::keyword(kind.text()), Some(kind));
        }
        assert_eq!(TokenKind::keyword("sum"), None);
        assert_eq!(TokenKind::keyword("step"), None);
    }

    #[test]
    fn kinds_fit_a_set_of_96_with_room_for_labels() {
        assert!(TokenKind::ALL.len() <= 96);
        for (at, kind) in TokenKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at);
        }
    }
}
