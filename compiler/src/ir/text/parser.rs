//! Parses modules and kernels: declarations here, instructions in `parse_body.rs`. Stops at the first error,
//! which says where it is; whether the kernel makes sense is the verifier's question.

use super::lexer::{Token, tokens};
use crate::data::{ElementType, Leaf, Scalar};
use crate::ir::entities::{Axis, Buffer, ConstantArray, Launch, StaticArray, Symbol, Value};
use crate::ir::kernel::{
    ArgumentData, ArrayData, BufferData, BufferKind, CacheMode, Kernel, LaunchData, Module, Phase, SiteData,
    Step, SymbolData,
};
use crate::manifest::{Direction, FactManifest, Layout, SymbolKind};
use crate::source::Span;
use cranelift_entity::{EntityRef, PrimaryMap};
use rustc_hash::FxHashMap;
use std::fmt;

/// Why a text is no kernel, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// One sentence, lower-case, without full stop.
    pub message: String,
}

impl ParseError {
    pub(super) fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() as u32 + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u32 + 1;
        Self { line, column, message: message.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Regions and expressions nest at most this deep, so that no text overflows the stack.
const MAX_DEPTH: usize = 128;

pub struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token<'t>, usize)>,
    at: usize,
    depth: usize,
    pub(super) kernel: Kernel,
    /// By the number that the text uses.
    pub(super) values: FxHashMap<u32, Value>,
    pub(super) axes: FxHashMap<u32, Axis>,
}

/// Parses a text that holds exactly one kernel (array declarations may stand before it and are dropped).
pub fn parse_kernel(text: &str) -> Result<Kernel, ParseError> {
    let mut module = parse_module(text)?;
    match module.kernels.len() {
        1 => Ok(module.kernels.remove(0)),
        count => Err(ParseError::new(text, 0, format!("expected one kernel, found {count}"))),
    }
}

/// Parses a module.
pub fn parse_module(text: &str) -> Result<Module, ParseError> {
    let kernel = Kernel::new("", Span::default());
    let (values, axes) = Default::default();
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0, depth: 0, kernel, values, axes };
    let mut module = Module::default();
    while *parser.peek() != Token::End {
        match parser.word("`kernel`, `constant` or `static`")? {
            "kernel" => module.kernels.push(parser.kernel()?),
            "constant" => parser.array("const", &mut module.constants)?,
            "static" => parser.array("static", &mut module.statics)?,
            _ => return Err(parser.unexpected_before("`kernel`, `constant` or `static`")),
        }
    }
    Ok(module)
}

