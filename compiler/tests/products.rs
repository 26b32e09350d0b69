//! The structure of staged products, counted: what their main loops are made of, and that the code stays small.

use crate::support::{compiled_at, compiled_for};
use krn_compiler::ir::entities::Launch;
use krn_compiler::ir::kernel::{BufferKind, Kernel, Payload};
use krn_compiler::ir::op::Opcode;
use krn_compiler::ptx::select::shared_plan;
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileError, CompileOptions, compile};
use xtask::ptxas::Assembler;

const MATMUL: &str =
    "kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }";

fn launch(kernel: &Kernel, name: &str) -> Launch {
    let found = kernel.launches.iter().find(|(_, data)| data.name == name);
    found.unwrap_or_else(|| panic!("no launch `{name}`")).0
}

fn count(kernel: &Kernel, launch: Launch, opcode: Opcode) -> usize {
    let mut found = 0;
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        found += usize::from(kernel.insts[inst].opcode == opcode);
    });
    found
}

/// Multiplications that add to a result, each by itself or as part of an outer product.
fn count_fma(kernel: &Kernel, launch: Launch) -> usize {
    let mut found = count(kernel, launch, Opcode::Fma);
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        found += if data.opcode == Opcode::OuterFma { data.results.len() } else { 0 };
    });
    found
}

#[test]
fn a_thread_of_a_large_tile_has_one_multiplication_a_result_and_step() {
    for (n, name) in [(4096, "matmul_tiled_large_vector"), (4095, "matmul_tiled_large")] {
        let compilation = compiled_at(MATMUL, &[("n", n)]);
        let kernel = &compilation.ir().expect("it was asked for").kernels[0];
        let launch = launch(kernel, name);
        let products = count_fma(kernel, launch);
        // 16 by 8 results of each step of the inner loop.
        assert_eq!(products % 128, 0, "{name}");
        assert!((1..=8).contains(&(products / 128)), "{name}: {products}");
        assert_eq!(count(kernel, launch, Opcode::Mul) - integer_products(kernel, launch), 0, "{name}");
        // Six reads of 16 bytes a step, and those of the first one.
        let reads = count(kernel, launch, Opcode::LoadVector);
        let global = reads - 6 * (products / 128 + 1);
        assert!(global <= 12, "{name}: {reads} reads of vectors");
        // One barrier a chunk, one before the first, one where the axis is too short to fill the ring, and one before the
        // next tile of which the block has a part.
        assert_eq!(count(kernel, launch, Opcode::Barrier), 4, "{name}");
        // Results are stored one by one; vectors only in the place of steps that are not there.
        assert!(count(kernel, launch, Opcode::StoreVector) <= 2, "{name}");
    }
}

/// Multiplications of subscripts.
fn integer_products(kernel: &Kernel, launch: Launch) -> usize {
    let mut found = 0;
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        found += usize::from(data.opcode == Opcode::Mul && kernel.value_type(data.results[0]).is_integer());
    });
    found
}

const HALVES: &str =
    "kernel matmul(a: bf16[m, k], b: bf16[k, n]) -> c: bf16[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }";

#[test]
fn products_of_halves_are_made_of_matrix_instructions() {
    let cubes = |n: i64| [("m", n), ("n", n), ("k", n)];
    for (n, is_even) in [(4096, true), (4104, true), (4095, false)] {
        let compilation = compiled_at(HALVES, &cubes(n));
        let kernel = &compilation.ir().expect("it was asked for").kernels[0];
        let launch = launch(kernel, "matmul_matrices");
        let [instructions, fragments] =
            [Opcode::Mma, Opcode::LoadMatrix].map(|opcode| count(kernel, launch, opcode));
        let transposed = count(kernel, launch, Opcode::LoadMatrixTransposed);
        // A fragment of rows is four words, and so are two of columns: each is loaded once a step, and used several times.
        assert!(
            instructions >= 2 * (fragments + transposed),
            "{n}: {instructions}, {fragments}, {transposed}"
        );
        assert!(fragments > 0, "{n}");
        // The second factor lies across the steps; a copy with whole vectors has them along the steps.
        assert_eq!(transposed > 0, is_even, "{n}");
        let copies = [Opcode::CopyAsync, Opcode::CopyAsyncIf].map(|opcode| count(kernel, launch, opcode));
        assert!(copies.iter().sum::<usize>() > 0, "{n}");
        // Blocks that lie inside store neighbours together, where rows are whole vectors.
        let mut vectors = 0;
        kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let Payload::Access { buffer, .. } = data.payload else { return };
            let is_result = kernel.buffers[buffer].kind != BufferKind::Shared;
            vectors += usize::from(is_result && data.opcode == Opcode::StoreVector);
        });
        assert_eq!(vectors > 0, is_even, "{n}");
    }
}

