//! Calls of built-in functions and of the file's own, and struct literals.

use super::super::elaborator::{Elaborator, Home};
use super::super::functions::ParamType;
use super::super::inline::Argument;
use super::super::items::Global;
use super::super::scope::Binding;
use super::super::spell::{spell, spell_operand};
use super::super::typed::{Expr, ExprKind, Type};
use super::super::types;
use crate::builtins::{Builtin, Signature};
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::REDUCTIONS;
use crate::syntax::ast::{self, Ident};

impl<'c, 'a> Elaborator<'c, 'a> {
    pub fn call(
        &mut self,
        callee: &'a Ident,
        arguments: &'a [ast::Expr],
        want: Option<&Type>,
        span: Span,
    ) -> Option<Expr> {
        let index_context = std::mem::replace(&mut self.index_context, false);
        let value = match self.checker.globals.get(callee.name.as_str()).copied() {
            Some(Global::Function(at)) => self.function_call(at, callee, arguments, span),
            _ => match Builtin::from_name(&callee.name) {
                Some(builtin) => {
                    // Minima and maxima of subscripts are subscripts.
                    self.index_context =
                        index_context && matches!(builtin, Builtin::Min | Builtin::Max | Builtin::Clamp);
                    self.builtin_call(builtin, callee, arguments, want, span)
                }
                None => self.unknown_function(callee, arguments),
            },
        };
        self.index_context = index_context;
        value
    }

    fn unknown_function(&mut self, callee: &Ident, arguments: &'a [ast::Expr]) -> Option<Expr> {
        if callee.name == super::super::injections::NAME {
            return self.refuse(
                Diagnostic::error(
                    codes::E0103,
                    callee.span,
                    "`injective` is a fact of its own",
                    "no value that can be computed with",
                )
                .help(
                    "state it behind `where`, with a comma to the next fact: `where injective(idx), n > 0`",
                ),
            );
        }
        for argument in arguments {
            self.expr(argument, None);
        }
        if REDUCTIONS.contains(&callee.name.as_str()) {
            return self.refuse(
                Diagnostic::error(
                    codes::E0104,
                    callee.span,
                    format!("`{}` reduces over index names, and none are given", callee.name),
                    "a reduction",
                )
                .help(format!("name what it runs over: `{}(i: x[i])`", callee.name)),
            );
        }
        if self.checker.may_be_unread(&callee.name) {
            return self.poisoned();
        }
        if Scalar::from_name(&callee.name).is_some() {
            let name = &callee.name;
            let value = arguments.first().map_or("x".to_string(), spell_operand);
            return self.refuse(
                Diagnostic::error(codes::E0103, callee.span, format!("`{name}` is a type"), "no function")
                    .help(format!("convert with `as`: `{value} as {name}`")),
            );
        }
        let mut names: Vec<&str> = Builtin::names().collect();
        names.extend(REDUCTIONS);
        names.extend(self.checker.global_names(|global| matches!(global, Global::Function(_))));
        names.sort_unstable();
        self.refuse(
            Diagnostic::error(
                codes::E0103,
                callee.span,
                format!("there is no function `{}`", callee.name),
                "not a known function",
            )
            .nearest_or(
                &callee.name,
                names,
                format!("define it: `fn {}(x: f32) -> f32 {{ … }}`", callee.name),
            ),
        )
    }

    fn check_arity(&mut self, name: &Ident, wanted: usize, given: &'a [ast::Expr], span: Span) -> bool {
        if given.len() == wanted {
            return true;
        }
        for argument in given {
            self.expr(argument, None);
        }
        let plural = if wanted == 1 { "" } else { "s" };
        self.report(
            Diagnostic::error(
                codes::E0208,
                span,
                format!("`{}` takes {wanted} argument{plural}, but {} are given", name.name, given.len()),
                "the wrong number of arguments",
            )
            .help(format!("give it {wanted}")),
        );
        false
    }

