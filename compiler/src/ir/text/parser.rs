//! Parses modules and kernels: declarations here, instructions in `parse_body.rs`. Stops at the first error,
//! which says where it is; whether the kernel makes sense is the verifier's question.

use super::cursor::Parser;
use super::error::ParseError;
use super::lexer::Token;
use crate::data::{ElementType, Leaf, LinearExtent};
use crate::ir::entities::{Buffer, ConstantArray, Launch, StaticArray, Symbol};
use crate::ir::kernel::{
    ArgumentData, ArrayData, BufferData, BufferKind, CacheMode, CombinerData, Kernel, LaunchData, Module,
    Phase, SiteData, Step, SymbolData, TileAxis, Tiling,
};
use crate::ir::specialization::Specialization;
use crate::ir::tiles::MOST_AXES;
use crate::layout::ValueLayout;
use crate::manifest::{
    AssertionManifest, Direction, Expr, FactManifest, Guard, InjectionManifest, Layout, PrintManifest,
    PrintedIndex, PrintedOperand, SymbolKind, Value,
};
use crate::source::Span;
use cranelift_entity::{EntityRef, PrimaryMap};

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
    let mut parser = Parser::new(text)?;
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

    fn assertion(&mut self) -> Result<AssertionManifest, ParseError> {
        let (text, mut indices) = (self.string()?, Vec::new());
        self.expect("(")?;
        while !self.take(")") {
            indices.push(self.string()?);
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(AssertionManifest { text, indices })
    }

    fn print(&mut self) -> Result<PrintManifest, ParseError> {
        let operands = self.list("(", ")", |parser| {
            Ok(PrintedOperand { text: parser.string()?, element: parser.element()? })
        })?;
        let indices =
            self.list("[", "]", |parser| Ok(PrintedIndex { name: parser.string()?, number: parser.int()? }))?;
        Ok(PrintManifest { indices, operands })
    }

    fn kernel(&mut self) -> Result<Kernel, ParseError> {
        self.kernel = Kernel::new(self.string()?, Span::default());
        self.values.clear();
        self.axes.clear();
        self.kernel.span = self.span()?;
        self.expect("{")?;
        let wanted = "`hint`, `symbol`, `general`, `relies_on`, `chosen_by`, `buffer`, `argument`, `fact`, `injection`, `combiner`, `site`, \
             `launch` or `plan`";
        let (mut values, mut general, mut guard) = (Vec::new(), false, Guard::default());
        while !self.take("}") {
            match self.word(wanted)? {
                "hint" => self.hint()?,
                "symbol" => {
                    self.symbol()?;
                    values.push(if self.take("=") { Some(self.literal()?) } else { None });
                }
                "general" => general = true,
                "relies_on" => guard.relies_on.push(self.expression()?),
                "chosen_by" => guard.chosen_by.push(self.expression()?),
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
                "injection" => {
                    let text = self.string()?;
                    self.expect_word("line")?;
                    let line = self.int()?;
                    self.expect(":")?;
                    self.expect_word("argument")?;
                    let argument = self.int()?;
                    self.expect_word("in")?;
                    let low = self.expression()?;
                    self.expect("..")?;
                    let high = self.expression()?;
                    self.kernel.injections.push(InjectionManifest { argument, low, high, text, line });
                }
                "combiner" => self.own_combiner()?,
                "site" => {
                    self.next_in("site", self.kernel.sites.len())?;
                    let array = self.string()?;
                    self.expect_word("axis")?;
                    let axis = self.int()?;
                    let unsigned = self.take_word("unsigned");
                    let injection = if self.take_word("injection") { Some(self.int()?) } else { None };
                    let assertion = if self.take_word("assertion") { Some(self.assertion()?) } else { None };
                    let print = if self.take_word("print") { Some(self.print()?) } else { None };
                    let span = self.span()?;
                    self.kernel.sites.push(SiteData {
                        span,
                        array,
                        axis,
                        unsigned,
                        injection,
                        assertion,
                        print,
                    });
                }
                "launch" => {
                    self.next_in("launch", self.kernel.launches.len())?;
                    let name = self.string()?;
                    let phase = self.word("a phase")?;
                    let phase = Phase::ALL.into_iter().find(|known| known.name() == phase);
                    let phase = phase.ok_or_else(|| self.unexpected_before("a phase"))?;
                    let threads = if self.take_word("threads") { Some(self.int()?) } else { None };
                    let resident = if self.take_word("resident") { Some(self.int()?) } else { None };
                    let mut streams = Vec::new();
                    if self.take_word("streams") {
                        streams = self.list("[", "]", Self::declared_buffer)?;
                    }
                    let mut grid = None;
                    if self.take_word("grid") {
                        let counts = self.list("[", "]", |parser| parser.expression())?;
                        let counts = <[_; 3]>::try_from(counts);
                        grid = Some(counts.map_err(|_| self.unexpected_before("three block counts"))?);
                    }
                    self.tiling = if self.take_word("axes") { Some(self.tiling()?) } else { None };
                    let mut assume = Vec::new();
                    if self.take_word("assume") {
                        assume = self.list("[", "]", |parser| parser.expression())?;
                    }
                    let tiling = self.tiling.clone().map(Box::new);
                    let body = self.root()?;
                    let launch =
                        LaunchData { name, phase, body, threads, tiling, grid, assume, resident, streams };
                    self.kernel.launches.push(launch);
                }
                "plan" => self.kernel.plan = self.steps()?,
                _ => return Err(self.unexpected_before(wanted)),
            }
        }
        let of = if general { Specialization::general } else { Specialization::for_values };
        if values.iter().all(Option::is_none) {
            values.clear();
        }
        self.kernel.specialization = of(values).with_guard(guard);
        Ok(std::mem::replace(&mut self.kernel, Kernel::new("", Span::default())))
    }

    /// `own0 "merge" (v0: f32, v1: f32) { … } from [0.0]`; values and axes have numbers of their own.
    fn own_combiner(&mut self) -> Result<(), ParseError> {
        self.next_in("own", self.kernel.combiners.len())?;
        let name = self.string()?;
        let outer = std::mem::replace(&mut self.kernel, Kernel::new(&name, Span::default()));
        let offset = self.offset();
        let body = self.root_with_params()?;
        self.kernel.launches.push(LaunchData::code(&name, body));
        let params = self.kernel.blocks[body].params.clone();
        let types: Vec<_> = params.iter().map(|value| self.kernel.value_type(*value)).collect();
        let code = std::mem::replace(&mut self.kernel, outer);
        self.values.clear();
        self.axes.clear();
        let (types, others) = types.split_at(types.len() / 2);
        if types.is_empty() || types != others || types.len() > usize::from(u8::MAX) {
            return Err(self.error_at(offset, "expected the values of two contributions of the same types"));
        }
        self.expect_word("from")?;
        let mut of = types.iter();
        let identity = self.list("[", "]", |parser| {
            let ty = of.next().copied();
            parser.constant(ty)
        })?;
        let (types, code) = (types.to_vec(), std::sync::Arc::new(code));
        self.kernel.combiners.push(CombinerData { name, types, identity, code });
        Ok(())
    }

    /// `[i: 64, j: 64] layouts ["i = …", …]`.
    fn tiling(&mut self) -> Result<Tiling, ParseError> {
        let offset = self.offset();
        let axes = self.list("[", "]", |parser| {
            let name = parser.word("the name of an axis")?.to_string();
            parser.expect(":")?;
            Ok(TileAxis { name, extent: parser.int()? })
        })?;
        if axes.len() > MOST_AXES {
            return Err(self.error_at(offset, format!("a launch has at most {MOST_AXES} axes of tiles")));
        }
        let mut layouts = Vec::new();
        if self.take_word("layouts") {
            layouts = self.list("[", "]", |parser| {
                let (offset, text) = (parser.offset(), parser.string()?);
                text.parse::<ValueLayout>().map_err(|error| parser.error_at(offset, error.to_string()))
            })?;
        }
        Ok(Tiling { axes, layouts })
    }

    /// The value of a symbol.
    fn literal(&mut self) -> Result<Value, ParseError> {
        match self.expression()? {
            Expr::Int(value) => Ok(Value::Int(value.into())),
            Expr::Float(value) => Ok(Value::Float(value)),
            Expr::Bool(value) => Ok(Value::Bool(value)),
            _ => Err(self.unexpected_before("a literal")),
        }
    }

    fn symbol(&mut self) -> Result<(), ParseError> {
        self.next_in("sym", self.kernel.symbols.len())?;
        let name = self.string()?;
        let scalar = self.scalar()?;
        let wanted = "`dim`, `linear_dim`, `parameter` or `counter`";
        let kind = match self.word(wanted)? {
            "dim" => {
                SymbolKind::Dim { argument: self.int()?, axis: self.int()?, extent: LinearExtent::default() }
            }
            "linear_dim" => SymbolKind::Dim {
                argument: self.int()?,
                axis: self.int()?,
                extent: LinearExtent { factor: self.int()?, offset: self.int()? },
            },
            "parameter" => {
                SymbolKind::Parameter { argument: self.int()?, leaf: self.int()?, element: self.int()? }
            }
            "counter" => SymbolKind::Counter,
            _ => return Err(self.unexpected_before(wanted)),
        };
        self.kernel.symbols.push(SymbolData { name, kind, scalar });
        Ok(())
    }

    fn buffer(&mut self) -> Result<(), ParseError> {
        self.next_in("buf", self.kernel.buffers.len())?;
        let name = self.string()?;
        let element = self.element()?;
        let extents = self.list("[", "]", |parser| parser.expression())?;
        let wanted = "`argument`, `scratch`, `constant`, `static`, `private` or `shared`";
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
            "shared" => BufferKind::Shared,
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
        let runs_on = self.take_word("runs_on");
        let mut cache = None;
        if self.take(",") {
            self.expect_word("cache")?;
            let mode = self.word("a cache mode")?;
            cache = CacheMode::from_name(mode);
            if cache.is_none() {
                return Err(self.unexpected_before("`ca`, `cg`, `cs` or `nc`"));
            }
        }
        self.kernel.buffers.push(BufferData {
            name,
            kind,
            element,
            extents,
            layout,
            layout_fixed,
            cache,
            runs_on,
        });
        Ok(())
    }

    fn argument(&mut self) -> Result<(), ParseError> {
        let argument = if matches!(self.peek(), Token::Text(_)) {
            ArgumentData::Value { name: self.string()?, element: self.element()? }
        } else {
            let buffer = Buffer::from_u32(self.numbered("buf")?);
            let has_shape = *self.peek() == Token::Mark("[");
            let shape = has_shape.then(|| self.list("[", "]", |parser| parser.expression())).transpose()?;
            ArgumentData::Array { buffer, shape }
        };
        self.kernel.arguments.push(argument);
        Ok(())
    }

    pub(super) fn declared_buffer(&mut self) -> Result<Buffer, ParseError> {
        let offset = self.offset();
        let buffer = Buffer::from_u32(self.numbered("buf")?);
        match self.kernel.buffers.get(buffer) {
            Some(_) => Ok(buffer),
            None => Err(self.error_at(offset, format!("`{buffer}` is not declared"))),
        }
    }

    /// `{ launch0 repeat … { … } if … { … } else { … } while buf0 after { … } do { … } }`.
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
        if self.take_word("while") {
            let condition = Buffer::from_u32(self.numbered("buf")?);
            self.expect_word("after")?;
            let test = self.steps()?;
            self.expect_word("do")?;
            return Ok(Step::While { condition, test, body: self.steps()? });
        }
        Ok(Step::Launch(Launch::from_u32(self.numbered("launch")?)))
    }
}
