//! Struct items: field types, and the refusal of structs that contain themselves.

use super::elaborator::{Elaborator, Home};
use super::items::{Checker, Global, duplicate};
use super::layout;
use super::order::dependency_order;
use super::typed::{StructDef, StructField, Type};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::ast::{Expr, Item, StructItem, TypeExpr};
use rustc_hash::FxHashMap;

/// How deep structs may nest.
const MAX_NESTING: u32 = 32;

impl<'a> Checker<'a> {
    /// Lays out every struct, each after the structs that it contains.
    pub fn structs(&mut self) {
        let file = self.file;
        let items: Vec<&'a StructItem> = file
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Struct(item) if !self.is_duplicate(&item.name) => Some(item),
                _ => None,
            })
            .collect();
        let positions: FxHashMap<&str, usize> =
            items.iter().enumerate().map(|(at, item)| (item.name.name.as_str(), at)).collect();
        let edges: Vec<Vec<usize>> = items
            .iter()
            .map(|item| {
                item.fields
                    .iter()
                    .filter_map(|field| positions.get(field.ty.name.name.as_str()).copied())
                    .collect()
            })
            .collect();
        let found = dependency_order(&edges);
        for cycle in &found.cycles {
            self.report_struct_cycle(&items, cycle);
            for node in cycle {
                self.globals.insert(&items[*node].name.name, Global::Poisoned);
            }
        }
        let mut nesting = vec![0u32; items.len()];
        for node in found.order {
            let item = items[node];
            if matches!(self.globals.get(item.name.name.as_str()), Some(Global::Poisoned)) {
                continue;
            }
            nesting[node] = 1 + edges[node].iter().map(|inner| nesting[*inner]).max().unwrap_or(0);
            let global = match self.struct_item(item, nesting[node]) {
                Some(def) => Global::Struct(self.program.structs.push(def)),
                None => Global::Poisoned,
            };
            self.globals.insert(&item.name.name, global);
        }
    }

    fn report_struct_cycle(&mut self, items: &[&'a StructItem], cycle: &[usize]) {
        let first = items[cycle[0]];
        let mut path: Vec<&str> = cycle.iter().map(|node| items[*node].name.name.as_str()).collect();
        path.push(path[0]);
        let mut diagnostic = Diagnostic::error(
            codes::E0107,
            first.name.span,
            format!("the struct `{}` contains itself", first.name.name),
            "this struct would be infinitely large",
        )
        .help("remove one of the fields, or store an integer index into an array instead")
        .note(format!("the cycle is {}", path.join(" → ")));
        for (node, next) in cycle.iter().zip(cycle.iter().skip(1).chain(cycle.first())) {
            let field = items[*node].fields.iter().find(|field| field.ty.name.name == items[*next].name.name);
            if let Some(field) = field {
                diagnostic =
                    diagnostic.label(field.ty.span, format!("contains `{}` here", field.ty.name.name));
            }
        }
        self.report(diagnostic);
    }

    fn struct_item(&mut self, item: &'a StructItem, nesting: u32) -> Option<StructDef> {
        let mut fields: Vec<StructField> = Vec::with_capacity(item.fields.len());
        let mut spans = FxHashMap::default();
        let mut sound = true;
        for field in &item.fields {
            if let Some(first) = spans.insert(field.name.name.as_str(), field.name.span) {
                self.report(duplicate(codes::E0106, "field", &field.name, first));
                sound = false;
                continue;
            }
            match self.field_type(&field.ty) {
                Some(ty) => {
                    fields.push(StructField { name: field.name.name.clone(), ty, span: field.name.span })
                }
                None => sound = false,
            }
        }
        if !sound {
            return None;
        }
        let problem = if fields.is_empty() {
            Some("a struct needs at least one field".to_string())
        } else if nesting > MAX_NESTING {
            Some(format!("structs may nest {MAX_NESTING} deep"))
        } else {
            None
        };
        let element = match problem {
            Some(problem) => Err(problem),
            None => layout::element_of(&self.program, &item.name.name, &fields),
        };
        match element {
            Ok(element) => {
                Some(StructDef { name: item.name.name.clone(), fields, span: item.name.span, element })
            }
            Err(problem) => {
                self.report(
                    Diagnostic::error(
                        codes::E0226,
                        item.name.span,
                        format!("the struct `{}` cannot be laid out: {problem}", item.name.name),
                        "this struct",
                    )
                    .help("keep large data in arrays of their own, and structs for what belongs together"),
                );
                None
            }
        }
    }

    /// `f32`, `Vec3`, `f32[3]`, `f32[3, N]`.
    fn field_type(&mut self, ty: &'a TypeExpr) -> Option<Type> {
        let mut result = self.named_type(&ty.name)?;
        let extents: Option<Vec<u64>> =
            ty.extents.iter().flatten().map(|extent| self.fixed_extent(extent)).collect();
        for extent in extents?.into_iter().rev() {
            result = Type::Array(Box::new(result), extent);
        }
        Some(result)
    }

    /// A constant extent of a fixed array, at least 1.
    pub fn fixed_extent(&mut self, extent: &'a Expr) -> Option<u64> {
        let value = self.constant_integer(extent)?;
        match u64::try_from(value) {
            Ok(value) if value > 0 && value <= 1 << 40 => Some(value),
            _ => {
                self.report(
                    Diagnostic::error(
                        codes::E0222,
                        extent.span,
                        format!("a fixed array cannot have {value} elements"),
                        "this extent",
                    )
                    .help("write a constant of at least 1"),
                );
                None
            }
        }
    }

    /// The value of a constant integer expression.
    pub fn constant_integer(&mut self, expr: &'a Expr) -> Option<i128> {
        let name = crate::syntax::ast::Ident { name: String::new(), span: expr.span };
        let mut elaborator = Elaborator::new(self, Home::Constant, &name, expr.span);
        let value = elaborator.index_expr(expr)?;
        elaborator.constant_value(&value)?.as_int()
    }
}