#[test]
fn matrix_instructions_are_for_targets_that_have_them_and_for_sizes_that_fill_them() {
    let used = |text: &str, target: &str, sizes: &[(&str, u64)]| {
        let compilation = compiled_for(text, target, sizes);
        let kernel = &compilation.ir().expect("it was asked for").kernels[0];
        kernel.launches.keys().any(|launch| count(kernel, launch, Opcode::Mma) > 0)
    };
    assert!(!used(HALVES, "sm_75", &[]));
    for target in ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"] {
        assert!(used(HALVES, target, &[]), "{target}");
    }
    assert!(!used(HALVES, "sm_90", &[("m", 1), ("n", 4096), ("k", 4096)]));
    // What is not exact in 16 bits is not rounded: of one factor its parts are taken, of both there would be too many.
    assert!(!used(MATMUL, "sm_90", &[]));
    assert!(used(&HALVES.replace("a[i, p] *", "tanh(a[i, p]) *"), "sm_90", &[]));
    assert!(!used(&HALVES.replace("a[i, p] * b[p, j]", "tanh(a[i, p]) * tanh(b[p, j])"), "sm_90", &[]));
    assert!(used(&HALVES.replace("a[i, p] *", "max(a[i, p], 0.0) *"), "sm_90", &[]));
}

#[test]
fn factors_of_f32_are_for_matrix_instructions_where_the_schedule_says_so() {
    let text = format!("{MATMUL}\nschedule matmul {{ tf32 }}");
    let cubes = |n: i64| [("m", n), ("n", n), ("k", n)];
    for n in [4096, 4095] {
        let compilation = compiled_at(&text, &cubes(n));
        let kernel = &compilation.ir().expect("it was asked for").kernels[0];
        let launch = launch(kernel, "matmul_matrices");
        // Four words of rows are rounded for some instructions, and so are two of columns: each once.
        let [instructions, rounded] =
            [Opcode::Mma, Opcode::RoundTf32].map(|opcode| count(kernel, launch, opcode));
        assert!(
            instructions >= 32 && rounded > 0 && rounded <= 2 * instructions,
            "{n}: {instructions}, {rounded}"
        );
        let copies = [Opcode::CopyAsync, Opcode::CopyAsyncIf].map(|opcode| count(kernel, launch, opcode));
        assert!(copies.iter().sum::<usize>() > 0, "{n}");
    }
    let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    for target in ["sm_80", "sm_86", "sm_90"] {
        let ptx = compiled_for(&text, target, &[]).compiled.ptx;
        for instruction in ["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "cvt.rna.tf32.f32"] {
            assert!(ptx.contains(instruction), "{target}");
        }
        assembler.assemble(&ptx, target).unwrap_or_else(|error| panic!("{target}: {error}"));
    }
    let file = SourceFile::new("matmul.krn", text.as_str());
    match compile(&file, &CompileOptions::for_target("sm_75")) {
        Err(CompileError::Diagnostics(reports)) => assert!(reports.iter().any(|it| it.code.0 == "E0512")),
        other => panic!("sm_75 has none: {:?}", other.err()),
    }
}

#[test]
fn copies_in_the_background_are_for_targets_that_have_them() {
    let copies = |target: &str| {
        let compilation = compiled_for(MATMUL, target, &[]);
        let kernel = &compilation.ir().expect("it was asked for").kernels[0];
        kernel.launches.keys().map(|launch| count(kernel, launch, Opcode::CopyAsync)).sum::<usize>()
    };
    assert_eq!(copies("sm_75"), 0);
    assert!(copies("sm_80") > 0);
}

