//! Directives about loops and about what goes through shared memory or meets in atomics: `tile per_thread unroll
//! vectorize warps split stage atomic`.

use crate::check::elaborator::Elaborator;
use crate::check::typed::{
    Access, ArrayId, ArrayRole, Axis, Directive, DirectiveKind, Expr, ExprKind, Kernel, Placement, Stmt,
    StmtKind,
};
use crate::check::walk::{Node, walk_block, walk_expr, walk_statements};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, DirectiveValue, Ident, ReduceOp};

/// The largest number of pieces of a reduction, and the largest tile.
const MOST_PIECES: u64 = 65_536;
const MOST_TILE: u64 = 4096;
const MOST_PER_THREAD: u64 = 64;
const MOST_UNROLL: u64 = 64;
/// Bytes of the widest access of a thread.
const VECTOR_BYTES: u64 = 16;

/// The kinds of loop that a name stands for in a kernel.
#[derive(Clone, Copy, Default)]
struct Uses {
    parallel: bool,
    /// Parallel inside an iteration of an outer `forall`: one thread may run it.
    inner: bool,
    reduced: bool,
    serial: bool,
}

impl<'a> Elaborator<'_, 'a> {
    /// `tile i: 32, j: 32` and the other directives that give names numbers.
    pub(super) fn axis_directive(
        &mut self,
        directive: &'a ast::Directive,
        seen: &mut Vec<(String, Span)>,
        out: &mut Vec<Directive>,
    ) {
        let word = directive.name.name.as_str();
        if directive.arguments.is_empty() {
            let _: Option<()> = self.malformed(directive.span, word);
        }
        for argument in &directive.arguments {
            let number = match (&argument.subject, &argument.value, argument.modifiers.is_empty()) {
                (DirectiveValue::Name(_), Some(DirectiveValue::Number(number, span)), true) => {
                    Some((*number, *span))
                }
                (DirectiveValue::Name(_), None, true) if word == "unroll" => None,
                _ => {
                    let _: Option<()> = self.malformed(argument.span, word);
                    continue;
                }
            };
            let DirectiveValue::Name(name) = &argument.subject else { continue };
            let Some(uses) = self.axis_uses(word, name) else { continue };
            self.once(&format!("{word} {}", name.name), name.span, seen);
            if !self.right_loop(word, name, uses) {
                continue;
            }
            if let Some((number, span)) = number
                && !self.right_size(word, name, number, span)
            {
                continue;
            }
            let axis = name.name.clone();
            let count = number.map(|(number, _)| number as u32);
            let kind = match (word, count) {
                ("tile", Some(size)) => DirectiveKind::Tile { axis, size },
                ("per_thread", Some(count)) => DirectiveKind::PerThread { axis, count },
                ("vectorize", Some(width)) => DirectiveKind::Vectorize { axis, width },
                ("warps", Some(count)) => DirectiveKind::Warps { axis, count },
                ("split", Some(pieces)) => DirectiveKind::Split { axis, pieces },
                (_, factor) => DirectiveKind::Unroll { axis, factor },
            };
            out.push(Directive { kind, span: argument.span });
        }
    }

    /// What the name is in the kernel; reports a name that no loop has.
    fn axis_uses(&mut self, word: &str, name: &Ident) -> Option<Uses> {
        let uses = uses(&self.kernel, &name.name);
        if uses.parallel || uses.reduced || uses.serial {
            return Some(uses);
        }
        if self.kernel.arrays.values().any(|array| array.name == name.name) {
            return self.refuse(
                Diagnostic::error(
                    codes::E0509,
                    name.span,
                    format!("`{word}` takes names of loops, and `{}` is an array", name.name),
                    "an array",
                )
                .help(format!("write an index name of the kernel: `{word} i: 4`")),
            );
        }
        self.unknown_schedule_name(name);
        None
    }

    /// Whether the directive is for that kind of loop.
    fn right_loop(&mut self, word: &str, name: &Ident, uses: Uses) -> bool {
        let (right, wanted) = match word {
            "split" => (uses.reduced, "a reduction's name: `split` cuts reductions into pieces"),
            "per_thread" => {
                (uses.parallel, "a parallel name: a reduction's or loop's steps follow each other")
            }
            "unroll" => (
                uses.reduced || uses.serial || uses.inner,
                "a reduction's or `for` loop's name: for parallel names there is `per_thread`",
            ),
            _ => (
                uses.parallel || uses.reduced,
                "a parallel name or a reduction's: a `for` loop keeps its order",
            ),
        };
        if !right {
            self.report(
                Diagnostic::error(
                    codes::E0512,
                    name.span,
                    format!("`{word}` does not work for the loops over `{}`", name.name),
                    "not such a loop",
                )
                .help(format!("write {wanted}")),
            );
        }
        right
    }

    /// Whether the number makes sense.
    fn right_size(&mut self, word: &str, name: &Ident, number: u64, span: Span) -> bool {
        let (most, power) = match word {
            "tile" => (MOST_TILE, true),
            "per_thread" => (MOST_PER_THREAD, true),
            "vectorize" => (16, true),
            "warps" => (32, true),
            "split" => (MOST_PIECES, false),
            _ => (MOST_UNROLL, false),
        };
        if !(1..=most).contains(&number) || (power && !number.is_power_of_two()) {
            let wanted = if power { "a power of two from 1" } else { "a number from 1" };
            self.report(
                Diagnostic::error(
                    codes::E0507,
                    span,
                    format!("`{word} {}` takes {wanted} to {most}, not {number}", name.name),
                    "not such a number",
                )
                .help(format!(
                    "write `{word} {}: {}`",
                    name.name,
                    nearest_size(number, most, power)
                )),
            );
            return false;
        }
        if word == "vectorize"
            && let Some((bytes, array)) = narrowest(&self.kernel, &name.name)
            && number * bytes > VECTOR_BYTES
        {
            let array = self.kernel.arrays[array].name.clone();
            self.report(
                Diagnostic::error(
                    codes::E0513,
                    span,
                    format!(
                        "{number} elements of `{array}` are {} bytes: more than one access brings",
                        number * bytes
                    ),
                    "more than 16 bytes",
                )
                .help(format!("write `vectorize {}: {}`", name.name, VECTOR_BYTES / bytes)),
            );
            return false;
        }
        true
    }

    /// `stage a pad 1 depth 2, b swizzle`.
    pub(super) fn stage_directive(
        &mut self,
        directive: &'a ast::Directive,
        seen: &mut Vec<(String, Span)>,
        out: &mut Vec<Directive>,
    ) {
        if directive.arguments.is_empty() {
            let _: Option<()> = self.malformed(directive.span, "stage");
        }
        for argument in &directive.arguments {
            if argument.value.is_some() {
                let _: Option<()> = self.malformed(argument.span, "stage");
                continue;
            }
            let Some((array, name)) = self.array_argument(argument, "stage") else { continue };
            self.once(&format!("stage {}", name.name), name.span, seen);
            let Some((place, depth)) = self.stage_modifiers(argument) else { continue };
            let role = self.kernel.arrays[array].role;
            if matches!(role, ArrayRole::Constant(_)) || !is_read(&self.kernel, array) {
                self.report(
                    Diagnostic::error(
                        codes::E0512,
                        name.span,
                        format!("`{}` cannot be staged: only what is read from memory can", name.name),
                        "not read from memory",
                    )
                    .help("stage an array that the kernel reads and does not write"),
                );
                continue;
            }
            out.push(Directive { kind: DirectiveKind::Stage { array, place, depth }, span: argument.span });
        }
    }

    fn stage_modifiers(
        &mut self,
        argument: &'a ast::DirectiveArgument,
    ) -> Option<(Option<Placement>, Option<u32>)> {
        let (mut place, mut depth) = (None, None);
        for (word, number) in &argument.modifiers {
            let number = match number {
                None => None,
                Some(DirectiveValue::Number(number, span)) => Some((*number, *span)),
                Some(_) => return self.malformed(argument.span, "stage"),
            };
            match (word.name.as_str(), number) {
                ("pad", Some((pad, span))) if place.is_none() => {
                    if pad > 64 {
                        return self.refuse(
                            Diagnostic::error(
                                codes::E0507,
                                span,
                                format!("rows are padded by 0 to 64 elements, not {pad}"),
                                "not such a number",
                            )
                            .help("write `pad 1`: every other row then begins in another bank"),
                        );
                    }
                    place = Some(Placement::Pad(pad as u32));
                }
                ("swizzle", None) if place.is_none() => place = Some(Placement::Swizzle),
                ("pad", Some(_)) | ("swizzle", None) => {
                    return self.refuse(
                        Diagnostic::error(
                            codes::E0517,
                            word.span,
                            "a tile is padded or swizzled, not both",
                            "given beside the other",
                        )
                        .help("keep one of the two"),
                    );
                }
                ("depth", Some((number, span))) if depth.is_none() => {
                    if !(1..=4).contains(&number) {
                        return self.refuse(
                            Diagnostic::error(
                                codes::E0507,
                                span,
                                format!("1 to 4 tiles are in shared memory at a time, not {number}"),
                                "not such a number",
                            )
                            .help("write `depth 2`"),
                        );
                    }
                    depth = Some(number as u32);
                }
                _ => return self.malformed(argument.span, "stage"),
            }
        }
        Some((place, depth))
    }

    /// `atomic total`.
    pub(super) fn atomic_directive(
        &mut self,
        directive: &'a ast::Directive,
        seen: &mut Vec<(String, Span)>,
        out: &mut Vec<Directive>,
    ) {
        if directive.arguments.is_empty() {
            let _: Option<()> = self.malformed(directive.span, "atomic");
        }
        for argument in &directive.arguments {
            if argument.value.is_some() || !argument.modifiers.is_empty() {
                let _: Option<()> = self.malformed(argument.span, "atomic");
                continue;
            }
            let Some((array, name)) = self.array_argument(argument, "atomic") else { continue };
            self.once(&format!("atomic {}", name.name), name.span, seen);
            if !takes_reduction(&self.kernel, array) {
                self.report(
                    Diagnostic::error(
                        codes::E0514,
                        name.span,
                        format!("no reduction is stored in `{}` as it is", name.name),
                        "nothing to combine here",
                    )
                    .help(
                        "name an array that gets a `sum`, `prod`, `min`, `max`, `any`, `all` or `count` of numbers, \
                         with nothing computed from it",
                    ),
                );
                continue;
            }
            out.push(Directive { kind: DirectiveKind::Atomic { array }, span: argument.span });
        }
    }
}

