//! What is known of a text. Everything is worked out once, when somebody first asks for it; who asks meanwhile, on another
//! thread, waits for that.

use krn_compiler::check::typed::Program;
use krn_compiler::diagnostic::Diagnostics;
use krn_compiler::names::Names;
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::{self, Token, TokenKind, ast};
use std::sync::OnceLock;

pub struct Analysis {
    pub source: SourceFile,
    parsed: OnceLock<(ast::File, Diagnostics)>,
    checked: OnceLock<(Program, Diagnostics)>,
    names: OnceLock<Names>,
    tokens: OnceLock<Vec<Token>>,
}

impl Analysis {
    pub fn new(source: SourceFile) -> Self {
        Self {
            source,
            parsed: OnceLock::new(),
            checked: OnceLock::new(),
            names: OnceLock::new(),
            tokens: OnceLock::new(),
        }
    }

    /// The tree, and the mistakes in the syntax.
    fn parsed(&self) -> &(ast::File, Diagnostics) {
        self.parsed.get_or_init(|| syntax::parse(&self.source))
    }

    pub fn tree(&self) -> &ast::File {
        &self.parsed().0
    }

    /// The program, and all mistakes.
    pub fn checked(&self) -> &(Program, Diagnostics) {
        self.checked.get_or_init(|| {
            let (tree, mistakes) = self.parsed();
            krn_compiler::check_tree(&self.source, tree, mistakes.clone())
        })
    }

    pub fn names(&self) -> &Names {
        self.names.get_or_init(|| Names::of(self.tree()))
    }

    /// The tokens of the text, ends of statements not among them.
    pub fn tokens(&self) -> &[Token] {
        self.tokens.get_or_init(|| {
            let mut tokens = syntax::laid_out(&self.source);
            tokens.retain(|token| token.kind != TokenKind::LineEnd && token.span.start < token.span.end);
            tokens
        })
    }
}
