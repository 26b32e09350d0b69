//! Launches that are worked on one by one become what they become in the whole kernel.

use crate::support::examples;
use krn_compiler::ir::kernel::{Kernel, Module, Phases};
use krn_compiler::ir::text::{PrintOptions, print_kernel};
use krn_compiler::ir::{Specialization, verify};
use krn_compiler::manifest::Value;
use krn_compiler::passes::{
    Changed, Pass, PassContext, PassSelection, Pipeline, PipelineOptions, TargetFacts,
};
use krn_compiler::ptx::select::{SelectOptions, select};
use krn_compiler::source::SourceFile;
use krn_compiler::{
    Compilation, CompileError, CompileOptions, Variants, check_source, compile, explain_schedules, lower,
};

const TARGET: &str = "sm_90";

/// A file after all passes, each kernel in one piece all the way.
fn whole(source: &SourceFile) -> Module {
    let (program, _) = check_source(source);
    let mut module =
        lower::lower(&program, source, lower::LowerOptions::for_target(TARGET)).expect("it is lowered");
    let pipeline = Pipeline::for_target(&TargetFacts::new(90)).with_constants(module.constants.clone());
    let options = PipelineOptions { verify: false, ..PipelineOptions::default() };
    for kernel in &mut module.kernels {
        kernel.specialization = Specialization::for_values(VALUES.map(Some).to_vec());
        pipeline.run(kernel, &options, &mut |_| {}).expect("passes run");
    }
    module
}

fn parted(source: &SourceFile, options: &CompileOptions) -> Compilation {
    compile(source, options).unwrap_or_else(|error| panic!("{}: {error}", source.name()))
}

fn with_ir() -> CompileOptions {
    let variants = Variants::Only(VALUES.map(Some).to_vec());
    CompileOptions { ir: true, variants, ..CompileOptions::for_target(TARGET) }
}

/// Of as many symbols as any kernel has.
const VALUES: [Value; 12] = [Value::Int(4096); 12];

fn text(kernel: &Kernel) -> String {
    print_kernel(&kernel.compacted(), PrintOptions::default())
}

#[test]
fn launches_by_themselves_become_what_they_become_in_the_kernel() {
    let mut several = 0;
    for source in examples() {
        let (whole, parted) = (whole(&source), parted(&source, &with_ir()));
        let joined = parted.ir().expect("it was asked for");
        assert_eq!(joined.kernels.len(), whole.kernels.len());
        for (joined, whole) in joined.kernels.iter().zip(&whole.kernels) {
            assert_eq!(text(joined), text(whole), "{}: {}", source.name(), whole.name);
            assert_eq!(joined.schedule, whole.schedule, "{}: {}", source.name(), whole.name);
            assert_eq!(verify(joined), Ok(()));
            several += usize::from(whole.launches.len() > 1);
        }
        let options = SelectOptions { target: TARGET.into(), capability: 90, names: false };
        let selected = select(&whole, &source, &options).expect("it is selected");
        assert!(selected.text == parted.compiled.ptx, "{}: another PTX", source.name());
        assert_eq!(selected.module, parted.compiled.module, "{}", source.name());
        assert_eq!(selected.manifest, parted.compiled.manifest, "{}", source.name());
    }
    assert!(several > 5, "{several} kernels of several launches");
}

#[test]
fn what_passes_print_is_of_the_whole_kernel_and_changes_nothing() {
    for source in examples() {
        let plain = parted(&source, &with_ir());
        let mut options = CompileOptions { ir: false, ..with_ir() };
        options.passes.print_after = PassSelection::Names(vec!["licm".into(), "dce".into()]);
        let (first, second) = (parted(&source, &options), parted(&source, &options));
        assert_eq!(first.printed, second.printed, "{}", source.name());
        for kernel in &plain.ir().expect("it was asked for").kernels {
            let printed =
                |pass: &str| first.printed.contains(&format!("// after {pass}\nkernel {:?}", kernel.name));
            assert!(printed("licm") && printed("dce"), "{}: {}", source.name(), kernel.name);
        }
        assert!(first.compiled == plain.compiled, "{}: another module", source.name());
        let changed = |compilation: &Compilation| -> Vec<(String, String, bool)> {
            let rows = compilation.reports.iter().flat_map(|(kernel, report)| {
                report.passes.iter().map(|pass| (kernel.clone(), pass.name.clone(), pass.changed))
            });
            rows.collect()
        };
        assert_eq!(changed(&first), changed(&plain), "{}", source.name());
    }
}

/// Lists an instruction of a launch of a name twice.
struct Breaks;

