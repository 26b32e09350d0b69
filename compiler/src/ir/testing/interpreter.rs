//! Runs kernels instruction by instruction: every loop in order, every access checked against its extents.

use super::tiles::place;
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::evaluate;
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase, Step, Tiling};
use crate::ir::op::{Combiner, Constant, Effect, Opcode};
use crate::manifest;
use cranelift_entity::SecondaryMap;
use std::collections::BTreeMap;

/// What all buffers hold: by buffer and leaf, the scalars in order, widened.
pub type Memory = BTreeMap<(Buffer, u32), Vec<Constant>>;

/// How a run ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// All buffers that outlive the kernel.
    Finished(Memory),
    /// A bounds check failed.
    CheckFailed,
    /// It ran longer than a test may.
    OutOfFuel,
    /// An access outside its buffer, which no kernel may make.
    OutOfBounds(String),
}

pub(super) enum Stop {
    OutOfFuel,
    OutOfBounds(String),
}

pub(super) struct Interpreter<'k> {
    pub(super) kernel: &'k Kernel,
    symbols: Vec<Constant>,
    pub(super) values: SecondaryMap<Value, Option<Constant>>,
    /// The elements of tiles, the last axis fastest.
    pub(super) tiles: SecondaryMap<Value, Option<Vec<Constant>>>,
    /// The element that an op is run for, by its coordinates along the axes of `tiling`.
    pub(super) point: Vec<u64>,
    /// Of the launch that is run.
    tiling: Option<&'k Tiling>,
    pub(super) memory: Memory,
    pub(super) fuel: u64,
    /// Whether a bounds check has failed.
    failed: bool,
    /// Block in x, y, z, and the thread, of an explicit grid.
    pub(super) place_in_grid: [i128; 4],
    grid_size: [i128; 3],
}

impl<'k> Interpreter<'k> {
    /// Without memory.
    fn new(kernel: &'k Kernel, symbols: &[Constant]) -> Self {
        Self {
            kernel,
            symbols: symbols.to_vec(),
            values: SecondaryMap::new(),
            tiles: SecondaryMap::new(),
            point: Vec::new(),
            tiling: None,
            memory: Memory::new(),
            fuel: FUEL * most_warps(kernel),
            failed: false,
            place_in_grid: [0; 4],
            grid_size: [1; 3],
        }
    }
}

/// Instructions of a thread, or of a warp where threads are explicit, that are enough for every program that ends.
const FUEL: u64 = 2_000_000;

/// Warps of a block, of the launch that has the most of them.
fn most_warps(kernel: &Kernel) -> u64 {
    let staged = kernel.launches.values().filter(|launch| launch.phase == Phase::Staged);
    let threads = staged.filter_map(|launch| launch.threads).max().unwrap_or(1);
    threads.div_ceil(32).into()
}

/// Runs the plan with the symbols' values (repeat counters are set by the plan). Buffers start as `fill` says,
/// by buffer, leaf and position; the value is narrowed to the leaf's type.
pub fn interpret(kernel: &Kernel, symbols: &[Constant], fill: &dyn Fn(Buffer, u32, usize) -> i64) -> Outcome {
    let mut interpreter = Interpreter::new(kernel, symbols);
    for (buffer, data) in &kernel.buffers {
        let count: usize = interpreter.extents(buffer).iter().product();
        for (leaf, data) in data.element.leaves.iter().enumerate() {
            let scalars = (0..count * data.count() as usize).map(|at| {
                let value = fill(buffer, leaf as u32, at);
                match data.scalar {
                    Scalar::Bool => Constant::Bool(value & 1 == 1),
                    scalar if scalar.is_float() => round(Constant::F64(special(value).to_bits()), scalar),
                    scalar => round(Constant::Int(Scalar::I64, value.into()), scalar),
                }
            });
            let scalars = scalars.collect();
            interpreter.memory.insert((buffer, leaf as u32), scalars);
        }
    }
    match interpreter.steps(&kernel.plan) {
        // What a failed run computes is nobody's business, but it must not leave its buffers.
        Ok(()) | Err(Stop::OutOfFuel) if interpreter.failed => Outcome::CheckFailed,
        Ok(()) => {
            let mut memory = interpreter.memory;
            // What a launch has for itself only is not a result.
            let own = [BufferKind::Private, BufferKind::Shared, BufferKind::Scratch];
            memory.retain(|(buffer, _), _| !own.contains(&kernel.buffers[*buffer].kind));
            Outcome::Finished(memory)
        }
        Err(Stop::OutOfFuel) => Outcome::OutOfFuel,
        Err(Stop::OutOfBounds(message)) => Outcome::OutOfBounds(message),
    }
}

