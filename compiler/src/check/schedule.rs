//! `schedule` blocks: names exist, sizes make sense, and every directive is either passed on or refused by name.
//! Which directives there are stands in one table; those that shape loops and tiles are in `shape.rs`. Whether the
//! kernel has a place for a directive, the passes that carry it out say.

mod levels;
mod shape;
mod sizes;

use super::elaborator::Elaborator;
use super::items::{Checker, Global};
use super::scope::Binding;
use super::typed::{
    ArrayId, ArrayRole, CacheMode, Directive, DirectiveKind, IndexId, Layout, Schedule, StmtKind, Type,
};
use super::walk::{Node, walk_statements};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, DirectiveArgument, DirectiveValue, Ident, Item, KernelItem, ScheduleItem};
use crate::targets::TARGETS;
use rustc_hash::FxHashMap;
use sizes::condition_text;

/// Directives, and how each is written; nothing for those that are for later.
const DIRECTIVES: [(&str, Option<&str>); 22] = [
    ("block", Some("block 256")),
    ("order", Some("order i, j")),
    ("layout", Some("layout body: soa` (or `aos`, `aosoa(32)")),
    ("cache", Some("cache x: cs` (or `ca`, `cg`, `nc")),
    ("tile", Some("tile i: 32, j: 32")),
    ("per_thread", Some("per_thread i: 4")),
    ("stage", Some("stage a`, `stage a pad 1`, `stage a swizzle` or `stage a depth 2")),
    // Written behind `stage`.
    ("pad", Some("stage a pad 1")),
    ("swizzle", Some("stage a swizzle")),
    ("depth", Some("stage a depth 2")),
    ("unroll", Some("unroll p: 4` (or `unroll p")),
    ("vectorize", Some("vectorize i: 4")),
    ("warps", Some("warps i: 4")),
    ("split", Some("split p: 64")),
    ("atomic", Some("atomic total")),
    ("fast_math", Some("fast_math")),
    ("tf32", Some("tf32")),
    ("allow", Some("allow W0601")),
    ("deny", Some("deny W0601")),
    ("tensor", None),
    ("cluster", None),
    ("specialize", None),
];

/// The directives that this compiler carries out, and how each is written: several forms are separated by backticks.
pub fn directives() -> impl Iterator<Item = (&'static str, &'static str)> {
    DIRECTIVES.into_iter().filter_map(|(name, form)| Some((name, form?)))
}

impl<'a> Checker<'a> {
    /// The schedules of each kernel, in source order. Those of no kernel, for no target, and second ones are
    /// reported.
    pub fn schedules_by_kernel(&mut self) -> FxHashMap<&'a str, Vec<&'a ScheduleItem>> {
        let file = self.file;
        let mut map: FxHashMap<&'a str, Vec<&'a ScheduleItem>> = FxHashMap::default();
        for item in &file.items {
            let Item::Schedule(item) = item else { continue };
            let Some(kernel) = &item.kernel else { continue };
            if !matches!(self.globals.get(kernel.name.as_str()), Some(Global::Kernel)) {
                if self.may_be_unread(&kernel.name) {
                    continue;
                }
                let kernels = self.global_names(|global| matches!(global, Global::Kernel));
                self.report(
                    Diagnostic::error(
                        codes::E0501,
                        kernel.span,
                        format!("there is no kernel `{}` to schedule", kernel.name),
                        "not a kernel",
                    )
                    .nearest_or(&kernel.name, kernels, "name a kernel of this file"),
                );
                continue;
            }
            if let Some(target) = &item.target
                && !TARGETS.contains(&target.name.as_str())
            {
                self.report(
                    Diagnostic::error(
                        codes::E0502,
                        target.span,
                        format!("there is no target `{}`", target.name),
                        "not a target",
                    )
                    .nearest_or(
                        &target.name,
                        TARGETS.iter().copied(),
                        format!("the targets are {}", TARGETS.join(", ")),
                    ),
                );
                continue;
            }
            let list = map.entry(&kernel.name).or_default();
            let name_of = |item: &ScheduleItem| {
                (item.target.as_ref().map(|target| target.name.clone()), condition_text(item))
            };
            let first = list.iter().find(|first| name_of(first) == name_of(item));
            if let Some(Some(first)) = first.map(|first| &first.kernel) {
                let sizes = if item.conditions.is_empty() { "" } else { " and the same sizes" };
                self.report(
                    Diagnostic::error(
                        codes::E0503,
                        kernel.span,
                        format!("`{}` has two schedules for the same target{sizes}", kernel.name),
                        "scheduled again here",
                    )
                    .label(first.span, "first scheduled here")
                    .help(
                        "merge the two, or say when one counts: `schedule … for sm_90`, `schedule … where m >= 4096`",
                    ),
                );
                continue;
            }
            list.push(item);
        }
        map
    }
}

