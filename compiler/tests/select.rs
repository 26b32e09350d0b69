//! Every op on every type that it takes is selected, and NVIDIA's assembler takes what comes out, for every target.

use krn_compiler::VERSIONS;
use krn_compiler::data::{ElementType, Scalar};
use krn_compiler::ir::builder::KernelBuilder;
use krn_compiler::ir::entities::{Buffer, Value};
use krn_compiler::ir::kernel::{
    ArgumentData, BufferData, BufferKind, Kernel, Module, Payload, Phase, Step, SymbolData,
};
use krn_compiler::ir::op::{Class, Combiner, OPS, OpInfo, Opcode, Shape};
use krn_compiler::ir::text::parse_kernel;
use krn_compiler::manifest::{Direction, Expr, Layout, SymbolKind};
use krn_compiler::passes::{Pipeline, PipelineOptions, TargetFacts};
use krn_compiler::ptx::select::{SelectOptions, select};
use krn_compiler::source::{SourceFile, Span};
use xtask::ptxas::Assembler;

const WIDE: [Scalar; 7] =
    [Scalar::Bool, Scalar::I32, Scalar::I64, Scalar::U32, Scalar::U64, Scalar::F32, Scalar::F64];

/// A kernel that runs one op an element: operands from arrays, the result to an array.
struct Sample {
    builder: KernelBuilder,
    count: usize,
}

impl Sample {
    fn new(name: &str) -> (Self, Value) {
        let mut builder = KernelBuilder::new(name, Span::default());
        let n = builder.add_symbol(SymbolData {
            name: "n".into(),
            kind: SymbolKind::Dim { argument: 0, axis: 0, extent: Default::default() },
            scalar: Scalar::I64,
        });
        builder.begin_launch(name);
        let low = builder.constant_index(0);
        let high = builder.symbol(n);
        let i = builder.begin_forall(&[("i", low, high)])[0];
        (Self { builder, count: 0 }, i)
    }

    fn buffer(&mut self, scalar: Scalar, direction: Direction) -> Buffer {
        let position = self.count;
        self.count += 1;
        let buffer = self.builder.add_buffer(BufferData {
            name: format!("a{position}"),
            kind: BufferKind::Argument { position, direction },
            element: ElementType::scalar(scalar),
            extents: vec![Expr::Symbol(0)],
            layout: Layout::Aos,
            layout_fixed: true,
            cache: None,
            runs_on: false,
        });
        self.builder.kernel_mut().arguments.push(ArgumentData::array(buffer));
        buffer
    }

    fn input(&mut self, scalar: Scalar, i: Value) -> Value {
        let buffer = self.buffer(scalar, Direction::In);
        self.builder.load(buffer, 0, &[i])
    }

    fn output(&mut self, value: Value, i: Value) {
        let buffer = self.buffer(self.builder.value_type(value), Direction::Out);
        self.builder.store(buffer, 0, &[i], value);
    }

    fn finish(mut self) -> Kernel {
        self.builder.end_forall();
        let launch = self.builder.end_launch();
        self.builder.finish(vec![Step::Launch(launch)])
    }
}

fn operand_types(info: &OpInfo) -> Vec<Scalar> {
    let class = match info.shape {
        Shape::Unary(class) | Shape::Binary(class) | Shape::Compare(class) => class,
        Shape::Test | Shape::Ternary => Class::Float,
        Shape::Shift => Class::Integer,
        Shape::Select | Shape::Cast => Class::Any,
        Shape::Bits => {
            return match info.opcode {
                Opcode::ToBits => vec![Scalar::F32, Scalar::F64],
                _ => vec![Scalar::U32, Scalar::U64],
            };
        }
        Shape::Random => return vec![Scalar::U64],
        Shape::Leaf | Shape::Special => return Vec::new(),
    };
    WIDE.into_iter().filter(|scalar| class.contains(*scalar)).collect()
}

fn plain_ops() -> Module {
    let mut module = Module::default();
    for info in OPS.iter().filter(|info| info.phases.contains(Phase::Abstract)) {
        for scalar in operand_types(info) {
            let casts: Vec<Option<Scalar>> = match info.shape {
                Shape::Cast => Scalar::ALL.into_iter().filter(|to| *to != Scalar::Bool).map(Some).collect(),
                _ => vec![None],
            };
            for to in casts {
                let suffix = to.map(|to| format!("_{to}")).unwrap_or_default();
                let (mut sample, i) = Sample::new(&format!("k_{}_{scalar}{suffix}", info.mnemonic));
                let operands: Vec<Scalar> = match info.shape {
                    Shape::Unary(_) | Shape::Test | Shape::Cast | Shape::Bits => vec![scalar],
                    Shape::Binary(_) | Shape::Compare(_) | Shape::Random => vec![scalar; 2],
                    Shape::Shift => vec![scalar, Scalar::I64],
                    Shape::Select => vec![Scalar::Bool, scalar, scalar],
                    _ => vec![scalar; 3],
                };
                let values: Vec<Value> = operands.iter().map(|scalar| sample.input(*scalar, i)).collect();
                let payload = to.map_or(Payload::None, Payload::Cast);
                let result =
                    sample.builder.inst(info.opcode, payload, &values).expect("a plain op has a result");
                sample.output(result, i);
                module.kernels.push(sample.finish());
            }
        }
    }
    module
}

