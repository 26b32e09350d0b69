//! Conditions over a kernel's symbols, in words.

use super::{BinaryOp, Expr, Guard, UnaryOp};

impl Guard {
    /// `m % 4 == 0 and n < 1024`, by the names of the symbols.
    pub fn in_words(&self, symbols: &[&str]) -> String {
        let word = |condition: &Expr| match condition {
            Expr::Binary(BinaryOp::Or, ..) => nested(condition, symbols),
            condition => condition.in_words(symbols),
        };
        let words: Vec<String> = self.conditions().map(word).collect();
        if words.is_empty() { "all sizes".to_string() } else { words.join(" and ") }
    }
}

impl Expr {
    /// As somebody would write it, by the names of the symbols.
    pub fn in_words(&self, symbols: &[&str]) -> String {
        expression(self, symbols)
    }
}

fn expression(expr: &Expr, symbols: &[&str]) -> String {
    match expr {
        Expr::Int(value) => value.to_string(),
        Expr::Float(value) => format!("{value:?}"),
        Expr::Bool(value) => value.to_string(),
        Expr::Symbol(symbol) => symbols.get(*symbol).copied().unwrap_or("?").to_string(),
        Expr::Unary(UnaryOp::Negate, operand) => format!("-{}", nested(operand, symbols)),
        Expr::Unary(UnaryOp::Not, operand) => format!("not {}", nested(operand, symbols)),
        Expr::Binary(op, left, right) => {
            let function =
                |name: &str| format!("{name}({}, {})", expression(left, symbols), expression(right, symbols));
            let sign = match op {
                BinaryOp::CeilDiv => return function("ceildiv"),
                BinaryOp::Min => return function("min"),
                BinaryOp::Max => return function("max"),
                BinaryOp::Add => "+",
                BinaryOp::Sub => "-",
                BinaryOp::Mul => "*",
                BinaryOp::Div => "/",
                BinaryOp::Rem => "%",
                BinaryOp::Equal => "==",
                BinaryOp::NotEqual => "!=",
                BinaryOp::Less => "<",
                BinaryOp::LessEqual => "<=",
                BinaryOp::Greater => ">",
                BinaryOp::GreaterEqual => ">=",
                BinaryOp::And => "and",
                BinaryOp::Or => "or",
            };
            // A comparison's operands are sums and products: they bind more tightly.
            let compares = matches!(sign, "==" | "!=" | "<" | "<=" | ">" | ">=");
            let side = |expr: &Expr| match expr {
                Expr::Binary(inner, ..) if compares && !is_condition(*inner) => expression(expr, symbols),
                expr => nested(expr, symbols),
            };
            format!("{} {sign} {}", side(left), side(right))
        }
    }
}

/// Between parentheses, where it could be misread without.
fn nested(expr: &Expr, symbols: &[&str]) -> String {
    let alone = match expr {
        Expr::Binary(BinaryOp::CeilDiv | BinaryOp::Min | BinaryOp::Max, ..) => true,
        Expr::Binary(..) => false,
        _ => true,
    };
    if alone { expression(expr, symbols) } else { format!("({})", expression(expr, symbols)) }
}

fn is_condition(op: BinaryOp) -> bool {
    use BinaryOp::{And, Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual, Or};
    matches!(op, And | Equal | Greater | GreaterEqual | Less | LessEqual | NotEqual | Or)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_read_as_they_would_be_written() {
        let symbols = ["m", "n"];
        let (m, n) = (Expr::Symbol(0), Expr::Symbol(1));
        let multiple = Expr::binary(BinaryOp::Rem, m.clone(), Expr::Int(4));
        let even = Expr::binary(BinaryOp::Equal, multiple, Expr::Int(0));
        let least = Expr::binary(BinaryOp::Min, m, n.clone());
        let small = Expr::binary(BinaryOp::Less, least, Expr::Int(64));
        let either = Expr::binary(BinaryOp::Or, even.clone(), small.clone());
        let not = Expr::Unary(UnaryOp::Not, either.clone().into());
        assert_eq!(even.in_words(&symbols), "m % 4 == 0");
        assert_eq!(not.in_words(&symbols), "not ((m % 4 == 0) or (min(m, n) < 64))");
        let words =
            |relies_on: Vec<Expr>, chosen_by: Vec<Expr>| Guard { relies_on, chosen_by }.in_words(&symbols);
        assert_eq!(words(Vec::new(), Vec::new()), "all sizes");
        assert_eq!(words(vec![even], vec![small]), "m % 4 == 0 and min(m, n) < 64");
        let negative = Expr::Unary(UnaryOp::Negate, n.into());
        assert_eq!(negative.in_words(&symbols), "-n");
    }
}