/// A size near to one that makes no sense.
fn nearest_size(number: u64, most: u64, power: bool) -> u64 {
    let number = number.clamp(1, most);
    if power { number.next_power_of_two().min(most) } else { number }
}

fn uses(kernel: &Kernel, name: &str) -> Uses {
    let mut uses = Uses::default();
    walk_statements(&kernel.body, &mut |node| match node {
        Node::Stmt(stmt) => match &stmt.kind {
            StmtKind::Store { axes, .. }
            | StmtKind::DefineArray { axes, .. }
            | StmtKind::Forall { axes, .. } => {
                uses.parallel |= has(kernel, axes, name);
                uses.reduced |= has(kernel, axes, name) && combines(stmt);
                if let StmtKind::Forall { body, .. } = &stmt.kind {
                    walk_block(body, &mut |node| uses.inner |= is_parallel(kernel, &node, name));
                }
            }
            StmtKind::For { index, .. } => uses.serial |= kernel.indices[*index].name == name,
            _ => {}
        },
        Node::Expr(expr) => {
            if let ExprKind::Reduce { axes, .. } = &expr.kind {
                uses.reduced |= has(kernel, axes, name);
            }
        }
    });
    uses
}

/// Whether a loop combines into places, over which it may become a reduction.
fn combines(stmt: &Stmt) -> bool {
    let mut found = matches!(stmt.kind, StmtKind::Store { combine: Some(_), .. });
    if let StmtKind::Forall { body, .. } = &stmt.kind {
        walk_block(body, &mut |node| {
            if let Node::Stmt(stmt) = node {
                found |= matches!(stmt.kind, StmtKind::Store { combine: Some(_), .. });
            }
        });
    }
    found
}