fn memory_ops() -> Module {
    let mut module = Module::default();
    for scalar in Scalar::ALL {
        let (mut sample, i) = Sample::new(&format!("copy_{scalar}"));
        let value = sample.input(scalar, i);
        let buffer = sample.buffer(scalar, Direction::Out);
        sample.builder.store(buffer, 0, &[i], value);
        module.kernels.push(sample.finish());
        for op in Combiner::ALL.into_iter().filter(|op| op.width() == 1) {
            let bitwise = matches!(op, Combiner::And | Combiner::Or | Combiner::Xor);
            if bitwise == scalar.is_float() || (scalar == Scalar::Bool && !bitwise) {
                continue;
            }
            let (mut sample, i) = Sample::new(&format!("atomic_{}_{scalar}", op.name()));
            let value = sample.input(scalar, i);
            let buffer = sample.buffer(scalar, Direction::InOut);
            sample.builder.atomic(buffer, 0, op, &[i], value);
            module.kernels.push(sample.finish());
        }
    }
    module
}

fn reductions() -> Module {
    let mut module = Module::default();
    for op in Combiner::ALL {
        for scalar in WIDE {
            let bitwise = matches!(op, Combiner::And | Combiner::Or | Combiner::Xor);
            if bitwise == scalar.is_float() || (scalar == Scalar::Bool && !bitwise) {
                continue;
            }
            let (mut sample, i) = Sample::new(&format!("reduce_{}_{scalar}", op.name()));
            let buffer = sample.buffer(scalar, Direction::In);
            let low = sample.builder.constant_index(0);
            let p = sample.builder.begin_reduce(&[("p", low, i)], &[op])[0];
            let value = sample.builder.load(buffer, 0, &[p]);
            let contributions = if op.width() == 2 { vec![value, p] } else { vec![value] };
            let results = sample.builder.end_reduce(&contributions);
            for result in results {
                sample.output(result, i);
            }
            module.kernels.push(sample.finish());
        }
    }
    module
}

fn assemble(name: &str, module: &Module) {
    let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    let source = SourceFile::new("none.krn", "");
    let print = |target: &str| {
        let capability = krn_compiler::capability(target).expect("a known target");
        let mut module = module.clone();
        let pipeline = Pipeline::for_target(&TargetFacts::new(capability));
        for kernel in &mut module.kernels {
            let result = pipeline.run(kernel, &PipelineOptions::default(), &mut |_| {});
            result.unwrap_or_else(|error| panic!("{error}"));
        }
        let options = SelectOptions { target: target.to_string(), capability, names: false };
        let selected = select(&module, &source, &options)
            .unwrap_or_else(|error| panic!("{}: {}", error.kernel, error.message));
        krn_compiler::ptx::print(&selected.module)
    };
    let complaints = assembler.assemble_for_targets(&xtask::tested_targets(krn_compiler::TARGETS), print);
    if let Some(first) = complaints.first() {
        let path = std::env::temp_dir().join(format!("krn-{name}.ptx"));
        std::fs::write(&path, print("sm_90")).expect("the temporary folder is writable");
        panic!("{} complaints, the first:\n{first}\n(sm_90 text: {})", complaints.len(), path.display());
    }
}

#[test]
fn every_plain_op_on_every_type_assembles() {
    assemble("plain", &plain_ops());
}

#[test]
fn every_storage_type_and_every_atomic_assembles() {
    assemble("memory", &memory_ops());
}

#[test]
fn every_reduction_assembles() {
    assemble("reductions", &reductions());
}

#[test]
fn an_axis_that_is_still_spread_over_threads_is_refused() {
    let (sample, _) = Sample::new("spread");
    let mut kernel = sample.finish();
    let pipeline =
        Pipeline::of_names(&["map"], &TargetFacts::new(90)).unwrap_or_else(|error| panic!("{error}"));
    let result = pipeline.run(&mut kernel, &PipelineOptions::default(), &mut |_| {});
    result.unwrap_or_else(|error| panic!("{error}"));
    let module = Module { kernels: vec![kernel], ..Module::default() };
    let options = SelectOptions { target: "sm_90".into(), capability: 90, names: false };
    let error =
        select(&module, &SourceFile::new("none.krn", ""), &options).expect_err("threads are not explicit");
    assert_eq!(error.kernel, "spread");
    assert_eq!(
        error.message,
        "`i` is spread over threads: the pass `threads` makes them explicit, and has not run"
    );
}

