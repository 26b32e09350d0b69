//! W0612: a loop adds floats up one after another, which a reduction may do in any order.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::subject::Modelled;
use crate::diagnostic::codes;
use crate::source::{SourceFile, Span};
use crate::syntax::ast::{AssignOp, BinaryOp, Block, Expr, ExprKind, Item, Range, Stmt, StmtKind};
use crate::syntax::parse_alone;

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let (source, name) = (modelled.source, &modelled.kernel.name);
    let (file, _) = parse_alone(source, name);
    let kernel = file.items.iter().find_map(|item| match item {
        Item::Kernel(kernel) if kernel.name.name == *name => Some(kernel),
        _ => None,
    });
    let mut found = Vec::new();
    if let Some(kernel) = kernel {
        block(source, &kernel.body, &mut found);
    }
    found
}

/// The loops of a block that are reductions, outermost first.
fn block(source: &SourceFile, of: &Block, found: &mut Vec<Finding>) {
    for statement in &of.statements {
        match &statement.kind {
            StmtKind::For { body, .. } => match finding(source, statement) {
                Some(finding) => found.push(finding),
                None => block(source, body, found),
            },
            StmtKind::Forall { body, .. } | StmtKind::While { body, .. } => block(source, body, found),
            StmtKind::If { then, otherwise, .. } => {
                block(source, then, found);
                if let Some(otherwise) = otherwise {
                    block(source, otherwise, found);
                }
            }
            _ => {}
        }
    }
}

/// What a loop does to a variable.
struct Sum<'s> {
    /// `s`, or `s[i, 0]`
    variable: &'s str,
    is_product: bool,
    /// `j in 0..c`, of each loop.
    axes: Vec<String>,
    /// `x[i, j]`
    term: String,
    /// Whether the terms are one literal: a count, which would be shared as it is.
    is_count: bool,
}

impl Sum<'_> {
    /// The name of the variable, or of the array of which it is an element.
    fn base(&self) -> &str {
        self.variable.split('[').next().unwrap_or(self.variable).trim_end()
    }

    /// Which element it is.
    fn subscripts(&self) -> &str {
        &self.variable[self.base().len()..]
    }

    /// What changes no sum, or no product, of such terms.
    fn nothing(&self) -> &'static str {
        match (self.is_count, self.is_product) {
            (true, false) => "0",
            (true, true) => "1",
            (false, false) => "0.0",
            (false, true) => "1.0",
        }
    }
}

fn finding(source: &SourceFile, statement: &Stmt) -> Option<Finding> {
    let StmtKind::For { name, range, .. } = &statement.kind else { return None };
    let sums = sums(source, statement)?;
    let lines = sums.iter().map(|sum| {
        let (op, reduction) = if sum.is_product { ("*=", "prod") } else { ("+=", "sum") };
        format!("{} {op} {reduction}({}: {})", sum.variable, sum.axes.join(", "), sum.term)
    });
    let text = lines.collect::<Vec<_>>().join("; ");
    let first = sums.iter().find(|sum| !sum.is_count).or(sums.first())?;
    let verb = if first.is_product { "multiplied" } else { "added up" };
    Some(Finding {
        code: codes::W0612,
        place: statement.span,
        span: Span::new(statement.span.start, range.span.end),
        about: name.name.clone(),
        message: format!(
            "the terms of `{}` are {verb} one after another, in the order of `{}`",
            first.variable, name.name
        ),
        label: "one thread runs the whole loop, so that its roundings are those of this order".to_string(),
        notes: Vec::new(),
        proposals: vec![Proposal::Rewrite {
            span: statement.span,
            advice: format!("if any order of the terms will do, write `{text}`"),
            text,
        }],
        gain: Gain::Whole,
    })
}

