//! `reduction` items: functions of two values of one type, with a constant to start from, whose code can be run
//! anywhere, any number of times.

use super::evaluate::{Value, literal, round, wrap};
use super::functions::{FunctionBody, ParamType};
use super::items::Checker;
use super::typed::{Block, Expr, ExprKind, Projection, Stmt, StmtKind, Type};
use super::types;
use super::walk::{Node, walk_block};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;

/// The most scalars that a contribution has: a thread holds them several times over, and exchanges each of them.
const MOST_SCALARS: u64 = 32;

impl<'a> Checker<'a> {
    /// The body of a reduction, whose body as a function is sound; `None` where it cannot be one.
    pub fn reduction_body(&mut self, at: usize, body: FunctionBody) -> Option<FunctionBody> {
        let item = self.functions[at].item;
        let signature = self.functions[at].signature.clone()?;
        let ty = signature.result.clone();
        let fits = matches!(signature.params.as_slice(),
            [ParamType::Value(a), ParamType::Value(b)] if *a == ty && *b == ty);
        if !fits {
            let shown = self.type_name(&ty);
            self.report(
                Diagnostic::error(
                    codes::E0232,
                    item.name.span,
                    format!("`{}` must take two values of the type that it gives", item.name.name),
                    format!("gives `{shown}`"),
                )
                .help(format!(
                    "write `reduction {0}(a: {shown}, b: {shown}) -> {shown} from … {{ … }}`",
                    item.name.name
                )),
            );
            return None;
        }
        let count = self.program.scalar_count(&ty);
        if count > MOST_SCALARS {
            self.report(
                Diagnostic::error(
                    codes::E0234,
                    item.result.span,
                    format!(
                        "`{}` combines {count} numbers at a time, more than {MOST_SCALARS}",
                        item.name.name
                    ),
                    "too many for the registers of a thread",
                )
                .help("reduce what belongs together, and the rest by reductions of its own"),
            );
            return None;
        }
        if let Some((span, what, help)) = refused(&body) {
            self.report(
                Diagnostic::error(
                    codes::E0233,
                    span,
                    format!("a reduction cannot have {what}"),
                    format!("`{}` must be computed from its two values alone", item.name.name),
                )
                .help(help),
            );
            return None;
        }
        let identity = self.constant_of_type(&item.name, item.identity.as_ref()?, &ty);
        let (_, value) = identity?;
        let identity = constant(self, &value, &ty, item.identity.as_ref()?.span)?;
        Some(FunctionBody { identity: Some(identity), ..body })
    }
}

/// A constant of a storage type, as literals.
fn constant(checker: &Checker<'_>, value: &Value, ty: &Type, span: Span) -> Option<Expr> {
    let kind = match (value, ty) {
        (Value::Aggregate(parts), Type::Struct(id)) => {
            let fields = &checker.program.structs[*id].fields;
            let fields =
                fields.iter().zip(parts).map(|(field, part)| constant(checker, part, &field.ty, span));
            ExprKind::StructLiteral { fields: fields.collect::<Option<_>>()? }
        }
        (Value::Aggregate(parts), Type::Array(element, _)) => {
            let items = parts.iter().map(|part| constant(checker, part, element, span));
            ExprKind::ArrayLiteral(items.collect::<Option<_>>()?)
        }
        (Value::Float(value), Type::Scalar(scalar)) => ExprKind::Float(round(*value, *scalar)),
        (Value::Int(value), Type::Scalar(scalar)) => ExprKind::Int(wrap(*value, *scalar)),
        _ => literal(value, ty)?,
    };
    Some(Expr { kind, ty: types::widened(ty), span })
}

/// The first thing of a body that needs memory, or can fail: where, what it is, and what to do.
fn refused(body: &FunctionBody) -> Option<(Span, &'static str, &'static str)> {
    let mut found = None;
    let mut refuse = |span: Span, what, help| {
        found.get_or_insert((span, what, help));
    };
    let code: &Block = &body.block;
    walk_block(code, &mut |node| match node {
        Node::Stmt(Stmt { kind, span }) => match kind {
            StmtKind::Assert { .. } => {
                refuse(
                    *span,
                    "assertions",
                    "assert it of the terms, where they are computed: `let t = …; assert …`",
                );
            }
            StmtKind::DefineArray { .. } => {
                refuse(*span, "local arrays", "use variables, or a struct with a fixed array");
            }
            StmtKind::Assign { path, .. } if path.iter().any(computed) => {
                refuse(*span, SUBSCRIPT.0, SUBSCRIPT.1)
            }
            _ => {}
        },
        Node::Expr(Expr { kind, span, .. }) => match kind {
            ExprKind::Load { .. } => {
                refuse(*span, "arrays", "read elements in the term: `name(i: x[i])` gives it each of them");
            }
            ExprKind::Reduce { .. } => {
                refuse(*span, "reductions inside", "combine what its two values hold by operators and loops");
            }
            ExprKind::Project { path, .. } if path.iter().any(computed) => {
                refuse(*span, SUBSCRIPT.0, SUBSCRIPT.1)
            }
            _ => {}
        },
    });
    found
}

const SUBSCRIPT: (&str, &str) = (
    "subscripts that are computed",
    "write the subscripts of its fixed arrays as numbers: `a.v[0]`, `a.v[1]`",
);

/// Whether a step into a fixed array is by a subscript that only the device knows.
fn computed(step: &Projection) -> bool {
    matches!(step, Projection::Element { index, .. } if !matches!(index.kind, ExprKind::Int(_)))
}
