//! Declarations: entries' heads, parameters, variables and their initial values.

use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

use super::cursor::Parser;
use super::entry::Outer;
use super::error::{ParseError, Result};
use super::lexer::{Kind, Token};
use super::number::Literal;
use crate::ptx::module::{Entry, Length, Module, Param, Pointer, Variable};
use crate::ptx::operand::ModuleVariable;
use crate::ptx::types::{Modifier, Space, Type};

/// The most bytes that an initial value is filled up to.
const INITIAL_LIMIT: u64 = 1 << 24;

impl Parser<'_> {
    /// A module-level variable or an entry, with its linkage.
    pub(super) fn declaration(
        &mut self,
        module: &mut Module,
        names: &mut FxHashMap<String, ModuleVariable>,
    ) -> Result<()> {
        let header = self.comment_lines();
        let (mut visible, mut external) = (false, false);
        loop {
            if self.word(".visible") {
                visible = true;
            } else if self.word(".extern") {
                external = true;
            } else {
                break;
            }
        }
        let Some(token) = self.peek() else {
            return if visible || external { self.expected("a declaration") } else { Ok(()) };
        };
        match token.text {
            ".entry" => {
                self.at += 1;
                let outer = Outer { names };
                let mut entry = self.entry(&outer)?;
                entry.header = header;
                module.entries.push(entry);
            }
            ".global" | ".const" | ".shared" => {
                let place = token.place;
                let mut variable = self.variable()?;
                variable.visible = visible;
                variable.external = external;
                let index = ModuleVariable::new(module.variables.len());
                if names.insert(variable.name.clone(), index).is_some() {
                    return Err(ParseError::at(place, format!("`{}` is declared twice", variable.name)));
                }
                module.variables.push(variable);
            }
            ".func" | ".tex" | ".section" | ".weak" | ".common" | ".alias" => {
                return self.fail(format!("`{}` is not supported", token.text));
            }
            _ => return self.expected("a declaration"),
        }
        Ok(())
    }

    /// What stands between `.entry` and the body, and the body.
    fn entry(&mut self, outer: &Outer<'_>) -> Result<Entry> {
        let mut entry = Entry::new(self.identifier("the name of the entry")?);
        if self.mark(b'(') && !self.mark(b')') {
            loop {
                let param = self.param()?;
                entry.params.push(param);
                if !self.mark(b',') {
                    break;
                }
            }
            self.expect_mark(b')')?;
        }
        loop {
            if self.word(".maxntid") {
                entry.bounds.max = Some(self.extent()?);
            } else if self.word(".reqntid") {
                entry.bounds.required = Some(self.extent()?);
            } else if self.word(".minnctapersm") {
                entry.bounds.min_blocks_per_sm = Some(self.small("a number of blocks")?);
            } else if self.word(".maxnreg") {
                entry.bounds.max_registers = Some(self.small("a number of registers")?);
            } else {
                break;
            }
        }
        self.body(entry, outer)
    }

    /// `x`, `x, y` or `x, y, z`; what is left out is 1.
    fn extent(&mut self) -> Result<[u32; 3]> {
        let mut extent = [self.small("a number of threads")?, 1, 1];
        for axis in &mut extent[1..] {
            if !self.mark(b',') {
                break;
            }
            *axis = self.small("a number of threads")?;
        }
        Ok(extent)
    }

    fn param(&mut self) -> Result<Param> {
        self.expect_word(".param")?;
        let align = if self.word(".align") { Some(self.alignment()?) } else { None };
        let ty = self.ty()?;
        let pointer = if self.word(".ptr") {
            let mut space = Space::Generic;
            for candidate in [Space::Global, Space::Shared, Space::Const, Space::Local] {
                if self.word(&format!(".{candidate}")) {
                    space = candidate;
                }
            }
            let align = if self.word(".align") { self.alignment()? } else { 4 };
            Some(Pointer { space, align })
        } else {
            None
        };
        let name = self.identifier("the name of a parameter")?.to_owned();
        let length = match self.length()? {
            Length::Unsized => return self.fail("a parameter needs a size"),
            length => length,
        };
        Ok(Param { name, ty, align, pointer, length })
    }

    /// `.space {.align n} .type name{[n]} {= value};`
    pub(super) fn variable(&mut self) -> Result<Variable> {
        let Some(space) = self.next().and_then(|token| Space::from_text(token.text.trim_start_matches('.')))
        else {
            self.at = self.at.saturating_sub(1);
            return self.expected("a state space");
        };
        let align = if self.word(".align") { Some(self.alignment()?) } else { None };
        let ty = self.ty()?;
        let name = self.identifier("the name of a variable")?.to_owned();
        let length = self.length()?;
        let mut variable = Variable {
            name,
            space,
            ty,
            align: align.unwrap_or(ty.bytes()),
            length,
            init: None,
            external: false,
            visible: false,
        };
        if self.mark(b'=') {
            variable.init = Some(self.initial(&mut variable)?);
        }
        self.expect_mark(b';')?;
        Ok(variable)
    }

    fn alignment(&mut self) -> Result<u32> {
        let place = self.place();
        match self.small("an alignment")? {
            align if align.is_power_of_two() => Ok(align),
            _ => Err(ParseError::at(place, "an alignment is a power of two".to_owned())),
        }
    }

    pub(super) fn ty(&mut self) -> Result<Type> {
        match self.peek() {
            Some(Token { kind: Kind::Word, text, .. }) => {
                match text.strip_prefix('.').and_then(Type::from_text) {
                    Some(ty) => {
                        self.at += 1;
                        Ok(ty)
                    }
                    None => self.expected("a type"),
                }
            }
            _ => self.expected("a type"),
        }
    }

    fn length(&mut self) -> Result<Length> {
        if !self.mark(b'[') {
            return Ok(Length::Scalar);
        }
        if self.mark(b']') {
            return Ok(Length::Unsized);
        }
        let elements = self.unsigned("a number of elements")?;
        self.expect_mark(b']')?;
        if self.mark(b'[') {
            self.at -= 1;
            return self.fail("arrays of more than one dimension are not supported");
        }
        Ok(Length::Array(elements))
    }

    /// An initial value, as bytes; what a list leaves out is zero, and sizes an array without size.
    fn initial(&mut self, variable: &mut Variable) -> Result<Vec<u8>> {
        let place = self.place();
        let mut bytes = Vec::new();
        if self.mark(b'{') {
            if !self.mark(b'}') {
                loop {
                    self.initial_value(variable.ty, &mut bytes)?;
                    if !self.mark(b',') {
                        break;
                    }
                }
                self.expect_mark(b'}')?;
            }
        } else {
            self.initial_value(variable.ty, &mut bytes)?;
        }
        if variable.length == Length::Unsized {
            variable.length = Length::Array(bytes.len() as u64 / u64::from(variable.ty.bytes()));
        }
        let size = variable.bytes();
        let given = bytes.len() as u64;
        if given > size {
            return Err(ParseError::at(
                place,
                format!("more initial values than `{}` has room for", variable.name),
            ));
        }
        if given < size && size > INITIAL_LIMIT {
            return Err(ParseError::at(
                place,
                format!("`{}` is too large for an initial value", variable.name),
            ));
        }
        bytes.resize(size as usize, 0);
        Ok(bytes)
    }

    fn initial_value(&mut self, ty: Type, bytes: &mut Vec<u8>) -> Result<()> {
        let place = self.place();
        let bits = match (self.literal()?, ty) {
            (Literal::F32(bits), Type::F32) => u64::from(bits),
            (Literal::F64(bits), Type::F64) => bits,
            (Literal::F64(bits), Type::F32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
            (Literal::Int(value), _) if !ty.is_float() => value as u64,
            _ => return Err(ParseError::at(place, format!("this value does not suit the type `.{ty}`"))),
        };
        bytes.extend_from_slice(&bits.to_le_bytes()[..(ty.bytes() as usize).min(8)]);
        Ok(())
    }
}
