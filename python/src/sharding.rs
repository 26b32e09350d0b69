//! Which dimensions of a kernel can be split among processes, from its index notation alone.
//!
//! A dimension is *parallel* where one name runs over it in everything that has it: `c[i, j]` and `a[i, p]` for `m`. Each
//! process then has some rows of each such array, and no process needs another one's. A dimension is *reduced* where a
//! reduction over it is all that is stored: each process has a part of the terms, and the results are partial ones, to
//! be combined by the reduction's operator. Any other dimension stays whole: of `softmax` the columns.

use krn_compiler::check::typed::{
    Access, ArrayId, ArrayRole, Axis, Block, DimId, Expr, ExprKind, IndexId, Kernel, Reducer, Stmt, StmtKind,
};
use krn_compiler::check::walk::{Node, walk_expr, walk_statement, walk_statements};
use krn_compiler::syntax::ast::ReduceOp;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// By dimension: how it can be split, and which axis of which array that is.
pub fn rules(kernel: &Kernel) -> Value {
    let mut rules = Map::new();
    for (dim, known) in &kernel.dims {
        let Some(axes) = Axes::of(kernel, dim) else { continue };
        let rule = if is_parallel(kernel, &axes) {
            json!({ "how": "parallel", "axes": axes.by_name(kernel) })
        } else if let Some((operator, partial)) = reduced(kernel, &axes) {
            let name = |array: &ArrayId| kernel.arrays[*array].name.clone();
            let partial: Vec<String> = partial.iter().map(name).collect();
            json!({ "how": "reduced", "axes": axes.by_name(kernel), "operator": operator, "partial": partial })
        } else {
            continue;
        };
        rules.insert(known.name.clone(), rule);
    }
    Value::Object(rules)
}

/// Where a dimension is an extent: one axis an array.
struct Axes {
    dim: DimId,
    axes: Vec<(ArrayId, usize)>,
}

impl Axes {
    /// `None` where an array has it twice, or an extent is more than the dimension alone.
    fn of(kernel: &Kernel, dim: DimId) -> Option<Self> {
        let mut axes = Vec::new();
        for (id, array) in &kernel.arrays {
            let mut found = None;
            for (axis, extent) in array.extents.iter().enumerate() {
                match extent.kind {
                    ExprKind::Dim(known) if known == dim && found.is_some() => return None,
                    ExprKind::Dim(known) if known == dim => found = Some(axis),
                    _ if count(|node| is_dim(node, dim), |visit| walk_expr(extent, visit)) > 0 => {
                        return None;
                    }
                    _ => {}
                }
            }
            axes.extend(found.map(|axis| (id, axis)));
        }
        Some(Self { dim, axes })
    }

    fn by_name(&self, kernel: &Kernel) -> Value {
        let is_argument = |array: ArrayId| {
            matches!(kernel.arrays[array].role, ArrayRole::Input | ArrayRole::InOut | ArrayRole::Result(_))
        };
        let all = self.axes.iter().filter(|(array, _)| is_argument(*array));
        all.map(|(array, axis)| (kernel.arrays[*array].name.clone(), json!(axis)))
            .collect::<Map<_, _>>()
            .into()
    }

    /// The subscript of an access that runs over the dimension.
    fn subscript<'a>(&self, access: &'a Access) -> Option<&'a Expr> {
        let (_, axis) = self.axes.iter().find(|(array, _)| *array == access.array)?;
        access.subscripts.get(*axis)
    }

    /// Whether an axis is all of the dimension.
    fn is_whole(&self, axis: &Axis) -> bool {
        matches!(axis.low.kind, ExprKind::Int(0))
            && matches!(axis.high.kind, ExprKind::Dim(dim) if dim == self.dim)
    }

    /// Whether, in what `walk` visits, names of `indices` stand where the dimension is subscripted, there and nowhere
    /// else; and the dimension itself `ranges` times, in the ranges of these names.
    fn fits(
        &self,
        indices: &BTreeSet<IndexId>,
        ranges: usize,
        walk: impl Fn(&mut dyn FnMut(Node<'_>)),
    ) -> bool {
        let (mut names, mut dims, mut subscripts, mut fits) = (0, 0, 0, true);
        let mut see = |access: &Access| {
            if let Some(subscript) = self.subscript(access) {
                match subscript.kind {
                    ExprKind::Index(index) if indices.contains(&index) => subscripts += 1,
                    _ => fits = false,
                }
            }
        };
        walk(&mut |node| match node {
            Node::Stmt(Stmt { kind: StmtKind::Store { access, .. }, .. }) => see(access),
            Node::Stmt(_) => {}
            Node::Expr(expr) => match &expr.kind {
                ExprKind::Load { access, .. } => see(access),
                ExprKind::Index(index) if indices.contains(index) => names += 1,
                ExprKind::Dim(dim) if *dim == self.dim => dims += 1,
                _ => {}
            },
        });
        fits && names == subscripts && dims == ranges
    }
}

fn is_dim(node: &Node<'_>, dim: DimId) -> bool {
    matches!(node, Node::Expr(Expr { kind: ExprKind::Dim(known), .. }) if *known == dim)
}

fn count(wanted: impl Fn(&Node<'_>) -> bool, walk: impl Fn(&mut dyn FnMut(Node<'_>))) -> usize {
    let mut found = 0;
    walk(&mut |node| found += usize::from(wanted(&node)));
    found
}