fn has(kernel: &Kernel, axes: &[Axis], name: &str) -> bool {
    axes.iter().any(|axis| kernel.indices[axis.index].name == name)
}

/// Whether a statement iterates over the name in parallel.
fn is_parallel(kernel: &Kernel, node: &Node<'_>, name: &str) -> bool {
    let Node::Stmt(stmt) = node else { return false };
    match &stmt.kind {
        StmtKind::Store { axes, .. } | StmtKind::DefineArray { axes, .. } | StmtKind::Forall { axes, .. } => {
            has(kernel, axes, name)
        }
        _ => false,
    }
}

/// Visits every access to an array, and whether it is a store.
fn accesses<'k>(kernel: &'k Kernel, visit: &mut dyn FnMut(&'k Access, bool)) {
    walk_statements(&kernel.body, &mut |node| match node {
        Node::Stmt(stmt) => {
            if let StmtKind::Store { access, .. } = &stmt.kind {
                visit(access, true);
            }
        }
        Node::Expr(expr) => {
            if let ExprKind::Load { access, .. } = &expr.kind {
                visit(access, false);
            }
        }
    });
}

fn is_read(kernel: &Kernel, array: ArrayId) -> bool {
    let mut read = false;
    accesses(kernel, &mut |access, store| read |= !store && access.array == array);
    read
}

