//! An open file, and places in its text. What is known of the text is forgotten with it.

use super::analysis::Analysis;
use super::generated::Generated;
use super::positions::{Encoding, Lines};
use gen_lsp_types::{Position, Range, TextDocumentContentChangeEvent, TextEdit, Uri};
use krn_compiler::check::typed::Program;
use krn_compiler::diagnostic::Diagnostics;
use krn_compiler::names::Names;
use krn_compiler::source::{SourceFile, Span};
use krn_compiler::syntax::{Token, ast};
use std::sync::Arc;

pub struct Document {
    pub uri: Uri,
    pub version: i32,
    encoding: Encoding,
    lines: Lines,
    pub analysis: Arc<Analysis>,
    /// What the other thread has made of this text so far.
    pub generated: Generated,
}

impl Document {
    pub fn new(uri: Uri, version: i32, text: String, encoding: Encoding) -> Self {
        let name = uri.0.rsplit('/').next().unwrap_or_default().to_string();
        Self {
            lines: Lines::of(&text, encoding),
            analysis: Arc::new(Analysis::new(SourceFile::new(name, text))),
            uri,
            version,
            encoding,
            generated: Generated::default(),
        }
    }

    /// The text after changes.
    pub fn changed(&self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) -> Self {
        let mut text = self.text().to_string();
        for change in changes {
            match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                    text = whole.text
                }
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => {
                    let lines = Lines::of(&text, self.encoding);
                    let start = lines.offset(&text, part.range.start) as usize;
                    let end = lines.offset(&text, part.range.end) as usize;
                    text.replace_range(start..end.max(start), &part.text);
                }
            }
        }
        Self::new(self.uri.clone(), version, text, self.encoding)
    }

    pub fn source(&self) -> &SourceFile {
        &self.analysis.source
    }

    pub fn text(&self) -> &str {
        self.source().text()
    }

    pub fn slice(&self, span: Span) -> &str {
        self.source().slice(span)
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub fn tree(&self) -> &ast::File {
        self.analysis.tree()
    }

    /// The items of the tree, those with mistakes as well, in the order of the text.
    pub fn items(&self) -> Vec<&ast::Item> {
        let tree = self.tree();
        let mut items: Vec<&ast::Item> = tree.items.iter().chain(&tree.broken.items).collect();
        items.sort_by_key(|item| item_span(item));
        items
    }

    pub fn kernels(&self) -> impl Iterator<Item = &ast::KernelItem> {
        self.items().into_iter().filter_map(|item| match item {
            ast::Item::Kernel(kernel) => Some(kernel),
            _ => None,
        })
    }

    pub fn program(&self) -> &Program {
        &self.analysis.checked().0
    }

    pub fn diagnostics(&self) -> &Diagnostics {
        &self.analysis.checked().1
    }

    pub fn names(&self) -> &Names {
        self.analysis.names()
    }

    /// The tokens of the text, ends of statements not among them.
    pub fn tokens(&self) -> &[Token] {
        self.analysis.tokens()
    }

    pub fn offset(&self, position: Position) -> u32 {
        self.lines.offset(self.text(), position)
    }

    pub fn span(&self, range: Range) -> Span {
        Span::new(self.offset(range.start), self.offset(range.end))
    }

    pub fn position(&self, offset: u32) -> Position {
        self.lines.position(self.text(), offset)
    }

    pub fn range(&self, span: Span) -> Range {
        self.lines.range(self.text(), span)
    }

    pub fn line(&self, offset: u32) -> u32 {
        self.lines.number(offset)
    }

    pub fn edit(&self, span: Span, text: impl Into<String>) -> TextEdit {
        TextEdit { range: self.range(span), new_text: text.into() }
    }
}

pub fn item_span(item: &ast::Item) -> Span {
    match item {
        ast::Item::Struct(item) => item.span,
        ast::Item::Function(item) => item.span,
        ast::Item::Const(item) => item.span,
        ast::Item::Static(item) => item.span,
        ast::Item::Kernel(item) => item.span,
        ast::Item::Schedule(item) => item.span,
    }
}
