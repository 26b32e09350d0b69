//! The compiler's syntax tree in the grammar's words.

use crate::node::Node;
use krn_compiler::diagnostic::Severity;
use krn_compiler::source::{SourceFile, Span};
use krn_compiler::syntax::ast::{
    AssignOp, AxisDecl, BinaryOp, Block, Directive, DirectiveArgument, DirectiveValue, Expr, ExprKind, Ident,
    Item, Range, Stmt, StmtKind, TypeExpr, TypedName, UnaryOp,
};

/// The codes of the errors that the parser reports, or the tree where it reports none.
pub fn accepted(text: &str) -> Result<Node, Vec<&'static str>> {
    let (tree, reports) = krn_compiler::syntax::parse(&SourceFile::new("t.krn", text));
    let errors: Vec<&str> = reports
        .iter()
        .filter(|report| report.severity == Severity::Error)
        .map(|report| report.code.0)
        .collect();
    match errors.is_empty() {
        true => Ok(Node::new("source_file", 0, text.len(), tree.items.iter().map(item).collect())),
        false => Err(errors),
    }
}

fn node(kind: &str, span: Span, children: Vec<Node>) -> Node {
    Node::new(kind, span.start as usize, span.end as usize, children)
}

fn name(name: &Ident) -> Node {
    node("identifier", name.span, Vec::new())
}

fn field_name(name: &Ident) -> Node {
    node("field_identifier", name.span, Vec::new())
}

fn type_name(name: &Ident) -> Node {
    node("type_identifier", name.span, Vec::new())
}

fn item(item: &Item) -> Node {
    match item {
        Item::Struct(it) => {
            let fields = it.fields.iter().map(|field| {
                let children = vec![field_name(&field.name), ty(&field.ty)];
                node("field_declaration", field.name.span.to(field.ty.span), children)
            });
            node("struct_item", it.span, [type_name(&it.name)].into_iter().chain(fields).collect())
        }
        Item::Function(it) => {
            let mut children = vec![name(&it.name)];
            children.extend(it.params.iter().map(|param| typed("parameter", param)));
            children.push(ty(&it.result));
            children.extend(it.identity.iter().map(expr));
            children.push(block(&it.body));
            let kind = if it.identity.is_some() { "reduction_item" } else { "function_item" };
            node(kind, it.span, children)
        }
        Item::Const(it) => node("const_item", it.span, vec![name(&it.name), ty(&it.ty), expr(&it.value)]),
        Item::Static(it) => {
            let value = it.value.iter().map(expr);
            node("static_item", it.span, [name(&it.name), ty(&it.ty)].into_iter().chain(value).collect())
        }
        Item::Kernel(it) => {
            let mut children = vec![name(&it.name)];
            children.extend(it.params.iter().map(|param| {
                let inout = param.inout.map(|span| node("inout", span, Vec::new()));
                let parts = [name(&param.name)].into_iter().chain(inout).chain([ty(&param.ty)]);
                node("parameter", param.name.span.to(param.ty.span), parts.collect())
            }));
            children.extend(it.results.iter().map(|result| typed("result", result)));
            children.extend(it.facts.iter().map(expr));
            children.push(block(&it.body));
            node("kernel_item", it.span, children)
        }
        Item::Schedule(it) => {
            let mut children: Vec<Node> = it.kernel.iter().chain(&it.target).map(name).collect();
            children.extend(it.conditions.iter().map(expr));
            children.extend(it.directives.iter().map(directive));
            node("schedule_item", it.span, children)
        }
    }
}

fn typed(kind: &str, it: &TypedName) -> Node {
    node(kind, it.name.span.to(it.ty.span), vec![name(&it.name), ty(&it.ty)])
}

fn ty(it: &TypeExpr) -> Node {
    match &it.extents {
        None => type_name(&it.name),
        Some(extents) => {
            let children = [type_name(&it.name)].into_iter().chain(extents.iter().map(expr));
            node("array_type", it.span, children.collect())
        }
    }
}

fn directive(it: &Directive) -> Node {
    let arguments = it.arguments.iter().map(directive_argument);
    node("directive", it.span, [name(&it.name)].into_iter().chain(arguments).collect())
}

fn directive_argument(it: &DirectiveArgument) -> Node {
    let mut children = vec![directive_value(&it.subject)];
    children.extend(it.value.iter().map(directive_value));
    children.extend(it.modifiers.iter().map(|(word, number)| {
        let number: Vec<Node> = number.iter().map(directive_value).collect();
        let end = number.first().map_or(word.span, |number| Span::new(word.span.start, number.end as u32));
        node("modifier", end, [name(word)].into_iter().chain(number).collect())
    }));
    node("directive_argument", it.span, children)
}

fn directive_value(value: &DirectiveValue) -> Node {
    match value {
        DirectiveValue::Name(it) => name(it),
        DirectiveValue::Number(_, span) => node("integer_literal", *span, Vec::new()),
        DirectiveValue::Call(it, _, span) => node("directive_call", *span, vec![name(it)]),
    }
}

fn block(it: &Block) -> Node {
    let children = it.statements.iter().map(statement).chain(it.value.iter().map(|value| expr(value)));
    node("block", it.span, children.collect())
}

/// What stands behind an `else`: a block, or the `if` that is the whole of it.
fn otherwise(it: &Block) -> Node {
    match (it.statements.as_slice(), &it.value) {
        ([], Some(value)) if value.span == it.span && matches!(value.kind, ExprKind::If { .. }) => {
            expr(value)
        }
        ([only], None) if only.span == it.span => statement(only),
        _ => block(it),
    }
}