/// A directive that says what another one has said; both are remembered.
fn given_twice(what: &str, span: Span, seen: &mut Vec<(String, Span)>) -> Option<Diagnostic> {
    let first = seen.iter().find(|(known, _)| known == what).map(|(_, first)| *first);
    seen.push((what.to_string(), span));
    let message = format!("`{what}` is given twice in one schedule");
    Some(
        Diagnostic::error(codes::E0506, span, message, "given again here")
            .label(first?, "first given here")
            .help("remove one of them"),
    )
}

fn malformed(span: Span, word: &str) -> Diagnostic {
    let form = DIRECTIVES.iter().find(|(name, _)| *name == word).and_then(|(_, form)| *form);
    Diagnostic::error(codes::E0508, span, format!("`{word}` is not written like this"), "malformed")
        .help(format!("write `{}`", form.unwrap_or(word)))
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// The kernel's schedules, once its body is known.
    pub fn schedules(&mut self, kernel: &'a KernelItem, items: &[&'a ScheduleItem]) {
        for item in items {
            let condition = self.schedule_condition(item);
            let mut directives = Vec::with_capacity(item.directives.len());
            let mut seen: Vec<(String, Span)> = Vec::new();
            let mut levels = Vec::new();
            for directive in &item.directives {
                if let "layout" | "allow" | "deny" = directive.name.name.as_str()
                    && !item.conditions.is_empty()
                {
                    self.whatever_the_sizes(directive);
                    continue;
                }
                if let "allow" | "deny" = directive.name.name.as_str() {
                    self.checker.level_directive(directive, &mut seen, &mut levels);
                    continue;
                }
                self.directive(kernel, directive, &mut seen, &mut directives);
            }
            let target = item.target.as_ref().map(|target| target.name.clone());
            self.kernel.schedules.push(Schedule { target, condition, directives, levels, span: item.span });
        }
    }

    fn directive(
        &mut self,
        kernel: &'a KernelItem,
        directive: &'a ast::Directive,
        seen: &mut Vec<(String, Span)>,
        out: &mut Vec<Directive>,
    ) {
        let word = directive.name.name.as_str();
        let Some((_, form)) = DIRECTIVES.iter().find(|(name, _)| *name == word) else {
            let names = DIRECTIVES.map(|(name, _)| name);
            self.report(
                Diagnostic::error(
                    codes::E0504,
                    directive.name.span,
                    format!("there is no directive `{word}`"),
                    "not a directive",
                )
                .nearest_or(word, names, format!("the directives are {}", names.join(", "))),
            );
            return;
        };
        if form.is_none() {
            self.unsupported(kernel, directive);
            return;
        }
        match word {
            "tile" | "per_thread" | "unroll" | "vectorize" | "warps" | "split" => {
                self.axis_directive(directive, seen, out);
            }
            "stage" => self.stage_directive(directive, seen, out),
            "atomic" => self.atomic_directive(directive, seen, out),
            "fast_math" | "tf32" => {
                self.once(word, directive.name.span, seen);
                if directive.arguments.is_empty() {
                    let kind = if word == "tf32" { DirectiveKind::Tf32 } else { DirectiveKind::FastMath };
                    out.push(Directive { kind, span: directive.span });
                } else {
                    let _: Option<()> = self.malformed(directive.span, word);
                }
            }
            "pad" | "swizzle" | "depth" => {
                let _: Option<()> = self.malformed(directive.span, word);
            }
            "block" => {
                self.once("block", directive.name.span, seen);
                if let Some(threads) = self.block_size(directive) {
                    out.push(Directive { kind: DirectiveKind::Block(threads), span: directive.span });
                }
            }
            "order" => {
                if let Some(names) = self.order_names(directive) {
                    out.push(Directive { kind: DirectiveKind::Order(names), span: directive.span });
                }
            }
            _ => {
                for argument in &directive.arguments {
                    let Some((array, name)) = self.array_argument(argument, word) else { continue };
                    self.once(&format!("{word} {}", name.name), name.span, seen);
                    let kind = if word == "layout" {
                        self.layout(argument, array, name)
                            .map(|layout| DirectiveKind::Layout { array, layout })
                    } else {
                        self.cache(argument, array, name).map(|mode| DirectiveKind::Cache { array, mode })
                    };
                    if let Some(kind) = kind {
                        out.push(Directive { kind, span: directive.span });
                    }
                }
                if directive.arguments.is_empty() {
                    let _: Option<()> = self.malformed(directive.span, word);
                }
            }
        }
    }

    /// Names and sizes are checked even so: a schedule that is refused for being early is right otherwise.
    fn unsupported(&mut self, kernel: &'a KernelItem, directive: &'a ast::Directive) {
        let word = &directive.name.name;
        for argument in &directive.arguments {
            let DirectiveValue::Name(name) = &argument.subject else { continue };
            let known = self.kernel.indices.values().any(|index| index.name == name.name)
                || self.kernel.arrays.values().any(|array| array.name == name.name);
            if !known {
                self.unknown_schedule_name(name);
            }
            if let Some(DirectiveValue::Number(0, span)) = argument.value {
                self.report(
                    Diagnostic::error(
                        codes::E0507,
                        span,
                        format!("a size of 0 makes no sense for `{word}`"),
                        "at least 1 is needed",
                    )
                    .help("write a positive number"),
                );
            }
        }
        self.report(
            Diagnostic::error(
                codes::E0505,
                directive.name.span,
                format!("the directive `{word}` is not yet supported"),
                "this compiler does not carry it out yet",
            )
            .label(kernel.name.span, "the kernel runs without it")
            .help("remove the line: the compiler chooses what a schedule leaves out"),
        );
    }

    fn once(&mut self, what: &str, span: Span, seen: &mut Vec<(String, Span)>) {
        if let Some(twice) = given_twice(what, span, seen) {
            self.report(twice);
        }
    }

    fn malformed<T>(&mut self, span: Span, word: &str) -> Option<T> {
        self.refuse(malformed(span, word))
    }

    fn block_size(&mut self, directive: &'a ast::Directive) -> Option<u32> {
        let [
            DirectiveArgument {
                subject: DirectiveValue::Number(threads, span), value: None, modifiers, ..
            },
        ] = directive.arguments.as_slice()
        else {
            return self.malformed(directive.span, "block");
        };
        if !modifiers.is_empty() {
            return self.malformed(directive.span, "block");
        }
        if !(1..=1024).contains(threads) {
            return self.refuse(
                Diagnostic::error(
                    codes::E0507,
                    *span,
                    format!("a block has 1 to 1024 threads, not {threads}"),
                    "outside the hardware's limits",
                )
                .help("write a multiple of 32 up to 1024: `block 256`"),
            );
        }
        if threads % 32 != 0 {
            self.report(
                Diagnostic::warning(
                    codes::W0501,
                    *span,
                    format!("{threads} threads are not whole warps of 32: lanes stay idle"),
                    "not a multiple of 32",
                )
                .help(format!("write `block {}`", threads.next_multiple_of(32))),
            );
        }
        Some(*threads as u32)
    }

    fn order_names(&mut self, directive: &'a ast::Directive) -> Option<Vec<IndexId>> {
        let mut names = Vec::with_capacity(directive.arguments.len());
        for argument in &directive.arguments {
            let DirectiveValue::Name(name) = &argument.subject else {
                return self.malformed(argument.span, "order");
            };
            if argument.value.is_some() || !argument.modifiers.is_empty() {
                return self.malformed(argument.span, "order");
            }
            let Some(index) = parallel_index(&self.kernel, &name.name) else {
                self.unknown_schedule_name(name);
                return None;
            };
            if names.contains(&index) {
                return self.refuse(
                    Diagnostic::error(
                        codes::E0506,
                        name.span,
                        format!("`{}` is named twice in one order", name.name),
                        "named again here",
                    )
                    .help("name each index once"),
                );
            }
            names.push(index);
        }
        if names.is_empty() { self.malformed(directive.span, "order") } else { Some(names) }
    }

    fn unknown_schedule_name(&mut self, name: &Ident) {
        let mut known: Vec<&str> = self.kernel.indices.values().map(|index| index.name.as_str()).collect();
        known.extend(self.kernel.arrays.values().map(|array| array.name.as_str()));
        known.sort_unstable();
        known.dedup();
        let kernel = &self.kernel.name;
        let unknown = Diagnostic::error(
            codes::E0509,
            name.span,
            format!("the kernel `{kernel}` has no `{}` that could be scheduled here", name.name),
            "not a name of the kernel",
        )
        .nearest_or(
            &name.name,
            known.iter().copied(),
            format!("the kernel has {}", known.join(", ")),
        );
        self.report(unknown);
    }

    fn array_argument(
        &mut self,
        argument: &'a DirectiveArgument,
        word: &str,
    ) -> Option<(ArrayId, &'a Ident)> {
        let DirectiveValue::Name(name) = &argument.subject else {
            return self.malformed(argument.span, word);
        };
        match self.scope.get(&name.name).map(|entry| entry.binding) {
            Some(Binding::Array { id, .. }) => Some((id, name)),
            Some(Binding::Poisoned) => self.poisoned(),
            _ => {
                // An array of an iteration's own may become a temporary, and be staged.
                let own = word == "stage";
                let temporary = |(_, array): &(ArrayId, &super::typed::Array)| {
                    array.name == name.name
                        && (array.role == ArrayRole::Temporary || own && array.role == ArrayRole::Private)
                };
                if let Some((id, _)) = self.kernel.arrays.iter().find(temporary) {
                    return Some((id, name));
                }
                self.unknown_schedule_name(name);
                None
            }
        }
    }

    fn layout(&mut self, argument: &'a DirectiveArgument, array: ArrayId, name: &Ident) -> Option<Layout> {
        let layout = match &argument.value {
            Some(DirectiveValue::Name(word)) if word.name == "aos" => Layout::Aos,
            Some(DirectiveValue::Name(word)) if word.name == "soa" => Layout::Soa,
            Some(DirectiveValue::Call(word, width, span)) if word.name == "aosoa" => {
                if !width.is_power_of_two() || !(8..=1024).contains(width) {
                    return self.refuse(
                        Diagnostic::error(
                            codes::E0507,
                            *span,
                            format!("a group has a power of two of 8 to 1024 structs, not {width}"),
                            "not such a number",
                        )
                        .help(format!("write `layout {}: aosoa(32)`", name.name)),
                    );
                }
                Layout::Aosoa(*width as u32)
            }
            _ => return self.malformed(argument.span, "layout"),
        };
        if !argument.modifiers.is_empty() {
            return self.malformed(argument.span, "layout");
        }
        if !matches!(self.kernel.arrays[array].ty, Type::Struct(_)) {
            let found = self.type_name(&self.kernel.arrays[array].ty.clone());
            return self.refuse(
                Diagnostic::error(
                    codes::E0510,
                    name.span,
                    format!("`{}` holds `{found}`: only arrays of structs have a layout", name.name),
                    "not an array of structs",
                )
                .help("remove the line"),
            );
        }
        Some(layout)
    }

    fn cache(&mut self, argument: &'a DirectiveArgument, array: ArrayId, name: &Ident) -> Option<CacheMode> {
        let mode = match &argument.value {
            Some(DirectiveValue::Name(word)) => CacheMode::from_name(&word.name),
            _ => None,
        };
        let Some(mode) = mode else { return self.malformed(argument.span, "cache") };
        if !argument.modifiers.is_empty() {
            return self.malformed(argument.span, "cache");
        }
        if mode == CacheMode::Nc && self.kernel.arrays[array].role != ArrayRole::Input {
            return self.refuse(
                Diagnostic::error(
                    codes::E0511,
                    name.span,
                    format!(
                        "`{}` is written by the kernel, so it cannot be read through the read-only path",
                        name.name
                    ),
                    "not an input",
                )
                .help(format!("use `cache {}: ca`, or `cg`, or `cs`", name.name)),
            );
        }
        Some(mode)
    }
}

/// The first parallel index of that name.
fn parallel_index(kernel: &super::typed::Kernel, name: &str) -> Option<IndexId> {
    let mut found = None;
    walk_statements(&kernel.body, &mut |node| {
        let Node::Stmt(stmt) = node else { return };
        if let StmtKind::Store { axes, .. }
        | StmtKind::DefineArray { axes, .. }
        | StmtKind::Forall { axes, .. } = &stmt.kind
        {
            let mut indices = axes.iter().map(|axis| axis.index);
            found = found.or_else(|| indices.find(|index| kernel.indices[*index].name == name));
        }
    });
    found
}
