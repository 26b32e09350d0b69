//! What could be written here.

use super::context::{Place, before, place, receiver};
use super::document::Document;
use super::words;
use gen_lsp_types::{
    CompletionItem, CompletionItemKind as Kind, InsertTextFormat, MarkupContent, MarkupKind, Position,
};
use krn_compiler::TARGETS;
use krn_compiler::builtins::Builtin;
use krn_compiler::check::directives;
use krn_compiler::data::Scalar;
use krn_compiler::names::{Symbol, SymbolKind};
use krn_compiler::syntax::{REDUCTIONS, TokenKind};

/// Words that a statement or an expression may start with, and what to put in, with places to fill in.
const STATEMENTS: &[(&str, &str)] = &[
    ("let", "let ${1:name} = ${0:value}"),
    ("var", "var ${1:name} = ${0:value}"),
    ("forall", "forall ${1:i} in ${2:n} {\n\t$0\n}"),
    ("for", "for ${1:i} in ${2:0}..${3:n} {\n\t$0\n}"),
    ("while", "while ${1:condition} {\n\t$0\n}"),
    ("break", "break"),
    ("assert", "assert ${0:condition}"),
    ("print", "print(${0:values})"),
    ("if", "if ${1:condition} {\n\t$0\n}"),
    ("else", "else {\n\t$0\n}"),
];

const ITEMS: &[(&str, &str)] = &[
    ("kernel", "kernel ${1:name}(${2:x}: f32[${3:n}]) -> ${4:y}: f32[$3] {\n\t$0\n}"),
    ("fn", "fn ${1:name}(${2:x}: f32) -> f32 {\n\t$0\n}"),
    ("reduction", "reduction ${1:name}(${2:a}: f32, ${3:b}: f32) -> f32 from ${4:0.0} {\n\t$0\n}"),
    ("struct", "struct ${1:Name} { ${2:x}: f32 }"),
    ("const", "const ${1:NAME}: ${2:f32} = ${0:1.0}"),
    ("static", "static ${1:name}: ${2:u32} = ${0:0}"),
    ("schedule", "schedule ${1:kernel} {\n\t$0\n}"),
];

pub fn completion(document: &Document, position: Position) -> Vec<CompletionItem> {
    let offset = document.offset(position);
    match place(document, offset) {
        Place::Comment | Place::NewName => Vec::new(),
        Place::Item => ITEMS.iter().map(|(word, text)| snippet(word, text)).collect(),
        Place::Kernel => of_kind(document, offset, &[SymbolKind::Kernel]),
        Place::Condition => conditions(document, offset),
        Place::Target => TARGETS.iter().map(|target| item(target, Kind::EnumMember, None)).collect(),
        Place::Directive => directives().map(|(name, _)| directive(name)).collect(),
        Place::Argument => arguments(document, offset),
        Place::Type => types(document, offset),
        Place::Field => fields(document, offset),
        Place::Code => code(document, offset),
    }
}

fn item(label: &str, kind: Kind, detail: Option<String>) -> CompletionItem {
    CompletionItem { label: label.to_string(), kind: Some(kind), detail, ..Default::default() }
}

fn snippet(label: &str, text: &str) -> CompletionItem {
    CompletionItem {
        insert_text: Some(text.to_string()),
        insert_text_format: Some(InsertTextFormat::Snippet),
        ..item(label, Kind::Keyword, None)
    }
}

fn documented(item: CompletionItem, text: String) -> CompletionItem {
    let content = MarkupContent { kind: MarkupKind::Markdown, value: text };
    CompletionItem { documentation: Some(content.into()), ..item }
}

fn directive(name: &str) -> CompletionItem {
    let detail = words::range(name).map(str::to_string);
    documented(item(name, Kind::Keyword, detail), words::directive(name).unwrap_or_default())
}

fn symbol(document: &Document, known: &Symbol) -> CompletionItem {
    let kind = match known.kind {
        SymbolKind::Struct => Kind::Struct,
        SymbolKind::Field => Kind::Field,
        SymbolKind::Function | SymbolKind::Kernel => Kind::Function,
        SymbolKind::Constant => Kind::Constant,
        _ => Kind::Variable,
    };
    let written = document.slice(known.whole).split(['{', '\n']).next().unwrap_or_default().trim_end();
    item(&known.name, kind, Some(written.to_string()))
}

fn of_kind(document: &Document, offset: u32, kinds: &[SymbolKind]) -> Vec<CompletionItem> {
    let names = document.names();
    let visible = names.visible(offset).into_iter().map(|at| &names.symbols[at]);
    visible.filter(|known| kinds.contains(&known.kind)).map(|known| symbol(document, known)).collect()
}

fn types(document: &Document, offset: u32) -> Vec<CompletionItem> {
    let mut found: Vec<_> =
        Scalar::ALL.iter().map(|scalar| item(scalar.name(), Kind::Keyword, None)).collect();
    if before(document, offset).last().is_some_and(|last| last.kind == TokenKind::Colon) {
        found.push(item("inout", Kind::Keyword, None));
    }
    found.extend(of_kind(document, offset, &[SymbolKind::Struct]));
    found
}

fn fields(document: &Document, offset: u32) -> Vec<CompletionItem> {
    let names = document.names();
    let Some(shape) = receiver(document, before(document, offset), offset) else { return Vec::new() };
    names.fields(&shape.element).map(|field| symbol(document, field)).collect()
}

