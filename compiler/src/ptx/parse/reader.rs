//! The walker that reads an instruction: it takes the words of the mnemonic and the operands in turn.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::cursor::Parser;
use super::entry::Scope;
use super::error::{ParseError, Place, Result};
use super::lexer::Kind;
use super::operand::{Form, Raw};
use crate::ptx::grammar::{Needs, Slot, Step, Walk};
use crate::ptx::instruction::Op;
use crate::ptx::operand::Operand;
use crate::ptx::types::{Modifier, Type};

impl Parser<'_> {
    /// A mnemonic and its operands.
    pub(super) fn operation(&mut self, scope: &mut Scope<'_>) -> Result<Op> {
        let Some(token) =
            self.peek().filter(|token| token.kind == Kind::Word && !token.text.starts_with('.'))
        else {
            return self.expected("an instruction");
        };
        let place = token.place;
        self.at += 1;
        let operands = self.operands()?;
        let first = token.text.split('.').next().unwrap_or_default();
        let Some(candidates) = templates().get(first) else {
            return Err(ParseError::at(place, format!("`{first}` is not an instruction that is supported")));
        };
        // Several families share a mnemonic (`add` on integers and on floats): the one that gets furthest
        // has the most to say about what is wrong.
        let mut furthest: Option<(usize, ParseError)> = None;
        for candidate in candidates {
            let mut op = candidate.clone();
            let mut reader = Reader {
                scope,
                mnemonic: token.text,
                place,
                rest: Some(token.text),
                operands: &operands,
                next: 0,
                progress: 0,
            };
            let outcome = op.describe(&mut reader).and_then(|()| reader.finish());
            match outcome {
                Ok(()) => return Ok(op),
                Err(message) => {
                    if furthest.as_ref().is_none_or(|(progress, _)| reader.progress > *progress) {
                        furthest = Some((reader.progress, ParseError::at(reader.place, message)));
                    }
                }
            }
        }
        Err(furthest
            .map_or_else(|| ParseError::at(place, format!("`{first}` is not supported")), |(_, error)| error))
    }
}

/// Blank instructions by the first word of their mnemonic.
fn templates() -> &'static FxHashMap<&'static str, Vec<Op>> {
    static TEMPLATES: OnceLock<FxHashMap<&'static str, Vec<Op>>> = OnceLock::new();
    TEMPLATES.get_or_init(|| {
        let mut templates: FxHashMap<&'static str, Vec<Op>> = FxHashMap::default();
        for op in Op::templates() {
            let mut first = FirstWords(Vec::new());
            // Stops by an error after the first word: that is its way out.
            let _ = op.clone().describe(&mut first);
            for word in first.0 {
                templates.entry(word).or_default().push(op.clone());
            }
        }
        templates
    })
}

/// Collects what the first word of a mnemonic may be.
struct FirstWords(Vec<&'static str>);

impl Walk for FirstWords {
    fn word(&mut self, text: &'static str) -> Step {
        self.0.push(text);
        Err(String::new())
    }

    fn flag(&mut self, _: &'static str, _: &mut bool) -> Step {
        Err(String::new())
    }

    fn suffix<M: Modifier>(&mut self, _: &mut Option<M>, _: bool, legal: &[M]) -> Step {
        self.0.extend(legal.iter().map(|value| value.text()));
        Err(String::new())
    }

    fn more(&mut self, _: bool) -> bool {
        false
    }

    fn more_before_last(&mut self, _: bool) -> bool {
        false
    }

    fn operand(&mut self, _: Slot<'_>) -> Step {
        Err(String::new())
    }

    fn rule(&mut self, _: bool, _: &str) -> Step {
        Ok(())
    }

    fn needs(&mut self, _: &str, _: Needs) -> Step {
        Ok(())
    }
}

struct Reader<'r, 's, 't> {
    scope: &'r mut Scope<'s>,
    mnemonic: &'t str,
    /// Of what is being read.
    place: Place,
    /// The words of the mnemonic not yet taken.
    rest: Option<&'t str>,
    operands: &'r [Raw<'t>],
    next: usize,
    /// How much has been understood.
    progress: usize,
}