    fn function_call(
        &mut self,
        at: usize,
        callee: &'a Ident,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        if self.home == Home::Constant {
            return self.refuse(
                Diagnostic::error(
                    codes::E0219,
                    span,
                    "this must be known when the file is compiled",
                    format!("`{}` is a function of this file", callee.name),
                )
                .help("use literals, other constants, operators and built-in functions of them"),
            );
        }
        let count = self.checker.functions[at].item.params.len();
        if !self.check_arity(callee, count, arguments, span) {
            return None;
        }
        let Some(signature) = self.checker.functions[at].signature.clone() else {
            for argument in arguments {
                self.expr(argument, None);
            }
            return self.poisoned();
        };
        let mut given = Vec::with_capacity(arguments.len());
        for (position, (argument, param)) in arguments.iter().zip(&signature.params).enumerate() {
            given.push(match param {
                ParamType::Value(ty) => {
                    let value = self.stored_expr(argument, ty, "this argument");
                    let narrow = super::super::elaborator::narrow_scalar(ty);
                    value.map(|value| Argument::Value(self.narrowed(value, narrow)))
                }
                ParamType::Array(ty) => {
                    let item = self.checker.functions[at].item;
                    self.array_given(argument, ty, &item.params[position])
                }
            });
        }
        let given = given.into_iter().collect::<Option<Vec<Argument>>>()?;
        self.inline(at, given, types::widened(&signature.result), span)
    }

    /// The array that is given to a function.
    fn array_given(
        &mut self,
        argument: &'a ast::Expr,
        ty: &Type,
        param: &'a ast::TypedName,
    ) -> Option<Argument> {
        let wanted = param.ty.extents.as_ref().map_or(0, Vec::len);
        let array = match &argument.kind {
            ast::ExprKind::Name(name) => self.array_named(name)?,
            _ => None,
        };
        let Some(id) = array else {
            let help = self.by_its_name(argument, param);
            return self.refuse(
                Diagnostic::error(
                    codes::E0230,
                    argument.span,
                    format!("`{}` takes an array", param.name.name),
                    "no array's name",
                )
                .label(param.name.span, "declared here")
                .help(help),
            );
        };
        let array = &self.kernel.arrays[id];
        let (given, rank) = (self.checker.type_name(&array.ty), array.extents.len());
        if array.ty != *ty || rank != wanted {
            let wanted = format!("elements of `{}` and {wanted} axes", self.type_name(ty));
            return self.refuse(
                Diagnostic::error(
                    codes::E0230,
                    argument.span,
                    format!("`{}` takes an array with {wanted}", param.name.name),
                    format!("this has elements of `{given}` and {rank} axes"),
                )
                .label(param.name.span, "declared here")
                .help("give an array of that type, or write a function for this one"),
            );
        }
        Some(Argument::Array(id, argument.span))
    }

    /// What to write for the row of an array, which is none.
    fn by_its_name(&self, argument: &ast::Expr, param: &ast::TypedName) -> String {
        if let ast::ExprKind::Index { base, subscripts } = &argument.kind
            && let ast::ExprKind::Name(name) = &base.kind
            && let Some(Binding::Array { id, .. }) = self.scope.get(&name.name).map(|entry| entry.binding)
            && subscripts.len() < self.kernel.arrays[id].extents.len()
        {
            let array = &self.kernel.arrays[id];
            let extents: Vec<String> = array.extents.iter().map(|extent| self.describe(extent)).collect();
            let given: Vec<String> = subscripts.iter().map(spell).collect();
            return format!(
                "an array goes by its name, and what subscripts it as parameters more: give `{}, {}`, and declare \
                 `{}: {}[{}]` with an `i64` for each",
                name.name,
                given.join(", "),
                param.name.name,
                self.checker.type_name(&array.ty),
                extents.join(", ")
            );
        }
        "give an array by its name, without subscripts".to_string()
    }

    fn builtin_call(
        &mut self,
        builtin: Builtin,
        callee: &'a Ident,
        arguments: &'a [ast::Expr],
        want: Option<&Type>,
        span: Span,
    ) -> Option<Expr> {
        let signature = builtin.signature();
        if !self.check_arity(callee, builtin.arity(), arguments, span) {
            return None;
        }
        let want = want.filter(|want| want.as_scalar().is_some());
        let (arguments, ty) = match signature {
            Signature::Floats => {
                let hint = want.filter(|want| want.as_scalar().is_some_and(Scalar::is_float));
                let values = self.same_type(callee, arguments, hint.or(Some(&Type::F32)))?;
                let ty = values[0].ty.clone();
                self.expect(callee, &ty, Scalar::is_float, "a float", span)?;
                (values, ty)
            }
            Signature::FloatTest => {
                let values = self.same_type(callee, arguments, Some(&Type::F32))?;
                self.expect(callee, &values[0].ty.clone(), Scalar::is_float, "a float", span)?;
                (values, Type::BOOL)
            }
            Signature::Signed => {
                let values = self.same_type(callee, arguments, want)?;
                let ty = values[0].ty.clone();
                let fits = |scalar: Scalar| scalar.is_float() || scalar.is_signed_integer();
                self.expect(callee, &ty, fits, "a float or a signed integer", span)?;
                (values, ty)
            }
            Signature::Numbers => {
                let values = self.same_type(callee, arguments, want)?;
                let ty = values[0].ty.clone();
                self.expect(callee, &ty, |scalar| scalar != Scalar::Bool, "a number", span)?;
                (values, ty)
            }
            Signature::Integer => {
                let values = self.same_type(callee, arguments, want)?;
                let ty = values[0].ty.clone();
                self.expect(callee, &ty, Scalar::is_integer, "an integer", span)?;
                (values, ty)
            }
            Signature::Select => {
                let condition = self.expr_of(&arguments[0], &Type::BOOL, "the condition of `select`");
                let values = self.same_type(callee, &arguments[1..], want);
                let (condition, mut values) = (condition?, values?);
                let ty = values[0].ty.clone();
                values.insert(0, condition);
                (values, ty)
            }
            Signature::RandomBits | Signature::RandomFloat => {
                let mut values = Vec::with_capacity(2);
                for argument in arguments {
                    let value = self.expr(argument, Some(&Type::U64));
                    if let Some(value) = &value {
                        self.expect(
                            callee,
                            &value.ty.clone(),
                            Scalar::is_integer,
                            "an integer",
                            argument.span,
                        )?;
                    }
                    values.push(value.map(|value| self.cast(value, Scalar::U64)));
                }
                let values = values.into_iter().collect::<Option<Vec<Expr>>>()?;
                (values, if signature == Signature::RandomBits { Type::U32 } else { Type::F32 })
            }
            Signature::ToBits => {
                let values = self.same_type(callee, arguments, Some(&Type::F32))?;
                let ty = values[0].ty.clone();
                self.expect(callee, &ty, Scalar::is_float, "a float", span)?;
                (values, if ty == Type::F64 { Type::U64 } else { Type::U32 })
            }
            Signature::FromBits => {
                let values = self.same_type(callee, arguments, Some(&Type::U32))?;
                let ty = values[0].ty.clone();
                self.expect(callee, &ty, Scalar::is_unsigned_integer, "a `u32` or `u64`", span)?;
                (values, if ty == Type::U64 { Type::F64 } else { Type::F32 })
            }
        };
        Some(self.make(ExprKind::Call { builtin, arguments }, ty, span))
    }

    /// Arguments of one type: literals take the type of the first that is not one.
    fn same_type(
        &mut self,
        callee: &Ident,
        arguments: &'a [ast::Expr],
        want: Option<&Type>,
    ) -> Option<Vec<Expr>> {
        let leader = arguments.iter().position(|argument| !self.is_flexible(argument)).unwrap_or(0);
        let first = self.expr(&arguments[leader], want);
        let mut hint = first.as_ref().map(|value| value.ty.clone());
        let mut values: Vec<Option<Expr>> = Vec::with_capacity(arguments.len());
        for (at, argument) in arguments.iter().enumerate() {
            if at == leader {
                values.push(first.clone());
                continue;
            }
            values.push(self.expr(argument, hint.as_ref().or(want)));
        }
        let mut values = values.into_iter().collect::<Option<Vec<Expr>>>()?;
        let unequal = values.iter().any(|value| value.ty != values[0].ty);
        if self.index_context && unequal && values.iter().all(|value| super::operators::widens(&value.ty)) {
            values = values.into_iter().map(|value| self.cast(value, Scalar::I64)).collect();
            hint = Some(Type::I64);
        }
        let ty = hint?;
        if let Some(other) = values.iter().find(|value| value.ty != ty)
            && (self.settles(other, &ty) || self.settles(&values[leader], &other.ty))
        {
            return self.poisoned();
        }
        for (argument, value) in arguments.iter().zip(&values) {
            if value.ty != ty {
                let (one, two) = (self.type_name(&ty), self.type_name(&value.ty));
                let help = match ty.as_scalar() {
                    Some(scalar) => {
                        format!("convert it: `{} as {scalar}`", super::super::spell::spell_operand(argument))
                    }
                    None => format!("give a value of type `{one}`"),
                };
                return self.refuse(
                    Diagnostic::error(
                        codes::E0210,
                        argument.span,
                        format!("the arguments of `{}` must have one type", callee.name),
                        format!("this is `{two}`"),
                    )
                    .label(arguments[leader].span, format!("this is `{one}`"))
                    .help(help),
                );
            }
        }
        Some(values)
    }

    fn expect(
        &mut self,
        callee: &Ident,
        ty: &Type,
        fits: impl Fn(Scalar) -> bool,
        wanted: &str,
        span: Span,
    ) -> Option<()> {
        if ty.as_scalar().is_some_and(&fits) {
            return Some(());
        }
        let found = self.type_name(ty);
        let to = ty.as_scalar().filter(|scalar| scalar.is_integer()).and_then(|scalar| {
            let wide = scalar.size() == 8;
            let integers = if wide { [Scalar::U64, Scalar::I64] } else { [Scalar::U32, Scalar::I32] };
            [Scalar::F32].into_iter().chain(integers).find(|to| fits(*to))
        });
        let help = match to {
            Some(to) => format!("convert the argument: `… as {to}`"),
            None => format!("give it {wanted}"),
        };
        self.refuse(
            Diagnostic::error(
                codes::E0211,
                span,
                format!("`{}` takes {wanted}, but this is `{found}`", callee.name),
                format!("called with `{found}`"),
            )
            .help(help),
        )
    }

    pub fn struct_literal(
        &mut self,
        name: &'a Ident,
        fields: &'a [(Ident, ast::Expr)],
        span: Span,
    ) -> Option<Expr> {
        let ty = self.checker.named_type(name);
        let Some(id) = ty.as_ref().and_then(|ty| self.checker.struct_of(ty)) else {
            for (_, value) in fields {
                self.field_of_unknown(value);
            }
            if ty.is_none() {
                return self.poisoned();
            }
            return self.refuse(
                Diagnostic::error(
                    codes::E0110,
                    name.span,
                    format!("`{}` is not a struct", name.name),
                    "a struct is wanted here",
                )
                .help("only structs have literals with fields"),
            );
        };
        let definition = self.checker.program.structs[id].fields.clone();
        let mut values: Vec<Option<Expr>> = vec![None; definition.len()];
        let mut seen: Vec<Option<Span>> = vec![None; definition.len()];
        let mut sound = true;
        for (field, value) in fields {
            let Some(at) = definition.iter().position(|known| known.name == field.name) else {
                sound = false;
                self.field_of_unknown(value);
                self.unknown_field(field, id);
                continue;
            };
            if let Some(first) = seen[at].replace(field.span) {
                sound = false;
                self.report(super::super::items::duplicate(codes::E0106, "field", field, first));
                continue;
            }
            values[at] = self.stored_expr(value, &definition[at].ty, "this field");
            sound &= values[at].is_some();
        }
        let missing: Vec<String> = definition
            .iter()
            .zip(&seen)
            .filter(|(_, seen)| seen.is_none())
            .map(|(field, _)| format!("`{}`", field.name))
            .collect();
        if !missing.is_empty() {
            return self.refuse(
                Diagnostic::error(
                    codes::E0223,
                    span,
                    format!("`{}` has no value for {}", name.name, missing.join(", ")),
                    "fields are missing",
                )
                .help("give every field a value"),
            );
        }
        if !sound {
            return self.poisoned();
        }
        let fields = values.into_iter().collect::<Option<Vec<Expr>>>()?;
        Some(self.make(ExprKind::StructLiteral { fields }, Type::Struct(id), span))
    }

    /// Looks for mistakes in the value of a field whose type is unknown: it may be a fixed array.
    fn field_of_unknown(&mut self, value: &'a ast::Expr) {
        match &value.kind {
            ast::ExprKind::ArrayLiteral(items) => items.iter().for_each(|item| self.field_of_unknown(item)),
            ast::ExprKind::Index { .. } | ast::ExprKind::Field { .. } => {
                self.place(value);
            }
            _ => {
                self.expr(value, None);
            }
        }
    }

    /// A fixed array: a literal of as many elements, or a whole array of the same type.
    pub fn array_value(
        &mut self,
        value: &'a ast::Expr,
        ty: &Type,
        inner: &Type,
        extent: u64,
        what: &str,
    ) -> Option<Expr> {
        let items = match &value.kind {
            ast::ExprKind::ArrayLiteral(items) => items,
            ast::ExprKind::Index { .. } | ast::ExprKind::Field { .. } => {
                return self.whole_fixed_array(value, ty, what);
            }
            _ => {
                self.expr(value, None)?;
                let wanted = self.type_name(ty);
                return self.refuse(
                    Diagnostic::error(
                        codes::E0220,
                        value.span,
                        format!("{what} must be a fixed array `{wanted}`"),
                        "this is no array",
                    )
                    .help("write its elements in brackets, `[a, b, …]`, or name another such array"),
                );
            }
        };
        if items.len() as u64 != extent {
            return self.refuse(
                Diagnostic::error(
                    codes::E0220,
                    value.span,
                    format!("{extent} elements are needed here, but {} are written", items.len()),
                    format!("{} elements", items.len()),
                )
                .help(format!("write {extent} elements")),
            );
        }
        let values: Vec<Option<Expr>> =
            items.iter().map(|item| self.stored_expr(item, inner, "this element")).collect();
        let values = values.into_iter().collect::<Option<Vec<Expr>>>()?;
        Some(self.make(ExprKind::ArrayLiteral(values), ty.clone(), value.span))
    }

    /// Another fixed array, copied.
    fn whole_fixed_array(&mut self, value: &'a ast::Expr, ty: &Type, what: &str) -> Option<Expr> {
        let place = self.place(value)?;
        if place.ty != *ty {
            let (wanted, found) = (self.type_name(ty), self.type_name(&place.ty));
            return self.refuse(
                Diagnostic::error(
                    codes::E0201,
                    value.span,
                    format!("{what} must be `{wanted}`, but this is `{found}`"),
                    format!("this is `{found}`"),
                )
                .help("fixed arrays are copied between places of one type; write others out: `[a, b, …]`"),
            );
        }
        Some(self.read_whole(place, value.span))
    }

    pub fn unknown_field(&mut self, field: &Ident, id: super::super::typed::StructId) {
        let definition = &self.checker.program.structs[id];
        let names: Vec<&str> = definition.fields.iter().map(|field| field.name.as_str()).collect();
        let unknown = Diagnostic::error(
            codes::E0224,
            field.span,
            format!("`{}` has no field `{}`", definition.name, field.name),
            "not a field",
        )
        .label(definition.span, "the struct")
        .nearest_or(
            &field.name,
            names.iter().copied(),
            format!("its fields are {}", names.join(", ")),
        );
        self.report(unknown);
    }
}
