//! The elaborator of one body: a kernel, a function or a constant expression.
//!
//! It holds the tables that it fills (a [`Kernel`], also for functions, whose tables are merged into the
//! caller's when they are inlined), the visible names, and where in the body it stands.

use super::items::{Checker, Global};
use super::polynomial::Polynomial;
use super::ranges::Bounds;
use super::scope::{Binding, EnclosingLoop, Literals, Mark, Scope};
use super::typed::{
    Array, ArrayId, ArrayRole, Axis, ConstId, Ends, Expr, ExprKind, Index, IndexId, Kernel, Local, LocalId,
    StaticId, Type,
};
use super::types;
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::source::Span;
use crate::syntax::ast::{self, Ident};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is being elaborated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    Kernel,
    Function,
    /// The value of a `const` or `static`, or a fixed array's extent.
    Constant,
    /// A parameter's or result's shape, or a fact.
    Shape,
}

pub(super) struct Elaborator<'c, 'a> {
    pub checker: &'c mut Checker<'a>,
    pub kernel: Kernel,
    pub scope: Scope<'a>,
    pub home: Home,
    /// Whether sizes that the options fix are numbers here. In a function they are not: its dimensions are what each call
    /// gives.
    pub fixes_sizes: bool,
    /// The `let` whose value is checked.
    pub defining: Option<&'a Ident>,
    /// Whether statements here run once over the whole grid (and not inside one iteration).
    pub at_kernel_level: bool,
    /// Whether values are computed here, so that nothing outside may be changed.
    pub pure_region: bool,
    /// How many parallel or reducing regions enclose this place.
    pub region_depth: u32,
    /// Whether unequal integer types widen to `i64` (subscripts, ranges, shapes, facts).
    pub index_context: bool,
    /// An error was reported, or something poisoned was used: the result is not to be kept.
    pub failed: bool,
    /// How deep the expression here is nested, and the deepest that was met.
    pub nesting: u32,
    pub deepest: u32,
    /// Expression nodes made so far.
    pub size: u64,
    /// Index names whose range was not inferred, without a report of why.
    pub unexplained: Vec<(String, Span)>,
    /// Names in shapes and facts that are no dimensions, as has been reported.
    unbound: FxHashSet<String>,
    /// Kernel-level `let` names whose value the host can compute, with that value unless it is too long.
    pub host_values: FxHashMap<LocalId, Option<Expr>>,
    /// Kernel-level `for` names, which the host knows when it launches.
    pub host_indices: Vec<IndexId>,
    /// Variables that a literal without a type starts.
    pub literals: Literals,
    /// The loops around this place that `break` may end, innermost last.
    pub loops: Vec<EnclosingLoop>,
    /// How many there are in this body.
    pub breaks: u32,
    /// Differences that the kernel's facts say are zero.
    pub equalities: Vec<Polynomial>,
    constant_arrays: FxHashMap<ConstId, ArrayId>,
    static_arrays: FxHashMap<StaticId, ArrayId>,
}

/// Where the elaborator stood before it entered an inner region.
pub(super) struct Region {
    mark: Mark,
    at_kernel_level: bool,
    pure_region: bool,
    region_depth: u32,
    index_context: bool,
}