/// The sums that a loop is, where it is nothing else.
fn sums<'s>(source: &'s SourceFile, statement: &'s Stmt) -> Option<Vec<Sum<'s>>> {
    let StmtKind::For { name, range, step: None, body } = &statement.kind else { return None };
    if body.value.is_some() {
        return None;
    }
    let axis = format!("{} in {}", name.name, spelled(source, range));
    if let [inner] = &body.statements[..]
        && matches!(inner.kind, StmtKind::For { .. })
    {
        let mut sums = sums(source, inner)?;
        sums.iter_mut().for_each(|sum| sum.axes.insert(0, axis.clone()));
        return (!sums.iter().any(|sum| mentions(sum.subscripts(), &name.name))).then_some(sums);
    }
    let mut sums = terms(source, &body.statements)?;
    sums.iter_mut().for_each(|sum| sum.axes.push(axis.clone()));
    // No term looks at a sum, and each has one.
    let looks = |sum: &Sum<'_>| sums.iter().any(|other| mentions(&sum.term, other.base()));
    // An element stays the same one in all rounds.
    let moves = |sum: &Sum<'_>| {
        let mut own = declared(source, &body.statements);
        mentions(sum.subscripts(), &name.name) || own.any(|own| mentions(sum.subscripts(), own))
    };
    let again = (1..sums.len()).any(|at| sums[..at].iter().any(|sum| sum.variable == sums[at].variable));
    let is_plain = sums.iter().all(|sum| !sum.term.contains('\n') && !sum.term.contains("//"));
    (!sums.is_empty() && !sums.iter().any(looks) && !sums.iter().any(moves) && !again && is_plain)
        .then_some(sums)
}

/// The names that statements bind.
fn declared<'s>(source: &'s SourceFile, statements: &'s [Stmt]) -> impl Iterator<Item = &'s str> {
    statements.iter().filter_map(|statement| match &statement.kind {
        StmtKind::Let { name, .. } => Some(source.slice(name.span)),
        _ => None,
    })
}

/// The sums of a loop's statements, or of those behind a condition: that contributes nothing where it does not hold.
fn terms<'s>(source: &'s SourceFile, statements: &'s [Stmt]) -> Option<Vec<Sum<'s>>> {
    let is_let =
        |statement: &&Stmt| matches!(statement.kind, StmtKind::Let { mutable: false, axes: None, .. });
    let lets = statements.iter().take_while(is_let).count();
    let (lets, rest) = statements.split_at(lets);
    let named: Vec<&str> = lets.iter().map(|statement| source.slice(statement.span)).collect();
    let mut sums = Vec::new();
    for statement in rest {
        match &statement.kind {
            StmtKind::If { condition, then, otherwise } => {
                let condition = source.slice(condition.span);
                let sides = [Some(then), otherwise.as_ref()].into_iter().flatten();
                for (at, side) in sides.enumerate() {
                    if side.value.is_some() {
                        return None;
                    }
                    for sum in terms(source, &side.statements)? {
                        let (term, nothing) = (sum.term.as_str(), sum.nothing());
                        let (then, otherwise) = if at == 0 { (term, nothing) } else { (nothing, term) };
                        let term = format!("if {condition} {{ {then} }} else {{ {otherwise} }}");
                        sums.push(Sum { term, ..sum });
                    }
                }
            }
            _ => {
                let (variable, is_product, term) = accumulated(source, statement)?;
                let term = source.slice(term.span).to_string();
                let is_count = term.parse::<u64>().is_ok();
                sums.push(Sum { variable, is_product, axes: Vec::new(), term, is_count });
            }
        }
    }
    if !named.is_empty() {
        sums.iter_mut().for_each(|sum| sum.term = format!("{{ {}; {} }}", named.join("; "), sum.term));
    }
    Some(sums)
}

/// `s += term`, `s = s + term`, and the same of products; of an element of an array, too.
fn accumulated<'s>(source: &'s SourceFile, statement: &'s Stmt) -> Option<(&'s str, bool, &'s Expr)> {
    let StmtKind::Assign { target, op, value, .. } = &statement.kind else { return None };
    let is_place = |expr: &Expr| matches!(expr.kind, ExprKind::Name(_) | ExprKind::Index { .. });
    let variable = Some(source.slice(target.span)).filter(|_| is_place(target))?;
    let is_own = |expr: &Expr| is_place(expr) && source.slice(expr.span) == variable;
    match (op, &value.kind) {
        (AssignOp::Add, _) => Some((variable, false, value)),
        (AssignOp::Mul, _) => Some((variable, true, value)),
        (AssignOp::Set, ExprKind::Binary { op, left, right, .. }) => {
            let is_product = match op {
                BinaryOp::Add => false,
                BinaryOp::Mul => true,
                _ => return None,
            };
            let term = if is_own(left) { right } else { Some(left).filter(|_| is_own(right))? };
            Some((variable, is_product, &**term))
        }
        _ => None,
    }
}

fn spelled(source: &SourceFile, range: &Range) -> String {
    source.slice(range.span).trim().to_string()
}

/// Whether a name stands in a text as a word.
fn mentions(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(|c| is_word(c) || c == '.') && !text[at + name.len()..].starts_with(is_word)
    })
}