fn is_parallel(kernel: &Kernel, axes: &Axes) -> bool {
    let mut indices = BTreeSet::new();
    let mut ranges = 0;
    walk_statements(&kernel.body, &mut |node| {
        if let Node::Stmt(Stmt {
            kind:
                StmtKind::Store { axes: own, .. }
                | StmtKind::Forall { axes: own, .. }
                | StmtKind::DefineArray { axes: own, .. },
            ..
        }) = node
        {
            for axis in own.iter().filter(|axis| axes.is_whole(axis)) {
                indices.insert(axis.index);
                ranges += 1;
            }
        }
    });
    let is_store = |node: &Node<'_>| matches!(node, Node::Stmt(Stmt { kind: StmtKind::Store { .. }, .. }));
    let stores = count(is_store, |visit| walk_statements(&kernel.body, visit));
    let mut seen = 0;
    !indices.is_empty()
        && axes.fits(&indices, ranges, |visit| walk_statements(&kernel.body, visit))
        && kernel.body.iter().all(|statement| stays(statement, axes, None, &mut seen))
        && seen == stores
        && kernel.injections.iter().all(|fact| axes.axes.iter().all(|(array, _)| *array != fact.array))
}

/// Whether what a statement writes for an index over the dimension is the element of that index. `outer`: the name that
/// runs over it outside.
fn stays(statement: &Stmt, axes: &Axes, outer: Option<IndexId>, stores: &mut usize) -> bool {
    // Two names over the dimension at once would meet pairs of elements that no process has.
    let within = |own: &[Axis]| -> Option<Option<IndexId>> {
        let own: Vec<IndexId> =
            own.iter().filter(|axis| axes.is_whole(axis)).map(|axis| axis.index).collect();
        match (outer, own.as_slice()) {
            (outer, []) => Some(outer),
            (None, [one]) => Some(Some(*one)),
            _ => None,
        }
    };
    let mut block = |block: &Block, outer: Option<IndexId>| {
        block.statements.iter().all(|statement| stays(statement, axes, outer, stores))
    };
    match &statement.kind {
        StmtKind::Let { .. } | StmtKind::Assign { .. } | StmtKind::Assert { .. } | StmtKind::Print { .. } => {
            true
        }
        StmtKind::DefineArray { axes: own, .. } => within(own).is_some(),
        StmtKind::Store { axes: own, access, .. } => {
            *stores += 1;
            let Some(name) = within(own) else { return false };
            let subscript = axes.subscript(access).map(|subscript| &subscript.kind);
            match (name, subscript) {
                (None, None) => true,
                (Some(name), Some(ExprKind::Index(index))) => *index == name,
                _ => false,
            }
        }
        StmtKind::Forall { axes: own, body } => within(own).is_some_and(|name| block(body, name)),
        StmtKind::For { body, .. } | StmtKind::While { body, .. } => block(body, outer),
        StmtKind::If { then, otherwise, .. } => block(then, outer) && block(otherwise, outer),
    }
}

/// The operator that combines partial results, and the arrays that hold them.
fn reduced(kernel: &Kernel, axes: &Axes) -> Option<(&'static str, Vec<ArrayId>)> {
    let mut operator = None;
    let mut partial = Vec::new();
    for statement in &kernel.body {
        let StmtKind::Store { access, path, combine: None, value, .. } = &statement.kind else { return None };
        let walk = |visit: &mut dyn FnMut(Node<'_>)| walk_statement(statement, visit);
        if axes.fits(&BTreeSet::new(), 0, walk) && axes.subscript(access).is_none() {
            continue;
        }
        // What the file's own reductions give of parts only they can put together.
        let ExprKind::Reduce { op: Reducer::BuiltIn(op), axes: own, .. } = &value.kind else { return None };
        let over: BTreeSet<IndexId> =
            own.iter().filter(|axis| axes.is_whole(axis)).map(|axis| axis.index).collect();
        let this = match op {
            ReduceOp::Sum | ReduceOp::Count => "sum",
            ReduceOp::Prod => "product",
            ReduceOp::Max | ReduceOp::Any => "max",
            ReduceOp::Min | ReduceOp::All => "min",
            ReduceOp::And => "and",
            ReduceOp::Or => "or",
            ReduceOp::Xor => "xor",
            ReduceOp::ArgMin | ReduceOp::ArgMax => return None,
        };
        let known = *operator.get_or_insert(this);
        if over.len() != 1 || known != this || !path.is_empty() || !axes.fits(&over, 1, walk) {
            return None;
        }
        partial.push(access.array);
    }
    operator.map(|operator| (operator, partial))
}
