//! The typed program as text: what the checker made of a file, for people and for snapshots.
//!
//! ```text
//! kernel matmul
//!   input a: f32[m, k]
//!   input b: f32[k, n]
//!   result c: f32[m, n]
//!   store c[i, j] = sum(p in 0..k: a[i, p] * b[p, j])
//!     for i in 0..m, j in 0..n
//! ```
//!
//! Ranges are written out, implicit conversions are `as`, inlined functions are blocks. Where a name is declared
//! more than once in a kernel (by inlining, or by shadowing) its number follows it: `w.3`. With
//! [`Options::proofs`] a subscript that is checked on the device is followed by `?` and a guarded one by `~`, an
//! atomic assignment is marked, and results say what they start from.

mod expressions;
mod writer;

pub use writer::Options;

use super::typed::*;
use expressions::{assignment, combine_name};
use std::fmt::Write;
use writer::Writer;

/// The whole program: structs, constants, statics, kernels. Deterministic.
pub fn dump(program: &Program, options: Options) -> String {
    let mut out = String::new();
    for def in program.structs.values() {
        let _ =
            writeln!(out, "struct {} ({} bytes, align {})", def.name, def.element.size, def.element.align);
        for leaf in &def.element.leaves {
            let extents: String = leaf.extents.iter().map(|extent| format!("[{extent}]")).collect();
            let _ = writeln!(out, "  {:>4} {}: {}{extents}", leaf.offset, leaf.path, leaf.scalar);
        }
    }
    for item in program.constants.values() {
        let _ = writeln!(out, "const {}: {}{:?}", item.name, item.element.name, item.extents);
    }
    for item in program.statics.values() {
        let shape = if item.extents.is_empty() { String::new() } else { format!("{:?}", item.extents) };
        let _ = writeln!(out, "static {}: {}{shape}", item.name, item.element.name);
    }
    for kernel in &program.kernels {
        if !out.is_empty() {
            out.push('\n');
        }
        let mut writer = Writer::new(program, kernel, options);
        writer.kernel();
        out.push_str(&writer.out);
    }
    out
}

/// A type as a person writes it.
pub fn type_name(program: &Program, ty: &Type) -> String {
    super::types::name(program, ty)
}

/// An expression of a kernel, as [`dump`] has it.
pub fn expression(program: &Program, kernel: &Kernel, expr: &Expr) -> String {
    Writer::new(program, kernel, Options::default()).expr(expr)
}