impl<'t> Reader<'_, '_, 't> {
    /// The next word of the mnemonic.
    fn peek(&self) -> Option<&'t str> {
        self.rest.map(|rest| rest.split('.').next().unwrap_or_default())
    }

    fn take(&mut self) {
        self.rest = self.rest.and_then(|rest| rest.split_once('.')).map(|(_, rest)| rest);
        self.progress += 1;
    }

    /// The words must be used up before the first operand.
    fn words_done(&self) -> Step {
        match self.rest {
            Some(rest) => Err(format!("`.{rest}` does not belong to `{}`", self.mnemonic)),
            None => Ok(()),
        }
    }

    fn take_operand(&mut self) -> std::result::Result<Raw<'t>, String> {
        self.words_done()?;
        let Some(raw) = self.operands.get(self.next) else {
            return Err(format!("`{}` needs more operands", self.mnemonic));
        };
        self.next += 1;
        self.place = raw.place;
        Ok(raw.clone())
    }

    /// Everything must be used up at the end.
    fn finish(&mut self) -> Step {
        self.words_done()?;
        match self.operands.get(self.next) {
            Some(raw) => {
                self.place = raw.place;
                Err(format!("`{}` takes no further operand", self.mnemonic))
            }
            None => Ok(()),
        }
    }

    fn source(&self, form: &Form<'_>, ty: Type) -> std::result::Result<Operand, String> {
        match (self.scope.resolve(form)?, ty) {
            // A decimal constant takes the precision of the instruction.
            (Operand::F64(bits), Type::F32) => Ok(Operand::f32(f64::from_bits(bits) as f32)),
            (Operand::Int(_), ty) if ty.is_float() => Err(format!("an integer where `.{ty}` is needed")),
            (operand, _) => Ok(operand),
        }
    }

    /// A register or constant; neither special nor the address of a variable.
    fn plain_source(&self, form: &Form<'_>, ty: Type) -> std::result::Result<Operand, String> {
        match self.source(form, ty)? {
            Operand::Special(special) => {
                Err(format!("the special register `{}` can only be read by mov", special.name()))
            }
            Operand::Symbol(..) => Err("the address of a variable can only be taken by mov".to_owned()),
            operand => Ok(operand),
        }
    }
}

