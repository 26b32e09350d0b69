//! Changes that make a program smaller, from its syntax tree.

use super::edit::{Edit, lengths, runs};
use crate::source::{SourceFile, Span};
use crate::syntax::ast::{
    AxisDecl, Block, Expr, ExprKind, Item, KernelItem, Param, Range, Stmt, StmtKind, TypeExpr, TypedName,
};
use crate::syntax::parse;

/// All changes; what cannot be read has none.
pub fn edits(text: &str) -> Vec<Edit> {
    let file = SourceFile::new("", text);
    let (tree, _) = parse(&file);
    let mut pieces = Pieces { text, edits: Vec::new() };
    let mut items: Vec<&Item> = tree.items.iter().chain(&tree.broken.items).collect();
    items.sort_by_key(|item| span_of(item).start);
    pieces.list(&items.iter().map(|item| span_of(item)).collect::<Vec<_>>());
    items.into_iter().for_each(|item| pieces.item(item));
    pieces.edits
}

fn span_of(item: &Item) -> Span {
    match item {
        Item::Struct(item) => item.span,
        Item::Function(item) => item.span,
        Item::Const(item) => item.span,
        Item::Static(item) => item.span,
        Item::Kernel(item) => item.span,
        Item::Schedule(item) => item.span,
    }
}

fn typed(name: &TypedName) -> Span {
    name.name.span.to(name.ty.span)
}

fn axis(axis: &AxisDecl) -> Span {
    axis.range.as_ref().map_or(axis.name.span, |range| axis.name.span.to(range.span))
}

/// Where names stand bare as subscripts of parameters.
struct Places<'t> {
    params: &'t [Param],
    found: Vec<Place<'t>>,
}

/// One of them, with the axis that it runs along.
struct Place<'t> {
    name: &'t str,
    extent: &'t Expr,
    element: &'t str,
}

impl<'t> Places<'t> {
    fn expression(&mut self, expr: &'t Expr) {
        if let ExprKind::Index { base, subscripts } = &expr.kind
            && let ExprKind::Name(array) = &base.kind
            && let Some(param) = self.params.iter().find(|param| param.name.name == array.name)
        {
            let extents = param.ty.extents.iter().flatten();
            for (subscript, extent) in subscripts.iter().zip(extents) {
                if let ExprKind::Name(name) = &subscript.kind {
                    self.found.push(Place { name: &name.name, extent, element: &param.ty.name.name });
                }
            }
        }
        match &expr.kind {
            ExprKind::Unary { operand, .. } | ExprKind::Cast { operand, .. } => self.expression(operand),
            ExprKind::Binary { left, right, .. } => {
                self.expression(left);
                self.expression(right);
            }
            ExprKind::Call { arguments, .. } => {
                arguments.iter().for_each(|argument| self.expression(argument))
            }
            ExprKind::Reduce { body, .. } => self.expression(body),
            ExprKind::Index { base, subscripts } => {
                self.expression(base);
                subscripts.iter().for_each(|subscript| self.expression(subscript));
            }
            ExprKind::Guarded { access, otherwise } => {
                self.expression(access);
                self.expression(otherwise);
            }
            ExprKind::Field { base, .. } => self.expression(base),
            ExprKind::StructLiteral { fields, .. } => {
                fields.iter().for_each(|(_, value)| self.expression(value));
            }
            ExprKind::If { condition, then, otherwise } => {
                self.expression(condition);
                [then, otherwise].into_iter().flat_map(|block| &block.value).for_each(|v| self.expression(v));
            }
            _ => {}
        }
    }
}

struct Pieces<'t> {
    text: &'t str,
    edits: Vec<Edit>,
}

