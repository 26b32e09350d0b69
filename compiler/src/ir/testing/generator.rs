//! Random kernels that the verifier accepts and that keep to their arrays: what property tests of printer,
//! parser and passes run on. Choices come from a tape of bytes, so that a failing kernel shrinks.

use crate::data::{ElementType, Leaf, Scalar};
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::{Buffer, Site, Value};
use crate::ir::kernel::{ArgumentData, BufferData, BufferKind, Kernel, SiteData, Step, SymbolData};
use crate::ir::op::Constant;
use crate::manifest::{Direction, Expr, Layout, SymbolKind, Value as HostValue};
use crate::source::Span;

/// Values for the symbols of a generated kernel: two dimensions, a float and an integer parameter.
pub fn symbol_values(n: i128, m: i128) -> Vec<Constant> {
    let int = |scalar, value| Constant::Int(scalar, value);
    vec![int(Scalar::I64, n), int(Scalar::I64, m), Constant::F32(1.75f32.to_bits()), int(Scalar::I32, -3)]
}

/// The values of constants as the host has them: what a kernel is compiled for.
pub fn host_values(symbols: &[Constant]) -> Vec<Option<HostValue>> {
    let value = |constant: &Constant| match *constant {
        Constant::Bool(value) => HostValue::Bool(value),
        Constant::F32(bits) => HostValue::Float(f32::from_bits(bits).into()),
        Constant::F64(bits) => HostValue::Float(f64::from_bits(bits)),
        Constant::Int(_, value) => HostValue::Int(value),
    };
    symbols.iter().map(|constant| Some(value(constant))).collect()
}

pub struct Generator<'t> {
    pub tape: &'t [u8],
    pub builder: KernelBuilder,
    /// Values in scope.
    pub pool: Vec<Value>,
    /// Instructions that may still be made.
    pub budget: u32,
    pub depth: u32,
    pub arrays: Arrays,
    /// The outer loop's index, and the inner loops' indices over `m` columns.
    pub row: Option<Value>,
    pub columns: Vec<Value>,
    /// Whether all subscripts of the private array are literals: then it can become values.
    pub literal_subscripts: bool,
    /// Whether the private array has values: what it holds before is anybody's.
    pub is_defined: bool,
}

#[derive(Clone, Copy)]
pub struct Arrays {
    pub matrix: Buffer,
    pub row_int: Buffer,
    pub bodies: Buffer,
    pub out: Buffer,
    pub bins: Buffer,
    pub private: Buffer,
    pub site: Site,
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
        literal_subscripts: false,
        is_defined: false,
    };
    generator.launch()
}

fn declare(builder: &mut KernelBuilder) -> Arrays {
    let dim = |axis| SymbolKind::Dim { argument: 0, axis, extent: Default::default() };
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
            runs_on: false,
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
    let private = add("row", ElementType::scalar(Scalar::F32), vec![Expr::Int(4)], BufferKind::Private);
    let span = Span::new(5, 9);
    let site = builder.add_site(SiteData {
        span,
        array: "a".into(),
        axis: 1,
        unsigned: true,
        injection: None,
        assertion: None,
        print: None,
    });
    let signature = [matrix, row_int, bodies, out, bins].map(ArgumentData::array).into_iter();
    let value =
        |name: &str, scalar| ArgumentData::Value { name: name.into(), element: ElementType::scalar(scalar) };
    builder.kernel_mut().arguments =
        signature.chain([value("s", Scalar::F32), value("k", Scalar::I32)]).collect();
    Arrays { matrix, row_int, bodies, out, bins, private, site }
}

impl Generator<'_> {
    /// A number below `limit`; 0 at the end of the tape.
    pub fn pick(&mut self, limit: usize) -> usize {
        let Some((first, rest)) = self.tape.split_first() else { return 0 };
        self.tape = rest;
        usize::from(*first) % limit.max(1)
    }

    fn launch(mut self) -> Kernel {
        self.builder.begin_launch("random");
        self.literal_subscripts = self.pick(2) == 1;
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
        self.is_defined = true;
        for at in 0..4 {
            let index = self.builder.constant_index(at);
            let value = self.value(Scalar::F32);
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
    pub fn value(&mut self, scalar: Scalar) -> Value {
        let fitting: Vec<Value> =
            self.pool.iter().copied().filter(|value| self.builder.value_type(*value) == scalar).collect();
        // Mostly one of the last ones, so that chains grow long; often a literal, which rules look for.
        let reach = if self.pick(3) == 0 { fitting.len() } else { fitting.len().min(3) };
        match self.pick(reach + 1 + reach / 3) {
            at if at < reach => fitting[fitting.len() - 1 - at],
            _ => self.constant(scalar),
        }
    }

    pub fn any_type(&mut self) -> Scalar {
        TYPES[self.pick(TYPES.len())]
    }
}
