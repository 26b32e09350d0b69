//! Operands as they are written, before an instruction says what they must be.

use super::cursor::Parser;
use super::entry::{Named, Scope};
use super::error::{ParseError, Place, Result};
use super::lexer::Kind;
use super::number::Literal;
use crate::ptx::operand::{Address, Base, Operand, PredOperand, Reg, SpecialReg};

/// An operand as it is written.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Raw<'t> {
    pub place: Place,
    pub form: Form<'t>,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Form<'t> {
    /// A name, possibly with an offset behind it.
    Name(&'t str, i64),
    Literal(Literal),
    /// `a|b`
    Pair(&'t str, &'t str),
    /// `!a`
    Not(&'t str),
    Address(Option<&'t str>, i64),
    Vector(Vec<Raw<'t>>),
}

impl<'t> Parser<'t> {
    /// The operands up to the semicolon, which stays.
    pub(super) fn operands(&mut self) -> Result<Vec<Raw<'t>>> {
        let mut operands = Vec::new();
        if self.peek().is_some_and(|token| token.kind == Kind::Mark(b';')) {
            return Ok(operands);
        }
        loop {
            operands.push(self.raw()?);
            if !self.mark(b',') {
                return Ok(operands);
            }
        }
    }

    fn raw(&mut self) -> Result<Raw<'t>> {
        let place = self.place();
        let form = if self.mark(b'[') {
            self.raw_address()?
        } else if self.mark(b'{') {
            let mut parts = Vec::new();
            loop {
                parts.push(self.simple()?);
                if !self.mark(b',') {
                    break;
                }
            }
            self.expect_mark(b'}')?;
            Form::Vector(parts)
        } else {
            return self.simple();
        };
        Ok(Raw { place, form })
    }

    /// An operand that is neither an address nor a vector.
    fn simple(&mut self) -> Result<Raw<'t>> {
        let place = self.place();
        let form = if self.mark(b'!') {
            Form::Not(self.identifier("a predicate")?)
        } else if self.at_literal() {
            Form::Literal(self.literal()?)
        } else {
            let name = self.name()?;
            if self.mark(b'|') { Form::Pair(name, self.name()?) } else { Form::Name(name, self.offset()?) }
        };
        Ok(Raw { place, form })
    }

    fn name(&mut self) -> Result<&'t str> {
        match self.peek() {
            Some(token) if token.kind == Kind::Word && !token.text.starts_with('.') => {
                self.at += 1;
                Ok(token.text)
            }
            _ => self.expected("an operand"),
        }
    }

    fn offset(&mut self) -> Result<i64> {
        if !self.peek().is_some_and(|token| matches!(token.kind, Kind::Mark(b'+' | b'-'))) {
            return Ok(0);
        }
        // `[%a + -4]`, as some write it.
        let signs = self.tokens.get(self.at + 1).is_some_and(|token| token.kind == Kind::Mark(b'-'));
        if signs {
            self.mark(b'+');
        }
        let place = self.place();
        match self.literal()? {
            Literal::Int(value) => Ok(value),
            _ => Err(ParseError::at(place, "an offset is an integer".to_owned())),
        }
    }

    fn raw_address(&mut self) -> Result<Form<'t>> {
        let form = if self.at_literal() {
            Form::Address(None, self.offset_literal()?)
        } else {
            let name = self.name()?;
            Form::Address(Some(name), self.offset()?)
        };
        self.expect_mark(b']')?;
        Ok(form)
    }

    fn offset_literal(&mut self) -> Result<i64> {
        let place = self.place();
        match self.literal()? {
            Literal::Int(value) => Ok(value),
            _ => Err(ParseError::at(place, "an address is an integer".to_owned())),
        }
    }
}

/// Names become registers and symbols.
impl Scope<'_> {
    pub(super) fn resolve_reg(&self, name: &str) -> std::result::Result<Reg, String> {
        match self.find(name) {
            Some(Named::Reg(reg)) => Ok(reg),
            Some(Named::Symbol(_)) => Err(format!("`{name}` is a variable where a register is needed")),
            None if SpecialReg::from_name(name).is_some() => {
                Err(format!("the special register `{name}` can only be read by mov"))
            }
            None => Err(format!("`{name}` is not declared")),
        }
    }

    pub(super) fn resolve(&self, form: &Form<'_>) -> std::result::Result<Operand, String> {
        match *form {
            Form::Literal(Literal::Int(value)) => Ok(Operand::Int(value)),
            Form::Literal(Literal::F32(bits)) => Ok(Operand::F32(bits)),
            Form::Literal(Literal::F64(bits)) => Ok(Operand::F64(bits)),
            Form::Name(name, offset) => match self.find(name) {
                Some(Named::Reg(reg)) if offset == 0 => Ok(Operand::Reg(reg)),
                Some(Named::Reg(_)) => Err(format!("an offset on `{name}` needs brackets")),
                Some(Named::Symbol(symbol)) => Ok(Operand::Symbol(symbol, offset)),
                None => SpecialReg::from_name(name)
                    .filter(|_| offset == 0)
                    .map(Operand::Special)
                    .ok_or_else(|| format!("`{name}` is not declared")),
            },
            _ => Err("expected a register or a constant".to_owned()),
        }
    }

    pub(super) fn resolve_pred(&self, form: &Form<'_>) -> std::result::Result<PredOperand, String> {
        let (name, negated) = match *form {
            Form::Name(name, 0) => (name, false),
            Form::Not(name) => (name, true),
            _ => return Err("expected a predicate".to_owned()),
        };
        Ok(PredOperand { reg: self.resolve_reg(name)?, negated })
    }

    pub(super) fn resolve_address(&self, form: &Form<'_>) -> std::result::Result<Address, String> {
        let Form::Address(name, offset) = *form else {
            return Err("expected an address in brackets".to_owned());
        };
        let base = match name {
            None => Base::Absolute,
            Some(name) => match self.find(name) {
                Some(Named::Reg(reg)) => Base::Reg(reg),
                Some(Named::Symbol(symbol)) => Base::Symbol(symbol),
                None => return Err(format!("`{name}` is not declared")),
            },
        };
        Ok(Address { base, offset })
    }
}