/// Stores to places of which some are neighbours: of floats, of structs, of rows in structs, of groups of a layout.
const SEVERAL: &str = r#"kernel "several" {
    symbol sym0 "m" i64 dim 0 0
    symbol sym1 "n" i64 dim 0 1
    symbol sym2 "k" i64 dim 1 0
    buffer buf0 "x" f32 [sym0, sym1] argument 0 inout, aos
    buffer buf1 "s" struct "S" size 8 align 4 { "a" f32 at 0, "b" f32 at 4 } [sym2] argument 1 inout, aos
    buffer buf2 "rows" struct "Rows" size 36 align 4 { "c" f32 at 4 [2 by 16] [3 by 4] } [sym2] argument 2 inout, aos
    buffer buf3 "t" f32 [sym2] argument 3 inout, aosoa 32
    argument buf0
    argument buf1
    argument buf2
    argument buf3
    launch launch0 "several" staged threads 64 grid [1, 1, 1] {
        v0: i64 = thread_index
        v1: i64 = const 3
        v2: i64 = const -5
        v3: f32 = load buf1.b[v0]
        v4: bool = lt v0, v1
        v5: bool = const true
        v6: bool = const false
        v7: i64 = add v0, v1
        v8: i64 = add v7, v2
        v9: i64 = mul v0, v1
        v10: i64 = block_index 0
        store_each buf0[v10, v0], v7, v9, v8, v3, v3, v3, v3, v4, v5, v4, v6
        store_each buf1.b[v0], v7, v1, v3, v3, v3, v5, v4, v5
        store_each buf2.c[v0, v10, v0], v7, v3, v3, v5, v5
        store_each buf3[v0], v7, v3, v3, v5, v5
    }
    plan { launch0 }
}
"#;

#[test]
fn places_that_are_neighbours_share_a_register() {
    let kernel = parse_kernel(SEVERAL).unwrap_or_else(|error| panic!("{error}"));
    let module = Module { kernels: vec![kernel], ..Module::default() };
    let options = SelectOptions { target: "sm_90".into(), capability: 90, names: false };
    let selected = select(&module, &SourceFile::new("none.krn", ""), &options)
        .unwrap_or_else(|error| panic!("{}: {}", error.kernel, error.message));
    // Every change of the compiler changes its version.
    let text = krn_compiler::ptx::print(&selected.module).replacen(VERSIONS, "(version)", 1);
    insta::assert_snapshot!(text);
    let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    let complaints =
        assembler.assemble_for_targets(&["sm_90"], |_| krn_compiler::ptx::print(&selected.module));
    assert!(complaints.is_empty(), "{complaints:?}");
}

/// Calls of the generator in the code of vectors: each has ten rounds.
fn draws(body: &str) -> usize {
    let text = format!("kernel k(x: f32[n], seed: u64) -> y: f32[n] where n % 4 == 0 {{ {body} }}");
    let compilation = crate::support::compiled_at(&text, &[("n", 1 << 20)]);
    let (vectors, _) =
        compilation.compiled.ptx.split_once("\nelse:").expect("code for arrays that are not aligned");
    let rounds = |line: &&str| line.contains("mul.hi.u32") && line.contains(", 3528531795;");
    vectors.lines().filter(rounds).count() / 10
}

#[test]
fn counters_in_one_block_are_drawn_at_once() {
    // Four neighbours a thread.
    assert_eq!(draws("y[i] = x[i] * rand(seed, i)"), 1);
    assert_eq!(draws("y[i] = x[i] + rand_normal(seed, i)"), 1);
    assert_eq!(draws("y[i] = x[i] * rand(seed, i + 4)"), 1);
    // The last counters of one block and the first ones of the next.
    assert_eq!(draws("y[i] = x[i] * rand(seed, i + 2)"), 2);
    assert_eq!(draws("y[i] = x[i] * rand(seed, 2 * i) + rand(seed, 2 * i + 1)"), 2);
    // In other blocks, all of them.
    assert_eq!(draws("y[i] = x[i] * rand(seed, 4 * i)"), 4);
}

/// The second part of a condition is no branch of its own: it is computed in any case, or loaded where the first one holds.
#[test]
fn conditions_of_two_parts_are_one_branch() {
    let branches = |condition: &str| {
        let text = format!(
            "kernel k(x: f32[n]) -> y: f32[n] where n >= 1 {{
                forall i in n {{
                    var v = 1.0
                    var s = i
                    while {condition} {{
                        v = v * 1.5
                        s += 1
                    }}
                    y[i] = v
                }}
            }}"
        );
        let ptx = crate::support::compiled_at(&text, &[("n", 1 << 20)]).compiled.ptx;
        let body = ptx.split("while:").nth(1).expect("a loop").split("end_while:").next().expect("its end");
        body.lines().filter(|line| line.contains(" bra ")).count()
    };
    // Out of the loop, and back.
    assert_eq!(branches("v < 100.0 && s < n"), 2);
    assert_eq!(branches("v < 100.0 || s < 3"), 2);
    assert_eq!(branches("s < n && x[i] > v"), 2);
}