/// The narrowest scalar of the arrays whose last subscript has the name, in bytes, and one such array.
fn narrowest(kernel: &Kernel, name: &str) -> Option<(u64, ArrayId)> {
    let mut narrowest: Option<(u64, ArrayId)> = None;
    accesses(kernel, &mut |access, _| {
        let data = &kernel.arrays[access.array];
        let Some(last) = access.subscripts.last() else { return };
        if matches!(data.role, ArrayRole::Private | ArrayRole::Constant(_)) || !mentions(kernel, last, name) {
            return;
        }
        let bytes = data.element.leaves.iter().map(|leaf| leaf.scalar.size()).min().unwrap_or(1);
        if narrowest.is_none_or(|(known, _)| bytes < known) {
            narrowest = Some((bytes, access.array));
        }
    });
    narrowest
}

fn mentions(kernel: &Kernel, expr: &Expr, name: &str) -> bool {
    let mut found = false;
    walk_expr(expr, &mut |node| {
        if let Node::Expr(Expr { kind: ExprKind::Index(index), .. }) = node {
            found |= kernel.indices[*index].name == name;
        }
    });
    found
}

/// Whether some statement puts a reduction that atomics can combine into the array.
fn takes_reduction(kernel: &Kernel, array: ArrayId) -> bool {
    let mut found = false;
    walk_statements(&kernel.body, &mut |node| {
        if let Node::Stmt(stmt) = node
            && let StmtKind::Store { access, value, combine: None, .. } = &stmt.kind
            && access.array == array
        {
            found |= is_reduction(value);
        }
    });
    found
}

fn is_reduction(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Reduce { op: super::super::typed::Reducer::BuiltIn(op), .. } => {
            !matches!(op, ReduceOp::ArgMin | ReduceOp::ArgMax)
        }
        // There are no atomics for it.
        ExprKind::Reduce { op: super::super::typed::Reducer::Own(_), .. } => false,
        ExprKind::Cast { operand, .. } => is_reduction(operand),
        _ => false,
    }
}