impl Pass for Breaks {
    fn name(&self) -> &str {
        "breaks"
    }

    fn reason(&self) -> &str {
        "for tests"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let large = kernel.launches.values().find(|launch| launch.name.contains("_large"));
        let Some(body) = large.map(|launch| launch.body) else { return Changed::No };
        let first = kernel.blocks[body].insts[0];
        kernel.blocks[body].insts.insert(0, first);
        Changed::Yes
    }
}

#[test]
fn the_pass_that_breaks_one_launch_is_named() {
    let source = SourceFile::new(
        "product.krn",
        "kernel product(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }\n",
    );
    let pipeline = Pipeline::for_target(&TargetFacts::new(90)).before("dce", Breaks).expect("a new name");
    let options = CompileOptions { pipeline: Some(pipeline), ..CompileOptions::for_target(TARGET) };
    let error = compile(&source, &options).expect_err("it is broken");
    assert!(matches!(error, CompileError::Pipeline(_)), "{error}");
    let message = error.to_string();
    assert!(message.starts_with("the pass `breaks` broke the kernel `product`"), "{message}");
}

#[test]
fn what_nobody_asks_for_is_not_kept() {
    for source in examples() {
        let kept = parted(&source, &with_ir());
        let plain = parted(&source, &CompileOptions { ir: false, ..with_ir() });
        assert!(kept.ir().is_some() && plain.ir().is_none());
        assert!(plain.compiled == kept.compiled, "{}: another module", source.name());
        assert_eq!(explain_schedules(&plain), explain_schedules(&kept), "{}", source.name());
        let text_only = CompileOptions { text_only: true, ir: false, ..with_ir() };
        let text = parted(&source, &text_only).compiled;
        assert!(text.ptx == kept.compiled.ptx, "{}: another PTX", source.name());
        assert_eq!(text.manifest, kept.compiled.manifest, "{}", source.name());
        assert!(text.module.entries.is_empty());
    }
}

#[test]
fn each_of_many_kernels_has_its_entry_in_the_order_of_the_file() {
    let kernels =
        (0..600).map(|at| format!("kernel k{at}(x: f32[n]) -> y: f32[n] {{ y[i] = x[i] + {at}.0 }}\n"));
    let text: String = kernels.collect();
    let source = SourceFile::new("many.krn", text);
    let done = parted(&source, &CompileOptions::for_target(TARGET));
    let text_only = CompileOptions { text_only: true, ..CompileOptions::for_target(TARGET) };
    let text = parted(&source, &text_only).compiled;
    assert!(text.ptx == done.compiled.ptx && text.manifest == done.compiled.manifest);
    let names = |at| format!("k{at}");
    let entries: Vec<&str> = done.compiled.module.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(entries, (0..600).map(names).collect::<Vec<_>>());
    let manifests = done.compiled.manifest.kernels.iter().map(|kernel| kernel.name.clone());
    assert_eq!(manifests.collect::<Vec<_>>(), (0..600).map(names).collect::<Vec<_>>());
}

/// A launch reads the record of failed checks if one before it has some, and if memory decides how long its loops are.
#[test]
fn launches_after_a_check_read_the_record_for_loops_that_may_not_end() {
    let reads = |text: &str| -> Vec<bool> {
        let values = [4096, 4096].map(|size| Some(Value::Int(size))).to_vec();
        let options =
            CompileOptions { variants: Variants::Only(values), ..CompileOptions::for_target(TARGET) };
        let ptx = parted(&SourceFile::new("k.krn", text), &options).compiled.ptx;
        ptx.split(".entry").skip(1).map(|entry| entry.contains("ld.relaxed.gpu.global.b32")).collect()
    };
    let gather = "let t[i in n] = x[at[i]]";
    let until = "forall i in n { var v = 0.0\n while v < 10.0 { v += t[i] }\n y[i] = v }";
    let head = "kernel k(x: f32[m], at: i32[n]) -> y: f32[n], s: f32";
    let of = |first: &str, second: &str| reads(&format!("{head} {{ {first}\n {second}\n s = 0.0 }}"));
    assert!(of(gather, until).contains(&true));
    // How often these loops run is known, whatever is in memory: also what comes after unrolled rounds.
    let counted = format!("{head} {{ {gather}\n y[i] = t[i]\n s = sum(i: t[i]) }}");
    assert_eq!(reads(&counted).iter().filter(|reads| **reads).count(), 0);
    // No check can have failed.
    assert!(!of("let t[i in n] = x[at[i]] else 0.0", until).contains(&true));
    assert!(!of("let t[i in n] = at[i] as f32", until).contains(&true));
}
