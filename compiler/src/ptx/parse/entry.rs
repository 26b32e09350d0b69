//! The body of an entry: declarations, labels, instructions, source places and comments.

use rustc_hash::FxHashMap;

use super::cursor::Parser;
use super::error::{ParseError, Place, Result};
use super::lexer::Kind;
use crate::ptx::instruction::{Guard, Instruction};
use crate::ptx::module::{Entry, Loc, Register, Statement};
use crate::ptx::operand::{EntryVariable, Label, ModuleVariable, ParamId, Reg, Symbol};
use crate::ptx::types::RegClass;

/// What entries can see of the module around them.
pub(super) struct Outer<'m> {
    pub(super) names: &'m FxHashMap<String, ModuleVariable>,
}

/// The most registers that an entry may declare.
const REGISTER_LIMIT: usize = 1 << 20;

/// What a name in the body stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Named {
    Reg(Reg),
    Symbol(Symbol),
}

/// The entry under construction and its names.
pub(super) struct Scope<'m> {
    pub entry: Entry,
    names: FxHashMap<String, Named>,
    labels: FxHashMap<String, Label>,
    /// Where each label was first named, and whether it has been placed.
    label_uses: Vec<(Place, bool)>,
    outer: &'m Outer<'m>,
}

impl Scope<'_> {
    pub(super) fn find(&self, name: &str) -> Option<Named> {
        let inner = self.names.get(name).copied();
        inner.or_else(|| self.outer.names.get(name).map(|variable| Named::Symbol(Symbol::Module(*variable))))
    }

    /// The label with that name, which may be placed later.
    pub(super) fn label(&mut self, name: &str, place: Place) -> Label {
        if let Some(label) = self.labels.get(name) {
            return *label;
        }
        let label = self.entry.labels.push(name.to_owned());
        self.labels.insert(name.to_owned(), label);
        self.label_uses.push((place, false));
        label
    }

    fn declare(&mut self, name: &str, named: Named, place: Place) -> Result<()> {
        match self.names.insert(name.to_owned(), named) {
            None => Ok(()),
            Some(_) => Err(ParseError::at(place, format!("`{name}` is declared twice"))),
        }
    }
}

