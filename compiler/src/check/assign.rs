//! Assignments: to variables, and to array elements, whose left side may bind index names.

use super::elaborator::{Elaborator, Home, axis, narrow_scalar, root_name};
use super::expressions::access::{Place, Root};
use super::items::Global;
use super::occurrences::{Node, declaration, for_each_child};
use super::ranges::BoundBy;
use super::scope::{Binding, Entry};
use super::spell::{assignment, axes, spell};
use super::typed::{
    ArrayId, ArrayRole, BinaryOp, Builtin, Combine, CombineOp, Expr, ExprKind, Stmt, StmtKind, Type,
};
use super::types;
use crate::data::Scalar;
use crate::diagnostic::edit::Edit;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, AssignOp, Ident};

impl<'c, 'a> Elaborator<'c, 'a> {
    pub fn assign(
        &mut self,
        target: &'a ast::Expr,
        op: AssignOp,
        op_span: Span,
        value: &'a ast::Expr,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let Some(root) = root_name(target) else {
            self.expr(value, None);
            return self.report(
                Diagnostic::error(codes::E0014, target.span, "this cannot be assigned to", "not a place")
                    .help("assign to an array element, a `var`, or a field of one of those"),
            );
        };
        match self.scope.read(&root.name) {
            Some(entry) => match entry.binding {
                Binding::Local { mutable: true, .. } => {
                    self.assign_local(entry, target, op, op_span, value, span, out);
                }
                Binding::Array { id, mutable } => {
                    if self.may_write(id, mutable, root, entry) {
                        self.store(target, op, op_span, value, span, out);
                    }
                }
                Binding::Poisoned => self.failed = true,
                binding => self.refuse_immutable(root, binding.noun(), Some(entry.span)),
            },
            None => match self.checker.globals.get(root.name.as_str()) {
                Some(Global::Static(_)) => {
                    if self.pure_region {
                        return self.refuse_in_value(span, "an assignment to a `static`");
                    }
                    self.store(target, op, op_span, value, span, out);
                }
                Some(Global::Poisoned) => self.failed = true,
                Some(Global::Constant(_)) => self.refuse_immutable(root, "a `const`", None),
                Some(_) => self.refuse_immutable(root, "an item of this file", None),
                None => {
                    let _: Option<()> = self.unknown_name(root);
                }
            },
        }
    }

    fn refuse_immutable(&mut self, root: &Ident, what: &str, span: Option<Span>) {
        let mut diagnostic = Diagnostic::error(
            codes::E0212,
            root.span,
            format!("`{}` is {what} and cannot be assigned to", root.name),
            "not mutable",
        );
        let mut target = root.name.clone();
        if let Some(span) = span {
            diagnostic = diagnostic.label(span, "declared here");
            if let Some((statement, decls)) = declaration(self.checker.file, span) {
                target.push_str(&decls.map(|decls| format!("[{}]", axes(decls))).unwrap_or_default());
                let word = Span::new(statement.start, statement.start + "let".len() as u32);
                diagnostic.edits.push(Edit::replace(word, "var"));
            }
        }
        self.report(diagnostic.help(format!("declare a variable: `var {target} = …`")));
    }

    /// Whether the array may be written here; reports why not.
    fn may_write(&mut self, id: ArrayId, mutable: bool, root: &Ident, entry: Entry) -> bool {
        let role = self.kernel.arrays[id].role;
        if role == ArrayRole::Input {
            self.report(
                Diagnostic::error(
                    codes::E0213,
                    root.span,
                    format!("`{}` is an input and cannot be written", root.name),
                    "written here",
                )
                .label(entry.span, "declared without `inout`")
                .help(format!("declare it as `{}: inout …`, or return a result", root.name)),
            );
            return false;
        }
        if !mutable {
            self.refuse_immutable(root, "a `let` array", Some(entry.span));
            return false;
        }
        let private_here = role == ArrayRole::Private && entry.depth == self.region_depth;
        if self.pure_region && !private_here {
            self.refuse_in_value(root.span, "an assignment to an array from outside");
            return false;
        }
        true
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn assign_local(
        &mut self,
        entry: Entry,
        target: &'a ast::Expr,
        op: AssignOp,
        op_span: Span,
        value: &'a ast::Expr,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        if entry.depth < self.region_depth {
            self.expr(value, None);
            let names = root_name(target).map_or(Vec::new(), |root| self.scope.indices_since(&root.name));
            let may_be_result = entry.depth == 0 && self.home == Home::Kernel;
            let help = instead(op, target, &names.join(", "), may_be_result);
            return self.report(
                Diagnostic::error(
                    codes::E0313,
                    target.span,
                    "a variable from outside cannot be changed by iterations that run in no order",
                    "changed here",
                )
                .label(entry.span, "declared outside")
                .help(help),
            );
        }
        let Some(place) = self.place(target) else {
            self.expr(value, None);
            return;
        };
        let Root::Local(local) = place.root else { return };
        let narrow = match entry.binding {
            Binding::Local { narrow, .. } if place.path.is_empty() => narrow,
            _ => None,
        };
        let value = if let (AssignOp::Set, Some(name)) = (op, self.open_local(local)) {
            self.value_for(name, value, &place.ty)
        } else if op == AssignOp::Set {
            let storage = narrow.map_or(place.ty.clone(), Type::Scalar);
            self.stored_expr(value, &storage, "the value")
        } else {
            let Some(current) = self.read_place(place.clone(), target.span) else {
                self.expr(value, None);
                return;
            };
            self.updated(current, op, op_span, value, span)
        };
        let Some(value) = value else { return };
        let value = self.narrowed(value, narrow);
        out.push(Stmt { kind: StmtKind::Assign { local, path: place.path, value }, span });
    }

    /// `current op value`, for a compound assignment that is written out.
    fn updated(
        &mut self,
        current: Expr,
        op: AssignOp,
        op_span: Span,
        value: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let ty = current.ty.clone();
        let Some(scalar) = ty.as_scalar() else {
            return self.updated_struct(current, op, op_span, value, span);
        };
        let binary = match op {
            AssignOp::Add => BinaryOp::Add,
            AssignOp::Sub => BinaryOp::Sub,
            AssignOp::Mul => BinaryOp::Mul,
            AssignOp::Div => BinaryOp::Div,
            AssignOp::Rem => BinaryOp::Rem,
            AssignOp::Shl => BinaryOp::Shl,
            AssignOp::Shr => BinaryOp::Shr,
            AssignOp::And => BinaryOp::And,
            AssignOp::Or => BinaryOp::Or,
            AssignOp::Xor => BinaryOp::Xor,
            AssignOp::Min | AssignOp::Max | AssignOp::Set => BinaryOp::Add,
        };
        let fits = match op {
            AssignOp::And | AssignOp::Or | AssignOp::Xor => !scalar.is_float(),
            AssignOp::Shl | AssignOp::Shr => scalar.is_integer(),
            _ => scalar != Scalar::Bool,
        };
        if !fits {
            return self.refuse_combination(op, op_span, &ty);
        }
        if matches!(op, AssignOp::Min | AssignOp::Max) {
            let builtin = if op == AssignOp::Min { Builtin::Min } else { Builtin::Max };
            let value = match self.open_name(&current.kind) {
                Some(name) => self.value_for(name, value, &ty)?,
                None => self.expr_of(value, &ty, "the value")?,
            };
            return Some(self.make(ExprKind::Call { builtin, arguments: vec![current, value] }, ty, span));
        }
        let value = if matches!(op, AssignOp::Shl | AssignOp::Shr) {
            self.shift_count(value, &ty)?
        } else {
            match self.open_name(&current.kind) {
                Some(name) => self.value_for(name, value, &ty)?,
                None => self.expr_of(value, &ty, "the value")?,
            }
        };
        self.warn_operands(binary, &value);
        Some(self.make(
            ExprKind::Binary { op: binary, left: Box::new(current), right: Box::new(value) },
            ty,
            span,
        ))
    }

    /// `current op value` of a struct: as `+`, `-`, `*` and `/` are on structs.
    fn updated_struct(
        &mut self,
        current: Expr,
        op: AssignOp,
        op_span: Span,
        value: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let ty = current.ty.clone();
        let number = self.one_number_type(&ty).map(Type::Scalar);
        match (op, number) {
            (AssignOp::Add | AssignOp::Sub, _) if self.is_struct_of_numbers(&ty) => {
                let value = self.expr_of(value, &ty, "the value")?;
                let op = if op == AssignOp::Add { BinaryOp::Add } else { BinaryOp::Sub };
                Some(self.binary_fieldwise(op, current, value, span))
            }
            (AssignOp::Mul | AssignOp::Div, Some(number)) => {
                let value = self.expr_of(value, &number, "the factor of a struct")?;
                let op = if op == AssignOp::Mul { BinaryOp::Mul } else { BinaryOp::Div };
                self.warn_operands(op, &value);
                Some(self.scaled(op, current, value, false, span))
            }
            _ => self.refuse_combination(op, op_span, &ty),
        }
    }

    fn refuse_combination<T>(&mut self, op: AssignOp, op_span: Span, ty: &Type) -> Option<T> {
        let name = self.type_name(ty);
        self.refuse(
            Diagnostic::error(
                codes::E0215,
                op_span,
                format!("`{}` is not defined for `{name}`", assignment(op)),
                format!("the left side is `{name}`"),
            )
            .help(
                "`+=` and `*=` take numbers and structs of them, `min=` and `max=` scalars, `&=`, `|=` and `^=` \
                 integers and bools",
            ),
        )
    }

    /// `y[i] = e`, `h[x[i]] += e`, `p[i].x = e`, `total = e`.
    fn store(
        &mut self,
        target: &'a ast::Expr,
        op: AssignOp,
        op_span: Span,
        value: &'a ast::Expr,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let names = self.names_bound_by(target);
        let open = names.iter().filter(|(_, range)| range.is_none());
        let plain: Vec<&str> = open.map(|(name, _)| name.name.as_str()).collect();
        let nodes = [Node::Expr(target), Node::Expr(value)];
        let found = self.occurrences(&plain, &nodes);
        let region = self.enter();
        let mut axes = Some(Vec::with_capacity(names.len()));
        let mut next_open = 0;
        for (name, range) in &names {
            let bounds = match range {
                Some(range) => self.explicit_range(range, false),
                None => {
                    next_open += 1;
                    self.inferred_range(name, next_open - 1, &found, (BoundBy::Left(target), &nodes))
                }
            };
            match bounds {
                Some(bounds) => {
                    let index = self.bind_index(name);
                    if let Some(axes) = &mut axes {
                        axes.push(axis(index, bounds));
                    }
                }
                None => {
                    axes = None;
                    self.failed = true;
                    self.bind(name, Binding::Poisoned);
                }
            }
        }
        let axes = axes.and_then(|axes| self.grid_axes(axes));
        let axes = if self.refuse_unbound_left(target, value) { None } else { axes };
        let binds = !names.is_empty();
        let depth = self.region_depth;
        let private_target = self.is_private(target);
        if binds || !private_target {
            self.region_depth += 1;
        }
        let level = std::mem::replace(&mut self.at_kernel_level, false);
        let pure_region = std::mem::replace(&mut self.pure_region, true);
        let stmt = self.store_parts(target, op, op_span, value, span);
        self.at_kernel_level = level;
        self.pure_region = pure_region;
        self.region_depth = depth;
        self.leave(region);
        let (Some(axes), Some((place, combine, value))) = (axes, stmt) else { return };
        let Root::Element(access) = place.root else { return };
        out.push(Stmt { kind: StmtKind::Store { axes, access, path: place.path, combine, value }, span });
    }

    fn is_private(&self, target: &ast::Expr) -> bool {
        root_name(target).is_some_and(|root| match self.scope.get(&root.name).map(|entry| entry.binding) {
            Some(Binding::Array { id, .. }) => self.kernel.arrays[id].role == ArrayRole::Private,
            _ => false,
        })
    }

    fn store_parts(
        &mut self,
        target: &'a ast::Expr,
        op: AssignOp,
        op_span: Span,
        value: &'a ast::Expr,
        span: Span,
    ) -> Option<(Place, Option<Combine>, Expr)> {
        let Some(place) = self.place(target) else {
            self.expr(value, None);
            return None;
        };
        let ty = types::widened(&place.ty);
        if let Type::Array(..) = ty
            && op != AssignOp::Set
        {
            return self.refuse_combination(op, op_span, &ty);
        }
        if matches!(op, AssignOp::Div | AssignOp::Rem | AssignOp::Shl | AssignOp::Shr) {
            if !self.is_private(target) {
                self.expr_of(value, &ty, "the value");
                let text = spell(target);
                let op_text = assignment(op);
                return self.refuse(
                    Diagnostic::error(
                        codes::E0214,
                        op_span,
                        format!("`{op_text}` cannot combine into an array"),
                        "the result would depend on the order of the iterations",
                    )
                    .help(format!("write it out: `{text} = {text} {} …`", op_text.trim_end_matches('='))),
                );
            }
            let current = self.read_place(place.clone(), target.span)?;
            let value = self.updated(current, op, op_span, value, span)?;
            return Some((place, None, value));
        }
        let open = match &place.root {
            Root::Element(access) if place.path.is_empty() => self.open_array(access.array),
            _ => None,
        };
        let value = match self.one_number_type(&ty) {
            Some(number) if op == AssignOp::Mul && ty.as_scalar().is_none() => {
                self.factor(value, &ty, &Type::Scalar(number))?
            }
            _ => match open {
                Some(name) => self.value_for(name, value, &place.ty)?,
                None => self.stored_expr(value, &place.ty, "the value")?,
            },
        };
        let combine_op = match op {
            AssignOp::Set => return Some((place, None, value)),
            AssignOp::Add | AssignOp::Sub => CombineOp::Add,
            AssignOp::Mul => CombineOp::Mul,
            AssignOp::Min => CombineOp::Min,
            AssignOp::Max => CombineOp::Max,
            AssignOp::And => CombineOp::And,
            AssignOp::Or => CombineOp::Or,
            _ => CombineOp::Xor,
        };
        let fits = match combine_op {
            CombineOp::Add | CombineOp::Mul => types::is_numeric(&self.checker.program, &ty),
            CombineOp::Min | CombineOp::Max => ty.as_scalar().is_some_and(|scalar| scalar != Scalar::Bool),
            _ => ty.as_scalar().is_some_and(|scalar| !scalar.is_float()),
        };
        if !fits {
            return self.refuse_combination(op, op_span, &ty);
        }
        let value = match combine_op {
            _ if op == AssignOp::Sub => self.negated(value),
            CombineOp::Min | CombineOp::Max => self.as_held(value, &place.ty),
            _ => value,
        };
        Some((place, Some(Combine { op: combine_op, may_meet: true }), value))
    }

    /// What a struct in an array is multiplied by: a struct, field by field, or one number for all fields.
    fn factor(&mut self, value: &'a ast::Expr, ty: &Type, number: &Type) -> Option<Expr> {
        let value_span = value.span;
        let value = self.expr(value, Some(number))?;
        if value.ty == *ty {
            return Some(value);
        }
        if value.ty == *number {
            return Some(self.filled_with(ty, value));
        }
        let (wanted, number) = (self.type_name(ty), self.type_name(number));
        let found = self.type_name(&value.ty);
        self.refuse(
            Diagnostic::error(
                codes::E0201,
                value_span,
                format!("the factor must be `{number}` or `{wanted}`, but this is `{found}`"),
                format!("this is `{found}`"),
            )
            .help(format!("give a number of type `{number}`")),
        )
    }

    /// The value as an element of a narrow integer type holds it. What does not fit wraps before it is compared:
    /// wrapped afterwards, the least and the largest would hang on the order of the iterations.
    fn as_held(&mut self, value: Expr, storage: &Type) -> Expr {
        let narrow = narrow_scalar(storage).filter(|scalar| scalar.is_integer());
        let Some(to) = narrow else { return value };
        let fits = match &value.kind {
            ExprKind::Load { access, path, .. } => {
                path.is_empty() && self.kernel.arrays[access.array].ty == Type::Scalar(to)
            }
            ExprKind::Cast { to: held, .. } => *held == to,
            _ => false,
        };
        if fits { value } else { self.cast(value, to) }
    }

    /// The names that the left side binds, in order: its bare subscripts that mean nothing yet, and those that it gives
    /// a range.
    fn names_bound_by(&self, target: &'a ast::Expr) -> Vec<(&'a Ident, Option<&'a ast::Range>)> {
        let mut names: Vec<(&'a Ident, Option<&'a ast::Range>)> = Vec::new();
        let subscripts = left_subscripts(target);
        let ranged = |name: &Ident| {
            subscripts.iter().any(|subscript| {
                matches!(&subscript.kind, ast::ExprKind::Ranged { name: other, .. } if other.name == name.name)
            })
        };
        for subscript in &subscripts {
            match &subscript.kind {
                ast::ExprKind::Ranged { name, range } => names.push((name, Some(range))),
                ast::ExprKind::Name(name)
                    if self.is_unbound(&name.name)
                        && !ranged(name)
                        && !names.iter().any(|(other, _)| other.name == name.name) =>
                {
                    names.push((name, None));
                }
                _ => {}
            }
        }
        names
    }

    /// Names that are unbound and stand on the left side inside expressions only: they are poisoned after the
    /// report, so that the rest of the statement is still checked.
    fn refuse_unbound_left(&mut self, target: &'a ast::Expr, value: &'a ast::Expr) -> bool {
        let mut unbound: Vec<&'a Ident> = Vec::new();
        let mut stack: Vec<Node<'a>> = left_subscripts(target).into_iter().map(Node::Expr).collect();
        stack.reverse();
        while let Some(node) = stack.pop() {
            if let Node::Expr(ast::Expr { kind: ast::ExprKind::Name(name), .. }) = node
                && self.is_unbound(&name.name)
                && !unbound.iter().any(|other| other.name == name.name)
            {
                unbound.push(name);
            }
            // Reductions bind names of their own.
            if matches!(node, Node::Expr(ast::Expr { kind: ast::ExprKind::Reduce { .. }, .. })) {
                continue;
            }
            let start = stack.len();
            for_each_child(node, &mut |child| stack.push(child));
            stack[start..].reverse();
        }
        for name in &unbound {
            let found = self.occurrences(&[name.name.as_str()], &[Node::Expr(target), Node::Expr(value)]);
            let range = found.iter().find_map(|occurrence| occurrence.extent.as_ref());
            let range = range.map_or("0..n".to_string(), |extent| self.describe(extent));
            self.report(
                Diagnostic::error(
                    codes::E0304,
                    name.span,
                    format!("`{}` is not bound: it stands inside an expression on the left side", name.name),
                    "only a bare subscript binds a name",
                )
                .help(format!(
                    "give its range: `forall {} in {range} {{ {} … }}`",
                    name.name,
                    spell(target)
                )),
            );
            self.bind(name, Binding::Poisoned);
        }
        !unbound.is_empty()
    }
}

