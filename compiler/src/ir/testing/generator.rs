//! Random kernels that the verifier accepts and that keep to their arrays: what property tests of printer,
//! parser and passes run on. Choices come from a tape of bytes, so that a failing kernel shrinks.

use crate::data::{ElementType, Leaf, Scalar};
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::{Buffer, Site, Value};
use crate::ir::kernel::{ArgumentData, BufferData, BufferKind, Kernel, Payload, SiteData, Step, SymbolData};
use crate::ir::op::{Class, Combiner, Constant, OPS, Opcode, Shape};
use crate::manifest::{Direction, Expr, Layout, SymbolKind};
use crate::source::Span;

/// Values for the symbols of a generated kernel: two dimensions, a float and an integer parameter.
pub fn symbol_values(n: i128, m: i128) -> Vec<Constant> {
    let int = |scalar, value| Constant::Int(scalar, value);
    vec![int(Scalar::I64, n), int(Scalar::I64, m), Constant::F32(1.75f32.to_bits()), int(Scalar::I32, -3)]
}

struct Generator<'t> {
    tape: &'t [u8],
    builder: KernelBuilder,
    /// Values in scope.
    pool: Vec<Value>,
    /// Instructions that may still be made.
    budget: u32,
    depth: u32,
    arrays: Arrays,
    /// The outer loop's index, and the inner loops' indices over `m` columns.
    row: Option<Value>,
    columns: Vec<Value>,
}

#[derive(Clone, Copy)]
struct Arrays {
    matrix: Buffer,
    row_int: Buffer,
    bodies: Buffer,
    out: Buffer,
    bins: Buffer,
    private: Buffer,
    site: Site,
}

const TYPES: [Scalar; 7] =
    [Scalar::F32, Scalar::I64, Scalar::Bool, Scalar::I32, Scalar::U32, Scalar::F64, Scalar::U64];

/// A kernel from a tape.
pub fn generate(tape: &[u8]) -> Kernel {
    let mut builder = KernelBuilder::new("random", Span::new(1, 2));
    let arrays = declare(&mut builder);
    let generator = Generator {
        tape,
        builder,
        pool: Vec::new(),
        budget: 60,
        depth: 0,
        arrays,
        row: None,
        columns: Vec::new(),
    };
    generator.launch()
}

fn declare(builder: &mut KernelBuilder) -> Arrays {
    let dim = |axis| SymbolKind::Dim { argument: 0, axis };
    let parameter = |argument| SymbolKind::Parameter { argument, leaf: 0, element: 0 };
    for (name, kind, scalar) in [
        ("n", dim(0), Scalar::I64),
        ("m", dim(1), Scalar::I64),
        ("s", parameter(5), Scalar::F32),
        ("k", parameter(6), Scalar::I32),
    ] {
        builder.add_symbol(SymbolData { name: name.into(), kind, scalar });
    }
    let leaf = |path: &str, scalar, offset, extents: &[u64]| Leaf {
        path: path.into(),
        scalar,
        offset,
        extents: extents.to_vec(),
        strides: vec![1; extents.len()],
    };
    let body = ElementType {
        name: "Body".into(),
        leaves: vec![
            leaf("pos.x", Scalar::F32, 0, &[]),
            leaf("flags", Scalar::U8, 4, &[4]),
            leaf("w", Scalar::I16, 8, &[]),
        ],
        size: 12,
        align: 4,
    };
    let (n, m) = (Expr::Symbol(0), Expr::Symbol(1));
    let mut add = |name: &str, element, extents, kind| {
        let (layout, layout_fixed, cache) = (Layout::Aos, false, None);
        builder.add_buffer(BufferData {
            name: name.into(),
            kind,
            element,
            extents,
            layout,
            layout_fixed,
            cache,
        })
    };
    let argument = |position, direction| BufferKind::Argument { position, direction };
    let matrix =
        add("a", ElementType::scalar(Scalar::F32), vec![n.clone(), m.clone()], argument(0, Direction::In));
    let row_int = add("b", ElementType::scalar(Scalar::I32), vec![n.clone()], argument(1, Direction::In));
    let bodies = add("c", body, vec![n.clone()], argument(2, Direction::InOut));
    let out = add("out", ElementType::scalar(Scalar::F16), vec![n, m], argument(3, Direction::Out));
    let bins =
        add("bins", ElementType::scalar(Scalar::U32), vec![Expr::Int(8)], argument(4, Direction::InOut));
    let private = add("row", ElementType::scalar(Scalar::F64), vec![Expr::Int(4)], BufferKind::Private);
    let site = builder.add_site(SiteData { span: Span::new(5, 9), array: "a".into(), axis: 1 });
    let signature = [matrix, row_int, bodies, out, bins].map(ArgumentData::Array).into_iter();
    let value =
        |name: &str, scalar| ArgumentData::Value { name: name.into(), element: ElementType::scalar(scalar) };
    builder.kernel_mut().arguments =
        signature.chain([value("s", Scalar::F32), value("k", Scalar::I32)]).collect();
    Arrays { matrix, row_int, bodies, out, bins, private, site }
}

