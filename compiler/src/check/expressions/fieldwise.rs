//! Operators on structs of numbers: `+`, `-` and the sign go field by field, `*` and `/` by a number. They are written
//! out here: a `let` an operand, then a literal whose fields have the operator.

use super::super::elaborator::{Elaborator, int64, local_value, narrow_scalar};
use super::super::evaluate::evaluate;
use super::super::typed::{
    BinaryOp, Block, BoundsCheck, Expr, ExprKind, Projection, Stmt, StmtKind, StructId, Type,
};
use super::super::types;
use crate::data::Scalar;
use crate::source::Span;

impl<'c, 'a> Elaborator<'c, 'a> {
    /// Whether all that the struct holds are numbers.
    pub fn is_struct_of_numbers(&self, ty: &Type) -> bool {
        matches!(ty, Type::Struct(_)) && types::is_numeric(&self.checker.program, ty)
    }

    /// The one type in which all numbers of a struct are computed; `None` where they differ.
    pub fn one_number_type(&self, ty: &Type) -> Option<Scalar> {
        let mut found = None;
        self.every_scalar(ty, &mut |scalar| {
            let scalar = scalar.widened();
            *found.get_or_insert(scalar) == scalar
        });
        let all_alike = self.every_scalar(ty, &mut |scalar| Some(scalar.widened()) == found);
        found.filter(|scalar| all_alike && *scalar != Scalar::Bool)
    }

    /// Whether `holds` is true of every scalar in a type.
    pub fn every_scalar(&self, ty: &Type, holds: &mut dyn FnMut(Scalar) -> bool) -> bool {
        match ty {
            Type::Scalar(scalar) => holds(*scalar),
            Type::Array(element, _) => self.every_scalar(element, holds),
            Type::Struct(id) => self.fields_of(*id).iter().all(|field| self.every_scalar(&field.ty, holds)),
        }
    }

    /// The value with its sign turned, field by field for a struct.
    pub fn negated(&mut self, value: Expr) -> Expr {
        let span = value.span;
        self.fieldwise(vec![value], span, &mut |elaborator, mut parts| {
            let part = parts.remove(0);
            let ty = part.ty.clone();
            elaborator.make(ExprKind::Negate(Box::new(part)), ty, span)
        })
    }

    /// `left op right` of two structs of one type, or of two scalars.
    pub fn binary_fieldwise(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        self.fieldwise(vec![left, right], span, &mut |elaborator, mut parts| {
            let (right, left) = (parts.remove(1), parts.remove(0));
            elaborator.operation(op, left, right, span)
        })
    }

    /// `left op right` of a struct and a number, which is the left one where `number_first` says so.
    pub fn scaled(
        &mut self,
        op: BinaryOp,
        structure: Expr,
        number: Expr,
        number_first: bool,
        span: Span,
    ) -> Expr {
        let ty = structure.ty.clone();
        let mut statements = Vec::with_capacity(2);
        // In the order in which they are written.
        let (number, structure) = if number_first {
            let number = self.named_once(number, &mut statements);
            (number, self.named_once(structure, &mut statements))
        } else {
            let structure = self.named_once(structure, &mut statements);
            (self.named_once(number, &mut statements), structure)
        };
        let value = self.fieldwise(vec![structure], span, &mut |elaborator, mut parts| {
            let (part, number) = (parts.remove(0), number.clone());
            let (left, right) = if number_first { (number, part) } else { (part, number) };
            elaborator.operation(op, left, right, span)
        });
        self.block_of(statements, value, ty, span)
    }

    /// A struct of this type whose numbers are all `number`.
    pub fn filled_with(&mut self, ty: &Type, number: Expr) -> Expr {
        let span = number.span;
        let mut statements = Vec::with_capacity(1);
        let number = self.named_once(number, &mut statements);
        let value = self.part_of_each(ty, &[], span, &mut |_, _| number.clone());
        self.block_of(statements, value, ty.clone(), span)
    }

