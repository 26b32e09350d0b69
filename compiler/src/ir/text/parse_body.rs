//! Parses instructions and their regions.

use super::cursor::Parser;
use super::error::ParseError;
use super::lexer::Token;
use crate::data::Scalar;
use crate::ir::entities::{Axis, Block, Buffer, Inst, OwnCombiner, Site, Symbol, Value};
use crate::ir::kernel::{
    Atom, AxisData, AxisSet, BlockData, Factor, FactorType, InstData, Level, Payload, Regions, Short, Tile,
};
use crate::ir::op::{Combiner, Constant, Opcode, PayloadKind};

/// A value that the text declares: its number there, name, type, and where.
struct Declared {
    number: u32,
    name: Option<String>,
    ty: Scalar,
    tile: Tile,
    offset: usize,
}

impl Parser<'_> {
    /// A launch's root block.
    pub fn root(&mut self) -> Result<Block, ParseError> {
        let block = self.kernel.blocks.push(BlockData::default());
        self.block(block)?;
        Ok(block)
    }

    /// The block of a combiner's code, with its parameters.
    pub fn root_with_params(&mut self) -> Result<Block, ParseError> {
        let block = self.kernel.blocks.push(BlockData::default());
        self.params(block)?;
        self.block(block)?;
        Ok(block)
    }

    /// `{ instructions }`.
    fn block(&mut self, block: Block) -> Result<(), ParseError> {
        self.nested(|parser| {
            parser.expect("{")?;
            while !parser.take("}") {
                parser.inst(block)?;
            }
            Ok(())
        })
    }

    /// A region of `inst`, with its parameters.
    fn region(&mut self, inst: Inst) -> Result<(), ParseError> {
        let block = self.kernel.blocks.push(BlockData::default());
        self.kernel.insts[inst].regions.push(block);
        self.params(block)?;
        self.block(block)
    }

    fn params(&mut self, block: Block) -> Result<(), ParseError> {
        if *self.peek() == Token::Mark("(") {
            for declared in self.list("(", ")", Self::declared)? {
                let value = self.kernel.add_param(block, declared.ty);
                self.declare(declared, value)?;
            }
        }
        Ok(())
    }

    /// `v3 "name": f32`.
    fn declared(&mut self) -> Result<Declared, ParseError> {
        let offset = self.offset();
        let number = self.numbered("v")?;
        let name = if matches!(self.peek(), Token::Text(_)) { Some(self.string()?) } else { None };
        self.expect(":")?;
        Ok(Declared { number, name, ty: self.scalar()?, tile: self.tile()?, offset })
    }

    /// `{i, j} layout0`, if it is next.
    fn tile(&mut self) -> Result<Tile, ParseError> {
        // A region of a value's type never follows it without a word between.
        if self.tiling.is_none() || *self.peek() != Token::Mark("{") {
            return Ok(Tile::SCALAR);
        }
        let axes: AxisSet = self.list("{", "}", Self::tile_axis)?.into_iter().collect();
        let numbered = matches!(self.peek(), Token::Word(word) if word.starts_with("layout"));
        let layout = if numbered { Some(self.numbered("layout")?) } else { None };
        let layout =
            layout.map(|number| u16::try_from(number).map_err(|_| self.unexpected_before("a layout")));
        Ok(Tile { axes, layout: layout.transpose()? })
    }

    /// The number of an axis of the launch's tiles, by its name.
    fn tile_axis(&mut self) -> Result<usize, ParseError> {
        let name = self.word("the name of an axis")?;
        let axis = self.tiling.as_ref().and_then(|tiling| tiling.axis(name));
        axis.ok_or_else(|| self.unexpected_before("an axis that the launch declares"))
    }

    fn declare(&mut self, declared: Declared, value: Value) -> Result<(), ParseError> {
        self.kernel.values[value].name = declared.name.map(Into::into);
        self.kernel.values[value].tile = declared.tile;
        match self.values.insert(declared.number, value) {
            None => Ok(()),
            Some(_) => {
                Err(self.error_at(declared.offset, format!("`v{}` is defined twice", declared.number)))
            }
        }
    }

    fn operand(&mut self) -> Result<Value, ParseError> {
        let offset = self.offset();
        let number = self.numbered("v")?;
        let value = self.values.get(&number).copied();
        value.ok_or_else(|| self.error_at(offset, format!("`v{number}` is not defined before this")))
    }

    fn inst(&mut self, block: Block) -> Result<(), ParseError> {
        let mut results = Vec::new();
        let defines = matches!(self.peek(), Token::Word(word)
            if word.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
        if defines {
            results.push(self.declared()?);
            while self.take(",") {
                results.push(self.declared()?);
            }
            self.expect("=")?;
        }
        let opcode = Opcode::from_mnemonic(self.word("an operation")?);
        let opcode = opcode.ok_or_else(|| self.unexpected_before("an operation"))?;
        let (payload, arguments) = self.operation(opcode, results.first().map(|result| result.ty))?;
        let span = self.span()?;
        let inst = self.kernel.insts.push(InstData {
            opcode,
            payload,
            arguments: arguments.into(),
            results: Short::new(),
            regions: Regions::new(),
            span,
        });
        self.kernel.blocks[block].insts.push(inst);
        match opcode {
            Opcode::Forall | Opcode::Reduce | Opcode::For => self.region(inst)?,
            Opcode::While => {
                self.region(inst)?;
                self.expect_word("do")?;
                self.region(inst)?;
            }
            Opcode::If => {
                self.region(inst)?;
                self.expect_word("else")?;
                self.region(inst)?;
            }
            _ => {}
        }
        for declared in results {
            let value = self.kernel.add_result(inst, declared.ty);
            self.declare(declared, value)?;
        }
        Ok(())
    }

    /// What follows the mnemonic: payload and operands.
    fn operation(
        &mut self,
        opcode: Opcode,
        result: Option<Scalar>,
    ) -> Result<(Payload, Vec<Value>), ParseError> {
        Ok(match opcode.info().payload {
            PayloadKind::None if opcode == Opcode::While => {
                (Payload::None, self.list("[", "]", Self::operand)?)
            }
            PayloadKind::None => (Payload::None, self.operands()?),
            PayloadKind::Constant => (Payload::Constant(self.constant(result)?), Vec::new()),
            PayloadKind::Symbol => (Payload::Symbol(Symbol::from_u32(self.numbered("sym")?)), Vec::new()),
            PayloadKind::Cast => (Payload::Cast(self.scalar()?), self.operands()?),
            PayloadKind::Access => {
                use Opcode::{CopyAsync, CopyAsyncIf, LoadIf, StoreEach, StoreIf, StoreVector};
                let several =
                    matches!(opcode, StoreVector | StoreIf | StoreEach | LoadIf | CopyAsync | CopyAsyncIf);
                let (buffer, leaf, mut arguments) = self.access(several || opcode == Opcode::Store)?;
                while several && self.take(",") {
                    arguments.push(self.operand()?);
                }
                (Payload::Access { buffer, leaf }, arguments)
            }
            PayloadKind::Grid => (Payload::Grid(self.int()?), Vec::new()),
            PayloadKind::Lanes => {
                let mask = self.int()?;
                let operands = if self.take(":") { self.operands()? } else { Vec::new() };
                (Payload::Lanes(mask), operands)
            }
            PayloadKind::Outer => {
                let rows = self.int()?;
                self.expect(":")?;
                (Payload::Outer(rows), self.operands()?)
            }
            PayloadKind::Index => (Payload::Index(self.tile_axis()? as u8), Vec::new()),
            PayloadKind::Along => {
                let combiners = self.list("[", "]", Self::combiner)?;
                let mut axes = AxisSet::one(self.tile_axis()?);
                while self.take(",") {
                    axes = axes.union(AxisSet::one(self.tile_axis()?));
                }
                self.expect(":")?;
                (Payload::Along { axes, combiners: combiners.into() }, self.operands()?)
            }
            PayloadKind::Contract => {
                let named = [Atom::Mma, Atom::Tf32].into_iter().find(|atom| self.take_word(atom.name()));
                let along = self.list("[", "]", Self::tile_axis)?.into_iter().collect();
                (Payload::Contract { along, atom: named.unwrap_or(Atom::Fma) }, self.operands()?)
            }
            PayloadKind::Mma => {
                let (left, right) = (self.factor_type()?, self.factor_type()?);
                self.expect(":")?;
                (Payload::Mma { left, right }, self.operands()?)
            }
            PayloadKind::Atomic => {
                let op = self.combiner()?;
                let (buffer, leaf, arguments) = self.access(true)?;
                (Payload::Atomic { buffer, leaf, op }, arguments)
            }
            PayloadKind::Site => {
                let site = Site::from_u32(self.numbered("site")?);
                self.expect(":")?;
                (Payload::Site(site), self.operands()?)
            }
            PayloadKind::Loop => {
                let (axes, mut arguments) = self.axes()?;
                if opcode == Opcode::For {
                    self.expect_word("step")?;
                    arguments.push(self.operand()?);
                    if self.take_word("carry") {
                        arguments.extend(self.list("[", "]", Self::operand)?);
                    }
                }
                (Payload::Loop { axes: axes.into() }, arguments)
            }
            PayloadKind::Reduce => {
                let combiners = self.list("[", "]", Self::combiner)?;
                let (axes, arguments) = self.axes()?;
                (Payload::Reduce { axes: axes.into(), combiners: combiners.into() }, arguments)
            }
        })
    }

    /// The type of a factor of a matrix instruction.
    fn factor_type(&mut self) -> Result<FactorType, ParseError> {
        let name = self.word("the type of a factor")?;
        FactorType::from_name(name).ok_or_else(|| self.unexpected_before("the type of a factor"))
    }

    /// Whether a value comes that is not the first result of the next instruction, which has a name or a type.
    fn is_operand(&self) -> bool {
        matches!(self.peek(), Token::Word(word)
            if word.strip_prefix('v').is_some_and(|digits| digits.parse::<u32>().is_ok()))
            && !matches!(self.peek_second(), Token::Mark(":") | Token::Text(_))
    }

    /// Operands up to the end of the instruction. What follows an operand without a comma is the next
    /// instruction.
    fn operands(&mut self) -> Result<Vec<Value>, ParseError> {
        let mut operands = Vec::new();
        if !self.is_operand() {
            return Ok(operands);
        }
        operands.push(self.operand()?);
        while self.take(",") {
            operands.push(self.operand()?);
        }
        Ok(operands)
    }

    fn combiner(&mut self) -> Result<Combiner, ParseError> {
        let word = self.word("a combiner")?;
        let own = word.strip_prefix("own").and_then(|number| number.parse().ok()).map(OwnCombiner::from_u32);
        let own = own.filter(|own| self.kernel.combiners.is_valid(*own));
        let own = own.map(|own| self.kernel.own_combiner(own));
        let combiner = Combiner::ALL.into_iter().find(|combiner| combiner.name() == word).or(own);
        combiner.ok_or_else(|| self.unexpected_before("a combiner"))
    }

    /// A literal of the result's type.
    pub fn constant(&mut self, ty: Option<Scalar>) -> Result<Constant, ParseError> {
        let offset = self.offset();
        let negative = self.take("-");
        let token = self.peek().clone();
        self.advance();
        let number = |value: f64| if negative { -value } else { value };
        Ok(match (ty, token) {
            (Some(Scalar::Bool), Token::Word(word @ ("true" | "false"))) => Constant::Bool(word == "true"),
            (Some(Scalar::F32), Token::Hex(bits)) if u32::try_from(bits).is_ok() => {
                Constant::F32(bits as u32)
            }
            (Some(Scalar::F64), Token::Hex(bits)) => Constant::F64(bits),
            (Some(Scalar::F32), Token::Float(_, value)) => {
                Constant::F32((number(f64::from(value)) as f32).to_bits())
            }
            (Some(Scalar::F64), Token::Float(value, _)) => Constant::F64(number(value).to_bits()),
            (Some(Scalar::F32), Token::Word("inf")) => {
                Constant::F32((number(f64::INFINITY) as f32).to_bits())
            }
            (Some(Scalar::F64), Token::Word("inf")) => Constant::F64(number(f64::INFINITY).to_bits()),
            (Some(scalar), Token::Int(value)) if scalar.is_integer() => {
                Constant::Int(scalar, if negative { -value } else { value })
            }
            (Some(scalar), _) => {
                return Err(self.error_at(offset, format!("expected a literal of type {scalar}")));
            }
            (None, _) => return Err(self.error_at(offset, "a constant needs a result: `v0: i64 = const 1`")),
        })
    }

    /// `buf0.x[v1, v2]`, and `, v3` for the value that is written.
    fn access(&mut self, writes: bool) -> Result<(Buffer, u32, Vec<Value>), ParseError> {
        let offset = self.offset();
        let buffer = self.declared_buffer()?;
        let mut path = String::new();
        while self.take(".") {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(self.word("a field")?);
        }
        let data = &self.kernel.buffers[buffer];
        let Some(leaf) = data.element.leaves.iter().position(|leaf| leaf.path == path) else {
            return Err(self.error_at(offset, format!("`{buffer}` has no leaf {path:?}")));
        };
        let mut arguments = self.list("[", "]", Self::operand)?;
        if writes {
            self.expect(",")?;
            arguments.push(self.operand()?);
        }
        Ok((buffer, leaf as u32, arguments))
    }

    /// `axis0 "i" = v0..v1 [grid:*, lane:32] nounroll, …`.
    fn axes(&mut self) -> Result<(Vec<Axis>, Vec<Value>), ParseError> {
        let (mut axes, mut bounds) = (Vec::new(), Vec::new());
        loop {
            let offset = self.offset();
            let number = self.numbered("axis")?;
            let name = self.string()?;
            self.expect("=")?;
            bounds.push(self.operand()?);
            self.expect("..")?;
            bounds.push(self.operand()?);
            let mut factors = Vec::new();
            if *self.peek() == Token::Mark("[") {
                factors = self.list("[", "]", Self::factor)?;
            }
            let nounroll = self.take_word("nounroll");
            let axis = self.kernel.axes.push(AxisData { name, factors, nounroll });
            if self.axes.insert(number, axis).is_some() {
                return Err(self.error_at(offset, format!("`axis{number}` is defined twice")));
            }
            axes.push(axis);
            if !self.take(",") {
                return Ok((axes, bounds));
            }
        }
    }

    /// `lane:32`, `grid:*`.
    fn factor(&mut self) -> Result<Factor, ParseError> {
        let word = self.word("a level")?;
        let level = Level::ALL.into_iter().find(|level| level.name() == word);
        let level = level.ok_or_else(|| self.unexpected_before("a level"))?;
        self.expect(":")?;
        let size = if self.take("*") { None } else { Some(self.int()?) };
        Ok(Factor { level, size })
    }
}