/// What the conditions of a schedule may be about: sizes and parameters of its kernel.
fn conditions(document: &Document, offset: u32) -> Vec<CompletionItem> {
    let names = document.names();
    let kernel = scheduled(document, offset);
    let of_it = names.symbols.iter().filter(|known| {
        let owner = known.owner.map(|owner| names.symbols[owner].name.as_str());
        owner == kernel && matches!(known.kind, SymbolKind::Dimension | SymbolKind::Parameter)
    });
    of_it.filter(|_| kernel.is_some()).map(|known| symbol(document, known)).collect()
}

/// The kernel of the schedule that the place is in.
fn scheduled(document: &Document, offset: u32) -> Option<&str> {
    let tokens = before(document, offset);
    let start = tokens.iter().rposition(|token| token.kind == TokenKind::Schedule)?;
    tokens.get(start + 1).map(|name| document.slice(name.span))
}

/// The kernel of the schedule that the place is in: its arrays and index names, and words behind `stage`.
fn arguments(document: &Document, offset: u32) -> Vec<CompletionItem> {
    let tokens = before(document, offset);
    let names = document.names();
    let line = document.line(offset);
    let kernel = scheduled(document, offset);
    let word = tokens.iter().find(|token| document.line(token.span.start) == line);
    let word = word.map_or("", |token| document.slice(token.span));
    let mut found: Vec<CompletionItem> = match (word, tokens.last().map(|token| token.kind)) {
        ("layout", Some(TokenKind::Colon)) => {
            ["aos", "soa", "aosoa(32)"].map(|name| item(name, Kind::EnumMember, None)).into()
        }
        ("cache", Some(TokenKind::Colon)) => {
            ["ca", "cg", "cs", "nc"].map(|name| item(name, Kind::EnumMember, None)).into()
        }
        ("allow" | "deny", _) => {
            let known = krn_compiler::diagnostic::levels::warnings().into_iter();
            return known
                .map(|code| {
                    item(
                        code,
                        Kind::EnumMember,
                        krn_compiler::diagnostic::explain(code).map(|page| page.0.to_string()),
                    )
                })
                .collect();
        }
        (_, Some(TokenKind::Colon)) => return Vec::new(),
        _ => Vec::new(),
    };
    if !found.is_empty() {
        return found;
    }
    let arrays = matches!(word, "stage" | "layout" | "cache" | "atomic");
    let wanted = |known: &&Symbol| {
        let is_index = known.kind == SymbolKind::Index;
        let owner = known.owner.map(|owner| names.symbols[owner].name.as_str());
        owner == kernel && kernel.is_some() && is_index != arrays && known.kind != SymbolKind::Dimension
    };
    let mut seen = Vec::new();
    for known in names.symbols.iter().filter(wanted) {
        if !seen.contains(&&known.name) {
            seen.push(&known.name);
            found.push(symbol(document, known));
        }
    }
    if word == "stage"
        && tokens
            .last()
            .is_some_and(|last| last.kind != TokenKind::Comma && document.slice(last.span) != "stage")
    {
        found.extend(["pad", "swizzle", "depth"].map(directive));
    }
    found
}

fn code(document: &Document, offset: u32) -> Vec<CompletionItem> {
    let names = document.names();
    let mut found = of_kind(
        document,
        offset,
        &[
            SymbolKind::Struct,
            SymbolKind::Function,
            SymbolKind::Constant,
            SymbolKind::Static,
            SymbolKind::Parameter,
            SymbolKind::Result,
            SymbolKind::Dimension,
            SymbolKind::Index,
            SymbolKind::Let,
            SymbolKind::Var,
        ],
    );
    // In `Point { x: … }` its fields.
    if let Some(name) = literal_here(document, offset) {
        found.extend(names.fields(name).map(|field| symbol(document, field)));
    }
    found.extend(Builtin::all().map(|builtin| {
        let known = item(builtin.name(), Kind::Function, Some(words::signature(builtin)));
        documented(known, words::builtin(builtin))
    }));
    found.extend(REDUCTIONS.iter().map(|word| {
        let known = snippet(word, &format!("{word}(${{1:i}}: $0)"));
        let known = CompletionItem {
            kind: Some(Kind::Function),
            detail: Some(format!("{word}(names: value)")),
            ..known
        };
        documented(known, words::reduction(word).unwrap_or_default())
    }));
    found.extend(STATEMENTS.iter().map(|(word, text)| snippet(word, text)));
    found.extend(["as", "in", "true", "false"].map(|word| item(word, Kind::Keyword, None)));
    found
}

/// The name before the innermost open brace.
fn literal_here(document: &Document, offset: u32) -> Option<&str> {
    let tokens = before(document, offset);
    let mut depth = 0usize;
    for at in (0..tokens.len()).rev() {
        if tokens[at].kind.is_closing() {
            depth += 1;
        } else if tokens[at].kind.is_opening() {
            if depth == 0 {
                let name = tokens.get(at.checked_sub(1)?)?;
                let literal = name.kind == TokenKind::Name && tokens[at].kind == TokenKind::OpenBrace;
                return literal.then(|| document.slice(name.span));
            }
            depth -= 1;
        }
    }
    None
}
