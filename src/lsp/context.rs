//! What stands before a place in the text, by its tokens: also where the text does not parse.

use super::document::Document;
use krn_compiler::names::{Shape, SymbolKind};
use krn_compiler::syntax::{Token, TokenKind as T};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Outside of items.
    Item,
    /// Behind `schedule`.
    Kernel,
    /// Behind the `where` of a schedule.
    Condition,
    /// Behind `schedule name for`.
    Target,
    /// At the start of a directive.
    Directive,
    /// Behind the word of a directive.
    Argument,
    /// Where a type is wanted.
    Type,
    /// Behind a point.
    Field,
    /// Where a new name is given: nothing is to be proposed.
    NewName,
    /// Inside of a comment.
    Comment,
    /// In a body or an expression.
    Code,
}

/// The tokens before a place; a word that the place is in the middle of, or at the end of, is not among them.
pub fn before(document: &Document, offset: u32) -> &[Token] {
    let tokens = document.tokens();
    let mut end = tokens.partition_point(|token| token.span.end <= offset);
    let is_word = |token: &Token| token.kind == T::Name || token.kind == T::Reduce || token.kind.is_keyword();
    if end > 0 && tokens[end - 1].span.end == offset && is_word(&tokens[end - 1]) {
        end -= 1;
    }
    &tokens[..end]
}

pub fn place(document: &Document, offset: u32) -> Place {
    let inside = |span: &krn_compiler::source::Span| span.start < offset && offset <= span.end;
    if super::semantic::comments(document).iter().any(inside) {
        return Place::Comment;
    }
    let tokens = before(document, offset);
    let Some(last) = tokens.last() else { return Place::Item };
    let mut open: Vec<usize> = Vec::new();
    // The word that the item starts with, and where.
    let mut item = None;
    for (at, token) in tokens.iter().enumerate() {
        if token.kind.is_opening() {
            open.push(at);
        } else if token.kind.is_closing() {
            open.pop();
        } else if token.kind.starts_item()
            && (open.is_empty() || token.starts_line && column(document, token) == 0)
        {
            open.clear();
            item = Some(at);
        }
    }
    if last.kind == T::Dot {
        return Place::Field;
    }
    let word = item.map(|at| tokens[at].kind);
    let in_header = open.is_empty() || open.first().is_some_and(|at| tokens[*at].kind != T::OpenBrace);
    match (word, last.kind) {
        (Some(T::Schedule), T::Schedule) => Place::Kernel,
        (Some(T::Schedule), T::For) => Place::Target,
        (Some(T::Schedule), _)
            if open.is_empty()
                && tokens[item.unwrap_or(0)..].iter().any(|token| token.kind == T::Where)
                && last.kind != T::CloseBrace =>
        {
            Place::Condition
        }
        (Some(T::Schedule), _) if !open.is_empty() => {
            let line = document.line(offset);
            let starts =
                matches!(last.kind, T::OpenBrace | T::Semicolon) || document.line(last.span.start) < line;
            if starts { Place::Directive } else { Place::Argument }
        }
        (_, T::Let | T::Var | T::Forall | T::For) => Place::NewName,
        (_, T::Struct | T::Fn | T::Reduction | T::Const | T::Static | T::Kernel) => Place::NewName,
        (_, T::As | T::Inout) => Place::Type,
        (Some(T::Fn | T::Reduction), T::Arrow) => Place::Type,
        (Some(T::Kernel), T::Arrow) => Place::NewName,
        (Some(T::Struct), T::Colon) => Place::Type,
        (Some(T::Const | T::Static), T::Colon) => Place::Type,
        (Some(T::Kernel | T::Fn | T::Reduction), T::Colon) if in_header => Place::Type,
        (Some(_), T::Colon) if is_let_type(tokens) => Place::Type,
        (Some(T::Kernel | T::Fn | T::Reduction), T::OpenParen | T::Comma) if open.len() == 1 && in_header => {
            Place::NewName
        }
        (_, T::CloseBrace) if open.is_empty() => Place::Item,
        (None, _) => Place::Item,
        (Some(T::Const | T::Static), _)
            if last.kind != T::Assign && document.line(last.span.end) < document.line(offset) =>
        {
            Place::Item
        }
        _ => Place::Code,
    }
}

fn column(document: &Document, token: &Token) -> u32 {
    document.position(token.span.start).character
}

/// `let x:`, `var e[c]:`
fn is_let_type(tokens: &[Token]) -> bool {
    let mut depth = 0usize;
    for token in tokens[..tokens.len() - 1].iter().rev() {
        match token.kind {
            T::CloseBracket => depth += 1,
            T::OpenBracket if depth > 0 => depth -= 1,
            T::Let | T::Var => return depth == 0,
            T::Name if depth == 0 => {}
            _ if depth > 0 => {}
            _ => return false,
        }
    }
    false
}

/// The type of what stands before the point that the tokens end with: `a[i].b.`
pub fn receiver(document: &Document, tokens: &[Token], offset: u32) -> Option<Shape> {
    let names = document.names();
    let (mut fields, mut at) = (Vec::new(), tokens.len());
    loop {
        at = at.checked_sub(1)?;
        if tokens[at].kind != T::Dot {
            return None;
        }
        at = at.checked_sub(1)?;
        let mut subscripts = 0;
        while tokens[at].kind.is_closing() {
            let square = tokens[at].kind == T::CloseBracket;
            let (mut depth, mut commas) = (0usize, 0);
            loop {
                match tokens[at].kind {
                    kind if kind.is_closing() => depth += 1,
                    kind if kind.is_opening() => depth -= 1,
                    T::Comma if depth == 1 => commas += 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
                at = at.checked_sub(1)?;
            }
            if square {
                subscripts += commas + 1;
            }
            at = at.checked_sub(1)?;
        }
        if tokens[at].kind != T::Name {
            return None;
        }
        fields.push((document.slice(tokens[at].span), subscripts));
        if at == 0 || tokens[at - 1].kind != T::Dot {
            break;
        }
    }
    let less = |shape: &Shape, by: usize| Shape {
        element: shape.element.clone(),
        rank: shape.rank.saturating_sub(by),
    };
    let (root, subscripts) = fields.pop()?;
    let meant = names.named(root, offset)?;
    let symbol = &names.symbols[meant];
    let mut shape = match symbol.kind {
        SymbolKind::Struct => return None,
        _ => less(symbol.shape.as_ref()?, subscripts),
    };
    while let Some((field, subscripts)) = fields.pop() {
        let next = names.fields(&shape.element).find(|known| known.name == field)?.shape.clone()?;
        shape = less(&next, subscripts);
    }
    Some(shape)
}

/// The call or reduction that a place is in the parentheses of: the word before them, and the commas between.
pub fn call(document: &Document, offset: u32) -> Option<(Token, usize)> {
    let tokens = document.tokens();
    let end = tokens.partition_point(|token| token.span.end <= offset);
    let (mut depth, mut commas) = (0usize, 0);
    for at in (0..end).rev() {
        match tokens[at].kind {
            kind if kind.is_closing() => depth += 1,
            kind if kind.is_opening() && depth > 0 => depth -= 1,
            T::OpenParen => {
                let word = tokens[at.checked_sub(1)?];
                let declared = at >= 2 && matches!(tokens[at - 2].kind, T::Fn | T::Reduction | T::Kernel);
                let callable = matches!(word.kind, T::Name | T::Reduce) && !declared;
                return callable.then_some((word, commas));
            }
            kind if kind.is_opening() => return None,
            T::Comma if depth == 0 => commas += 1,
            _ => {}
        }
    }
    None
}