/// Bits of an address that say the place in a buffer; those above say which one.
const ADDRESS_BITS: u32 = 48;

/// Mostly small numbers, with the values that careless rules get wrong.
fn special(value: i64) -> f64 {
    match value.rem_euclid(7) {
        0 => -0.0,
        1 => f64::NAN,
        2 => f64::INFINITY,
        _ => value as f64 / 4.0,
    }
}

/// To a storage type and back.
fn round(value: Constant, to: Scalar) -> Constant {
    let through = if to.is_float() && to.is_narrow() {
        evaluate(Opcode::Cast, &Payload::Cast(Scalar::F32), &[value]).unwrap_or(value)
    } else {
        value
    };
    evaluate(Opcode::Cast, &Payload::Cast(to), &[through]).unwrap_or(through)
}

/// The bits of a value in memory, as an element of a type of at most 32 bits.
pub(super) fn element_bits(scalar: Scalar, value: Constant) -> u32 {
    let float = |constant| match constant {
        Constant::F32(bits) => f32::from_bits(bits),
        other => as_f64(other) as f32,
    };
    match scalar {
        Scalar::F16 => half::f16::from_f32(float(value)).to_bits().into(),
        Scalar::BF16 => half::bf16::from_f32(float(value)).to_bits().into(),
        Scalar::F32 => float(value).to_bits(),
        Scalar::I8 | Scalar::U8 => u32::from(as_int(value) as u8),
        Scalar::I16 | Scalar::U16 => u32::from(as_int(value) as u16),
        _ => as_int(value) as u32,
    }
}

fn as_f64(constant: Constant) -> f64 {
    match constant {
        Constant::Bool(value) => f64::from(u8::from(value)),
        Constant::Int(_, value) => value as f64,
        Constant::F32(bits) => f32::from_bits(bits).into(),
        Constant::F64(bits) => f64::from_bits(bits),
    }
}

pub(super) fn as_int(constant: Constant) -> i128 {
    match constant {
        Constant::Int(_, value) => value,
        other => as_f64(other) as i128,
    }
}

/// Two contributions as one.
pub(super) fn combine(kernel: &Kernel, combiner: Combiner, a: &[Constant], b: &[Constant]) -> Vec<Constant> {
    if let Combiner::Own(own, _) = combiner {
        let data = &kernel.combiners[own];
        let mut inner = Interpreter::new(&data.code, &[]);
        let body = data.body().expect("a combiner has code");
        inner.bind(body, &[a, b].concat());
        return inner.block(body).unwrap_or_else(|_| panic!("the code of `{own}` is pure, and ends"));
    }
    match combiner.opcode() {
        Some(opcode) => vec![evaluate(opcode, &Payload::None, &[a[0], b[0]]).expect("combiners are exact")],
        None if replaces(combiner, (a[0], as_int(a[1])), (b[0], as_int(b[1]))) => b.to_vec(),
        None => a.to_vec(),
    }
}

