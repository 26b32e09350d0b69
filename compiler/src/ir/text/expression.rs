//! Host expressions in text: operators between parentheses, `min(a, b)`, `max(a, b)`, `ceildiv(a, b)`, `neg(a)`,
//! `not(a)`. There is no precedence: a nested operation stands in parentheses.

use super::cursor::Parser;
use super::error::ParseError;
use super::lexer::Token;
use crate::manifest::{BinaryOp, Expr, UnaryOp};

const OPERATORS: [(BinaryOp, &str); 13] = [
    (BinaryOp::Add, "+"),
    (BinaryOp::Sub, "-"),
    (BinaryOp::Mul, "*"),
    (BinaryOp::Div, "/"),
    (BinaryOp::Rem, "%"),
    (BinaryOp::Equal, "=="),
    (BinaryOp::NotEqual, "!="),
    (BinaryOp::Less, "<"),
    (BinaryOp::LessEqual, "<="),
    (BinaryOp::Greater, ">"),
    (BinaryOp::GreaterEqual, ">="),
    (BinaryOp::And, "&&"),
    (BinaryOp::Or, "||"),
];

const FUNCTIONS: [(BinaryOp, &str); 3] =
    [(BinaryOp::CeilDiv, "ceildiv"), (BinaryOp::Min, "min"), (BinaryOp::Max, "max")];

/// The text of a host expression.
pub fn print_expression(expr: &Expr) -> String {
    let nested = |expr: &Expr| match expr {
        Expr::Binary(op, ..) if OPERATORS.iter().any(|(known, _)| known == op) => {
            format!("({})", print_expression(expr))
        }
        _ => print_expression(expr),
    };
    match expr {
        Expr::Int(value) => value.to_string(),
        Expr::Float(value) => format!("{value:?}"),
        Expr::Bool(value) => value.to_string(),
        Expr::Symbol(index) => format!("sym{index}"),
        Expr::Unary(UnaryOp::Negate, operand) => format!("neg({})", print_expression(operand)),
        Expr::Unary(UnaryOp::Not, operand) => format!("not({})", print_expression(operand)),
        Expr::Binary(op, left, right) => {
            if let Some((_, name)) = FUNCTIONS.iter().find(|(known, _)| known == op) {
                return format!("{name}({}, {})", print_expression(left), print_expression(right));
            }
            let sign = OPERATORS.iter().find(|(known, _)| known == op).map_or("?", |(_, sign)| sign);
            format!("{} {sign} {}", nested(left), nested(right))
        }
    }
}

impl Parser<'_> {
    /// One operand, or two with an operator between them.
    pub fn expression(&mut self) -> Result<Expr, ParseError> {
        self.nested(|parser| {
            let left = parser.expression_operand()?;
            let Some((op, _)) = OPERATORS.iter().find(|(_, sign)| *parser.peek() == Token::Mark(sign)) else {
                return Ok(left);
            };
            parser.advance();
            let right = parser.expression_operand()?;
            Ok(Expr::binary(*op, left, right))
        })
    }

    fn expression_operand(&mut self) -> Result<Expr, ParseError> {
        if self.take("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if let Token::Word(word) = *self.peek() {
            let unary = match word {
                "neg" => Some(UnaryOp::Negate),
                "not" => Some(UnaryOp::Not),
                _ => None,
            };
            let binary = FUNCTIONS.iter().find(|(_, name)| *name == word).map(|(op, _)| *op);
            if unary.is_some() || binary.is_some() {
                self.advance();
                self.expect("(")?;
                let left = self.expression()?;
                let expr = match (unary, binary) {
                    (Some(op), _) => Expr::Unary(op, left.into()),
                    (None, Some(op)) => {
                        self.expect(",")?;
                        Expr::binary(op, left, self.expression()?)
                    }
                    (None, None) => left,
                };
                self.expect(")")?;
                return Ok(expr);
            }
            if word == "true" || word == "false" {
                self.advance();
                return Ok(Expr::Bool(word == "true"));
            }
            if word.starts_with("sym") {
                return Ok(Expr::Symbol(self.numbered("sym")? as usize));
            }
        }
        let offset = self.offset();
        let negative = self.take("-");
        let float = |value: f64| Expr::Float(if negative { -value } else { value });
        match *self.peek() {
            Token::Int(value) => {
                self.advance();
                let value = if negative { -value } else { value };
                i64::try_from(value)
                    .map(Expr::Int)
                    .map_err(|_| self.error_at(offset, "an integer beyond 64 bits"))
            }
            Token::Float(value, _) => {
                self.advance();
                Ok(float(value))
            }
            Token::Word("inf") => {
                self.advance();
                Ok(float(f64::INFINITY))
            }
            Token::Word("NaN") => {
                self.advance();
                Ok(float(f64::NAN))
            }
            _ => Err(self.unexpected("an expression")),
        }
    }
}