    fn operation(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let ty = left.ty.clone();
        self.make(ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }, ty, span)
    }

    /// What `make` makes of the scalars of values of one type, which stand at the same place in each.
    fn fieldwise(
        &mut self,
        values: Vec<Expr>,
        span: Span,
        make: &mut dyn FnMut(&mut Self, Vec<Expr>) -> Expr,
    ) -> Expr {
        let Some(ty) = values.first().map(|value| value.ty.clone()) else {
            return make(self, values);
        };
        if ty.as_scalar().is_some() {
            return make(self, values);
        }
        let mut statements = Vec::with_capacity(values.len());
        let bases: Vec<Expr> =
            values.into_iter().map(|value| self.named_once(value, &mut statements)).collect();
        let value = self.part_of_each(&ty, &bases, span, make);
        self.block_of(statements, value, ty, span)
    }

    fn block_of(&mut self, statements: Vec<Stmt>, value: Expr, ty: Type, span: Span) -> Expr {
        if statements.is_empty() {
            return value;
        }
        self.make(ExprKind::Block(Block { statements, value: Some(Box::new(value)) }), ty, span)
    }

    /// A value that may be written several times: a new name for it, or the value itself where it is constant. The
    /// statements of a block come before it, so that a long sum does not become a deep one.
    fn named_once(&mut self, value: Expr, statements: &mut Vec<Stmt>) -> Expr {
        if evaluate(&value).is_some() {
            return value;
        }
        let (ty, span) = (value.ty.clone(), value.span);
        let value = match value.kind {
            ExprKind::Block(Block { statements: inner, value: Some(value) }) => {
                statements.extend(inner);
                return self.named_once(*value, statements);
            }
            // Field by field, so that a product of one operator stays one where the next one adds to it.
            ExprKind::StructLiteral { fields } => {
                let fields = fields.into_iter().map(|field| self.named_once(field, statements)).collect();
                return Expr { kind: ExprKind::StructLiteral { fields }, ty, span };
            }
            ExprKind::ArrayLiteral(items) => {
                let items = items.into_iter().map(|item| self.named_once(item, statements)).collect();
                return Expr { kind: ExprKind::ArrayLiteral(items), ty, span };
            }
            kind => Expr { kind, ty: ty.clone(), span },
        };
        let local = self.new_local("operand", types::widened(&ty), false, span);
        statements.push(Stmt { kind: StmtKind::Let { local, value }, span });
        local_value(local, &ty, span)
    }

    /// The value of storage type `ty` whose scalars are made of those of `bases`.
    fn part_of_each(
        &mut self,
        ty: &Type,
        bases: &[Expr],
        span: Span,
        make: &mut dyn FnMut(&mut Self, Vec<Expr>) -> Expr,
    ) -> Expr {
        match ty {
            Type::Scalar(_) => make(self, bases.to_vec()),
            Type::Struct(id) => {
                let types: Vec<Type> = self.fields_of(*id).iter().map(|field| field.ty.clone()).collect();
                let mut fields = Vec::with_capacity(types.len());
                for (at, field) in types.iter().enumerate() {
                    let parts: Vec<Expr> =
                        bases.iter().map(|base| self.part(base, Projection::Field(at), field)).collect();
                    fields.push(self.part_of_each(field, &parts, span, make));
                }
                self.make(ExprKind::StructLiteral { fields }, ty.clone(), span)
            }
            Type::Array(element, extent) => {
                let mut items = Vec::with_capacity(*extent as usize);
                for at in 0..*extent {
                    let step = || Projection::Element {
                        index: int64(i128::from(at), span),
                        check: BoundsCheck::Proved,
                    };
                    let parts: Vec<Expr> =
                        bases.iter().map(|base| self.part(base, step(), element)).collect();
                    items.push(self.part_of_each(element, &parts, span, make));
                }
                self.make(ExprKind::ArrayLiteral(items), ty.clone(), span)
            }
        }
    }

    /// One step into a value: a longer path, or what a literal has there.
    fn part(&mut self, base: &Expr, step: Projection, storage: &Type) -> Expr {
        let written = match (&base.kind, &step) {
            (ExprKind::StructLiteral { fields }, Projection::Field(at)) => fields.get(*at),
            (ExprKind::ArrayLiteral(items), Projection::Element { index, .. }) => evaluate(index)
                .and_then(|at| at.as_int())
                .and_then(|at| usize::try_from(at).ok())
                .and_then(|at| items.get(at)),
            _ => None,
        };
        if let Some(part) = written.cloned() {
            return self.narrowed(part, narrow_scalar(storage));
        }
        let (base, path) = match &base.kind {
            ExprKind::Project { base, path } => (base.clone(), path.iter().cloned().chain([step]).collect()),
            _ => (Box::new(base.clone()), vec![step]),
        };
        let span = base.span;
        self.make(ExprKind::Project { base, path }, types::widened(storage), span)
    }

    fn fields_of(&self, id: StructId) -> &[super::super::typed::StructField] {
        &self.checker.program.structs[id].fields
    }
}