impl Writer<'_> {
    fn kernel(&mut self) {
        let kernel = self.kernel;
        self.line(&format!("kernel {}", kernel.name));
        self.depth += 1;
        for item in &kernel.signature {
            match item {
                SignatureItem::Param(id) => {
                    let param = &kernel.params[*id];
                    let ty = super::types::name(self.program, &param.ty);
                    self.line(&format!("param {}: {ty}", param.name));
                }
                SignatureItem::Array(id) => self.array(*id),
            }
        }
        for (id, array) in &kernel.arrays {
            if !kernel.signature.contains(&SignatureItem::Array(id))
                && matches!(array.role, ArrayRole::Constant(_) | ArrayRole::Static(_))
            {
                self.array(id);
            }
        }
        for fact in &kernel.facts {
            let condition = self.expr(&fact.condition);
            self.line(&format!("where {condition}"));
        }
        for injection in &kernel.injections {
            let array = &kernel.arrays[injection.array].name;
            let (low, high) = (self.expr(&injection.low), self.expr(&injection.high));
            self.line(&format!("where injective({array} in {low}..{high})"));
        }
        for reduction in kernel.reductions.values() {
            let ty = super::types::name(self.program, &reduction.ty);
            let [a, b] = reduction.params.map(|param| self.local(param));
            let identity = self.expr(&reduction.identity);
            self.line(&format!("reduction {}({a}, {b}): {ty} from {identity}", reduction.name));
            self.block(&reduction.body);
        }
        self.statements(&kernel.body);
        for schedule in &kernel.schedules {
            let target = schedule.target.as_ref().map_or(String::new(), |target| format!(" for {target}"));
            let condition = schedule.condition.as_ref().map(|condition| self.expr(&condition.value));
            let condition = condition.map_or(String::new(), |condition| format!(" where {condition}"));
            self.line(&format!("schedule{target}{condition}"));
            self.depth += 1;
            for directive in &schedule.directives {
                let text = self.directive(&directive.kind);
                self.line(&text);
            }
            self.depth -= 1;
        }
        self.depth -= 1;
    }

    fn array(&mut self, id: ArrayId) {
        let array = &self.kernel.arrays[id];
        let role = match array.role {
            ArrayRole::Input => "input",
            ArrayRole::InOut => "inout",
            ArrayRole::Result(_) => "result",
            ArrayRole::Temporary => "temporary",
            ArrayRole::Private => "private",
            ArrayRole::Constant(_) => "const",
            ArrayRole::Static(_) => "static",
        };
        let start = match array.role {
            ArrayRole::Result(start) if self.options.proofs => match start {
                ResultStart::Written => " (written everywhere)".to_string(),
                ResultStart::Zero => " (starts from zero)".to_string(),
                ResultStart::Identity(op) => format!(" (starts from the identity of {})", combine_name(op)),
            },
            _ => String::new(),
        };
        let text = format!("{role} {}: {}{}{start}", array.name, array.element.name, self.extents(array));
        self.line(&text);
    }

    fn extents(&self, array: &Array) -> String {
        if array.extents.is_empty() {
            return String::new();
        }
        let extents: Vec<String> = array.extents.iter().map(|extent| self.expr(extent)).collect();
        format!("[{}]", extents.join(", "))
    }

    fn directive(&self, kind: &DirectiveKind) -> String {
        match kind {
            DirectiveKind::Block(threads) => format!("block {threads}"),
            DirectiveKind::Order(names) => {
                let names: Vec<&str> =
                    names.iter().map(|id| self.kernel.indices[*id].name.as_str()).collect();
                format!("order {}", names.join(", "))
            }
            DirectiveKind::Layout { array, layout } => {
                format!("layout {}: {layout}", self.kernel.arrays[*array].name)
            }
            DirectiveKind::Cache { array, mode } => {
                format!("cache {}: {}", self.kernel.arrays[*array].name, mode.name())
            }
            DirectiveKind::Tile { axis, size } => format!("tile {axis}: {size}"),
            DirectiveKind::PerThread { axis, count } => format!("per_thread {axis}: {count}"),
            DirectiveKind::Stage { array, place, depth } => {
                let place = place.map_or(String::new(), |place| format!(" {place}"));
                let depth = depth.map_or(String::new(), |depth| format!(" depth {depth}"));
                format!("stage {}{place}{depth}", self.kernel.arrays[*array].name)
            }
            DirectiveKind::Unroll { axis, factor: Some(factor) } => format!("unroll {axis}: {factor}"),
            DirectiveKind::Unroll { axis, factor: None } => format!("unroll {axis}"),
            DirectiveKind::Vectorize { axis, width } => format!("vectorize {axis}: {width}"),
            DirectiveKind::Warps { axis, count } => format!("warps {axis}: {count}"),
            DirectiveKind::Split { axis, pieces } => format!("split {axis}: {pieces}"),
            DirectiveKind::Atomic { array } => format!("atomic {}", self.kernel.arrays[*array].name),
            DirectiveKind::FastMath => "fast_math".to_string(),
            DirectiveKind::Tf32 => "tf32".to_string(),
        }
    }

    fn statements(&mut self, statements: &[Stmt]) {
        for stmt in statements {
            self.stmt(stmt);
        }
    }

    fn block(&mut self, block: &Block) {
        self.depth += 1;
        self.statements(&block.statements);
        if let Some(value) = &block.value {
            let value = self.expr(value);
            self.line(&value);
        }
        self.depth -= 1;
    }

    /// The axes of a statement, on a line of their own.
    fn axes_line(&mut self, axes: &[Axis]) {
        if !axes.is_empty() {
            let axes = self.axes(axes);
            self.depth += 1;
            self.line(&format!("for {axes}"));
            self.depth -= 1;
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let { local, value } => {
                let declared = &self.kernel.locals[*local];
                let word = if declared.mutable { "var" } else { "let" };
                let ty = super::types::name(self.program, &declared.ty);
                let text = format!("{word} {}: {ty} = {}", self.local(*local), self.expr(value));
                self.line(&text);
            }
            StmtKind::Assign { local, path, value } => {
                let place = self.path(path, &self.kernel.locals[*local].ty);
                let text = format!("{}{place} = {}", self.local(*local), self.expr(value));
                self.line(&text);
            }
            StmtKind::DefineArray { array, axes, value } => {
                let declared = &self.kernel.arrays[*array];
                let word = if declared.role == ArrayRole::Temporary { "temporary" } else { "local" };
                let names: Vec<&str> =
                    axes.iter().map(|axis| self.kernel.indices[axis.index].name.as_str()).collect();
                let text = format!(
                    "{word} {}[{}]: {} = {}",
                    declared.name,
                    names.join(", "),
                    declared.element.name,
                    self.expr(value)
                );
                self.line(&text);
                self.axes_line(axes);
            }
            StmtKind::Store { axes, access, path, combine, value } => {
                let atomic = combine.is_some_and(|combine| combine.may_meet) && self.options.proofs;
                let text = format!(
                    "store {}{} {} {}{}",
                    self.access(access),
                    self.path(path, &self.kernel.arrays[access.array].ty),
                    assignment(combine.map(|combine| combine.op)),
                    self.expr(value),
                    if atomic { " (atomic)" } else { "" }
                );
                self.line(&text);
                self.axes_line(axes);
            }
            StmtKind::Forall { axes, body } => {
                let text = format!("forall {}", self.axes(axes));
                self.line(&text);
                self.block(body);
            }
            StmtKind::For { index, low, high, step, goes_on, body, .. } => {
                let name = &self.kernel.indices[*index].name;
                let step = if matches!(step.kind, ExprKind::Int(1)) {
                    String::new()
                } else {
                    format!(" step {}", self.expr(step))
                };
                let goes_on = match goes_on {
                    Some(local) => format!(" while {}", self.kernel.locals[*local].name),
                    None => String::new(),
                };
                let ends = format!("{}..{}", self.operand(low), self.operand(high));
                let text = format!("for {name} in {ends}{step}{goes_on}");
                self.line(&text);
                self.block(body);
            }
            StmtKind::While { condition, body } => {
                let text = format!("while {}", self.expr(condition));
                self.line(&text);
                self.block(body);
            }
            StmtKind::If { condition, then, otherwise } => {
                let text = format!("if {}", self.expr(condition));
                self.line(&text);
                self.block(then);
                if !otherwise.statements.is_empty() {
                    self.line("else");
                    self.block(otherwise);
                }
            }
            StmtKind::Assert { condition, .. } => {
                let text = format!("assert {}", self.expr(condition));
                self.line(&text);
            }
            StmtKind::Print { operands, .. } => {
                let operands: Vec<String> =
                    operands.iter().map(|operand| self.expr(&operand.value)).collect();
                self.line(&format!("print({})", operands.join(", ")));
            }
        }
    }
}