/// Whether the pair `b` takes the place of `a` (whose index is -1 before the first). Indices are compared as unsigned
/// numbers.
fn replaces(combiner: Combiner, a: (Constant, i128), b: (Constant, i128)) -> bool {
    let (x, y) = (as_f64(a.0), as_f64(b.0));
    let ahead = if x.is_nan() || y.is_nan() {
        (!x.is_nan() && y.is_nan(), x.is_nan() && y.is_nan())
    } else {
        let order = match (a.0, b.0) {
            (Constant::Int(_, x), Constant::Int(_, y)) => y.cmp(&x),
            _ => y.total_cmp(&x),
        };
        let least = combiner == Combiner::ArgMin;
        (if least { order.is_lt() } else { order.is_gt() }, order.is_eq())
    };
    a.1 == -1 || ahead.0 || (ahead.1 && (b.1 as u64) < a.1 as u64)
}

impl Interpreter<'_> {
    fn host(&self, expr: &manifest::Expr) -> i128 {
        let symbols: Vec<manifest::Value> = self
            .symbols
            .iter()
            .map(|symbol| match symbol {
                Constant::Int(_, value) => manifest::Value::Int(*value),
                Constant::Bool(value) => manifest::Value::Bool(*value),
                other => manifest::Value::Float(as_f64(*other)),
            })
            .collect();
        match expr.evaluate(&symbols) {
            Some(manifest::Value::Int(value)) => value,
            Some(manifest::Value::Bool(value)) => value.into(),
            _ => panic!("{expr:?} has no integer value"),
        }
    }

    fn extents(&self, buffer: Buffer) -> Vec<usize> {
        self.kernel.buffers[buffer].extents.iter().map(|extent| self.host(extent).max(0) as usize).collect()
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for step in steps {
            match step {
                Step::Launch(launch) => {
                    let data = &self.kernel.launches[*launch];
                    self.tiling = data.tiling.as_deref();
                    match &data.grid {
                        Some(grid) => self.grid(data.body, grid, data.threads.unwrap_or(1))?,
                        None => {
                            self.block(data.body)?;
                        }
                    }
                }
                Step::Repeat { symbol, low, high, step, body } => {
                    let (mut counter, high, step) = (self.host(low), self.host(high), self.host(step));
                    while counter < high {
                        self.symbols[symbol.as_u32() as usize] = Constant::Int(Scalar::I64, counter);
                        self.steps(body)?;
                        counter += step;
                    }
                }
                Step::Branch { condition, then, otherwise } => {
                    self.steps(if self.host(condition) != 0 { then } else { otherwise })?;
                }
                Step::While { condition, test, body } => loop {
                    self.steps(test)?;
                    if self.memory[&(*condition, 0)][0] != Constant::Bool(true) {
                        break;
                    }
                    self.steps(body)?;
                },
            }
        }
        Ok(())
    }

    /// Runs the blocks of an explicit grid one after the other, and threads that neither exchange values nor wait for each other
    /// likewise.
    fn grid(&mut self, body: Block, grid: &[manifest::Expr; 3], threads: u32) -> Result<(), Stop> {
        let counts = [0, 1, 2].map(|axis| self.host(&grid[axis]));
        let mut together = false;
        self.kernel.walk(body, &mut |_, inst| {
            together |= self.kernel.insts[inst].opcode.info().effect == Effect::Collective;
        });
        for z in 0..counts[2] {
            for y in 0..counts[1] {
                for x in 0..counts[0] {
                    self.place_in_grid = [x, y, z, 0];
                    self.grid_size = counts;
                    match self.tiling {
                        Some(tiling) => self.tile_block(body, tiling).map(drop)?,
                        None if together => self.team(body, threads as usize)?,
                        None => {
                            for thread in 0..i128::from(threads) {
                                self.place_in_grid[3] = thread;
                                self.block(body)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The value, or of a tile the element at the point.
    pub(super) fn get(&self, value: Value) -> Constant {
        if let Some(tiling) = self.tiling
            && let axes = self.kernel.tile(value).axes
            && !axes.is_empty()
        {
            let elements = self.tiles[value].as_ref();
            let elements = elements.unwrap_or_else(|| panic!("{value} is used before its definition"));
            return elements[place(tiling, axes, &self.point)];
        }
        self.values[value].unwrap_or_else(|| panic!("{value} is used before its definition"))
    }

    fn bind(&mut self, block: Block, values: &[Constant]) {
        for (param, value) in self.kernel.blocks[block].params.clone().iter().zip(values) {
            self.values[*param] = Some(*value);
        }
    }

    /// Runs a block; what it yields.
    fn block(&mut self, block: Block) -> Result<Vec<Constant>, Stop> {
        for inst in &self.kernel.blocks[block].insts {
            self.fuel = self.fuel.checked_sub(1).ok_or(Stop::OutOfFuel)?;
            let data = &self.kernel.insts[*inst];
            if data.opcode == Opcode::Yield {
                return Ok(data.arguments.iter().map(|value| self.get(*value)).collect());
            }
            let results = self.inst(*inst)?;
            for (value, result) in data.results.iter().zip(results) {
                self.values[*value] = Some(result);
            }
        }
        Ok(Vec::new())
    }

    pub(super) fn inst(&mut self, inst: Inst) -> Result<Vec<Constant>, Stop> {
        let data = &self.kernel.insts[inst];
        let operands: Vec<Constant> = data.arguments.iter().map(|value| self.get(*value)).collect();
        match (data.opcode, &data.payload) {
            (_, Payload::Symbol(symbol)) => {
                let value = self.symbols[symbol.as_u32() as usize];
                Ok(vec![round(value, self.kernel.symbols[*symbol].scalar)])
            }
            (Opcode::BlockIndex, Payload::Grid(axis)) => {
                Ok(vec![Constant::Int(Scalar::I64, self.place_in_grid[usize::from(*axis)])])
            }
            (Opcode::GridSize, Payload::Grid(axis)) => {
                Ok(vec![Constant::Int(Scalar::I64, self.grid_size[usize::from(*axis)])])
            }
            (Opcode::ThreadIndex, _) => Ok(vec![Constant::Int(Scalar::I64, self.place_in_grid[3])]),
            (Opcode::Load, Payload::Access { buffer, leaf }) => {
                let at = self.place(*buffer, *leaf, &operands)?;
                Ok(vec![self.memory[&(*buffer, *leaf)][at]])
            }
            (Opcode::LoadIf, Payload::Access { buffer, leaf }) => {
                let (condition, indices) = operands.split_last().expect("a condition");
                if *condition != Constant::Bool(true) {
                    let zero = match self.kernel.value_type(data.results[0]).widened() {
                        Scalar::Bool => Constant::Bool(false),
                        Scalar::F32 => Constant::F32(0),
                        Scalar::F64 => Constant::F64(0),
                        scalar => Constant::Int(scalar, 0),
                    };
                    return Ok(vec![zero; data.results.len()]);
                }
                let places = self.neighbours(*buffer, *leaf, indices, data.results.len())?;
                Ok(places.into_iter().map(|(leaf, at)| self.memory[&(*buffer, leaf)][at]).collect())
            }
            (Opcode::LoadVector, Payload::Access { buffer, leaf }) => {
                let places = self.neighbours(*buffer, *leaf, &operands, data.results.len())?;
                Ok(places.into_iter().map(|(leaf, at)| self.memory[&(*buffer, leaf)][at]).collect())
            }
            (Opcode::StoreVector, Payload::Access { buffer, leaf }) => {
                let (indices, values) = operands.split_at(self.kernel.buffers[*buffer].extents.len());
                let places = self.neighbours(*buffer, *leaf, indices, values.len())?;
                for ((leaf, at), value) in places.into_iter().zip(values) {
                    self.write(*buffer, leaf, at, *value);
                }
                Ok(Vec::new())
            }
            (Opcode::Store, Payload::Access { buffer, leaf }) => {
                let (value, indices) = operands.split_last().expect("a value");
                let at = self.place(*buffer, *leaf, indices)?;
                self.write(*buffer, *leaf, at, *value);
                Ok(Vec::new())
            }
            (Opcode::StoreIf, Payload::Access { buffer, leaf }) => {
                let [indices @ .., value, condition] = &operands[..] else {
                    panic!("a value and a condition")
                };
                if *condition == Constant::Bool(true) {
                    let at = self.place(*buffer, *leaf, indices)?;
                    self.write(*buffer, *leaf, at, *value);
                }
                Ok(Vec::new())
            }
            (Opcode::StoreEach, Payload::Access { buffer, leaf }) => {
                let subscripts = self.kernel.rank(*buffer, *leaf) - 1;
                let (shared, rest) = operands.split_at(subscripts);
                let count = rest.len() / 3;
                for lane in 0..count {
                    if rest[2 * count + lane] == Constant::Bool(true) {
                        let indices = [shared, &rest[lane..=lane]].concat();
                        let at = self.place(*buffer, *leaf, &indices)?;
                        self.write(*buffer, *leaf, at, rest[count + lane]);
                    }
                }
                Ok(Vec::new())
            }
            (_, Payload::Atomic { buffer, leaf, op }) => {
                let (value, indices) = operands.split_last().expect("a value");
                let at = self.place(*buffer, *leaf, indices)?;
                let known = self.memory[&(*buffer, *leaf)][at];
                let combined = combine(self.kernel, *op, &[known], &[*value]);
                self.write(*buffer, *leaf, at, combined[0]);
                Ok(Vec::new())
            }
            // A number for each place in memory, also outside of the array.
            (Opcode::Address, Payload::Access { buffer, leaf }) => {
                let element = &self.kernel.buffers[*buffer].element;
                let (size, offset) = (element.size as i128, element.leaves[*leaf as usize].offset as i128);
                let extents = self.extents(*buffer);
                let place = operands
                    .iter()
                    .zip(extents)
                    .fold(0, |place, (index, extent)| place * extent as i128 + as_int(*index));
                let address = (i128::from(buffer.as_u32() + 1) << ADDRESS_BITS) + place * size + offset;
                Ok(vec![Constant::Int(Scalar::I64, address)])
            }
            (Opcode::CopyAsync | Opcode::CopyAsyncIf, Payload::Access { buffer, leaf }) => {
                let rank = self.kernel.rank(*buffer, *leaf);
                let (indices, rest) = operands.split_at(rank);
                let size = self.kernel.buffers[*buffer].element.size as i128;
                let (address, count) = (as_int(rest[0]), (as_int(rest[1]) / size) as usize);
                let at = self.place(*buffer, *leaf, indices)?;
                let values = match rest.get(2) {
                    Some(Constant::Bool(false)) => {
                        let scalar = self.kernel.buffers[*buffer].element.leaves[0].scalar.widened();
                        vec![self.kernel.identities(Combiner::Add, scalar)[0]; count]
                    }
                    _ => self.at_address(address, count)?,
                };
                if at + count > self.memory[&(*buffer, *leaf)].len() {
                    return Err(Stop::OutOfBounds(format!("{buffer}: {count} elements from {at}")));
                }
                for (lane, value) in values.into_iter().enumerate() {
                    self.write(*buffer, *leaf, at + lane, value);
                }
                Ok(Vec::new())
            }
            (Opcode::CopyCommit | Opcode::CopyWait, _) => Ok(Vec::new()),
            (Opcode::Pack, Payload::Cast(scalar)) => {
                let bits = operands.iter().map(|operand| element_bits(*scalar, *operand));
                let shifted = bits.enumerate().map(|(at, bits)| bits << (8 * scalar.size() as usize * at));
                Ok(vec![Constant::Int(Scalar::U32, i128::from(shifted.fold(0, |word, bits| word | bits)))])
            }
            (Opcode::Check, _) => {
                self.failed |= operands[0] != Constant::Bool(true);
                Ok(Vec::new())
            }
            (Opcode::Print, _) => Ok(Vec::new()),
            (Opcode::If, _) => {
                let taken = usize::from(operands[0] != Constant::Bool(true));
                self.block(data.regions[taken])
            }
            (Opcode::While, _) => {
                let mut carried = operands;
                loop {
                    self.bind(data.regions[0], &carried);
                    if self.block(data.regions[0])? != [Constant::Bool(true)] {
                        return Ok(carried);
                    }
                    self.bind(data.regions[1], &carried);
                    carried = self.block(data.regions[1])?;
                }
            }
            (Opcode::For, _) => {
                let (mut index, high, step) = (as_int(operands[0]), as_int(operands[1]), as_int(operands[2]));
                let mut carried = operands[3..].to_vec();
                while index < high {
                    let params: Vec<Constant> =
                        [Constant::Int(Scalar::I64, index)].into_iter().chain(carried).collect();
                    self.bind(data.regions[0], &params);
                    carried = self.block(data.regions[0])?;
                    index += step;
                }
                Ok(carried)
            }
            (Opcode::Forall, _) => {
                self.space(data.regions[0], &operands, &mut Vec::new(), &mut |_, _| {})?;
                Ok(Vec::new())
            }
            (Opcode::Outer | Opcode::OuterFma, _) => {
                let (rows, columns, sums) = data.outer_operands().expect("a verified kernel");
                let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
                let next = |((row, column), sum): ((&Value, &Value), &Value)| {
                    let [row, column, sum] = [row, column, sum].map(|value| self.get(*value));
                    let of = |opcode, operands: &[Constant]| {
                        evaluate(opcode, &Payload::None, operands).expect("floats")
                    };
                    if data.opcode == Opcode::OuterFma {
                        return of(Opcode::Fma, &[row, column, sum]);
                    }
                    let product = of(Opcode::Mul, &[row, column]);
                    of(Opcode::Add, &[sum, product])
                };
                Ok(pairs.zip(sums).map(next).collect())
            }
            (Opcode::Reduce, Payload::Reduce { combiners, .. }) => self.reduce(inst, combiners, &operands),
            (opcode, payload) => Ok(vec![evaluate(opcode, payload, &operands).unwrap_or_else(|| {
                // Any function will do, as long as it is one.
                let sum: f64 = operands.iter().map(|operand| as_f64(*operand)).sum();
                let value = Constant::F64((sum * 0.75 + f64::from(opcode as u8)).to_bits());
                round(value, self.kernel.value_type(data.results[0]))
            })]),
        }
    }

    /// Runs the body for every point of the space of `(low, high)` pairs.
    fn space(
        &mut self,
        body: Block,
        bounds: &[Constant],
        point: &mut Vec<Constant>,
        visit: &mut dyn FnMut(&[Constant], Vec<Constant>),
    ) -> Result<(), Stop> {
        let Some((pair, rest)) = bounds.split_first_chunk::<2>() else {
            self.bind(body, point);
            let yielded = self.block(body)?;
            visit(point, yielded);
            return Ok(());
        };
        for index in as_int(pair[0])..as_int(pair[1]) {
            point.push(Constant::Int(Scalar::I64, index));
            self.space(body, rest, point, visit)?;
            point.pop();
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        inst: Inst,
        combiners: &[Combiner],
        bounds: &[Constant],
    ) -> Result<Vec<Constant>, Stop> {
        let data = &self.kernel.insts[inst];
        let types: Vec<Scalar> = data.results.iter().map(|value| self.kernel.value_type(*value)).collect();
        let mut state = Vec::new();
        for combiner in combiners {
            state.extend(self.kernel.identities(*combiner, types[state.len()]));
        }
        let kernel = self.kernel;
        self.space(data.regions[0], bounds, &mut Vec::new(), &mut |_, yielded| {
            let mut at = 0;
            for combiner in combiners {
                let part = at..at + combiner.width();
                let both = combine(kernel, *combiner, &state[part.clone()], &yielded[part.clone()]);
                state[part.clone()].copy_from_slice(&both);
                at = part.end;
            }
        })?;
        Ok(state)
    }

    /// So many scalars in memory, from an address on. Elements are one scalar.
    fn at_address(&self, address: i128, count: usize) -> Result<Vec<Constant>, Stop> {
        let number = (address + (1 << (ADDRESS_BITS - 1))) >> ADDRESS_BITS;
        let buffer = Buffer::from_u32((number - 1) as u32);
        let size = self.kernel.buffers[buffer].element.size as i128;
        let first = (address - (number << ADDRESS_BITS)).div_euclid(size);
        let scalars = &self.memory[&(buffer, 0)];
        let found = usize::try_from(first).ok().and_then(|first| scalars.get(first..first + count));
        let outside = || Stop::OutOfBounds(format!("{buffer}: {count} elements from {first}"));
        found.map(<[Constant]>::to_vec).ok_or_else(outside)
    }

    /// The position of an element's scalar in its leaf's list. Of an array whose subscripts may run on that is all that is checked.
    pub(super) fn place(&self, buffer: Buffer, leaf: u32, indices: &[Constant]) -> Result<usize, Stop> {
        let mut extents = self.extents(buffer);
        let inner = &self.kernel.buffers[buffer].element.leaves[leaf as usize].extents;
        extents.extend(inner.iter().map(|extent| *extent as usize));
        let runs_on = self.kernel.buffers[buffer].runs_on;
        let (mut at, mut count) = (0, 1);
        for (index, extent) in indices.iter().zip(extents) {
            let index = as_int(*index);
            if index < 0 || !runs_on && index >= extent as i128 {
                return Err(Stop::OutOfBounds(format!("{buffer}: {index} is not below {extent}")));
            }
            at = at * extent + index as usize;
            count *= extent;
        }
        match at < count {
            true => Ok(at),
            false => Err(Stop::OutOfBounds(format!("{buffer}: position {at} is not below {count}"))),
        }
    }

    /// The leaves and positions of scalars that lie one behind another from an element's on, at an address that one access
    /// of all of them can have.
    pub(super) fn neighbours(
        &self,
        buffer: Buffer,
        leaf: u32,
        indices: &[Constant],
        count: usize,
    ) -> Result<Vec<(u32, usize)>, Stop> {
        let first = self.place(buffer, leaf, indices)?;
        if count == 1 {
            return Ok(vec![(leaf, first)]);
        }
        let data = &self.kernel.buffers[buffer];
        let leaves = &data.element.leaves;
        let size = leaves[leaf as usize].scalar.size() as usize;
        let soa = data.layout == manifest::Layout::Soa;
        let (unit, offset) = match soa {
            true => (size, 0),
            false => (data.element.size as usize, leaves[leaf as usize].offset as usize),
        };
        let start = first * unit + offset;
        if !start.is_multiple_of(count * size) {
            return Err(Stop::OutOfBounds(format!("{buffer}: {count} scalars at byte {start}")));
        }
        let place = |byte: usize| {
            let of = |known: &crate::data::Leaf| known.offset as usize == byte % unit;
            let leaf = if soa { Some(leaf) } else { leaves.iter().position(of).map(|at| at as u32) };
            let at = byte / unit;
            leaf.filter(|leaf| at < self.memory[&(buffer, *leaf)].len()).map(|leaf| (leaf, at))
        };
        let places: Option<Vec<_>> = (0..count).map(|number| place(start + number * size)).collect();
        places.ok_or_else(|| Stop::OutOfBounds(format!("{buffer}: {count} scalars at byte {start}")))
    }

    fn write(&mut self, buffer: Buffer, leaf: u32, at: usize, value: Constant) {
        let scalar = self.kernel.buffers[buffer].element.leaves[leaf as usize].scalar;
        let value = round(value, scalar);
        if let Some(list) = self.memory.get_mut(&(buffer, leaf)) {
            list[at] = value;
        }
    }
}