#[test]
fn copies_are_waited_for_before_the_barrier() {
    let compilation = compiled_for(MATMUL, "sm_90", &[]);
    let kernel = &compilation.ir().expect("it was asked for").kernels[0];
    for launch in kernel.launches.keys() {
        let begun = count(kernel, launch, Opcode::CopyAsync);
        if begun == 0 {
            continue;
        }
        assert_eq!(count(kernel, launch, Opcode::CopyCommit), 2);
        for block in kernel.blocks_in(kernel.launches[launch].body) {
            let insts = &kernel.blocks[block].insts;
            for pair in insts.windows(2) {
                let [first, second] = [pair[0], pair[1]].map(|inst| kernel.insts[inst].opcode);
                assert!(first != Opcode::CopyWait || second == Opcode::Barrier, "{first:?} {second:?}");
            }
        }
    }
}

#[test]
fn buffers_of_a_product_fit_the_shared_memory_of_every_target() {
    for (target, most) in [("sm_75", 64), ("sm_80", 163), ("sm_86", 99), ("sm_90", 227), ("sm_120", 99)] {
        for text in [MATMUL, HALVES] {
            let compilation = compiled_for(text, target, &[]);
            let kernel = &compilation.ir().expect("it was asked for").kernels[0];
            for launch in kernel.launches.keys() {
                let plan = shared_plan(kernel, kernel.launches[launch].body);
                let bytes = plan.total.evaluate_int(&[]).expect("a number");
                assert!(bytes <= most * 1024, "{target}: {bytes}");
            }
        }
    }
}

#[test]
fn the_code_of_a_product_stays_small() {
    let compilation = compiled_for(MATMUL, "sm_90", &[]);
    // Without what only says where code comes from.
    let code = |line: &&str| !line.trim_start().starts_with(".loc") && !line.trim_start().starts_with("//");
    let lines = compilation.compiled.ptx.lines().filter(code).count();
    assert!(lines < 5_000, "{lines} lines of PTX");
}

/// The errors of a product under a schedule: their codes and messages.
fn refused(schedule: &str) -> String {
    let source = SourceFile::new("product.krn", format!("{MATMUL}\nschedule matmul {{ {schedule} }}"));
    match compile(&source, &CompileOptions::for_target("sm_90")) {
        Ok(_) => String::new(),
        Err(CompileError::Diagnostics(found)) => {
            found.iter().map(|found| format!("{}: {}\n", found.code.0, found.message)).collect()
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_schedule_says_the_shape_of_a_product() {
    let schedule =
        "tile i: 64, j: 128, p: 8; per_thread i: 8, j: 4; unroll p: 2; stage a depth 3 pad 8; stage b";
    let compilation = compiled_for(&format!("{MATMUL}\nschedule matmul {{ {schedule} }}"), "sm_90", &[]);
    let kernel = &compilation.ir().expect("it was asked for").kernels[0];
    let launch = launch(kernel, "matmul_tiled");
    assert_eq!(kernel.launches[launch].threads, Some(256));
    assert_eq!(count_fma(kernel, launch), 2 * 8 * 4);
    let shared = |name: &str| {
        let found = kernel.buffers.values().find(|buffer| *buffer.name == *name);
        let extents = &found.expect("a tile").extents;
        extents.iter().map(|extent| extent.evaluate_int(&[]).expect("a literal")).collect::<Vec<_>>()
    };
    assert_eq!(shared("a_tile"), [3, 8 * (64 + 8)]);
    assert_eq!(shared("b_tile"), [3, 8 * 128]);
}

#[test]
fn what_no_product_can_have_is_refused_with_the_limit() {
    for (schedule, code, reason) in [
        ("tile i: 128, j: 128; per_thread i: 2, j: 2; stage a", "E0515", "that makes 4096 threads a block"),
        ("tile i: 128, j: 128, p: 128; per_thread i: 8, j: 8; stage a", "E0516", "and a block has 232448"),
        ("tile i: 64, p: 8; stage a; unroll p: 3", "E0512", "3 unrolled steps do not divide 8"),
        ("tile i: 4; per_thread i: 8; stage a", "E0512", "4 rows a block are not a multiple of 8 a thread"),
        ("tile i: 256, j: 256; per_thread i: 16, j: 16; stage a", "E0512", "256 results a thread do not fit"),
        (
            "tile i: 64, j: 64; block 128; stage a",
            "E0517",
            "the tile makes blocks of 256 threads here, not of 128",
        ),
        ("stage a pad 1", "E0512", "the launch that stages it has"),
        ("stage a swizzle", "E0512", "the launch that stages it has"),
    ] {
        let messages = refused(schedule);
        assert!(messages.contains(code) && messages.contains(reason), "{schedule}: {messages}");
    }
}
