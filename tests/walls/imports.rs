//! Which module of a crate names which other one, read from the source: `crate::`, `super::` and `self::` paths in code,
//! in `use` and anywhere else. A name that a folder's `mod.rs` passes on counts for the module that has it. Tests do not
//! count: to try a module they may need what stands above it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The names of a path: `["launch", "plan", "Plan"]`.
type Names = Vec<String>;

/// What one file says.
#[derive(Default)]
struct Source {
    /// Paths that it names, from the crate's root.
    paths: BTreeSet<Names>,
    /// Names that it passes on (`pub use`), and where they come from.
    passed_on: BTreeMap<String, Names>,
    /// All words of its code but those of `use`.
    words: BTreeSet<String>,
    /// The types that it defines.
    types: BTreeSet<String>,
    /// Methods of types, not of traits: the type and the name.
    methods: BTreeSet<(String, String)>,
    /// The names of all functions.
    functions: BTreeSet<String>,
    /// The names of what it calls on values, `.name(…)`, or of types, `Type::name`.
    calls: BTreeSet<String>,
}

/// A method that a module adds to a type of another one.
pub struct Added {
    pub module: String,
    pub on: String,
    pub method: String,
}

/// Who imports whom, by the modules' paths: `launch::plan`. The root is the empty path.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// The modules of a crate, by the folder of its `lib.rs` or `main.rs`.
pub struct Modules {
    sources: BTreeMap<Names, Source>,
}

impl Modules {
    pub fn read(root: &Path) -> Self {
        let mut sources = BTreeMap::new();
        for file in super::rust_files(root) {
            let relative = file.strip_prefix(root).expect("under the root").with_extension("");
            let mut names: Names = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if names.iter().any(|name| name == "tests" || name.ends_with("_tests") || name == "testing") {
                continue;
            }
            if matches!(names.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                names.pop();
            }
            let text = fs::read_to_string(&file).expect("a source file can be read");
            let tokens = text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            sources.insert(names, tokens);
        }
        Self::from_tokens(sources)
    }

    fn from_tokens(files: BTreeMap<Names, TokenStream>) -> Self {
        let modules: BTreeSet<Names> = files.keys().cloned().collect();
        let read = |(names, tokens): (Names, TokenStream)| {
            let mut reader = Reader { modules: &modules, source: Source::default() };
            reader.read(&names, tokens.into_iter().collect());
            (names, reader.source)
        };
        Self { sources: files.into_iter().map(read).collect() }
    }

    pub fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (name, source) in &self.sources {
            let named = source.paths.iter().filter_map(|path| self.home(path, 0));
            // Of what it passes on, it imports what it names itself, and what is not its own.
            let passed = source
                .passed_on
                .iter()
                .filter(|(word, path)| source.words.contains(*word) || !path.starts_with(name));
            let passed = passed.filter_map(|(_, path)| self.home(path, 0));
            let all = named.chain(passed).filter(|home| home != name).map(|home| home.join("::"));
            imports.insert(name.join("::"), all.collect());
        }
        imports
    }

    /// The methods that modules add to types of other rooms: Rust lets any module of the crate do so.
    pub fn added_methods(&self) -> Vec<Added> {
        let room = |name: &Names| name.first().cloned();
        let mut added = Vec::new();
        for (name, source) in &self.sources {
            for (on, method) in &source.methods {
                let mut homes =
                    self.sources.iter().filter(|(_, source)| source.types.contains(on)).peekable();
                if homes.peek().is_some() && homes.all(|(home, _)| room(home) != room(name)) {
                    added.push(Added { module: name.join("::"), on: on.clone(), method: method.clone() });
                }
            }
        }
        added
    }

    /// The modules that call something of a name.
    pub fn callers(&self, name: &str) -> Vec<String> {
        let calling = self.sources.iter().filter(|(_, source)| source.calls.contains(name));
        calling.map(|(module, _)| module.join("::")).collect()
    }

    /// The modules that have a function of a name.
    pub fn definers(&self, name: &str) -> Vec<String> {
        let defining = self.sources.iter().filter(|(_, source)| source.functions.contains(name));
        defining.map(|(module, _)| module.join("::")).collect()
    }

    /// The module that has what a path names.
    fn home(&self, path: &[String], depth: usize) -> Option<Names> {
        let mut module: Names = Vec::new();
        for (at, name) in path.iter().enumerate() {
            let mut child = module.clone();
            child.push(name.clone());
            if self.sources.contains_key(&child) {
                module = child;
                continue;
            }
            let source = self.sources.get(&module)?;
            let further = |from: &Names| {
                let whole: Names = from.iter().chain(&path[at + 1..]).cloned().collect();
                if depth < 8 { self.home(&whole, depth + 1) } else { None }
            };
            return source.passed_on.get(name).map_or(Some(module), further);
        }
        Some(module)
    }
}

struct Reader<'a> {
    modules: &'a BTreeSet<Names>,
    source: Source,
}