impl<'c, 'a> Elaborator<'c, 'a> {
    pub fn new(checker: &'c mut Checker<'a>, home: Home, name: &Ident, span: Span) -> Self {
        Self {
            checker,
            kernel: empty_kernel(name.name.clone(), span),
            scope: Scope::default(),
            home,
            fixes_sizes: home == Home::Kernel,
            defining: None,
            at_kernel_level: home == Home::Kernel,
            pure_region: home != Home::Kernel,
            region_depth: 0,
            index_context: false,
            failed: false,
            nesting: 0,
            deepest: 0,
            size: 0,
            unexplained: Vec::new(),
            unbound: FxHashSet::default(),
            host_values: FxHashMap::default(),
            host_indices: Vec::new(),
            literals: Literals::default(),
            loops: Vec::new(),
            breaks: 0,
            equalities: Vec::new(),
            constant_arrays: FxHashMap::default(),
            static_arrays: FxHashMap::default(),
        }
    }

    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.failed |= diagnostic.severity == Severity::Error;
        self.checker.report(diagnostic);
    }

    /// Reports an error in the place of a value.
    pub fn refuse<T>(&mut self, diagnostic: Diagnostic) -> Option<T> {
        self.report(diagnostic);
        None
    }

    /// Something was used whose mistake has been reported.
    pub fn poisoned<T>(&mut self) -> Option<T> {
        self.failed = true;
        None
    }

    pub fn type_name(&self, ty: &Type) -> String {
        self.checker.type_name(ty)
    }

    // Scopes.

    /// Enters a plain scope: the statements of an `if`, `for` or `while`.
    pub fn enter(&mut self) -> Region {
        Region {
            mark: self.scope.enter(),
            at_kernel_level: self.at_kernel_level,
            pure_region: self.pure_region,
            region_depth: self.region_depth,
            index_context: self.index_context,
        }
    }

    /// Enters the iterations of a `forall`: unordered, but free to write arrays.
    pub fn enter_iterations(&mut self) -> Region {
        let region = self.enter();
        self.at_kernel_level = false;
        self.region_depth += 1;
        region
    }

    /// Enters a region that computes a value for each of its axes: a reduction, or the right side of a store.
    pub fn enter_value(&mut self) -> Region {
        let region = self.enter_iterations();
        self.pure_region = true;
        self.index_context = false;
        region
    }

    pub fn leave(&mut self, region: Region) {
        for left in self.scope.leave(region.mark) {
            let entry = left.entry;
            // What is mistaken may well be why a name is not used.
            if entry.used
                || self.failed
                || left.name.starts_with('_')
                || self.home != Home::Kernel && self.home != Home::Function
            {
                continue;
            }
            self.warn_unused(left.name, entry.binding, entry.span);
        }
        self.at_kernel_level = region.at_kernel_level;
        self.pure_region = region.pure_region;
        self.region_depth = region.region_depth;
        self.index_context = region.index_context;
    }

    fn warn_unused(&mut self, name: &str, binding: Binding, span: Span) {
        let (code, what) = match binding {
            Binding::Local { mutable: false, .. } => (codes::W0101, "name"),
            Binding::Local { .. } => (codes::W0101, "variable"),
            Binding::Array { id, .. } if self.kernel.arrays[id].role == ArrayRole::Private => {
                (codes::W0101, "local array")
            }
            Binding::Array { id, .. } if self.kernel.arrays[id].role == ArrayRole::Temporary => {
                (codes::W0101, "temporary")
            }
            Binding::Array { .. } | Binding::Param(_) => (codes::W0102, "parameter"),
            Binding::Index(_) | Binding::Dim(_) | Binding::Poisoned => return,
        };
        let alone = match binding {
            Binding::Array { id, .. } => self.dimension_bound_alone(id),
            _ => None,
        };
        let help = match alone {
            Some(dim) => {
                format!("call it `_{name}` if it is there for its shape: nothing else binds `{dim}`")
            }
            None => format!("remove it, or call it `_{name}` if that is meant"),
        };
        self.report(
            Diagnostic::warning(code, span, format!("the {what} `{name}` is never used"), "never read")
                .help(help),
        );
    }

    /// A dimension that only this parameter binds: without the parameter there is none.
    fn dimension_bound_alone(&self, id: ArrayId) -> Option<String> {
        let kernel = &self.kernel;
        let bare = |array: &Array| {
            let dims = array.extents.iter().filter_map(|extent| match extent.kind {
                ExprKind::Dim(dim) => Some(dim),
                _ => None,
            });
            dims.collect::<Vec<_>>()
        };
        let is_given = |role: &ArrayRole| matches!(role, ArrayRole::Input | ArrayRole::InOut);
        let array = kernel.arrays.get(id).filter(|array| is_given(&array.role))?;
        let others = kernel.arrays.iter().filter(|(other, array)| *other != id && is_given(&array.role));
        let bound: Vec<_> = others.flat_map(|(_, array)| bare(array)).collect();
        bare(array).into_iter().find(|dim| !bound.contains(dim)).map(|dim| kernel.dims[dim].name.clone())
    }

    pub fn bind(&mut self, name: &'a Ident, binding: Binding) {
        self.scope.bind(&name.name, binding, name.span, self.region_depth);
    }

    /// Whether nothing visible has this name, so that a left side's bare subscript binds it.
    pub fn is_unbound(&self, name: &str) -> bool {
        self.scope.get(name).is_none() && !self.checker.names_a_value(name)
    }

    /// Index names must be new: refuses one that means something here already.
    pub fn fresh_index_name(&mut self, name: &Ident) -> bool {
        let (noun, label) = match self.scope.get(&name.name) {
            Some(entry) => (entry.binding.noun(), Some(entry.span)),
            None if self.checker.names_a_value(&name.name) => ("a constant or static of this file", None),
            None => return true,
        };
        let mut diagnostic = Diagnostic::error(
            codes::E0109,
            name.span,
            format!("`{}` is already {noun} here", name.name),
            "an index name must be new",
        )
        .help(format!("choose another name, for example `{}2`", name.name));
        if let Some(span) = label {
            diagnostic = diagnostic.label(span, "already bound here");
        }
        self.report(diagnostic);
        false
    }

    /// Binds a new index name; where that is refused it is left as it was and poisoned inside.
    pub fn bind_index(&mut self, name: &'a Ident) -> IndexId {
        let fresh = self.fresh_index_name(name);
        let index = self.kernel.indices.push(Index { name: name.name.clone(), span: name.span });
        self.bind(name, if fresh { Binding::Index(index) } else { Binding::Poisoned });
        index
    }

    pub fn new_local(&mut self, name: &str, ty: Type, mutable: bool, span: Span) -> LocalId {
        self.kernel.locals.push(Local { name: name.to_string(), ty, mutable, span })
    }

    // Arrays of the program, which a kernel lists only if it uses them.

    pub fn constant_array(&mut self, id: ConstId) -> ArrayId {
        if let Some(array) = self.constant_arrays.get(&id) {
            return *array;
        }
        let constant = &self.checker.program.constants[id];
        let array = self.kernel.arrays.push(Array {
            name: constant.name.clone(),
            span: constant.span,
            role: ArrayRole::Constant(id),
            ty: constant.ty.clone(),
            element: constant.element.clone(),
            extents: constant
                .extents
                .iter()
                .map(|extent| int64(i128::from(*extent), constant.span))
                .collect(),
        });
        self.constant_arrays.insert(id, array);
        array
    }

    pub fn static_array(&mut self, id: StaticId) -> ArrayId {
        if let Some(array) = self.static_arrays.get(&id) {
            return *array;
        }
        let item = &self.checker.program.statics[id];
        let array = self.kernel.arrays.push(Array {
            name: item.name.clone(),
            span: item.span,
            role: ArrayRole::Static(id),
            ty: item.ty.clone(),
            element: item.element.clone(),
            extents: item.extents.iter().map(|extent| int64(i128::from(*extent), item.span)).collect(),
        });
        self.static_arrays.insert(id, array);
        array
    }

    /// An unknown name, with the nearest known one.
    pub fn unknown_name<T>(&mut self, name: &Ident) -> Option<T> {
        if self.checker.may_be_unread(&name.name) {
            return self.poisoned();
        }
        if self.unbound.contains(&name.name) {
            // That is told where it stands in a shape, or the first time in its own `let`.
            return self.poisoned();
        }
        if self.home == Home::Shape {
            return self.unbound_dimension(name);
        }
        let mut names = self.scope.visible();
        names.extend(
            self.checker.global_names(|global| matches!(global, Global::Constant(_) | Global::Static(_))),
        );
        names.sort_unstable();
        if self.defining.is_some_and(|own| own.name == name.name) {
            self.unbound.insert(name.name.clone());
        }
        let unknown = Diagnostic::error(
            codes::E0101,
            name.span,
            format!("there is no `{}` here", name.name),
            "not a known name",
        );
        self.refuse(match self.defining {
            Some(own) if own.name == name.name => unknown.help(format!(
                "`{}` is what this `let` defines, and has no value in it; a line that begins with an operator, as `-`, \
                 continues the one before, unless that ends with `;`",
                name.name
            )),
            _ => unknown.nearest_or(
                &name.name,
                names,
                format!(
                    "declare it with `let {0} = …`, or if it is an index, bind it: `forall {0} in … {{ … }}` or \
                     `sum({0}: …)`",
                    name.name
                ),
            ),
        })
    }

    /// In a shape or a fact an unknown name was meant as a dimension.
    fn unbound_dimension<T>(&mut self, name: &Ident) -> Option<T> {
        self.unbound.insert(name.name.clone());
        let known = self.scope.visible();
        self.refuse(
            Diagnostic::error(
                codes::E0115,
                name.span,
                format!("no parameter binds the dimension `{}`", name.name),
                "not a known dimension",
            )
            .nearest_or(
                &name.name,
                known,
                format!(
                    "a dimension stands in the shape of some parameter, by itself or as a multiple plus a constant: \
                     `x: f32[{0}]`, `x: f32[32 * {0}]`, `x: f32[{0} + 1]`; or it is an integer parameter, `{0}: i64`",
                    name.name
                ),
            ),
        )
    }

    // Expressions made by the elaborator itself.

    pub fn make(&mut self, kind: ExprKind, ty: Type, span: Span) -> Expr {
        self.size += 1;
        Expr { kind, ty, span }
    }

    /// The value in another scalar type, by an explicit node unless it is of that type already.
    pub fn cast(&mut self, operand: Expr, to: Scalar) -> Expr {
        if operand.ty == Type::Scalar(to) {
            return operand;
        }
        let span = operand.span;
        self.make(ExprKind::Cast { operand: Box::new(operand), to }, Type::Scalar(to.widened()), span)
    }

    /// Rounds to a narrow annotation, if there is one.
    pub fn narrowed(&mut self, value: Expr, narrow: Option<Scalar>) -> Expr {
        match narrow {
            Some(to) => self.cast(value, to),
            None => value,
        }
    }
}

