//! Items and statements: which names they give, and how far these reach.

use super::{Names, Shape, Symbol, SymbolKind, Use};
use crate::source::Span;
use crate::syntax::ast::{
    AxisDecl, Block, DirectiveValue, Expr, ExprKind, File, Ident, Item, KernelItem, Range, ScheduleItem,
    Stmt, StmtKind, TypeExpr,
};
use crate::syntax::{BoundDimension, bound_dimensions};
use rustc_hash::FxHashMap;

pub(super) struct Resolver<'a> {
    pub names: Names,
    pub globals: FxHashMap<&'a str, usize>,
    /// By struct and name.
    pub fields: FxHashMap<(usize, &'a str), usize>,
    /// The parameters and dimensions of kernels.
    sizes: FxHashMap<usize, Vec<(&'a str, usize)>>,
    /// What is in scope, innermost last.
    pub scope: Vec<(&'a str, usize)>,
    /// The item that is looked at.
    item: Option<usize>,
}

/// Everywhere.
const WHOLE: Span = Span { start: 0, end: u32::MAX };

pub(super) fn resolve(file: &File) -> Names {
    let mut items: Vec<&Item> = file.items.iter().chain(&file.broken.items).collect();
    items.sort_by_key(|item| span_of(item));
    let mut resolver = Resolver {
        names: Names::default(),
        globals: FxHashMap::default(),
        fields: FxHashMap::default(),
        sizes: FxHashMap::default(),
        scope: Vec::new(),
        item: None,
    };
    for item in &items {
        resolver.global(item);
    }
    for item in &items {
        resolver.fields(item);
    }
    for item in &items {
        resolver.item(item);
    }
    for item in &items {
        if let Item::Schedule(schedule) = item {
            resolver.schedule(schedule);
        }
    }
    let mut names = resolver.names;
    names.uses.sort_unstable();
    names.uses.dedup_by_key(|used| used.span);
    names
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

pub(super) fn shape_of(ty: &TypeExpr) -> Option<Shape> {
    Some(Shape { element: ty.name.name.clone(), rank: ty.extents.as_ref().map_or(0, Vec::len) })
}

impl<'a> Resolver<'a> {
    fn symbol(
        &mut self,
        ident: &Ident,
        kind: SymbolKind,
        scope: Span,
        whole: Span,
        shape: Option<Shape>,
    ) -> usize {
        let at = self.names.symbols.len();
        self.names.symbols.push(Symbol {
            name: ident.name.clone(),
            kind,
            span: ident.span,
            scope,
            whole,
            shape,
            owner: self.item,
            same_as: at,
        });
        self.uses(ident.span, at);
        at
    }

    pub(super) fn uses(&mut self, span: Span, symbol: usize) {
        self.names.uses.push(Use { span, symbol });
    }

    /// Gives a name that counts from here on.
    pub(super) fn give(
        &mut self,
        ident: &'a Ident,
        kind: SymbolKind,
        scope: Span,
        whole: Span,
        shape: Option<Shape>,
    ) -> usize {
        let at = self.symbol(ident, kind, scope, whole, shape);
        self.scope.push((&ident.name, at));
        at
    }

    /// What a name means here.
    pub(super) fn meaning(&self, name: &str) -> Option<usize> {
        let local = self.scope.iter().rev().find(|(known, _)| *known == name).map(|(_, at)| *at);
        local.or_else(|| self.globals.get(name).copied())
    }

    pub(super) fn name(&mut self, ident: &Ident) -> Option<usize> {
        let at = self.meaning(&ident.name)?;
        self.uses(ident.span, at);
        Some(at)
    }

    fn global(&mut self, item: &'a Item) {
        let (name, kind, shape) = match item {
            Item::Struct(item) => (&item.name, SymbolKind::Struct, None),
            Item::Function(item) => (&item.name, SymbolKind::Function, shape_of(&item.result)),
            Item::Const(item) => (&item.name, SymbolKind::Constant, shape_of(&item.ty)),
            Item::Static(item) => (&item.name, SymbolKind::Static, shape_of(&item.ty)),
            Item::Kernel(item) => (&item.name, SymbolKind::Kernel, None),
            Item::Schedule(_) => return,
        };
        let at = self.symbol(name, kind, WHOLE, span_of(item), shape);
        self.globals.entry(&name.name).or_insert(at);
    }

    fn fields(&mut self, item: &'a Item) {
        let Item::Struct(item) = item else { return };
        self.item = self.globals.get(item.name.name.as_str()).copied();
        for field in &item.fields {
            let whole = field.name.span.to(field.ty.span);
            let at = self.symbol(&field.name, SymbolKind::Field, item.span, whole, shape_of(&field.ty));
            if let Some(owner) = self.item {
                self.fields.entry((owner, &field.name.name)).or_insert(at);
            }
        }
        self.item = None;
    }

    pub(super) fn ty(&mut self, ty: &'a TypeExpr) {
        if let Some(at) = self.globals.get(ty.name.name.as_str()).copied()
            && self.names.symbols[at].kind == SymbolKind::Struct
        {
            self.uses(ty.name.span, at);
        }
        for extent in ty.extents.iter().flatten() {
            self.expression(extent);
        }
    }

    fn item(&mut self, item: &'a Item) {
        self.scope.clear();
        match item {
            Item::Struct(item) => item.fields.iter().for_each(|field| self.ty(&field.ty)),
            Item::Const(item) => {
                self.ty(&item.ty);
                self.expression(&item.value);
            }
            Item::Static(item) => {
                self.ty(&item.ty);
                item.value.iter().for_each(|value| drop(self.expression(value)));
            }
            Item::Function(item) => {
                self.item = self.globals.get(item.name.name.as_str()).copied();
                for param in &item.params {
                    let whole = param.name.span.to(param.ty.span);
                    self.give(&param.name, SymbolKind::Parameter, item.span, whole, shape_of(&param.ty));
                }
                self.dimensions(item.params.iter().map(|param| &param.ty), item.span);
                item.params.iter().for_each(|param| self.ty(&param.ty));
                self.ty(&item.result);
                item.identity.iter().for_each(|identity| drop(self.expression(identity)));
                self.block(&item.body);
            }
            Item::Kernel(item) => self.kernel(item),
            Item::Schedule(_) => {}
        }
        self.item = None;
    }

    fn kernel(&mut self, item: &'a KernelItem) {
        self.item = self.globals.get(item.name.name.as_str()).copied();
        for param in &item.params {
            let whole = param.name.span.to(param.ty.span);
            self.give(&param.name, SymbolKind::Parameter, item.span, whole, shape_of(&param.ty));
        }
        self.dimensions(item.params.iter().map(|param| &param.ty), item.span);
        if let Some(kernel) = self.item {
            self.sizes.insert(kernel, self.scope.clone());
        }
        item.params.iter().for_each(|param| self.ty(&param.ty));
        for result in &item.results {
            self.ty(&result.ty);
            let whole = result.name.span.to(result.ty.span);
            self.give(&result.name, SymbolKind::Result, item.span, whole, shape_of(&result.ty));
        }
        item.facts.iter().for_each(|fact| drop(self.expression(fact)));
        self.block(&item.body);
    }

    /// The names that the shapes of parameters bind.
    fn dimensions(&mut self, params: impl Iterator<Item = &'a TypeExpr> + Clone, within: Span) {
        let is_free = |name: &str| self.meaning(name).is_none_or(|at| !self.is_value(at));
        for BoundDimension { name, .. } in bound_dimensions(params, &is_free) {
            self.give(name, SymbolKind::Dimension, within, name.span, None);
        }
    }

    fn is_value(&self, at: usize) -> bool {
        let kind = self.names.symbols[at].kind;
        !matches!(kind, SymbolKind::Struct | SymbolKind::Function | SymbolKind::Kernel)
    }

    /// A body; the type of its value.
    pub(super) fn block(&mut self, block: &'a Block) -> Option<Shape> {
        let depth = self.scope.len();
        for statement in &block.statements {
            self.statement(statement, block.span.end);
        }
        let shape = block.value.as_ref().and_then(|value| self.expression(value));
        self.scope.truncate(depth);
        shape
    }

    fn statement(&mut self, statement: &'a Stmt, end: u32) {
        let depth = self.scope.len();
        match &statement.kind {
            StmtKind::Let { mutable, name, axes, ty, value } => {
                self.axes(axes.as_deref().unwrap_or(&[]), statement.span);
                ty.iter().for_each(|ty| self.ty(ty));
                let value = self.expression(value);
                self.scope.truncate(depth);
                let kind = if *mutable { SymbolKind::Var } else { SymbolKind::Let };
                let axes = axes.as_ref().map_or(0, Vec::len);
                let shape = ty.as_ref().map_or(value, shape_of);
                let shape = shape.map(|shape| Shape { rank: shape.rank + axes, ..shape });
                let scope = Span::new(statement.span.end, end);
                self.give(name, kind, scope, statement.span, shape);
                return;
            }
            StmtKind::Assign { target, value, .. } => {
                self.target(target, statement.span);
                self.expression(value);
            }
            StmtKind::Forall { axes, body } => {
                self.axes(axes, statement.span);
                self.block(body);
            }
            StmtKind::For { name, range, step, body } => {
                self.range(range);
                step.iter().for_each(|step| drop(self.expression(step)));
                self.give(name, SymbolKind::Index, statement.span, name.span.to(range.span), None);
                self.block(body);
            }
            StmtKind::While { condition, body } => {
                self.expression(condition);
                self.block(body);
            }
            StmtKind::If { condition, then, otherwise } => {
                self.expression(condition);
                self.block(then);
                otherwise.iter().for_each(|block| drop(self.block(block)));
            }
            StmtKind::Assert { condition } => drop(self.expression(condition)),
            StmtKind::Print { operands } => {
                operands.iter().for_each(|operand| drop(self.expression(operand)));
            }
            StmtKind::Break | StmtKind::Error => {}
        }
        self.scope.truncate(depth);
    }

    pub(super) fn range(&mut self, range: &'a Range) {
        range.low.iter().for_each(|low| drop(self.expression(low)));
        self.expression(&range.high);
    }

    /// Index names that are given in a list; a later range may use an earlier name.
    pub(super) fn axes(&mut self, axes: &'a [AxisDecl], scope: Span) {
        for axis in axes {
            axis.range.iter().for_each(|range| self.range(range));
            let whole = axis.range.as_ref().map_or(axis.name.span, |range| axis.name.span.to(range.span));
            self.give(&axis.name, SymbolKind::Index, scope, whole, None);
        }
    }

    /// A left side: names that stand bare as subscripts, and mean nothing yet, are given there.
    fn target(&mut self, target: &'a Expr, scope: Span) -> Option<Shape> {
        match &target.kind {
            ExprKind::Index { base, subscripts } => {
                let shape = self.target(base, scope);
                for subscript in subscripts {
                    match &subscript.kind {
                        ExprKind::Name(name)
                            if self.meaning(&name.name).is_none_or(|at| !self.is_value(at)) =>
                        {
                            self.give(name, SymbolKind::Index, scope, name.span, None);
                        }
                        ExprKind::Ranged { name, range } => {
                            self.range(range);
                            self.give(name, SymbolKind::Index, scope, subscript.span, None);
                        }
                        _ => drop(self.expression(subscript)),
                    }
                }
                shape.map(|shape| Shape { rank: shape.rank.saturating_sub(subscripts.len()), ..shape })
            }
            ExprKind::Field { base, field } => {
                let shape = self.target(base, scope);
                self.field(shape, field)
            }
            _ => self.expression(target),
        }
    }

    /// What a schedule names is what its kernel names so, all of it.
    fn schedule(&mut self, item: &'a ScheduleItem) {
        let Some(kernel) = item.kernel.as_ref().and_then(|kernel| {
            let at = self.globals.get(kernel.name.as_str()).copied()?;
            self.uses(kernel.span, at);
            Some(at)
        }) else {
            return;
        };
        // Conditions are about the kernel's sizes and parameters.
        self.scope = self.sizes.get(&kernel).cloned().unwrap_or_default();
        item.conditions.iter().for_each(|condition| drop(self.expression(condition)));
        self.scope.clear();
        for argument in item.directives.iter().flat_map(|directive| &directive.arguments) {
            let DirectiveValue::Name(name) = &argument.subject else { continue };
            let kinds = [SymbolKind::Dimension, SymbolKind::Function];
            let meant: Vec<usize> = (0..self.names.symbols.len())
                .filter(|at| {
                    let symbol = &self.names.symbols[*at];
                    symbol.owner == Some(kernel) && symbol.name == name.name && !kinds.contains(&symbol.kind)
                })
                .collect();
            let Some(first) = meant.first().copied() else { continue };
            let root = self.names.symbols[first].same_as;
            meant.iter().for_each(|at| self.names.symbols[*at].same_as = root);
            self.uses(name.span, first);
        }
    }
}