impl Reader<'_> {
    /// The tokens of a module, or of a group in one.
    fn read(&mut self, module: &Names, tokens: Vec<TokenTree>) {
        let mut at = 0;
        let mut is_public = false;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if is_for_tests(tokens.get(at + 1)) {
                        at = after_item(&tokens, at);
                        continue;
                    }
                    // Other attributes hold no paths of ours: `#[derive(…)]`, doc comments.
                    at += if matches!(tokens.get(at + 1), Some(TokenTree::Group(_))) { 2 } else { 1 };
                    continue;
                }
                TokenTree::Group(group) => {
                    self.read(module, group.stream().into_iter().collect());
                    at += 1;
                }
                TokenTree::Ident(ident) if ident == "pub" => {
                    is_public = true;
                    let is_scope = |group: &TokenTree| matches!(group, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis);
                    at += if tokens.get(at + 1).is_some_and(is_scope) { 2 } else { 1 };
                    continue;
                }
                TokenTree::Ident(ident) if ident == "use" => {
                    let end = tokens[at..].iter().position(is_semicolon).map_or(tokens.len(), |n| at + n);
                    self.read_use(module, &[], &tokens[at + 1..end], is_public);
                    at = end + 1;
                }
                TokenTree::Ident(ident) if ident == "mod" => {
                    let name = tokens.get(at + 1).map(ToString::to_string).unwrap_or_default();
                    if let Some(TokenTree::Group(group)) = tokens.get(at + 2) {
                        let inner: Names = module.iter().cloned().chain([name]).collect();
                        self.read(&inner, group.stream().into_iter().collect());
                        at += 1;
                    }
                    at += 2;
                }
                TokenTree::Punct(punct) if punct.as_char() == '.' => {
                    let arguments = match (tokens.get(at + 2), tokens.get(at + 3)) {
                        (Some(TokenTree::Group(group)), _) => group.delimiter() == Delimiter::Parenthesis,
                        (Some(first), Some(second)) => is_colon(first) && is_colon(second),
                        _ => false,
                    };
                    if let (Some(TokenTree::Ident(name)), true) = (tokens.get(at + 1), arguments) {
                        self.source.calls.insert(name.to_string());
                    }
                    at += 1;
                }
                TokenTree::Ident(ident) if ident == "impl" => {
                    self.read_impl(&tokens[at + 1..]);
                    at += 1;
                }
                TokenTree::Ident(ident) if ["struct", "enum", "fn"].iter().any(|word| ident == word) => {
                    if let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                        let kind =
                            if ident == "fn" { &mut self.source.functions } else { &mut self.source.types };
                        kind.insert(name.to_string());
                    }
                    at += 1;
                }
                TokenTree::Ident(_) => {
                    let mut names = vec![tokens[at].to_string()];
                    at += 1;
                    while let (Some(first), Some(second), Some(TokenTree::Ident(name))) =
                        (tokens.get(at), tokens.get(at + 1), tokens.get(at + 2))
                        && is_colon(first)
                        && is_colon(second)
                    {
                        names.push(name.to_string());
                        at += 3;
                    }
                    self.source.words.insert(names[0].clone());
                    if let [_, .., last] = names.as_slice() {
                        self.source.calls.insert(last.clone());
                    }
                    self.add(module, names);
                }
                _ => at += 1,
            }
            is_public = false;
        }
    }

    /// What stands behind `impl`: the methods of a type, where it is not a trait's.
    fn read_impl(&mut self, tokens: &[TokenTree]) {
        let (mut depth, mut on, mut before) = (0, None, ' ');
        for token in tokens {
            match token {
                TokenTree::Punct(punct) => {
                    match punct.as_char() {
                        '<' => depth += 1,
                        '>' if before != '-' => depth -= 1,
                        _ => {}
                    }
                    before = punct.as_char();
                }
                TokenTree::Ident(ident) if depth == 0 && (ident == "for" || ident == "where") => {
                    if ident == "for" {
                        return;
                    }
                    break;
                }
                TokenTree::Ident(ident) if depth == 0 => on = Some(ident.to_string()),
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                _ => {}
            }
        }
        let body = tokens.iter().find_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
            _ => None,
        });
        let (Some(on), Some(body)) = (on, body) else { return };
        let body: Vec<TokenTree> = body.into_iter().collect();
        for pair in body.windows(2) {
            if let [TokenTree::Ident(word), TokenTree::Ident(name)] = pair
                && word == "fn"
            {
                self.source.methods.insert((on.clone(), name.to_string()));
            }
        }
    }

    /// A tree of imports, behind the names that stand before it.
    fn read_use(&mut self, module: &Names, before: &[String], tokens: &[TokenTree], is_public: bool) {
        for part in tokens.split(is_comma) {
            let mut names = before.to_vec();
            let mut alias = None;
            let mut rest = part.iter().peekable();
            while let Some(token) = rest.next() {
                match token {
                    TokenTree::Ident(ident) if ident == "as" => alias = rest.next().map(ToString::to_string),
                    TokenTree::Ident(ident) => names.push(ident.to_string()),
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.read_use(module, &names, &inner, is_public);
                        names.clear();
                    }
                    _ => {}
                }
            }
            if names.last().is_some_and(|name| name == "self") && names.len() > 1 {
                names.pop();
            }
            let Some(name) = alias.or_else(|| names.last().cloned()) else { continue };
            let Some(path) = self.resolved(module, &names) else { continue };
            if is_public {
                self.source.passed_on.insert(name, path);
            } else {
                self.source.paths.insert(path);
            }
        }
    }

    fn add(&mut self, module: &Names, names: Names) {
        if names.len() > 1
            && let Some(path) = self.resolved(module, &names)
        {
            self.source.paths.insert(path);
        }
    }

    /// The path from the crate's root; `None` for a name of another crate, or of the module itself.
    fn resolved(&self, module: &Names, names: &[String]) -> Option<Names> {
        let mut base = module.clone();
        let mut rest = names;
        match rest.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                let child: Names = base.iter().cloned().chain([first.to_string()]).collect();
                if !self.modules.contains(&child) {
                    return None;
                }
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')
}