impl Generator<'_> {
    /// A number below `limit`; 0 at the end of the tape.
    fn pick(&mut self, limit: usize) -> usize {
        let Some((first, rest)) = self.tape.split_first() else { return 0 };
        self.tape = rest;
        usize::from(*first) % limit.max(1)
    }

    fn launch(mut self) -> Kernel {
        self.builder.begin_launch("random");
        let symbols: Vec<_> = self.builder.kernel().symbols.keys().collect();
        let symbols: Vec<Value> = symbols.into_iter().map(|symbol| self.builder.symbol(symbol)).collect();
        self.pool.extend(&symbols);
        for scalar in TYPES {
            let value = self.constant(scalar);
            self.pool.push(value);
        }
        self.statements(4, false);
        let zero = self.builder.constant_index(0);
        let axes = [("i", zero, symbols[0])];
        let row = self.builder.begin_forall(&axes)[0];
        self.row = Some(row);
        self.pool.push(row);
        let mark = self.pool.len();
        // Sometimes nothing but pure code stands between the two loops.
        let nest = self.pick(3) == 0;
        if nest {
            self.statements(3, false);
            self.load();
        } else {
            self.define_private();
            self.statements(20, true);
        }
        self.columns_loop(symbols[1], nest);
        if !nest {
            self.statements(6, true);
            self.show();
        }
        self.pool.truncate(mark);
        self.builder.end_forall();
        let launch = self.builder.end_launch();
        self.builder.finish(vec![Step::Launch(launch)])
    }

    /// Every element of the private array, so that no iteration sees another one's.
    fn define_private(&mut self) {
        for at in 0..4 {
            let index = self.builder.constant_index(at);
            let value = self.value(Scalar::F64);
            self.builder.store(self.arrays.private, 0, &[index], value);
        }
    }

    /// Writes a row of the result, so that something depends on what was computed.
    fn columns_loop(&mut self, m: Value, nest: bool) {
        let zero = self.builder.constant_index(0);
        let mark = self.pool.len();
        let column = self.builder.begin_forall(&[("j", zero, m)])[0];
        self.pool.push(column);
        self.columns.push(column);
        self.depth += 1;
        if nest {
            self.define_private();
        }
        self.statements(8, true);
        self.show();
        self.depth -= 1;
        let value = self.value(Scalar::F32);
        if let Some(row) = self.row {
            self.builder.store(self.arrays.out, 0, &[row, column], value);
        }
        self.columns.pop();
        self.pool.truncate(mark);
        self.builder.end_forall();
    }

    fn constant(&mut self, scalar: Scalar) -> Value {
        let number = [0, 1, 2, -1, 3, 7, 64, 1000][self.pick(8)];
        let kind = if scalar.is_float() { self.pick(4) } else { 0 };
        match scalar {
            Scalar::Bool => self.builder.constant_bool(number % 2 == 1),
            Scalar::F32 => self.builder.constant_f32([number as f32, -0.0, f32::NAN, f32::INFINITY][kind]),
            Scalar::F64 => self.builder.constant_f64([number as f64, -0.0, 0.1, f64::INFINITY][kind]),
            unsigned if unsigned.is_unsigned_integer() => {
                self.builder.constant_int(unsigned, number.max(0) as i128)
            }
            signed => self.builder.constant_int(signed, number as i128),
        }
    }

    /// A value of a type from the pool, or a new literal.
    fn value(&mut self, scalar: Scalar) -> Value {
        let fitting: Vec<Value> =
            self.pool.iter().copied().filter(|value| self.builder.value_type(*value) == scalar).collect();
        // Mostly one of the last ones, so that chains grow long; often a literal, which rules look for.
        let reach = if self.pick(3) == 0 { fitting.len() } else { fitting.len().min(3) };
        match self.pick(reach + 1 + reach / 3) {
            at if at < reach => fitting[fitting.len() - 1 - at],
            _ => self.constant(scalar),
        }
    }

    fn any_type(&mut self) -> Scalar {
        TYPES[self.pick(TYPES.len())]
    }

    /// Up to `count` statements; with memory and regions inside the outer loop.
    fn statements(&mut self, count: usize, inside: bool) {
        for _ in 0..self.pick(count + 1) {
            let Some(left) = self.budget.checked_sub(1) else { return };
            self.budget = left;
            match self.pick(if inside { 20 } else { 6 }) {
                0..6 => self.operation(),
                6..9 => self.load(),
                9 => self.store(),
                10 => self.atomic(),
                11 if self.depth < 3 => self.if_else(),
                12 if self.depth < 3 => self.reduce(),
                13 if self.depth < 3 => self.for_loop(),
                14 if self.depth < 3 => self.while_loop(),
                15 => self.check(),
                16 => self.checked_load(),
                17 => self.load_in_a_loop(),
                18 => self.float_corner(),
                19 => self.unordered(),
                _ => self.operation(),
            }
        }
    }

    /// Any op without regions and memory.
    fn operation(&mut self) {
        let plain: Vec<_> =
            OPS.iter().filter(|info| !matches!(info.shape, Shape::Special | Shape::Leaf)).copied().collect();
        let common =
            [Opcode::Add, Opcode::Sub, Opcode::Mul, Opcode::Div, Opcode::Rem, Opcode::Lt, Opcode::Not];
        let info = match self.pick(3) {
            0 => plain[self.pick(plain.len())],
            _ => *common[self.pick(common.len())].info(),
        };
        let scalar = self.any_type();
        let fit = |class: Class| if class.contains(scalar) { Some(scalar) } else { None };
        let class = match info.shape {
            Shape::Unary(class) | Shape::Binary(class) | Shape::Compare(class) => class,
            Shape::Shift => Class::Integer,
            Shape::Test | Shape::Ternary => Class::Float,
            _ => Class::Any,
        };
        let scalar =
            fit(class).unwrap_or(if class.contains(Scalar::I32) { Scalar::I32 } else { Scalar::F32 });
        let (mut payload, mut types) = (Payload::None, vec![scalar]);
        match info.shape {
            Shape::Binary(_) | Shape::Compare(_) => types = vec![scalar; 2],
            Shape::Shift => types.push(Scalar::I32),
            Shape::Select => types = vec![Scalar::Bool, scalar, scalar],
            Shape::Ternary => types = vec![scalar; 3],
            Shape::Cast => {
                let to = Scalar::ALL[self.pick(13)];
                let refused = to == Scalar::Bool || (scalar == Scalar::Bool && to.is_float());
                payload = Payload::Cast(if refused { scalar } else { to });
            }
            Shape::Bits => {
                types = vec![if info.opcode == Opcode::ToBits { Scalar::F32 } else { Scalar::U64 }];
            }
            Shape::Random => types = vec![Scalar::U64; 2],
            _ => {}
        }
        let operands: Vec<Value> = types.into_iter().map(|scalar| self.value(scalar)).collect();
        if let Some(result) = self.builder.inst(info.opcode, payload, &operands) {
            self.pool.push(result);
        }
    }

    /// An index of the private array: any value modulo its length.
    fn private_index(&mut self) -> Value {
        let value = self.value(Scalar::I64);
        let three = self.builder.constant_index(3);
        self.builder.binary(Opcode::And, value, three)
    }

    fn load(&mut self) {
        let Some(row) = self.row else { return };
        let column = self.columns.last().copied();
        let value = match (self.pick(5), column) {
            (0, Some(column)) => self.builder.load(self.arrays.matrix, 0, &[row, column]),
            (0 | 1, _) => self.builder.load(self.arrays.row_int, 0, &[row]),
            (2, _) => self.builder.load(self.arrays.bodies, 0, &[row]),
            (3, _) => {
                let index = self.private_index();
                self.builder.load(self.arrays.bodies, 1, &[row, index])
            }
            _ => {
                let index = self.private_index();
                self.builder.load(self.arrays.private, 0, &[index])
            }
        };
        self.pool.push(value);
    }

    fn store(&mut self) {
        let Some(row) = self.row else { return };
        if self.pick(2) == 0 {
            let value = self.value(Scalar::F32);
            self.builder.store(self.arrays.bodies, 0, &[row], value);
        } else {
            let (index, value) = (self.private_index(), self.value(Scalar::F64));
            self.builder.store(self.arrays.private, 0, &[index], value);
        }
    }

    fn atomic(&mut self) {
        let value = self.value(Scalar::I64);
        let seven = self.builder.constant_index(7);
        let bin = self.builder.binary(Opcode::And, value, seven);
        let value = self.value(Scalar::U32);
        self.builder.atomic(self.arrays.bins, 0, Combiner::Add, &[bin], value);
    }

    fn check(&mut self) {
        let index = self.value(Scalar::I64);
        let extent = self.value(Scalar::I64);
        self.builder.check(self.arrays.site, index, extent);
    }

    /// An operation that almost does nothing.
    fn float_corner(&mut self) {
        let x = self.value(Scalar::F32);
        let opcode = [Opcode::Add, Opcode::Sub, Opcode::Mul, Opcode::Div][self.pick(4)];
        let neutral = [0.0, -0.0, 1.0, 2.0, 3.0][self.pick(5)];
        let neutral = self.builder.constant_f32(neutral);
        let (a, b) = if self.pick(3) == 0 { (neutral, x) } else { (x, neutral) };
        let value = self.builder.binary(opcode, a, b);
        self.pool.push(value);
    }

    /// The opposite of a comparison that may have met a NaN.
    fn unordered(&mut self) {
        let (x, y) = (self.value(Scalar::F32), self.value(Scalar::F32));
        let opcode = [Opcode::Lt, Opcode::Le, Opcode::Gt, Opcode::Ge, Opcode::Eq, Opcode::Ne][self.pick(6)];
        let compared = self.builder.compare(opcode, x, y);
        let value = self.builder.unary(Opcode::Not, compared);
        self.pool.push(value);
    }

    /// A load that only the check before it keeps inside.
    fn checked_load(&mut self) {
        let (index, n) = (self.value(Scalar::I64), self.pool[0]);
        self.builder.check(self.arrays.site, index, n);
        let value = self.builder.load(self.arrays.row_int, 0, &[index]);
        self.pool.push(value);
    }

    /// A load in a loop that runs only if it is inside.
    fn load_in_a_loop(&mut self) {
        let (index, n) = (self.value(Scalar::I64), self.pool[0]);
        let (zero, one) = (self.builder.constant_index(0), self.builder.constant_index(1));
        let above = self.builder.compare(Opcode::Ge, index, zero);
        let below = self.builder.compare(Opcode::Lt, index, n);
        let inside = self.builder.binary(Opcode::And, above, below);
        let trips = self.builder.select(inside, one, zero);
        self.builder.begin_reduce(&[("once", zero, trips)], &[Combiner::Max]);
        let value = self.builder.load(self.arrays.row_int, 0, &[index]);
        let results = self.builder.end_reduce(&[value]);
        self.pool.extend(results);
    }

    /// Adds the bits of the last values in scope to the bins, so that what they are can be seen.
    fn show(&mut self) {
        let last: Vec<Value> = self.pool.iter().rev().take(12).copied().collect();
        for (at, value) in last.into_iter().enumerate() {
            let bits = match self.builder.value_type(value) {
                Scalar::F32 | Scalar::F64 => self.builder.unary(Opcode::ToBits, value),
                _ => value,
            };
            // Both halves of a wide value.
            let bits = if self.builder.value_type(bits).size() == 8 {
                let wide = self.builder.cast(bits, Scalar::U64);
                let half = self.builder.constant_int(Scalar::I32, 32);
                let high = self.builder.binary(Opcode::Shr, wide, half);
                self.builder.binary(Opcode::Xor, wide, high)
            } else {
                bits
            };
            let bits = self.builder.cast(bits, Scalar::U32);
            let bin = self.builder.constant_index(at as i64 % 8);
            self.builder.atomic(self.arrays.bins, 0, Combiner::Add, &[bin], bits);
        }
    }

    /// The end of a loop over columns, or a small number.
    fn trips(&mut self) -> Value {
        match self.pick(3) {
            0 => self.builder.constant_index(2),
            1 => self.builder.constant_index(1),
            _ => self.pool[1],
        }
    }

    /// Runs a step within a region, whose values go out of scope after it.
    fn region<T>(&mut self, params: &[Value], step: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.pool.len();
        self.pool.extend_from_slice(params);
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        self.pool.truncate(mark);
        result
    }

    fn if_else(&mut self) {
        let condition = self.value(Scalar::Bool);
        let scalar = self.any_type();
        self.builder.begin_if(condition);
        let body = |generator: &mut Self| {
            generator.statements(5, true);
            generator.value(scalar)
        };
        let then = self.region(&[], body);
        self.builder.begin_else(&[then]);
        let otherwise = self.region(&[], body);
        let results = self.builder.end_if(&[otherwise]);
        self.pool.extend(results);
    }

    fn reduce(&mut self) {
        let zero = self.builder.constant_index(0);
        let m = self.trips();
        let pair = self.pick(3) == 0;
        let scalar = [Scalar::F32, Scalar::I32, Scalar::U64][self.pick(3)];
        let combiner = match (pair, self.pick(3)) {
            (true, 0) => Combiner::ArgMin,
            (true, _) => Combiner::ArgMax,
            (false, 0) => Combiner::Add,
            (false, 1) => Combiner::Max,
            (false, _) => Combiner::Min,
        };
        let index = self.builder.begin_reduce(&[("p", zero, m)], &[combiner])[0];
        let column = m == self.pool[1];
        if column {
            self.columns.push(index);
        }
        let value = self.region(&[index], |generator| {
            generator.statements(5, true);
            generator.value(scalar)
        });
        if column {
            self.columns.pop();
        }
        let contributions = if pair { vec![value, index] } else { vec![value] };
        let results = self.builder.end_reduce(&contributions);
        self.pool.extend(results);
    }

    fn for_loop(&mut self) {
        let (low, step) = (self.builder.constant_index(0), self.builder.constant_index(2));
        let m = self.trips();
        let scalar = self.any_type();
        let initial = self.value(scalar);
        let (index, carried) = self.builder.begin_for("t", low, m, step, &[initial]);
        let column = m == self.pool[1];
        if column {
            self.columns.push(index);
        }
        let params: Vec<Value> = [index].into_iter().chain(carried).collect();
        let next = self.region(&params, |generator| {
            generator.statements(5, true);
            generator.value(scalar)
        });
        if column {
            self.columns.pop();
        }
        let results = self.builder.end_for(&[next]);
        self.pool.extend(results);
    }

    /// Counts up to a small number.
    fn while_loop(&mut self) {
        let (start, limit, one) = (0, 1 + self.pick(3) as i64, 1);
        let start = self.builder.constant_index(start);
        let scalar = self.any_type();
        let initial = self.value(scalar);
        let carried = self.builder.begin_while(&[start, initial]);
        let limit = self.builder.constant_index(limit);
        let condition = self.builder.compare(Opcode::Lt, carried[0], limit);
        let carried = self.builder.begin_while_body(condition);
        let one = self.builder.constant_index(one);
        let next = self.builder.binary(Opcode::Add, carried[0], one);
        let value = self.region(&carried, |generator| {
            generator.statements(4, true);
            generator.value(scalar)
        });
        let results = self.builder.end_while(&[next, value]);
        self.pool.extend(results);
    }
}
