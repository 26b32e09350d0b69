//! From the tree back to text: the base of a formatter, and how generated programs become source.
//!
//! What is printed parses to the same tree, spans aside; a property test holds that. Comments are not in the
//! tree and so not in the text, and numbers come out in decimal. Parentheses stand where the grammar needs
//! them and nowhere else.

mod expressions;

use super::ast::{
    AssignOp, AxisDecl, Block, Directive, DirectiveValue, File, Item, KernelItem, Range, Stmt, StmtKind,
    TypeExpr, TypedName,
};
use expressions::Place;

/// Where a kernel's header is broken into lines.
const WIDTH: usize = 100;

/// The file as text, items separated by empty lines.
pub fn print(file: &File) -> String {
    let mut printer = Printer { out: String::new(), indent: 0 };
    for (at, item) in file.items.iter().enumerate() {
        if at > 0 {
            printer.out.push('\n');
        }
        printer.item(item);
        printer.out.push('\n');
    }
    printer.out
}

struct Printer {
    out: String,
    indent: usize,
}

impl Printer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
    }

    /// Parts with a separator between.
    fn list<T>(&mut self, parts: &[T], separator: &str, mut each: impl FnMut(&mut Self, &T)) {
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                self.put(separator);
            }
            each(self, part);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Struct(item) => {
                self.put("struct ");
                self.put(&item.name.name);
                self.put(" { ");
                self.list(&item.fields, ", ", Self::typed_name);
                self.put(if item.fields.is_empty() { "}" } else { " }" });
            }
            Item::Function(item) => {
                self.put(item.word());
                self.put(" ");
                self.put(&item.name.name);
                self.put("(");
                self.list(&item.params, ", ", Self::typed_name);
                self.put(") -> ");
                self.ty(&item.result);
                self.put(" ");
                if let Some(identity) = &item.identity {
                    self.put("from ");
                    self.expression(identity, Place::BeforeBody);
                    self.put(" ");
                }
                self.block(&item.body);
            }
            Item::Const(item) => {
                self.put("const ");
                self.put(&item.name.name);
                self.put(": ");
                self.ty(&item.ty);
                self.put(" = ");
                self.expression(&item.value, Place::Anything);
            }
            Item::Static(item) => {
                self.put("static ");
                self.put(&item.name.name);
                self.put(": ");
                self.ty(&item.ty);
                if let Some(value) = &item.value {
                    self.put(" = ");
                    self.expression(value, Place::Anything);
                }
            }
            Item::Kernel(item) => self.kernel(item),
            Item::Schedule(item) => {
                self.put("schedule");
                if let Some(kernel) = &item.kernel {
                    self.put(" ");
                    self.put(&kernel.name);
                }
                if let Some(target) = &item.target {
                    self.put(" for ");
                    self.put(&target.name);
                }
                if !item.conditions.is_empty() {
                    self.put(" where ");
                    self.list(&item.conditions, ", ", |p, condition| {
                        p.expression(condition, Place::BeforeBrace)
                    });
                }
                self.put(" {");
                self.indent += 1;
                for directive in &item.directives {
                    self.line();
                    self.directive(directive);
                }
                self.indent -= 1;
                if !item.directives.is_empty() {
                    self.line();
                }
                self.put("}");
            }
        }
    }

    fn typed_name(&mut self, typed: &TypedName) {
        self.put(&typed.name.name);
        self.put(": ");
        self.ty(&typed.ty);
    }

    fn ty(&mut self, ty: &TypeExpr) {
        self.put(&ty.name.name);
        if let Some(extents) = &ty.extents {
            self.put("[");
            self.list(extents, ", ", |p, extent| p.expression(extent, Place::Anything));
            self.put("]");
        }
    }

    fn kernel(&mut self, item: &KernelItem) {
        let start = self.out.len();
        self.kernel_header(item, false);
        if self.out.len() - start > WIDTH {
            self.out.truncate(start);
            self.kernel_header(item, true);
        }
        self.block(&item.body);
    }

    fn kernel_header(&mut self, item: &KernelItem, broken: bool) {
        self.put("kernel ");
        self.put(&item.name.name);
        self.put("(");
        self.indent += usize::from(broken);
        for (at, param) in item.params.iter().enumerate() {
            match (at, broken) {
                (0, false) => {}
                (_, false) => self.put(", "),
                (_, true) => self.line(),
            }
            self.put(&param.name.name);
            self.put(if param.inout.is_some() { ": inout " } else { ": " });
            self.ty(&param.ty);
            if broken {
                self.put(",");
            }
        }
        self.indent -= usize::from(broken);
        if broken {
            self.line();
        }
        self.put(")");
        if !item.results.is_empty() {
            self.put(" -> ");
            self.list(&item.results, ", ", Self::typed_name);
        }
        if !item.facts.is_empty() {
            match broken {
                true => self.line(),
                false => self.put(" "),
            }
            self.put("where ");
            self.list(&item.facts, ", ", |p, fact| p.expression(fact, Place::BeforeBrace));
        }
        match broken && !item.facts.is_empty() {
            true => self.line(),
            false => self.put(" "),
        }
    }

    fn directive(&mut self, directive: &Directive) {
        self.put(&directive.name.name);
        for (at, argument) in directive.arguments.iter().enumerate() {
            self.put(if at == 0 { " " } else { ", " });
            self.directive_value(&argument.subject);
            if let Some(value) = &argument.value {
                self.put(": ");
                self.directive_value(value);
            }
            for (word, number) in &argument.modifiers {
                self.put(" ");
                self.put(&word.name);
                if let Some(number) = number {
                    self.put(" ");
                    self.directive_value(number);
                }
            }
        }
    }

    fn directive_value(&mut self, value: &DirectiveValue) {
        match value {
            DirectiveValue::Name(name) => self.put(&name.name),
            DirectiveValue::Number(number, _) => self.put(&number.to_string()),
            DirectiveValue::Call(name, number, _) => self.put(&format!("{}({number})", name.name)),
        }
    }

    /// A body, over several lines unless it is empty.
    fn block(&mut self, block: &Block) {
        if block.statements.is_empty() && block.value.is_none() {
            self.put("{}");
            return;
        }
        self.put("{");
        self.indent += 1;
        for statement in &block.statements {
            self.line();
            self.statement(statement);
        }
        if let Some(value) = &block.value {
            self.line();
            self.expression(value, Place::LastLine { first: block.statements.is_empty() });
        }
        self.indent -= 1;
        self.line();
        self.put("}");
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Let { mutable, name, axes, ty, value } => {
                self.put(if *mutable { "var " } else { "let " });
                self.put(&name.name);
                if let Some(axes) = axes {
                    self.put("[");
                    self.axes(axes, Place::Anything);
                    self.put("]");
                }
                if let Some(ty) = ty {
                    self.put(": ");
                    self.ty(ty);
                }
                self.put(" = ");
                self.expression(value, Place::Anything);
            }
            StmtKind::Assign { target, op, value, .. } => {
                self.expression(target, Place::Target);
                self.put(" ");
                self.put(assign_text(*op));
                self.put(" ");
                self.expression(value, Place::Anything);
            }
            StmtKind::Forall { axes, body } => {
                self.put("forall ");
                self.axes(axes, Place::BeforeBrace);
                self.put(" ");
                self.block(body);
            }
            StmtKind::For { name, range, step, body } => {
                self.put("for ");
                self.put(&name.name);
                self.put(" in ");
                self.range(range, Place::BeforeBrace);
                if let Some(step) = step {
                    self.put(" step ");
                    self.expression(step, Place::BeforeBrace);
                }
                self.put(" ");
                self.block(body);
            }
            StmtKind::While { condition, body } => {
                self.put("while ");
                self.expression(condition, Place::BeforeBrace);
                self.put(" ");
                self.block(body);
            }
            StmtKind::Break => self.put("break"),
            StmtKind::Assert { condition } => {
                self.put("assert ");
                self.expression(condition, Place::Anything);
            }
            StmtKind::Print { operands } => {
                self.put("print(");
                self.list(operands, ", ", |printer, operand| printer.expression(operand, Place::Anything));
                self.put(")");
            }
            StmtKind::If { .. } => self.if_statement(statement),
            // Stands for text that did not parse: nothing to print but a hint.
            StmtKind::Error => self.put("/* a statement that did not parse */"),
        }
    }

    fn if_statement(&mut self, mut statement: &Stmt) {
        while let StmtKind::If { condition, then, otherwise } = &statement.kind {
            self.put("if ");
            self.expression(condition, Place::BeforeBrace);
            self.put(" ");
            self.block(then);
            let Some(otherwise) = otherwise else { return };
            self.put(" else ");
            match otherwise.statements.as_slice() {
                [inner] if otherwise.value.is_none() && matches!(inner.kind, StmtKind::If { .. }) => {
                    statement = inner;
                }
                _ => {
                    self.block(otherwise);
                    return;
                }
            }
        }
    }

    fn axes(&mut self, axes: &[AxisDecl], bounds: Place) {
        self.list(axes, ", ", |p, axis| {
            p.put(&axis.name.name);
            if let Some(range) = &axis.range {
                p.put(" in ");
                p.range(range, bounds);
            }
        });
    }

    pub(super) fn range(&mut self, range: &Range, place: Place) {
        if let Some(low) = &range.low {
            self.expression(low, place.before_dots());
            self.put(if range.inclusive { "..=" } else { ".." });
        }
        self.expression(&range.high, place);
    }
}

fn assign_text(op: AssignOp) -> &'static str {
    match op {
        AssignOp::Set => "=",
        AssignOp::Add => "+=",
        AssignOp::Sub => "-=",
        AssignOp::Mul => "*=",
        AssignOp::Div => "/=",
        AssignOp::Rem => "%=",
        AssignOp::Shl => "<<=",
        AssignOp::Shr => ">>=",
        AssignOp::Min => "min=",
        AssignOp::Max => "max=",
        AssignOp::And => "&=",
        AssignOp::Or => "|=",
        AssignOp::Xor => "^=",
    }
}

#[cfg(test)]
mod tests;