fn is_semicolon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';')
}

/// `[cfg(test)]`, `[test]`
fn is_for_tests(attribute: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = attribute else { return false };
    matches!(group.stream().to_string().as_str(), "cfg (test)" | "cfg(test)" | "test")
}

/// The place behind the item that attributes stand before.
fn after_item(tokens: &[TokenTree], from: usize) -> usize {
    let is_end = |token: &TokenTree| {
        let braces = matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        braces || is_semicolon(token)
    };
    tokens[from..].iter().position(is_end).map_or(tokens.len(), |n| from + n + 1)
}

/// The sets of modules that import each other, directly or by way of others; each with its modules in order.
pub fn cycles(imports: &Imports) -> Vec<Vec<String>> {
    let reached = |start: &str| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = vec![start];
        while let Some(name) = open.pop() {
            for next in imports.get(name).into_iter().flatten() {
                if seen.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|name| (name.as_str(), reached(name))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for (name, targets) in &reach {
        if !targets.contains(name) || found.iter().flatten().any(|known| known == name) {
            continue;
        }
        let back = |other: &&&str| reach.get(**other).is_some_and(|from| from.contains(name));
        found.push(targets.iter().filter(back).map(ToString::to_string).collect());
    }
    found
}

#[test]
fn imports_are_read_from_paths_lists_and_names_that_are_passed_on() {
    let files = [
        ("", "pub use order::Usage; mod order; mod device;"),
        ("order", "mod usage; pub(crate) use usage::{Footprint, Usage}; struct Order { last: Usage }"),
        (
            "order::usage",
            "//! See `crate::device`.\nuse std::fmt; fn f() { crate::device::open(\"crate::order\") }",
        ),
        (
            "device",
            "use crate::{order::{self, Usage as Used}, Usage}; #[cfg(test)] mod tests { use super::*; use crate::order::x; }",
        ),
        ("device::shared", "fn f() { super::open(); super::super::order::Footprint::new() }"),
        ("device::loaded", "#[cfg(test)] use crate::order::Usage; use super::shared::*;"),
    ];
    let files = files.into_iter().map(|(name, text)| {
        let names = name.split("::").filter(|name| !name.is_empty()).map(str::to_string).collect();
        (names, text.parse().expect("Rust"))
    });
    let imports = Modules::from_tokens(files.collect()).imports();
    let of = |name: &str| imports[name].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of(""), [""; 0], "what the root passes on it does not import");
    assert_eq!(of("order"), ["order::usage"], "`Usage` is named, `Footprint` is passed on alone");
    assert_eq!(of("order::usage"), ["device"], "neither comments nor strings count");
    assert_eq!(of("device"), ["order", "order::usage"]);
    assert_eq!(of("device::shared"), ["device", "order::usage"]);
    assert_eq!(of("device::loaded"), ["device::shared"]);
    assert_eq!(cycles(&imports), [["device", "order", "order::usage"].map(str::to_string)]);
}

#[test]
fn methods_are_read_from_impl_blocks_and_calls() {
    let files = [
        ("device", "pub struct Device<T> { order: T } impl<T: Fn() -> u8> Device<T> { fn order(&self) {} }"),
        (
            "launch",
            "impl Device<u8> { pub fn load(&self) {} } impl Drop for Device<u8> { fn drop(&mut self) {} }",
        ),
        ("typed", "fn f(d: &Device<u8>) { d.load(); d.order; Device::drop(d); d.collect::<u8>() }"),
    ];
    let parsed = files.map(|(name, text)| (vec![name.to_string()], text.parse().expect("Rust")));
    let modules = Modules::from_tokens(parsed.into());
    let added: Vec<_> = modules.added_methods().into_iter().map(|a| (a.module, a.on, a.method)).collect();
    assert_eq!(added, [("launch".to_string(), "Device".to_string(), "load".to_string())]);
    assert_eq!(modules.callers("load"), ["typed"]);
    assert_eq!((modules.callers("collect"), modules.callers("order")), (vec!["typed".to_string()], vec![]));
    assert_eq!(modules.definers("order"), ["device"]);
}
