//! What stands between two pieces of a line.

use super::pieces::Piece;
use crate::syntax::TokenKind as T;

/// Whether a space stands between two neighbours.
pub fn is_apart(before: &Piece, piece: &Piece) -> bool {
    match (before.kind, piece.kind) {
        (_, T::Comma | T::Semicolon | T::Colon) => false,
        (T::OpenBrace, T::CloseBrace) => false,
        (T::OpenBrace, _) | (_, T::CloseBrace | T::OpenBrace) => {
            !before.kind.is_opening() || before.kind == T::OpenBrace
        }
        (T::OpenParen | T::OpenBracket, _) | (_, T::CloseParen | T::CloseBracket) => false,
        // A number takes a point that follows it for its own.
        (T::Int, T::Dot) => true,
        (T::Float, T::Dot | T::DotDot | T::DotDotEqual) => before.text.ends_with('.'),
        (T::Dot | T::DotDot | T::DotDotEqual, _) | (_, T::Dot | T::DotDot | T::DotDotEqual) => false,
        _ if before.prefix => false,
        // Calls and subscripts.
        (
            T::Name | T::Reduce | T::Print | T::CloseParen | T::CloseBracket | T::CloseBrace,
            T::OpenParen | T::OpenBracket,
        ) => before.kind == T::CloseBrace && before.body,
        _ => true,
    }
}

/// Whether a space stands between a piece and a comment behind it on its line.
pub fn is_apart_from_comment(before: &Piece) -> bool {
    !matches!(before.kind, T::OpenParen | T::OpenBracket)
}

/// Whether a space stands between a comment and the piece behind it on its line.
pub fn is_comment_apart(piece: &Piece) -> bool {
    !matches!(piece.kind, T::CloseParen | T::CloseBracket | T::Comma | T::Semicolon | T::Colon)
}