impl Walk for Reader<'_, '_, '_> {
    fn fills(&self) -> bool {
        true
    }

    fn word(&mut self, text: &'static str) -> Step {
        match self.peek() {
            Some(word) if word == text => {
                self.take();
                Ok(())
            }
            Some(word) => Err(format!("expected `.{text}` in `{}`, found `.{word}`", self.mnemonic)),
            None => Err(format!("expected `.{text}` after `{}`", self.mnemonic)),
        }
    }

    fn flag(&mut self, text: &'static str, on: &mut bool) -> Step {
        *on = self.peek() == Some(text);
        if *on {
            self.take();
        }
        Ok(())
    }

    fn suffix<M: Modifier>(&mut self, value: &mut Option<M>, required: bool, legal: &[M]) -> Step {
        *value = None;
        if let Some(word) = self.peek()
            && let Some(found) = legal.iter().find(|legal| legal.text() == word)
        {
            *value = Some(*found);
            self.take();
            return Ok(());
        }
        if !required {
            return Ok(());
        }
        let wanted: Vec<String> = legal.iter().map(|legal| format!(".{}", legal.text())).collect();
        let wanted = wanted.join(" ");
        match self.peek() {
            Some(word) => Err(format!("expected one of {wanted} in `{}`, found `.{word}`", self.mnemonic)),
            None => Err(format!("expected one of {wanted} after `{}`", self.mnemonic)),
        }
    }

    fn more(&mut self, _: bool) -> bool {
        self.next < self.operands.len()
    }

    fn more_before_last(&mut self, _: bool) -> bool {
        self.next + 1 < self.operands.len()
    }

    fn operand(&mut self, slot: Slot<'_>) -> Step {
        let raw = self.take_operand()?;
        let form = &raw.form;
        let register = |scope: &Scope<'_>, form: &Form<'_>| match form {
            Form::Name(name, 0) => scope.resolve_reg(name),
            _ => Err("expected a register".to_owned()),
        };
        match slot {
            Slot::Write(reg, _) | Slot::WriteWide(reg, _) | Slot::Read(reg, _) => {
                *reg = register(self.scope, form)?;
            }
            Slot::WritePair(reg, _, second) => match form {
                Form::Pair(first, other) => {
                    *reg = self.scope.resolve_reg(first)?;
                    *second = Some(self.scope.resolve_reg(other)?);
                }
                form => {
                    *reg = register(self.scope, form)?;
                    *second = None;
                }
            },
            Slot::WriteVector(regs, _) => match (form, regs.as_mut_slice()) {
                (form, [reg]) => *reg = register(self.scope, form)?,
                (Form::Vector(parts), regs) if parts.len() == regs.len() => {
                    for (reg, part) in regs.iter_mut().zip(parts) {
                        *reg = register(self.scope, &part.form)?;
                    }
                }
                (_, regs) => return Err(format!("expected a vector of {} registers", regs.len())),
            },
            Slot::WriteGroup(regs, _) | Slot::ReadGroup(regs, _) => match form {
                Form::Vector(parts) if parts.len() == regs.len() => {
                    for (reg, part) in regs.iter_mut().zip(parts) {
                        *reg = register(self.scope, &part.form)?;
                    }
                }
                _ => return Err(format!("expected {} registers in braces", regs.len())),
            },
            Slot::WriteParts(regs, _) => {
                let Form::Vector(parts) = form else {
                    return Err("expected the parts in braces".to_owned());
                };
                *regs = parts
                    .iter()
                    .map(|part| match part.form {
                        Form::Name("_", 0) => Ok(None),
                        ref form => register(self.scope, form).map(Some),
                    })
                    .collect::<std::result::Result<_, String>>()?;
            }
            Slot::Source(operand, ty) | Slot::SourceWide(operand, ty) => {
                *operand = self.plain_source(form, ty)?
            }
            Slot::SourceRange(operand, _) => *operand = self.plain_source(form, Type::U32)?,
            Slot::SourceSymbol(operand, _) => *operand = self.source(form, Type::U64)?,
            Slot::SourceAny(operand, ty) => *operand = self.source(form, ty)?,
            Slot::SourceVector(operands, ty) => match (form, operands.as_mut_slice()) {
                (form, [operand]) => *operand = self.plain_source(form, ty)?,
                (Form::Vector(parts), operands) if parts.len() == operands.len() => {
                    for (operand, part) in operands.iter_mut().zip(parts) {
                        *operand = self.plain_source(&part.form, ty)?;
                    }
                }
                (_, operands) => return Err(format!("expected a vector of {} values", operands.len())),
            },
            Slot::SourceParts(operands, ty) => {
                let Form::Vector(parts) = form else {
                    return Err("expected the parts in braces".to_owned());
                };
                *operands = parts
                    .iter()
                    .map(|part| self.plain_source(&part.form, ty))
                    .collect::<std::result::Result<_, String>>()?;
            }
            Slot::Pred(pred) => *pred = self.scope.resolve_pred(form)?,
            Slot::Address(address, _) => *address = self.scope.resolve_address(form)?,
            Slot::Number(number, legal) => {
                let Form::Literal(super::number::Literal::Int(value)) = *form else {
                    return Err("expected a literal number".to_owned());
                };
                *number = u32::try_from(value)
                    .ok()
                    .filter(|value| if legal.is_empty() { *value <= 255 } else { legal.contains(value) })
                    .ok_or_else(|| format!("{value} is not allowed here"))?;
            }
            Slot::Label(label) => {
                let Form::Name(name, 0) = *form else {
                    return Err("expected a label".to_owned());
                };
                if name.contains('.') {
                    return Err(format!("`{name}` is not a label"));
                }
                *label = self.scope.label(name, raw.place);
            }
        }
        self.progress += 1;
        Ok(())
    }

    fn rule(&mut self, holds: bool, message: &str) -> Step {
        if holds { Ok(()) } else { Err(format!("`{}`: {message}", self.mnemonic)) }
    }

    fn needs(&mut self, _: &str, _: Needs) -> Step {
        Ok(())
    }
}