impl Parser<'_> {
    /// `{ … }`
    pub(super) fn body(&mut self, entry: Entry, outer: &Outer<'_>) -> Result<Entry> {
        let mut scope = Scope {
            entry,
            names: FxHashMap::default(),
            labels: FxHashMap::default(),
            label_uses: Vec::new(),
            outer,
        };
        let params: Vec<(ParamId, String)> =
            scope.entry.params.iter().map(|(id, param)| (id, param.name.clone())).collect();
        for (id, name) in params {
            scope.declare(&name, Named::Symbol(Symbol::Param(id)), self.place())?;
        }
        self.expect_mark(b'{')?;
        // The line that the last statement ended on; none where a gap says nothing.
        let mut line = None;
        loop {
            self.body_comments(&mut scope, &mut line);
            let Some(token) = self.peek() else {
                return self.expected("`}`");
            };
            let place = token.place;
            match (token.kind, token.text) {
                (Kind::Mark(b'}'), _) => {
                    self.at += 1;
                    break;
                }
                (Kind::Mark(b'{'), _) => return self.fail("a scope within the body is not supported"),
                (Kind::Mark(b';'), _) => {
                    self.at += 1;
                    continue;
                }
                (Kind::Word, ".reg") => {
                    self.registers(&mut scope)?;
                    line = None;
                    continue;
                }
                (Kind::Word, ".shared" | ".local") => {
                    let variable = self.variable()?;
                    let name = variable.name.clone();
                    let index: EntryVariable = scope.entry.variables.push(variable);
                    scope.declare(&name, Named::Symbol(Symbol::Entry(index)), place)?;
                    line = None;
                    continue;
                }
                _ => {}
            }
            blank_lines(&mut scope, line, place.line);
            let statement = self.statement(&mut scope)?;
            line = Some(self.last_line());
            scope.entry.body.push(statement);
        }
        for (label, (place, placed)) in scope.entry.labels.values().zip(&scope.label_uses) {
            if !placed {
                return Err(ParseError::at(*place, format!("the label `{label}` is never placed")));
            }
        }
        scope.entry.canonicalize();
        Ok(scope.entry)
    }

    fn body_comments(&mut self, scope: &mut Scope<'_>, line: &mut Option<u32>) {
        while let Some(comment) = self.next_comment() {
            blank_lines(scope, *line, comment.line);
            *line = Some(comment.line);
            scope.entry.body.push(Statement::Comment(comment.text));
        }
    }

    fn statement(&mut self, scope: &mut Scope<'_>) -> Result<Statement> {
        let place = self.place();
        if self.word(".loc") {
            let file = self.small("a file index")?;
            let line = self.small("a line")?;
            let column = self.small("a column")?;
            if self.mark(b',') {
                return self.fail("attributes of `.loc` are not supported");
            }
            return Ok(Statement::Loc(Loc { file, line, column }));
        }
        if self.word(".pragma") {
            let pragma = self.string("a string")?;
            self.expect_mark(b';')?;
            return Ok(Statement::Pragma(pragma));
        }
        if let Some(token) = self.peek()
            && token.kind == Kind::Word
            && self.tokens.get(self.at + 1).is_some_and(|next| next.kind == Kind::Mark(b':'))
        {
            if token.text.contains('.') {
                return self.fail("a label has no dots");
            }
            self.at += 2;
            let label = scope.label(token.text, place);
            let Some((_, placed)) = scope.label_uses.get_mut(label.as_u32() as usize) else {
                return self.fail("too many labels");
            };
            if std::mem::replace(placed, true) {
                return Err(ParseError::at(place, format!("the label `{}` is placed twice", token.text)));
            }
            return Ok(Statement::Label(label));
        }
        self.guarded_instruction(scope).map(Statement::Instruction)
    }

    fn guarded_instruction(&mut self, scope: &mut Scope<'_>) -> Result<Instruction> {
        let guard = if self.mark(b'@') {
            let negated = self.mark(b'!');
            let place = self.place();
            let name = self.identifier("a predicate")?;
            let Some(Named::Reg(reg)) = scope.find(name) else {
                return Err(ParseError::at(place, format!("`{name}` is not a declared register")));
            };
            Some(Guard { reg, negated })
        } else {
            None
        };
        let op = self.operation(scope)?;
        self.expect_mark(b';')?;
        let comment = self.trailing_comment();
        Ok(Instruction { guard, op, comment })
    }

    /// `.reg .b32 %i, %j, %r<8>;`
    fn registers(&mut self, scope: &mut Scope<'_>) -> Result<()> {
        self.expect_word(".reg")?;
        let place = self.place();
        let ty = self.ty()?;
        let class = ty.class();
        if ty.bits() == 8 {
            return Err(ParseError::at(place, "there are no 8-bit registers; declare 16 bits".to_owned()));
        }
        loop {
            let place = self.place();
            let name = self.identifier("the name of a register")?;
            if self.mark(b'<') {
                let count = self.unsigned("a number of registers")?;
                self.expect_mark(b'>')?;
                if count > REGISTER_LIMIT as u64 {
                    return Err(ParseError::at(place, "too many registers".to_owned()));
                }
                for index in 0..count {
                    register(scope, format!("{name}{index}"), class, place)?;
                }
            } else {
                register(scope, name.to_owned(), class, place)?;
            }
            if !self.mark(b',') {
                break;
            }
        }
        self.expect_mark(b';')
    }
}

fn register(scope: &mut Scope<'_>, name: String, class: RegClass, place: Place) -> Result<()> {
    if scope.entry.registers.len() >= REGISTER_LIMIT {
        return Err(ParseError::at(place, "too many registers".to_owned()));
    }
    let reg = scope.entry.registers.push(Register { name: name.as_str().into(), class });
    scope.declare(&name, Named::Reg(reg), place)
}

/// The blank lines between the end of the last statement and the next one.
fn blank_lines(scope: &mut Scope<'_>, last: Option<u32>, next: u32) {
    if let Some(last) = last {
        for _ in last + 1..next {
            scope.entry.body.push(Statement::BlankLine);
        }
    }
}