fn statement(it: &Stmt) -> Node {
    let (kind, children) = match &it.kind {
        StmtKind::Let { mutable, name: new, axes, ty: given, value } => {
            let mut children = vec![name(new)];
            children.extend(axes.iter().flatten().map(axis));
            children.extend(given.iter().map(ty));
            children.push(expr(value));
            (if *mutable { "var" } else { "let" }, children)
        }
        StmtKind::Assign { target, op, op_span, value } => {
            ("assignment", vec![expr(target), node(assign(*op), *op_span, Vec::new()), expr(value)])
        }
        StmtKind::Forall { axes, body } => {
            ("forall_statement", axes.iter().map(axis).chain([block(body)]).collect())
        }
        StmtKind::For { name: new, range: over, step, body } => {
            let children = [name(new), range(over)].into_iter().chain(step.iter().map(expr));
            ("for_statement", children.chain([block(body)]).collect())
        }
        StmtKind::While { condition, body } => ("while_statement", vec![expr(condition), block(body)]),
        StmtKind::Break => ("break_statement", Vec::new()),
        StmtKind::Assert { condition } => ("assert_statement", vec![expr(condition)]),
        StmtKind::Print { operands } => ("print_statement", operands.iter().map(expr).collect()),
        StmtKind::If { condition, then, otherwise: last } => {
            let children = [expr(condition), block(then)].into_iter().chain(last.iter().map(otherwise));
            ("if", children.collect())
        }
        StmtKind::Error => ("ERROR", Vec::new()),
    };
    node(kind, it.span, children)
}

fn axis(it: &AxisDecl) -> Node {
    let span = it.range.as_ref().map_or(it.name.span, |range| it.name.span.to(range.span));
    node("axis", span, [name(&it.name)].into_iter().chain(it.range.iter().map(range)).collect())
}

fn range(it: &Range) -> Node {
    let children = it.low.iter().chain([&it.high]).map(expr).collect();
    node(if it.inclusive { "range ..=" } else { "range" }, it.span, children)
}

fn expr(it: &Expr) -> Node {
    let (kind, children) = match &it.kind {
        ExprKind::Int { .. } => ("integer_literal", Vec::new()),
        ExprKind::Float { .. } => ("float_literal", Vec::new()),
        ExprKind::Bool(_) => ("boolean_literal", Vec::new()),
        ExprKind::Name(_) => ("identifier", Vec::new()),
        ExprKind::Unary { op: UnaryOp::Negate, operand } => ("unary -", vec![expr(operand)]),
        ExprKind::Unary { op: UnaryOp::Not, operand } => ("unary !", vec![expr(operand)]),
        ExprKind::Binary { op, op_span, left, right } => {
            ("binary_expression", vec![expr(left), node(binary(*op), *op_span, Vec::new()), expr(right)])
        }
        ExprKind::Cast { operand, ty: target } => ("cast_expression", vec![expr(operand), ty(target)]),
        ExprKind::Call { callee, arguments } => {
            ("call_expression", [name(callee)].into_iter().chain(arguments.iter().map(expr)).collect())
        }
        ExprKind::Reduce { word, axes, body, .. } => {
            let operator = node("reduction_operator", word.span, Vec::new());
            ("reduction", [operator].into_iter().chain(axes.iter().map(axis)).chain([expr(body)]).collect())
        }
        ExprKind::Index { base, subscripts } => {
            ("index_expression", [expr(base)].into_iter().chain(subscripts.iter().map(expr)).collect())
        }
        ExprKind::Ranged { name: bound, range: over } => ("ranged", vec![name(bound), range(over)]),
        ExprKind::Guarded { access, otherwise } => {
            ("guarded_expression", vec![expr(access), expr(otherwise)])
        }
        ExprKind::Field { base, field } => ("field_expression", vec![expr(base), field_name(field)]),
        ExprKind::StructLiteral { name: of, fields } => {
            let fields = fields.iter().map(|(field, value)| {
                node("field_initializer", field.span.to(value.span), vec![field_name(field), expr(value)])
            });
            ("struct_expression", [type_name(of)].into_iter().chain(fields).collect())
        }
        ExprKind::ArrayLiteral(parts) => ("array_expression", parts.iter().map(expr).collect()),
        ExprKind::If { condition, then, otherwise: last } => {
            ("if", vec![expr(condition), block(then), otherwise(last)])
        }
        ExprKind::Block(inner) => {
            // In parentheses it takes them in, as every expression does.
            return Node { start: it.span.start as usize, end: it.span.end as usize, ..block(inner) };
        }
        ExprKind::Error => ("ERROR", Vec::new()),
    };
    // The name within is where the parentheses are not.
    node(kind, it.span, children)
}

fn assign(op: AssignOp) -> &'static str {
    match op {
        AssignOp::Set => "=",
        AssignOp::Add => "+=",
        AssignOp::Sub => "-=",
        AssignOp::Mul => "*=",
        AssignOp::Div => "/=",
        AssignOp::Rem => "%=",
        AssignOp::Shl => "<<=",
        AssignOp::Shr => ">>=",
        AssignOp::Min => "min=",
        AssignOp::Max => "max=",
        AssignOp::And => "&=",
        AssignOp::Or => "|=",
        AssignOp::Xor => "^=",
    }
}

fn binary(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
        BinaryOp::Less => "<",
        BinaryOp::LessEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterEqual => ">=",
    }
}