impl Pieces<'_> {
    fn slice(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.edits.push(Edit { span, text: text.into() });
    }

    /// Things that stand side by side go: many at once, or one.
    fn list(&mut self, spans: &[Span]) {
        for length in lengths(spans.len()) {
            self.edits.extend(runs(spans, length));
        }
    }

    /// Things with commas between them go one by one, each with a comma.
    fn separated(&mut self, spans: &[Span]) {
        for (at, span) in spans.iter().enumerate() {
            let with_comma = match (spans.get(at + 1), at.checked_sub(1).map(|before| spans[before])) {
                (Some(next), _) => Span::new(span.start, next.start),
                (None, Some(before)) => Span::new(before.end, span.end),
                (None, None) => *span,
            };
            self.replace(with_comma, "");
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Struct(item) => {
                self.separated(&item.fields.iter().map(typed).collect::<Vec<_>>());
                item.fields.iter().for_each(|field| self.ty(&field.ty));
            }
            Item::Function(item) => {
                self.separated(&item.params.iter().map(typed).collect::<Vec<_>>());
                item.identity.iter().for_each(|identity| self.expression(identity));
                self.block(&item.body);
            }
            Item::Const(item) => self.expression(&item.value),
            Item::Static(item) => item.value.iter().for_each(|value| self.expression(value)),
            Item::Kernel(item) => self.kernel(item),
            Item::Schedule(item) => {
                self.separated(&item.conditions.iter().map(|condition| condition.span).collect::<Vec<_>>());
                self.list(&item.directives.iter().map(|directive| directive.span).collect::<Vec<_>>());
                for directive in &item.directives {
                    let arguments = directive.arguments.iter().map(|argument| argument.span);
                    self.separated(&arguments.collect::<Vec<_>>());
                }
            }
        }
    }

    fn kernel(&mut self, kernel: &KernelItem) {
        let param = |param: &Param| param.name.span.to(param.ty.span);
        self.separated(&kernel.params.iter().map(param).collect::<Vec<_>>());
        self.separated(&kernel.results.iter().map(typed).collect::<Vec<_>>());
        self.separated(&kernel.facts.iter().map(|fact| fact.span).collect::<Vec<_>>());
        kernel.params.iter().for_each(|param| self.ty(&param.ty));
        kernel.results.iter().for_each(|result| self.ty(&result.ty));
        kernel.facts.iter().for_each(|fact| self.expression(fact));
        kernel.body.statements.iter().for_each(|statement| self.parameter(kernel, statement));
        self.block(&kernel.body);
    }

    /// A temporary becomes a parameter, in the place of all that computes it. Its element type is a guess where none is
    /// written.
    fn parameter(&mut self, kernel: &KernelItem, statement: &Stmt) {
        let StmtKind::Let { mutable: false, name, axes, ty, value } = &statement.kind else { return };
        let Some(open) = self.text[kernel.name.span.end as usize..].find('(') else { return };
        let at = kernel.params.last().map_or(kernel.name.span.end + open as u32 + 1, |last| last.ty.span.end);
        let mut places = Places { params: &kernel.params, found: Vec::new() };
        places.expression(value);
        let extent = |axis: &AxisDecl| match &axis.range {
            Some(Range { low: None, high, inclusive: false, .. }) => Some(self.slice(high.span)),
            Some(Range { low: Some(low), high, inclusive: false, .. }) if self.slice(low.span) == "0" => {
                Some(self.slice(high.span))
            }
            Some(_) => None,
            None => {
                let place = places.found.iter().find(|place| place.name == axis.name.name);
                place.map(|place| self.slice(place.extent.span))
            }
        };
        let extents: Option<Vec<&str>> = axes.iter().flatten().map(extent).collect();
        let Some(extents) = extents.filter(|_| at < statement.span.start) else { return };
        let element = match (ty, places.found.first()) {
            (Some(ty), _) => ty.name.name.as_str(),
            (None, Some(place)) => place.element,
            (None, None) => "f32",
        };
        let comma = if kernel.params.is_empty() { "" } else { ", " };
        let brackets = if axes.is_some() { format!("[{}]", extents.join(", ")) } else { String::new() };
        let between = self.slice(Span::new(at, statement.span.start)).trim_end();
        let text = format!("{comma}{}: {element}{brackets}{between}", name.name);
        self.replace(Span::new(at, statement.span.end), text);
    }

    fn ty(&mut self, ty: &TypeExpr) {
        let extents = ty.extents.as_deref().unwrap_or(&[]);
        self.separated(&extents.iter().map(|extent| extent.span).collect::<Vec<_>>());
        extents.iter().for_each(|extent| self.expression(extent));
    }

    /// What stands between a block's braces.
    fn inside(&self, block: &Block) -> String {
        let text = self.slice(block.span);
        text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text).trim().to_string()
    }

    fn block(&mut self, block: &Block) {
        self.list(&block.statements.iter().map(|statement| statement.span).collect::<Vec<_>>());
        block.statements.iter().for_each(|statement| self.statement(statement));
        block.value.iter().for_each(|value| self.expression(value));
    }

    fn range(&mut self, range: &Range) {
        self.replace(range.span, self.slice(range.high.span).to_string());
        range.low.iter().for_each(|low| self.expression(low));
        self.expression(&range.high);
    }

    fn axes(&mut self, axes: &[AxisDecl]) {
        self.separated(&axes.iter().map(axis).collect::<Vec<_>>());
        axes.iter().filter_map(|axis| axis.range.as_ref()).for_each(|range| self.range(range));
    }

    fn statement(&mut self, statement: &Stmt) {
        let mut unwrapped = |block: &Block| {
            let inside = self.inside(block);
            self.replace(statement.span, inside);
        };
        match &statement.kind {
            StmtKind::Let { axes, value, .. } => {
                axes.iter().for_each(|axes| self.axes(axes));
                self.expression(value);
            }
            StmtKind::Assign { target, value, .. } => {
                if let ExprKind::Index { subscripts, .. } = &target.kind {
                    self.separated(&subscripts.iter().map(|subscript| subscript.span).collect::<Vec<_>>());
                    subscripts.iter().for_each(|subscript| self.expression(subscript));
                }
                self.expression(value);
            }
            StmtKind::Forall { axes, body } => {
                unwrapped(body);
                self.axes(axes);
                self.block(body);
            }
            StmtKind::For { range, step, body, .. } => {
                unwrapped(body);
                self.range(range);
                step.iter().for_each(|step| self.expression(step));
                self.block(body);
            }
            StmtKind::While { condition, body } => {
                unwrapped(body);
                self.expression(condition);
                self.block(body);
            }
            StmtKind::If { condition, then, otherwise } => {
                unwrapped(then);
                otherwise.iter().for_each(&mut unwrapped);
                if let Some(otherwise) = otherwise {
                    self.replace(Span::new(then.span.end, otherwise.span.end), "");
                    self.block(otherwise);
                }
                self.expression(condition);
                self.block(then);
            }
            StmtKind::Assert { condition } => self.expression(condition),
            StmtKind::Print { operands } => operands.iter().for_each(|operand| self.expression(operand)),
            StmtKind::Break | StmtKind::Error => {}
        }
    }

    /// An expression becomes a part of it, or a literal.
    fn expression(&mut self, expr: &Expr) {
        self.replace(expr.span, "1");
        self.replace(expr.span, "true");
        let part = |pieces: &mut Self, inner: &Expr| {
            let text = pieces.slice(inner.span);
            let atom = matches!(
                inner.kind,
                ExprKind::Int { .. }
                    | ExprKind::Float { .. }
                    | ExprKind::Bool(_)
                    | ExprKind::Name(_)
                    | ExprKind::Call { .. }
                    | ExprKind::Reduce { .. }
                    | ExprKind::Index { .. }
                    | ExprKind::Field { .. }
            );
            let text = if atom { text.to_string() } else { format!("({text})") };
            pieces.replace(expr.span, text);
            pieces.expression(inner);
        };
        match &expr.kind {
            ExprKind::Int { .. }
            | ExprKind::Float { .. }
            | ExprKind::Bool(_)
            | ExprKind::Name(_)
            | ExprKind::Error => {}
            ExprKind::Unary { operand, .. } | ExprKind::Cast { operand, .. } => part(self, operand),
            ExprKind::Binary { left, right, .. } => {
                part(self, left);
                part(self, right);
            }
            ExprKind::Call { arguments, .. } => arguments.iter().for_each(|argument| part(self, argument)),
            ExprKind::Reduce { axes, body, .. } => {
                part(self, body);
                self.axes(axes);
            }
            ExprKind::Index { subscripts, .. } => {
                self.separated(&subscripts.iter().map(|subscript| subscript.span).collect::<Vec<_>>());
                subscripts.iter().for_each(|subscript| part(self, subscript));
            }
            ExprKind::Ranged { name, range } => {
                self.replace(expr.span, name.name.clone());
                self.range(range);
            }
            ExprKind::Guarded { access, otherwise } => {
                part(self, access);
                part(self, otherwise);
            }
            ExprKind::Field { base, .. } => part(self, base),
            ExprKind::StructLiteral { fields, .. } => {
                let spans = fields.iter().map(|(name, value)| name.span.to(value.span));
                self.separated(&spans.collect::<Vec<_>>());
                fields.iter().for_each(|(_, value)| part(self, value));
            }
            ExprKind::ArrayLiteral(values) => {
                self.separated(&values.iter().map(|value| value.span).collect::<Vec<_>>());
                values.iter().for_each(|value| part(self, value));
            }
            ExprKind::If { condition, then, otherwise } => {
                for block in [then, otherwise] {
                    if let (Some(value), []) = (&block.value, block.statements.as_slice()) {
                        part(self, value);
                    } else {
                        self.block(block);
                    }
                }
                self.expression(condition);
            }
            ExprKind::Block(block) => {
                if let Some(value) = &block.value {
                    part(self, value);
                }
                self.list(&block.statements.iter().map(|statement| statement.span).collect::<Vec<_>>());
                block.statements.iter().for_each(|statement| self.statement(statement));
            }
        }
    }
}
