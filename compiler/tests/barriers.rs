//! The check of barriers, on everything that the compiler makes of the examples and of the test kernels.

use krn_compiler::ir::entities::{Block, Inst};
use krn_compiler::ir::kernel::{BufferKind, Kernel, Module, Payload};
use krn_compiler::ir::op::Opcode;
use krn_compiler::ir::{Specialization, verify_threads};
use krn_compiler::lower::{LowerOptions, lower};
use krn_compiler::manifest::Value;
use krn_compiler::passes::{Pipeline, PipelineOptions, Stage, TargetFacts};
use krn_compiler::source::SourceFile;
use krn_compiler::{TARGETS, capability};
use std::path::{Path, PathBuf};

/// Every `.krn` file below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "krn") {
            found.push(path);
        }
    }
    found
}

/// What lowering makes of a file.
fn lowered(path: &Path, target: &str) -> Module {
    let text = std::fs::read_to_string(path).expect("a file");
    let source = SourceFile::new(path.to_string_lossy(), text);
    let (program, diagnostics) = krn_compiler::check_source(&source);
    assert!(!diagnostics.has_errors(), "{}", path.display());
    lower(&program, &source, LowerOptions::for_target(target)).expect("a program that lowers")
}

fn through(kernel: &Kernel, pipeline: &Pipeline) -> Kernel {
    let mut kernel = kernel.clone();
    let options = PipelineOptions { verify: false, ..PipelineOptions::default() };
    pipeline.run(&mut kernel, &options, &mut |_| {}).expect("a pipeline that runs");
    kernel
}

#[test]
fn all_kernels_on_all_targets_are_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let (mut complaints, mut checked) = (Vec::new(), 0);
    for path in ["examples", "tests/kernels", "bench"].iter().flat_map(|folder| files(&root.join(folder))) {
        let mut known: Vec<u32> = Vec::new();
        // What differs from target to target, the examples have.
        let targets = if path.starts_with(root.join("examples")) { TARGETS } else { &["sm_90"] };
        for target in targets {
            let Some(number) = capability(target).filter(|number| !known.contains(number)) else { continue };
            known.push(number);
            let standard = Pipeline::for_target(&TargetFacts::new(number));
            // Small matrices take the large tiles too.
            let eager =
                standard.clone().replace("stage", Stage { shape: Some("tiled_large") }).expect("a pass");
            for kernel in lowered(&path, target).kernels {
                let pipelines: &[&Pipeline] = if number == 90 { &[&standard, &eager] } else { &[&standard] };
                for pipeline in pipelines.iter().copied() {
                    let done = through(&kernel, pipeline);
                    let shared = done.buffers.values().any(|buffer| buffer.kind == BufferKind::Shared);
                    checked += usize::from(shared);
                    if let Err(errors) = verify_threads(&done) {
                        for error in errors.iter().take(3) {
                            complaints.push(format!(
                                "{} {target} `{}`: {error}",
                                path.display(),
                                kernel.name
                            ));
                        }
                    }
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{} complaints\n{}", complaints.len(), complaints.join("\n"));
    assert!(checked > 100, "{checked} kernels with shared memory");
}

/// One barrier less, or one that stands elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutation {
    Removed,
    /// Before the nearest statement in front of it that touches shared memory.
    Earlier,
    /// After the nearest one behind it.
    Later,
}

/// The barriers of the launches, and where threads wait for copies in the background, with the block that each stands in.
fn barriers(kernel: &Kernel) -> Vec<(Block, Inst)> {
    let mut found = Vec::new();
    kernel.walk_all(&mut |block, inst| {
        if matches!(kernel.insts[inst].opcode, Opcode::Barrier | Opcode::CopyWait) {
            found.push((block, inst));
        }
    });
    found
}

fn touches_shared(kernel: &Kernel, inst: Inst) -> bool {
    let of_shared = |inst: Inst| match kernel.insts[inst].payload {
        Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => {
            kernel.buffers[buffer].kind == BufferKind::Shared
        }
        _ => false,
    };
    let mut found = of_shared(inst);
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inst| found |= of_shared(inst));
    }
    found
}

/// The kernel with a mutation of one barrier; `None` where there is nothing to move it over.
fn mutant(kernel: &Kernel, (block, barrier): (Block, Inst), mutation: Mutation) -> Option<Kernel> {
    let mut mutant = kernel.clone();
    let insts = &mut mutant.blocks[block].insts;
    let at = insts.iter().position(|inst| *inst == barrier)?;
    insts.remove(at);
    let to = match mutation {
        Mutation::Removed => return Some(mutant),
        Mutation::Earlier => insts[..at].iter().rposition(|inst| touches_shared(kernel, *inst))?,
        Mutation::Later => at + insts[at..].iter().position(|inst| touches_shared(kernel, *inst))? + 1,
    };
    insts.insert(to, barrier);
    Some(mutant)
}

/// Kernels whose barriers come from every pass that makes any: tiles of products and transposes, with loops over chunks;
/// reductions shared by a block, in loops and out of them; arrays combined into within a block.
const MUTATED: &[&str] = &["matmul", "transpose", "sum", "softmax", "histogram", "layer_norm", "argmax"];

/// Of all dimensions: whole vectors and not, large and small.
const SIZES: [i128; 4] = [4096, 4095, 600, 90];

#[test]
fn no_barrier_can_be_left_out_or_moved() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let (mut missed, mut mutants) = (Vec::new(), 0);
    for name in MUTATED {
        let kernels = lowered(&root.join(format!("examples/{name}.krn")), "sm_90").kernels;
        for (kernel, size) in kernels.iter().flat_map(|kernel| SIZES.map(|size| (kernel, size))) {
            let values = vec![Some(Value::Int(size)); kernel.symbols.len()];
            let kernel = Kernel { specialization: Specialization::for_values(values), ..kernel.clone() };
            let kernel = through(&kernel, &Pipeline::for_target(&TargetFacts::new(90)));
            assert_eq!(verify_threads(&kernel), Ok(()));
            for place in barriers(&kernel) {
                for mutation in [Mutation::Removed, Mutation::Earlier, Mutation::Later] {
                    let Some(mutant) = mutant(&kernel, place, mutation) else { continue };
                    mutants += 1;
                    if verify_threads(&mutant).is_ok() {
                        missed.push(format!("{} {mutation:?}", kernel.name));
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?} of {mutants}");
    assert!(mutants > 100, "{mutants} mutants");
}
