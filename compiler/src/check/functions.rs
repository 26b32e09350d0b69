//! `fn` items: each is checked once, by itself, in the order in which they call each other, and its checked
//! body is then copied into every caller (see `inline`). So a mistake in a function is reported once, whether
//! it is called or not.

use super::elaborator::{Elaborator, Home, narrow_scalar};
use super::items::{Checker, duplicate};
use super::occurrences::called_names;
use super::order::dependency_order;
use super::scope::{Binding, Literals};
use super::typed::{ArrayId, ArrayRole, Block, Expr, Kernel, LocalId, Type};
use super::types;
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::ast::FunctionItem;
use rustc_hash::{FxHashMap, FxHashSet};

/// A function, its types (unless they are mistaken) and its checked body (unless that is).
pub(super) struct Function<'a> {
    pub item: &'a FunctionItem,
    pub signature: Option<FunctionSignature>,
    pub body: Option<FunctionBody>,
}

#[derive(Clone)]
pub(super) struct FunctionSignature {
    pub params: Vec<ParamType>,
    pub result: Type,
}

/// What a parameter takes.
#[derive(Clone)]
pub(super) enum ParamType {
    /// A value of a storage type: an argument is rounded to a narrow one.
    Value(Type),
    /// An array with elements of a storage type, which the function reads.
    Array(Type),
}

/// What a parameter is in a function's tables.
#[derive(Clone, Copy)]
pub(super) enum Formal {
    Value(LocalId),
    Array(ArrayId),
}

/// A body in tables of its own, ready to be copied.
#[derive(Clone)]
pub(super) struct FunctionBody {
    pub tables: Kernel,
    pub params: Vec<Formal>,
    pub block: Block,
    /// Of a reduction: the constant that it starts from.
    pub identity: Option<Expr>,
    /// Expression nodes in it, and how deep they nest.
    pub size: u64,
    pub nesting: u32,
}

impl<'a> Function<'a> {
    pub fn new(item: &'a FunctionItem) -> Self {
        Self { item, signature: None, body: None }
    }
}

impl<'a> Checker<'a> {
    pub fn functions(&mut self) {
        for at in 0..self.functions.len() {
            self.functions[at].signature = self.function_signature(self.functions[at].item);
        }
        let positions: FxHashMap<&str, usize> = self
            .functions
            .iter()
            .enumerate()
            .filter(|(_, function)| !self.is_duplicate(&function.item.name))
            .map(|(at, function)| (function.item.name.name.as_str(), at))
            .collect();
        let edges: Vec<Vec<usize>> = self
            .functions
            .iter()
            .map(|function| {
                let calls = called_names(&function.item.body);
                let mut seen = FxHashSet::default();
                calls
                    .into_iter()
                    .filter_map(|name| positions.get(name).copied())
                    .filter(|callee| seen.insert(*callee))
                    .collect()
            })
            .collect();
        let found = dependency_order(&edges);
        let mut recursive = vec![false; self.functions.len()];
        for cycle in &found.cycles {
            self.report_recursion(cycle);
            for node in cycle {
                recursive[*node] = true;
            }
        }
        for node in found.order {
            if !recursive[node] {
                let body = self.settled(|checker, literals| checker.function_body(node, literals));
                self.functions[node].body = match self.functions[node].item.identity.is_some() {
                    true => body.and_then(|body| self.reduction_body(node, body)),
                    false => body,
                };
            }
        }
    }

    fn function_signature(&mut self, item: &'a FunctionItem) -> Option<FunctionSignature> {
        let mut params = Vec::with_capacity(item.params.len());
        for param in &item.params {
            let kind = if param.ty.extents.is_some() { ParamType::Array } else { ParamType::Value };
            params.push(self.named_type(&param.ty.name).map(kind));
        }
        let what = if item.identity.is_some() { "a reduction's result" } else { "a function's result" };
        let result = self.value_type(&item.result, what);
        Some(FunctionSignature { params: params.into_iter().collect::<Option<_>>()?, result: result? })
    }

    fn report_recursion(&mut self, cycle: &[usize]) {
        let names: Vec<&str> = cycle
            .iter()
            .chain(cycle.first())
            .map(|node| self.functions[*node].item.name.name.as_str())
            .collect();
        let first = self.functions[cycle[0]].item;
        let mut diagnostic = Diagnostic::error(
            codes::E0108,
            first.name.span,
            format!("the function `{}` calls itself", first.name.name),
            "functions are inlined, so they cannot recurse",
        )
        .help("use a `while` or `for` loop")
        .note(format!("the cycle is {}", names.join(" → ")));
        for node in &cycle[1..] {
            let item = self.functions[*node].item;
            diagnostic = diagnostic.label(item.name.span, format!("by way of `{}`", item.name.name));
        }
        self.report(diagnostic);
    }

    fn function_body(&mut self, at: usize, literals: &mut Literals) -> Option<FunctionBody> {
        let item = self.functions[at].item;
        let signature = self.functions[at].signature.clone();
        let mut elaborator = Elaborator::new(self, Home::Function, &item.name, item.span);
        elaborator.literals = std::mem::take(literals);
        let region = elaborator.enter();
        let (mut params, mut arrays) = (Vec::new(), Vec::new());
        let mut names = FxHashMap::default();
        for (position, param) in item.params.iter().enumerate() {
            if let Some(first) = names.insert(param.name.name.as_str(), param.name.span) {
                elaborator.report(duplicate(codes::E0106, "parameter", &param.name, first));
                continue;
            }
            let Some(signature) = &signature else {
                elaborator.bind(&param.name, Binding::Poisoned);
                continue;
            };
            params.push(match &signature.params[position] {
                ParamType::Value(ty) => {
                    let id =
                        elaborator.new_local(&param.name.name, types::widened(ty), false, param.name.span);
                    elaborator.bind(&param.name, Binding::Local { id, mutable: false, narrow: None });
                    Formal::Value(id)
                }
                ParamType::Array(ty) => {
                    let id = elaborator.declare_array(&param.name, ArrayRole::Input, ty.clone());
                    elaborator.bind(&param.name, Binding::Array { id, mutable: false });
                    arrays.push((&param.name, &param.ty, Some(id)));
                    Formal::Array(id)
                }
            });
        }
        let open = elaborator.bind_dimensions(item.params.iter().map(|param| (&param.name, &param.ty)));
        elaborator.extents(arrays);
        for (dim, extent) in open {
            let name = elaborator.kernel.dims[dim].name.clone();
            elaborator.report(
                Diagnostic::error(
                    codes::E0115,
                    extent.span,
                    format!("the extent does not say what `{name}` is"),
                    format!("in a function `{name}` must stand by itself"),
                )
                .help(format!(
                    "let `{name}` stand by itself in the shape of some parameter: `x: f32[{name}]`"
                )),
            );
        }
        let want = signature.as_ref().map(|signature| types::widened(&signature.result));
        let block = elaborator.value_block_of(&item.body, want.as_ref(), "the function's result");
        elaborator.leave(region);
        elaborator.report_unexplained();
        *literals = std::mem::take(&mut elaborator.literals);
        let mut block = block?;
        if elaborator.failed {
            return None;
        }
        if let Some(value) = block.value.take() {
            let value = elaborator.narrowed(*value, narrow_scalar(&signature?.result));
            block.value = Some(Box::new(value));
        }
        let (size, nesting) = (elaborator.size, elaborator.deepest + 1 + elaborator.breaks);
        Some(FunctionBody { tables: elaborator.kernel, params, block, identity: None, size, nesting })
    }
}