/// What to write where iterations in no order, over these names, would change a variable.
fn instead(op: AssignOp, target: &ast::Expr, names: &str, may_be_result: bool) -> String {
    let word = match op {
        AssignOp::Add | AssignOp::Sub => "sum",
        AssignOp::Mul => "prod",
        AssignOp::Min => "min",
        AssignOp::Max => "max",
        AssignOp::And => "and",
        AssignOp::Or => "or",
        AssignOp::Xor => "xor",
        AssignOp::Set | AssignOp::Div | AssignOp::Rem | AssignOp::Shl | AssignOp::Shr => {
            return format!(
                "let `for` make the iterations, which runs them in order, or give each a `{}` of its own",
                spell(target)
            );
        }
    };
    let (place, named) = match &target.kind {
        ast::ExprKind::Name(name) => (name.name.clone(), format!("let {} = ", name.name)),
        _ => (spell(target), String::new()),
    };
    let mut help = format!(
        "reduce instead: `{named}{word}({names}: …)`; or let `for` make the iterations, which runs them in order"
    );
    if may_be_result {
        help.push_str(&format!(
            "; or make `{place}` a result of the kernel, which iterations may combine into"
        ));
    }
    help
}

/// All subscripts of a place, outermost array first.
fn left_subscripts(target: &ast::Expr) -> Vec<&ast::Expr> {
    let mut groups = Vec::new();
    let mut place = target;
    loop {
        match &place.kind {
            ast::ExprKind::Index { base, subscripts } => {
                groups.push(subscripts);
                place = base;
            }
            ast::ExprKind::Field { base, .. } => place = base,
            _ => break,
        }
    }
    groups.into_iter().rev().flatten().collect()
}