/// The storage type's narrow scalar, if it is one.
pub(super) fn narrow_scalar(ty: &Type) -> Option<Scalar> {
    ty.as_scalar().filter(|scalar| scalar.is_narrow())
}

pub(super) fn int64(value: i128, span: Span) -> Expr {
    Expr { kind: ExprKind::Int(value), ty: Type::I64, span }
}

pub(super) fn axis(index: IndexId, bounds: Bounds) -> Axis {
    Axis { index, low: bounds.low, high: bounds.high, ends: Ends::written(bounds.closed) }
}

/// Reading a local.
pub(super) fn local_value(id: LocalId, ty: &Type, span: Span) -> Expr {
    Expr { kind: ExprKind::Local(id), ty: types::widened(ty), span }
}

fn empty_kernel(name: String, span: Span) -> Kernel {
    Kernel {
        name,
        span,
        dims: Default::default(),
        params: Default::default(),
        arrays: Default::default(),
        signature: Vec::new(),
        facts: Vec::new(),
        injections: Vec::new(),
        locals: Default::default(),
        indices: Default::default(),
        sites: Default::default(),
        reductions: Default::default(),
        body: Vec::new(),
        schedules: Vec::new(),
    }
}

/// The name at the bottom of a place: `a` of `a[i].x[k]`.
pub(super) fn root_name(expr: &ast::Expr) -> Option<&Ident> {
    let mut expr = expr;
    loop {
        match &expr.kind {
            ast::ExprKind::Name(name) => return Some(name),
            ast::ExprKind::Index { base, .. } | ast::ExprKind::Field { base, .. } => expr = base,
            _ => return None,
        }
    }
}
