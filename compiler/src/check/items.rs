//! The checker of one file: its items by name, and the passes over them.

use super::Sizes;
use super::functions::Function;
use super::typed::{Builtin, ConstId, Expr, Program, StaticId, StructId, Type};
use super::types;
use crate::data::Scalar;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, codes};
use crate::source::Span;
use crate::syntax::ast::{self, Ident, Item};
use rustc_hash::{FxHashMap, FxHashSet};

/// What an item's name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Global {
    Struct(StructId),
    Function(usize),
    /// Position in [`Checker::constants`].
    Constant(usize),
    Static(StaticId),
    Kernel,
    /// A constant or struct that has not been reached yet.
    Later(Span),
    /// Mistaken, which has been reported.
    Poisoned,
}

#[derive(Clone, Debug)]
pub(super) enum ConstantValue {
    /// A scalar or struct: a literal, copied to where it is used.
    Value(Expr),
    Array(ConstId),
}

pub(super) struct Checker<'a> {
    pub file: &'a ast::File,
    /// What dimensions stand for, where that is known.
    pub sizes: &'a Sizes,
    /// The kernel that they are of, if not all.
    pub sizes_of: Option<&'a str>,
    pub program: Program,
    pub diagnostics: Diagnostics,
    pub globals: FxHashMap<&'a str, Global>,
    pub functions: Vec<Function<'a>>,
    pub constants: Vec<ConstantValue>,
    /// Items whose name was already taken, by their name's span: they are skipped.
    pub duplicates: Vec<Span>,
    /// Names that may have been given where the file could not be read.
    unread: FxHashSet<&'a str>,
    /// How many expression nodes inlining has copied in this file.
    pub inlined: u64,
}

impl<'a> Checker<'a> {
    pub fn new(file: &'a ast::File, sizes: &'a Sizes, sizes_of: Option<&'a str>) -> Self {
        Self {
            file,
            sizes,
            sizes_of,
            program: Program::default(),
            diagnostics: Diagnostics::new(),
            globals: FxHashMap::default(),
            functions: Vec::new(),
            constants: Vec::new(),
            duplicates: Vec::new(),
            unread: file.broken.names.iter().map(|name| name.name.as_str()).collect(),
            inlined: 0,
        }
    }

    pub fn finish(mut self) -> (Program, Diagnostics) {
        self.diagnostics.sort();
        (self.program, self.diagnostics)
    }

    /// Whether anything was reported so far, by the parser or here.
    pub fn has_errors(&self) -> bool {
        self.file.broken != ast::Broken::default() || self.diagnostics.has_errors()
    }

    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Binds every item's name, so that order in the file does not matter to functions and kernels.
    pub fn collect_names(&mut self) {
        let mut spans: FxHashMap<&'a str, Span> = FxHashMap::default();
        for item in &self.file.items {
            let (name, global) = match item {
                Item::Struct(item) => (&item.name, Global::Later(item.name.span)),
                Item::Const(item) => (&item.name, Global::Later(item.name.span)),
                Item::Static(item) => (&item.name, Global::Later(item.name.span)),
                Item::Function(item) => {
                    self.functions.push(Function::new(item));
                    (&item.name, Global::Function(self.functions.len() - 1))
                }
                Item::Kernel(item) => (&item.name, Global::Kernel),
                Item::Schedule(_) => continue,
            };
            self.refuse_taken_name(name, item);
            if let Some(first) = spans.get(name.name.as_str()).copied() {
                self.duplicates.push(name.span);
                self.report(duplicate(codes::E0105, "item", name, first));
                continue;
            }
            spans.insert(&name.name, name.span);
            self.globals.insert(&name.name, global);
        }
        self.duplicates.sort_unstable();
        for name in &self.file.broken.values {
            self.globals.entry(&name.name).or_insert(Global::Poisoned);
        }
    }

    /// Whether a name that stands for nothing may have been given where the file could not be read. It is then
    /// not reported as unknown.
    pub fn may_be_unread(&self, name: &str) -> bool {
        self.file.broken.anything || self.unread.contains(name)
    }

    /// A type cannot take a scalar type's name, a function not a built-in's, and a kernel, which keeps its name in PTX, not
    /// that of a constant there.
    fn refuse_taken_name(&mut self, name: &Ident, item: &Item) {
        let what = match item {
            Item::Struct(_) if Scalar::from_name(&name.name).is_some() => "a scalar type",
            Item::Function(_) if Builtin::from_name(&name.name).is_some() => "a built-in function",
            Item::Kernel(_) if name.name == "WARP_SZ" => "a constant of PTX",
            _ => return,
        };
        self.report(
            Diagnostic::error(
                codes::E0113,
                name.span,
                format!("`{}` is the name of {what}", name.name),
                "this name is taken",
            )
            .help(format!("choose another name, such as `my_{}`", name.name)),
        );
    }

    /// Whether an item of this name can stand where a value can: a constant or a static.
    pub fn names_a_value(&self, name: &str) -> bool {
        match self.globals.get(name) {
            Some(Global::Constant(_) | Global::Static(_) | Global::Later(_) | Global::Poisoned) => true,
            Some(Global::Struct(_) | Global::Function(_) | Global::Kernel) | None => false,
        }
    }

    pub fn is_duplicate(&self, name: &Ident) -> bool {
        self.duplicates.binary_search(&name.span).is_ok()
    }

    /// The names of all items that `filter` accepts, sorted, for suggestions.
    pub fn global_names(&self, filter: impl Fn(&Global) -> bool) -> Vec<&'a str> {
        let mut names: Vec<&'a str> =
            self.globals.iter().filter(|(_, global)| filter(global)).map(|(name, _)| *name).collect();
        names.sort_unstable();
        names
    }

    pub fn type_name(&self, ty: &Type) -> String {
        types::name(&self.program, ty)
    }
}

/// The second of two equal names.
pub(super) fn duplicate(code: Code, what: &str, name: &Ident, first: Span) -> Diagnostic {
    Diagnostic::error(
        code,
        name.span,
        format!("the {what} `{}` is defined twice", name.name),
        "defined again here",
    )
    .label(first, "first defined here")
    .help(format!("rename one of them, for example `{}2`", name.name))
}