// Tokens.
impl<'t> Parser<'t> {
    pub fn peek(&self) -> &Token<'t> {
        &self.tokens[self.at].0
    }

    pub fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub fn offset(&self) -> usize {
        self.tokens[self.at].1
    }

    pub fn error_at(&self, offset: usize, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, offset, message)
    }

    pub fn unexpected(&self, wanted: &str) -> ParseError {
        self.error_at(self.offset(), format!("expected {wanted}, found {}", self.peek().describe()))
    }

    /// For a word that was read already.
    pub fn unexpected_before(&self, wanted: &str) -> ParseError {
        let (token, offset) = &self.tokens[self.at.saturating_sub(1)];
        self.error_at(*offset, format!("expected {wanted}, found {}", token.describe()))
    }

    /// Takes the mark if it is next.
    pub fn take(&mut self, mark: &'static str) -> bool {
        let found = *self.peek() == Token::Mark(mark);
        if found {
            self.advance();
        }
        found
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(found) if *found == word);
        if found {
            self.advance();
        }
        found
    }

    pub fn expect(&mut self, mark: &'static str) -> Result<(), ParseError> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    pub fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    pub fn word(&mut self, wanted: &str) -> Result<&'t str, ParseError> {
        let Token::Word(word) = *self.peek() else { return Err(self.unexpected(wanted)) };
        self.advance();
        Ok(word)
    }

    pub fn string(&mut self) -> Result<String, ParseError> {
        let Token::Text(text) = self.peek() else { return Err(self.unexpected("a name in quotes")) };
        let text = text.clone();
        self.advance();
        Ok(text)
    }

    /// A non-negative integer of a type.
    pub fn int<T: TryFrom<i128>>(&mut self) -> Result<T, ParseError> {
        let Token::Int(value) = *self.peek() else { return Err(self.unexpected("a number")) };
        let value =
            T::try_from(value).map_err(|_| self.error_at(self.offset(), "a number that is out of range"))?;
        self.advance();
        Ok(value)
    }

    /// The number of an entity: `v12` has the prefix `v`.
    pub fn numbered(&mut self, prefix: &str) -> Result<u32, ParseError> {
        let wanted = format!("`{prefix}` and a number");
        let number = match self.peek() {
            Token::Word(word) => word.strip_prefix(prefix).and_then(|digits| digits.parse::<u32>().ok()),
            _ => None,
        };
        // The last number is not an entity.
        let number = number.filter(|number| *number < u32::MAX).ok_or_else(|| self.unexpected(&wanted))?;
        self.advance();
        Ok(number)
    }

    /// The number of the next entity of a table, which must be its length.
    fn next_in(&mut self, prefix: &str, next: usize) -> Result<(), ParseError> {
        let offset = self.offset();
        if self.numbered(prefix)? as usize == next {
            return Ok(());
        }
        Err(self.error_at(offset, format!("numbers start at 0 and go up by one: this is `{prefix}{next}`")))
    }

    pub fn scalar(&mut self) -> Result<Scalar, ParseError> {
        let word = self.word("a scalar type")?;
        Scalar::from_name(word).ok_or_else(|| self.unexpected_before("a scalar type"))
    }

    /// `@start..end`, if it is next.
    pub fn span(&mut self) -> Result<Span, ParseError> {
        if !self.take("@") {
            return Ok(Span::default());
        }
        let start = self.int()?;
        self.expect("..")?;
        Ok(Span::new(start, self.int()?))
    }

    /// Runs a step one level deeper.
    pub fn nested<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error_at(self.offset(), format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Items between marks, separated by commas.
    pub fn list<T>(
        &mut self,
        open: &'static str,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.take(close) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }
}

// Declarations.
impl Parser<'_> {
    fn array<K: EntityRef>(
        &mut self,
        prefix: &str,
        table: &mut PrimaryMap<K, ArrayData>,
    ) -> Result<(), ParseError> {
        self.next_in(prefix, table.len())?;
        let name = self.string()?;
        let element = self.element()?;
        let extents = self.list("[", "]", |parser| parser.int())?;
        self.expect_word("hex")?;
        let offset = self.offset();
        let digits = self.string()?;
        let bytes = (0..digits.len())
            .step_by(2)
            .map(|at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
            .collect::<Option<Vec<u8>>>()
            .ok_or_else(|| self.error_at(offset, "expected pairs of hexadecimal digits"))?;
        table.push(ArrayData { name, element, extents, bytes });
        Ok(())
    }

    fn element(&mut self) -> Result<ElementType, ParseError> {
        if !self.take_word("struct") {
            return Ok(ElementType::scalar(self.scalar()?));
        }
        let name = self.string()?;
        self.expect_word("size")?;
        let size = self.int()?;
        self.expect_word("align")?;
        let align = self.int()?;
        let leaves = self.list("{", "}", |parser| {
            let path = parser.string()?;
            let scalar = parser.scalar()?;
            parser.expect_word("at")?;
            let offset = parser.int()?;
            let (mut extents, mut strides) = (Vec::new(), Vec::new());
            while parser.take("[") {
                extents.push(parser.int()?);
                parser.expect_word("by")?;
                strides.push(parser.int()?);
                parser.expect("]")?;
            }
            Ok(Leaf { path, scalar, offset, extents, strides })
        })?;
        Ok(ElementType { name, leaves, size, align })
    }

    fn kernel(&mut self) -> Result<Kernel, ParseError> {
        self.kernel = Kernel::new(self.string()?, Span::default());
        self.values.clear();
        self.axes.clear();
        let phase = self.word("a phase")?;
        let phase = Phase::ALL.into_iter().find(|known| known.name() == phase);
        self.kernel.phase = phase.ok_or_else(|| self.unexpected_before("a phase"))?;
        self.kernel.span = self.span()?;
        self.expect("{")?;
        let wanted = "`hint`, `symbol`, `buffer`, `argument`, `fact`, `site`, `launch` or `plan`";
        while !self.take("}") {
            match self.word(wanted)? {
                "hint" => self.hint()?,
                "symbol" => self.symbol()?,
                "buffer" => self.buffer()?,
                "argument" => self.argument()?,
                "fact" => {
                    let text = self.string()?;
                    self.expect_word("line")?;
                    let line = self.int()?;
                    self.expect(":")?;
                    let condition = self.expression()?;
                    self.kernel.facts.push(FactManifest { condition, text, line });
                }
                "site" => {
                    self.next_in("site", self.kernel.sites.len())?;
                    let array = self.string()?;
                    self.expect_word("axis")?;
                    let axis = self.int()?;
                    let span = self.span()?;
                    self.kernel.sites.push(SiteData { span, array, axis });
                }
                "launch" => {
                    self.next_in("launch", self.kernel.launches.len())?;
                    let name = self.string()?;
                    let threads = if self.take_word("threads") { Some(self.int()?) } else { None };
                    let body = self.root()?;
                    self.kernel.launches.push(LaunchData { name, body, threads });
                }
                "plan" => self.kernel.plan = self.steps()?,
                _ => return Err(self.unexpected_before(wanted)),
            }
        }
        Ok(std::mem::replace(&mut self.kernel, Kernel::new("", Span::default())))
    }

    fn hint(&mut self) -> Result<(), ParseError> {
        match self.word("`block` or `order`")? {
            "block" => self.kernel.hints.block_threads = Some(self.int()?),
            "order" => {
                let names = self.list("[", "]", |parser| parser.string())?;
                self.kernel.hints.order.push(names);
            }
            _ => return Err(self.unexpected_before("`block` or `order`")),
        }
        Ok(())
    }

    fn symbol(&mut self) -> Result<(), ParseError> {
        self.next_in("sym", self.kernel.symbols.len())?;
        let name = self.string()?;
        let scalar = self.scalar()?;
        let kind = match self.word("`dim`, `parameter` or `counter`")? {
            "dim" => SymbolKind::Dim { argument: self.int()?, axis: self.int()? },
            "parameter" => {
                SymbolKind::Parameter { argument: self.int()?, leaf: self.int()?, element: self.int()? }
            }
            "counter" => SymbolKind::Counter,
            _ => return Err(self.unexpected_before("`dim`, `parameter` or `counter`")),
        };
        self.kernel.symbols.push(SymbolData { name, kind, scalar });
        Ok(())
    }

    fn buffer(&mut self) -> Result<(), ParseError> {
        self.next_in("buf", self.kernel.buffers.len())?;
        let name = self.string()?;
        let element = self.element()?;
        let extents = self.list("[", "]", |parser| parser.expression())?;
        let wanted = "`argument`, `scratch`, `constant`, `static` or `private`";
        let kind = match self.word(wanted)? {
            "argument" => {
                let position = self.int()?;
                let direction = match self.word("`in`, `inout` or `out`")? {
                    "in" => Direction::In,
                    "inout" => Direction::InOut,
                    "out" => Direction::Out,
                    _ => return Err(self.unexpected_before("`in`, `inout` or `out`")),
                };
                BufferKind::Argument { position, direction }
            }
            "scratch" => BufferKind::Scratch,
            "constant" => BufferKind::Constant(ConstantArray::from_u32(self.numbered("const")?)),
            "static" => BufferKind::Static(StaticArray::from_u32(self.numbered("static")?)),
            "private" => BufferKind::Private,
            _ => return Err(self.unexpected_before(wanted)),
        };
        self.expect(",")?;
        let layout = match self.word("`aos`, `soa` or `aosoa`")? {
            "aos" => Layout::Aos,
            "soa" => Layout::Soa,
            "aosoa" => Layout::Aosoa(self.int()?),
            _ => return Err(self.unexpected_before("`aos`, `soa` or `aosoa`")),
        };
        let layout_fixed = self.take_word("fixed");
        let mut cache = None;
        if self.take(",") {
            self.expect_word("cache")?;
            let mode = self.word("a cache mode")?;
            cache = CacheMode::ALL.into_iter().find(|known| known.name() == mode);
            if cache.is_none() {
                return Err(self.unexpected_before("`ca`, `cg`, `cs` or `nc`"));
            }
        }
        self.kernel.buffers.push(BufferData { name, kind, element, extents, layout, layout_fixed, cache });
        Ok(())
    }

    fn argument(&mut self) -> Result<(), ParseError> {
        let argument = if matches!(self.peek(), Token::Text(_)) {
            ArgumentData::Value { name: self.string()?, element: self.element()? }
        } else {
            ArgumentData::Array(Buffer::from_u32(self.numbered("buf")?))
        };
        self.kernel.arguments.push(argument);
        Ok(())
    }

    /// `{ launch0 repeat … { … } if … { … } else { … } }`.
    fn steps(&mut self) -> Result<Vec<Step>, ParseError> {
        self.nested(|parser| {
            parser.expect("{")?;
            let mut steps = Vec::new();
            while !parser.take("}") {
                steps.push(parser.step()?);
            }
            Ok(steps)
        })
    }

    fn step(&mut self) -> Result<Step, ParseError> {
        if self.take_word("repeat") {
            let symbol = Symbol::from_u32(self.numbered("sym")?);
            self.expect("=")?;
            let low = self.expression()?;
            self.expect("..")?;
            let high = self.expression()?;
            self.expect_word("by")?;
            let step = self.expression()?;
            return Ok(Step::Repeat { symbol, low, high, step, body: self.steps()? });
        }
        if self.take_word("if") {
            let condition = self.expression()?;
            let then = self.steps()?;
            self.expect_word("else")?;
            return Ok(Step::Branch { condition, then, otherwise: self.steps()? });
        }
        Ok(Step::Launch(Launch::from_u32(self.numbered("launch")?)))
    }
}
