//! Walks over the syntax tree: which functions a body calls, and where names stand *bare* as subscripts (which
//! is what their ranges are inferred from).

use super::elaborator::{Elaborator, int64};
use super::items::{ConstantValue, Global};
use super::scope::Binding;
use super::typed::{Expr as TypedExpr, Type};
use crate::source::Span;
use crate::syntax::ast::{AxisDecl, Block, Expr, ExprKind, File, Item, Range, Stmt, StmtKind};

#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
    Expr(&'a Expr),
    Block(&'a Block),
    Stmt(&'a Stmt),
}

/// Calls `visit` on every direct part of a node, in source order.
pub(super) fn for_each_child<'a>(node: Node<'a>, visit: &mut dyn FnMut(Node<'a>)) {
    match node {
        Node::Expr(expr) => expr_children(expr, visit),
        Node::Block(block) => {
            block.statements.iter().for_each(|stmt| visit(Node::Stmt(stmt)));
            if let Some(value) = &block.value {
                visit(Node::Expr(value));
            }
        }
        Node::Stmt(stmt) => stmt_children(stmt, visit),
    }
}

/// The `let` that gives the name at this place, and the axes of the array that it is.
pub(super) fn declaration(file: &File, name: Span) -> Option<(Span, Option<&[AxisDecl]>)> {
    let mut left: Vec<Node<'_>> = Vec::new();
    for item in &file.items {
        match item {
            Item::Kernel(kernel) => left.push(Node::Block(&kernel.body)),
            Item::Function(function) => left.push(Node::Block(&function.body)),
            _ => {}
        }
    }
    while let Some(node) = left.pop() {
        if let Node::Stmt(Stmt { kind: StmtKind::Let { name: own, axes, .. }, span }) = node
            && own.span == name
        {
            return Some((*span, axes.as_deref()));
        }
        for_each_child(node, &mut |child| left.push(child));
    }
    None
}

/// Whether a name stands in an expression.
fn mentions(expr: &Expr, name: &str) -> bool {
    let mut stack = vec![Node::Expr(expr)];
    while let Some(node) = stack.pop() {
        if matches!(node, Node::Expr(Expr { kind: ExprKind::Name(known), .. }) if known.name == name) {
            return true;
        }
        for_each_child(node, &mut |child| stack.push(child));
    }
    false
}

fn range_children<'a>(range: &'a Range, visit: &mut dyn FnMut(Node<'a>)) {
    if let Some(low) = &range.low {
        visit(Node::Expr(low));
    }
    visit(Node::Expr(&range.high));
}

fn axis_children<'a>(axes: &'a [AxisDecl], visit: &mut dyn FnMut(Node<'a>)) {
    axes.iter().filter_map(|axis| axis.range.as_ref()).for_each(|range| range_children(range, visit));
}

fn stmt_children<'a>(stmt: &'a Stmt, visit: &mut dyn FnMut(Node<'a>)) {
    match &stmt.kind {
        StmtKind::Let { axes, value, .. } => {
            axis_children(axes.as_deref().unwrap_or(&[]), visit);
            visit(Node::Expr(value));
        }
        StmtKind::Assign { target, value, .. } => {
            visit(Node::Expr(target));
            visit(Node::Expr(value));
        }
        StmtKind::Forall { axes, body } => {
            axis_children(axes, visit);
            visit(Node::Block(body));
        }
        StmtKind::For { range, step, body, .. } => {
            range_children(range, visit);
            step.iter().for_each(|step| visit(Node::Expr(step)));
            visit(Node::Block(body));
        }
        StmtKind::While { condition, body } => {
            visit(Node::Expr(condition));
            visit(Node::Block(body));
        }
        StmtKind::If { condition, then, otherwise } => {
            visit(Node::Expr(condition));
            visit(Node::Block(then));
            otherwise.iter().for_each(|block| visit(Node::Block(block)));
        }
        StmtKind::Assert { condition } => visit(Node::Expr(condition)),
        StmtKind::Print { operands } => operands.iter().for_each(|operand| visit(Node::Expr(operand))),
        StmtKind::Break | StmtKind::Error => {}
    }
}

fn expr_children<'a>(expr: &'a Expr, visit: &mut dyn FnMut(Node<'a>)) {
    match &expr.kind {
        ExprKind::Int { .. }
        | ExprKind::Float { .. }
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::Error => {}
        ExprKind::Unary { operand, .. } | ExprKind::Cast { operand, .. } => visit(Node::Expr(operand)),
        ExprKind::Binary { left, right, .. } => {
            visit(Node::Expr(left));
            visit(Node::Expr(right));
        }
        ExprKind::Call { arguments: list, .. } | ExprKind::ArrayLiteral(list) => {
            list.iter().for_each(|item| visit(Node::Expr(item)));
        }
        ExprKind::Reduce { axes, body, .. } => {
            axis_children(axes, visit);
            visit(Node::Expr(body));
        }
        ExprKind::Index { base, subscripts } => {
            visit(Node::Expr(base));
            subscripts.iter().for_each(|subscript| visit(Node::Expr(subscript)));
        }
        ExprKind::Ranged { range, .. } => range_children(range, visit),
        ExprKind::Guarded { access, otherwise } => {
            visit(Node::Expr(access));
            visit(Node::Expr(otherwise));
        }
        ExprKind::Field { base, .. } => visit(Node::Expr(base)),
        ExprKind::StructLiteral { fields, .. } => {
            fields.iter().for_each(|(_, value)| visit(Node::Expr(value)));
        }
        ExprKind::If { condition, then, otherwise } => {
            visit(Node::Expr(condition));
            visit(Node::Block(then));
            visit(Node::Block(otherwise));
        }
        ExprKind::Block(block) => visit(Node::Block(block)),
    }
}

/// The names of everything that is called in a body, in source order, with repetitions.
pub(super) fn called_names(body: &Block) -> Vec<&str> {
    let mut names = Vec::new();
    let mut stack = vec![Node::Block(body)];
    while let Some(node) = stack.pop() {
        match node {
            Node::Expr(Expr { kind: ExprKind::Call { callee, .. }, .. }) => names.push(callee.name.as_str()),
            Node::Expr(Expr { kind: ExprKind::Reduce { op: None, word, .. }, .. }) => {
                names.push(word.name.as_str());
            }
            _ => {}
        }
        let start = stack.len();
        for_each_child(node, &mut |child| stack.push(child));
        stack[start..].reverse();
    }
    names
}

/// A name standing bare as a subscript.
#[derive(Clone, Debug)]
pub(super) struct Occurrence {
    /// Position in the list of names asked for.
    pub name: usize,
    /// The extent that it runs over; `None` where the array is unknown (or has fewer axes).
    pub extent: Option<TypedExpr>,
    /// What is subscripted, as a message calls it.
    pub array: String,
    pub axis: usize,
    pub span: Span,
    /// Inside a guarded access, where it may well run past the end.
    pub guarded: bool,
}

/// An access with a subscript that a name is a part of.
pub(super) struct Within {
    /// As source text, without a guard.
    pub access: String,
    /// Of the axis; `None` where the array is unknown.
    pub extent: Option<TypedExpr>,
    /// It has a value where it would be outside.
    pub guarded: bool,
}

/// The names that a node binds with a range, that range, and where the name may stand.
fn ranges<'a>(node: Node<'a>) -> Vec<(&'a str, &'a Range, Node<'a>)> {
    let of_axes = |axes: &'a [AxisDecl], body: Node<'a>| {
        let ranges = axes.iter().filter_map(|axis| Some((axis.name.name.as_str(), axis.range.as_ref()?)));
        ranges.map(|(name, range)| (name, range, body)).collect()
    };
    match node {
        Node::Expr(Expr { kind: ExprKind::Reduce { axes, body, .. }, .. }) => of_axes(axes, Node::Expr(body)),
        Node::Stmt(Stmt { kind: StmtKind::Let { axes: Some(axes), value, .. }, .. }) => {
            of_axes(axes, Node::Expr(value))
        }
        Node::Stmt(Stmt { kind: StmtKind::Forall { axes, body }, .. }) => of_axes(axes, Node::Block(body)),
        Node::Stmt(Stmt { kind: StmtKind::For { name, range, body, .. }, .. }) => {
            vec![(name.name.as_str(), range, Node::Block(body))]
        }
        _ => Vec::new(),
    }
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// Every bare occurrence of these names under the nodes, in source order.
    pub fn occurrences(&self, names: &[&str], nodes: &[Node<'a>]) -> Vec<Occurrence> {
        let mut found = Vec::new();
        if names.is_empty() {
            return found;
        }
        let mut stack: Vec<(Node<'a>, bool)> = nodes.iter().rev().map(|node| (*node, false)).collect();
        while let Some((node, guarded)) = stack.pop() {
            let mut inside = guarded;
            if let Node::Expr(expr) = node {
                match &expr.kind {
                    ExprKind::Index { base, subscripts } => {
                        self.bare_subscripts(names, base, subscripts, guarded, &mut found);
                    }
                    ExprKind::Guarded { access, otherwise } => {
                        stack.push((Node::Expr(otherwise), guarded));
                        stack.push((Node::Expr(access), true));
                        continue;
                    }
                    // A reduction over the same name, which is refused, says nothing about the outer one.
                    ExprKind::Reduce { axes, .. }
                        if axes.iter().any(|axis| names.contains(&axis.name.name.as_str())) =>
                    {
                        continue;
                    }
                    // A guard speaks of the access itself, not of what computes its subscripts.
                    ExprKind::Reduce { .. } | ExprKind::Call { .. } | ExprKind::Binary { .. } => {
                        inside = false
                    }
                    _ => {}
                }
            }
            let start = stack.len();
            for_each_child(node, &mut |child| stack.push((child, inside)));
            stack[start..].reverse();
        }
        found
    }

    /// The first access that a name has a part in, by a subscript that is more than the name.
    pub fn within_subscripts(&self, name: &str, nodes: &[Node<'a>]) -> Option<Within> {
        let mut stack: Vec<(Node<'a>, bool)> = nodes.iter().rev().map(|node| (*node, false)).collect();
        while let Some((node, mut guarded)) = stack.pop() {
            match node {
                Node::Expr(expr @ Expr { kind: ExprKind::Index { base, subscripts }, .. }) => {
                    if let Some(axis) = subscripts.iter().position(|subscript| mentions(subscript, name)) {
                        let extent = self.extent_of(base, axis);
                        return Some(Within { access: super::spell::spell(expr), extent, guarded });
                    }
                    stack.extend(subscripts.iter().rev().map(|subscript| (Node::Expr(subscript), false)));
                    stack.push((Node::Expr(base), guarded));
                    continue;
                }
                Node::Expr(Expr { kind: ExprKind::Guarded { access, otherwise }, .. }) => {
                    stack.push((Node::Expr(otherwise), false));
                    stack.push((Node::Expr(access), true));
                    continue;
                }
                Node::Expr(Expr { kind: ExprKind::Field { .. }, .. }) => {}
                _ => guarded = false,
            }
            let start = stack.len();
            for_each_child(node, &mut |child| stack.push((child, guarded)));
            stack[start..].reverse();
        }
        None
    }

    /// The first inner name whose range a name is an end of, with what that inner name subscripts bare.
    pub fn within_ranges(&self, name: &str, nodes: &[Node<'a>]) -> Option<(&'a str, Occurrence)> {
        let mut stack: Vec<Node<'a>> = nodes.iter().rev().copied().collect();
        while let Some(node) = stack.pop() {
            for (inner, range, body) in ranges(node) {
                let has_part = range.low.iter().chain([&range.high]).any(|end| mentions(end, name));
                let found = if has_part { self.occurrences(&[inner], &[body]) } else { Vec::new() };
                if let Some(occurrence) = found.into_iter().find(|occurrence| occurrence.extent.is_some()) {
                    return Some((inner, occurrence));
                }
            }
            let start = stack.len();
            for_each_child(node, &mut |child| stack.push(child));
            stack[start..].reverse();
        }
        None
    }

    fn bare_subscripts(
        &self,
        names: &[&str],
        base: &Expr,
        subscripts: &[Expr],
        guarded: bool,
        found: &mut Vec<Occurrence>,
    ) {
        for (axis, subscript) in subscripts.iter().enumerate() {
            let ExprKind::Name(name) = &subscript.kind else { continue };
            let Some(position) = names.iter().position(|wanted| *wanted == name.name) else { continue };
            found.push(Occurrence {
                name: position,
                extent: self.extent_of(base, axis),
                array: super::spell::spell(base),
                axis,
                span: name.span,
                guarded,
            });
        }
    }

    /// The extent of an axis of what a base expression denotes, as far as that is known without elaborating it.
    fn extent_of(&self, base: &Expr, axis: usize) -> Option<TypedExpr> {
        if let ExprKind::Name(name) = &base.kind {
            match self.scope.get(&name.name).map(|entry| entry.binding) {
                Some(Binding::Array { id, .. }) => return self.kernel.arrays[id].extents.get(axis).cloned(),
                Some(_) => {}
                None => {
                    let extents = match self.checker.globals.get(name.name.as_str()) {
                        Some(Global::Constant(at)) => match &self.checker.constants[*at] {
                            ConstantValue::Array(id) => &self.checker.program.constants[*id].extents,
                            ConstantValue::Value(_) => return None,
                        },
                        Some(Global::Static(id)) => &self.checker.program.statics[*id].extents,
                        _ => return None,
                    };
                    return extents.get(axis).map(|extent| int64(i128::from(*extent), base.span));
                }
            }
        }
        let mut ty = self.storage_type(base)?;
        for _ in 0..axis {
            let Type::Array(inner, _) = ty else { return None };
            ty = *inner;
        }
        match ty {
            Type::Array(_, extent) => Some(int64(i128::from(extent), base.span)),
            _ => None,
        }
    }

    /// The storage type of a place, as far as that is known without elaborating it.
    fn storage_type(&self, place: &Expr) -> Option<Type> {
        match &place.kind {
            ExprKind::Name(name) => match self.scope.get(&name.name).map(|entry| entry.binding) {
                Some(Binding::Local { id, .. }) => Some(self.kernel.locals[id].ty.clone()),
                Some(Binding::Param(id)) => Some(self.kernel.params[id].ty.clone()),
                Some(Binding::Array { id, .. }) => Some(self.kernel.arrays[id].ty.clone()),
                Some(_) => None,
                None => match self.checker.globals.get(name.name.as_str())? {
                    Global::Constant(at) => match &self.checker.constants[*at] {
                        ConstantValue::Value(value) => Some(value.ty.clone()),
                        ConstantValue::Array(id) => Some(self.checker.program.constants[*id].ty.clone()),
                    },
                    Global::Static(id) => Some(self.checker.program.statics[*id].ty.clone()),
                    _ => None,
                },
            },
            ExprKind::Index { base, subscripts } => {
                let mut ty = self.storage_type(base)?;
                // An array's name gives its element type already; a fixed array loses one level a subscript.
                if let ExprKind::Name(name) = &base.kind
                    && !matches!(
                        self.scope.get(&name.name).map(|entry| entry.binding),
                        Some(Binding::Local { .. } | Binding::Param(_))
                    )
                {
                    return Some(ty);
                }
                for _ in subscripts {
                    let Type::Array(inner, _) = ty else { return None };
                    ty = *inner;
                }
                Some(ty)
            }
            ExprKind::Field { base, field } => {
                let Type::Struct(id) = self.storage_type(base)? else { return None };
                let def = &self.checker.program.structs[id];
                def.fields.iter().find(|other| other.name == field.name).map(|field| field.ty.clone())
            }
            _ => None,
        }
    }
}
