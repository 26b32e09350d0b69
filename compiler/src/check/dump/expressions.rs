//! Expressions of the dump: on one line, fully parenthesised where two operators meet.

use super::super::spell::reduction;
use super::super::types;
use super::writer::Writer;
use crate::check::typed::*;
use crate::data::Scalar;

pub(super) fn combine_name(op: CombineOp) -> &'static str {
    assignment(Some(op)).trim_end_matches('=')
}

pub(super) fn assignment(op: Option<CombineOp>) -> &'static str {
    match op {
        None => "=",
        Some(CombineOp::Add) => "+=",
        Some(CombineOp::Mul) => "*=",
        Some(CombineOp::Min) => "min=",
        Some(CombineOp::Max) => "max=",
        Some(CombineOp::And) => "&=",
        Some(CombineOp::Or) => "|=",
        Some(CombineOp::Xor) => "^=",
    }
}

fn binary(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
    }
}

fn compare(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Equal => "==",
        CompareOp::NotEqual => "!=",
        CompareOp::Less => "<",
        CompareOp::LessEqual => "<=",
        CompareOp::Greater => ">",
        CompareOp::GreaterEqual => ">=",
    }
}

impl Writer<'_> {
    pub(super) fn local(&self, id: LocalId) -> String {
        let name = &self.kernel.locals[id].name;
        match self.counts.get(name.as_str()) {
            Some(1) => name.clone(),
            _ => format!("{name}.{}", id.as_u32()),
        }
    }

    pub(super) fn axes(&self, axes: &[Axis]) -> String {
        let axes: Vec<String> = axes
            .iter()
            .map(|axis| {
                let name = &self.kernel.indices[axis.index].name;
                format!("{name} in {}..{}", self.operand(&axis.low), self.operand(&axis.high))
            })
            .collect();
        axes.join(", ")
    }

    pub(super) fn access(&self, access: &Access) -> String {
        let name = &self.kernel.arrays[access.array].name;
        if access.subscripts.is_empty() {
            return name.clone();
        }
        let subscripts: Vec<String> = access
            .subscripts
            .iter()
            .zip(&access.checks)
            .map(|(subscript, check)| format!("{}{}", self.expr(subscript), self.check(*check)))
            .collect();
        format!("{name}[{}]", subscripts.join(", "))
    }

    fn check(&self, check: BoundsCheck) -> &'static str {
        match check {
            BoundsCheck::Runtime(_) if self.options.proofs => "?",
            BoundsCheck::Guarded if self.options.proofs => "~",
            _ => "",
        }
    }

    /// `.field[index]`, from a value of this type.
    pub(super) fn path(&self, path: &[Projection], from: &Type) -> String {
        let mut out = String::new();
        let mut ty = from;
        for step in path {
            match step {
                Projection::Field(at) => {
                    let Type::Struct(id) = ty else { return out };
                    let Some(field) = self.program.structs[*id].fields.get(*at) else { return out };
                    out.push('.');
                    out.push_str(&field.name);
                    ty = &field.ty;
                }
                Projection::Element { index, check } => {
                    let Type::Array(inner, _) = ty else { return out };
                    out.push_str(&format!("[{}{}]", self.expr(index), self.check(*check)));
                    ty = inner;
                }
            }
        }
        out
    }

    /// In parentheses if it is an operation.
    pub(super) fn operand(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Binary { .. }
            | ExprKind::Compare { .. }
            | ExprKind::Logical { .. }
            | ExprKind::Cast { .. }
            | ExprKind::If { .. }
            | ExprKind::Load { otherwise: Some(_), .. } => format!("({})", self.expr(expr)),
            _ => self.expr(expr),
        }
    }

    fn list(&self, list: &[Expr]) -> String {
        let items: Vec<String> = list.iter().map(|item| self.expr(item)).collect();
        items.join(", ")
    }

    fn block_value(&self, block: &Block) -> String {
        let mut inner = Writer::new(self.program, self.kernel, self.options);
        inner.statements(&block.statements);
        let mut parts: Vec<String> = inner.out.lines().map(|line| line.trim_start().to_string()).collect();
        if let Some(value) = &block.value {
            parts.push(self.expr(value));
        }
        format!("{{ {} }}", parts.join("; "))
    }

    pub(super) fn expr(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Int(value) => match expr.ty.as_scalar() {
                Some(Scalar::I32 | Scalar::I64) => value.to_string(),
                _ => format!("{value}{}", types::name(self.program, &expr.ty)),
            },
            ExprKind::Float(value) if expr.ty == Type::F64 => format!("{value:?}f64"),
            ExprKind::Float(value) => format!("{:?}", *value as f32),
            ExprKind::Local(id) => self.local(*id),
            ExprKind::Index(id) => self.kernel.indices[*id].name.clone(),
            ExprKind::Dim(id) => self.kernel.dims[*id].name.clone(),
            ExprKind::Param(id) => self.kernel.params[*id].name.clone(),
            ExprKind::Negate(operand) => format!("-{}", self.operand(operand)),
            ExprKind::Not(operand) => format!("!{}", self.operand(operand)),
            ExprKind::Binary { op, left, right } => {
                format!("{} {} {}", self.operand(left), binary(*op), self.operand(right))
            }
            ExprKind::Compare { op, left, right } => {
                format!("{} {} {}", self.operand(left), compare(*op), self.operand(right))
            }
            ExprKind::Logical { and, left, right } => {
                format!("{} {} {}", self.operand(left), if *and { "&&" } else { "||" }, self.operand(right))
            }
            ExprKind::Cast { operand, to } => format!("{} as {to}", self.operand(operand)),
            ExprKind::Call { builtin, arguments } => format!("{}({})", builtin.name(), self.list(arguments)),
            ExprKind::If { condition, then, otherwise } => format!(
                "if {} {} else {}",
                self.expr(condition),
                self.block_value(then),
                self.block_value(otherwise)
            ),
            ExprKind::Block(block) => self.block_value(block),
            ExprKind::Load { access, path, otherwise } => {
                let text = format!(
                    "{}{}",
                    self.access(access),
                    self.path(path, &self.kernel.arrays[access.array].ty)
                );
                match otherwise {
                    Some(otherwise) => format!("{text} else {}", self.operand(otherwise)),
                    None => text,
                }
            }
            ExprKind::Project { base, path } => {
                format!("{}{}", self.operand(base), self.path(path, &base.ty))
            }
            ExprKind::StructLiteral { fields } => {
                format!("{} {{ {} }}", types::name(self.program, &expr.ty), self.list(fields))
            }
            ExprKind::ArrayLiteral(items) => format!("[{}]", self.list(items)),
            ExprKind::Reduce { op, axes, body } => {
                let word = match op {
                    Reducer::BuiltIn(op) => reduction(*op),
                    Reducer::Own(id) => self.kernel.reductions[*id].name.as_str(),
                };
                format!("{word}({}: {})", self.axes(axes), self.expr(body))
            }
        }
    }
}
