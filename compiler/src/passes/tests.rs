mod apart;
mod deviations;
mod matrices;
mod mutants;
mod quick;
mod rates;
mod whole;

use super::*;
use crate::ir::Specialization;
use crate::ir::kernel::{Kernel, Phase, Phases};
use crate::ir::schedule::{Directive, Scheduled};
use crate::ir::testing::{Outcome, generate, host_values, interpret, symbol_values};
use crate::ir::text::{PrintOptions, print_kernel};
use crate::ir::verify;
use proptest::prelude::*;

fn target() -> TargetFacts {
    TargetFacts::new(90)
}

const SIZES: [(i128, i128); 4] = [(0, 3), (1, 0), (3, 1), (2, 5)];

/// What a kernel does for some sizes.
fn outcomes(kernel: &Kernel, sizes: &[(i128, i128)]) -> Vec<Outcome> {
    let fill = |buffer: crate::ir::entities::Buffer, leaf: u32, at: usize| {
        let place = i64::from(buffer.as_u32()) * 101 + i64::from(leaf) * 17 + at as i64 + 1;
        place * 2_654_435_761 % 1009 % 50 - 20
    };
    sizes.iter().map(|(n, m)| interpret(kernel, &symbol_values(*n, *m), &fill)).collect()
}

/// Runs a pass and compares what the kernel does before and after, to the bit.
fn assert_keeps_meaning(kernel: &Kernel, pipeline: &Pipeline) -> Result<(), TestCaseError> {
    let mut after = kernel.clone();
    // Compiled for one of the sizes, and right for all that its code does not exclude.
    let (n, m) = SIZES[kernel.insts.len() % SIZES.len()];
    after.specialization = Specialization::for_values(host_values(&symbol_values(n, m)));
    let options = PipelineOptions { verify: true, ..PipelineOptions::default() };
    match pipeline.run(&mut after, &options, &mut |_| {}) {
        // It has been verified that nothing changed.
        Ok(report) if report.passes.iter().all(|pass| !pass.changed) => return Ok(()),
        Ok(_) => {}
        Err(error) => {
            let text = |kernel: &Kernel| print_kernel(kernel, PrintOptions::default());
            return Err(TestCaseError::fail(format!("{error}\n{}\n{}", text(kernel), text(&after))));
        }
    }
    let safe = |(n, m): &(i128, i128)| {
        let values = host_values(&symbol_values(*n, *m)).into_iter().flatten();
        after.specialization.guard().is_safe(&values.collect::<Vec<_>>())
    };
    let sizes: Vec<(i128, i128)> = SIZES.iter().copied().filter(safe).collect();
    assert!(sizes.contains(&(n, m)), "it is right for what it was compiled for");
    for (before, now) in outcomes(kernel, &sizes).into_iter().zip(outcomes(&after, &sizes)) {
        // A pass may take instructions out of a run that is too long, never put them in without bound.
        if before != Outcome::OutOfFuel && now != Outcome::OutOfFuel && before != now {
            let text = |kernel: &Kernel| print_kernel(kernel, PrintOptions { spans: false });
            let changes = diff(&text(kernel), &text(&after));
            return Err(TestCaseError::fail(format!("{before:?}\n{now:?}\n{}\n{changes}", text(kernel))));
        }
    }
    Ok(())
}

/// The kernel with a schedule that unrolls every loop.
fn unrolled(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    for (at, axis) in kernel.axes.values().enumerate() {
        let directive =
            Directive::Unroll { axis: axis.name.clone(), factor: [Some(2), Some(3), None][at % 3] };
        let scheduled = Scheduled { directive, span: Default::default(), outcome: Default::default() };
        kernel.schedule.directives.push(scheduled);
    }
    kernel
}

proptest! {
    #![proptest_config(ProptestConfig { cases: xtask::share_of_cases(500), ..ProptestConfig::default() })]

    #[test]
    fn each_pass_keeps_the_meaning_of_random_kernels(tape in proptest::collection::vec(any::<u8>(), 0..400)) {
        let kernel = generate(&tape);
        for name in ["hoist_checks", "fold", "join_branches", "inline", "merge_axes", "fuse_launches", "fuse", "collapse", "hoist_reductions", "sink_loads", "reduce_atomics", "soa", "map", "licm", "cse", "dce"] {
            let pipeline = Pipeline::of_names(&[name], &target()).map_err(|error| TestCaseError::fail(error.to_string()))?;
            assert_keeps_meaning(&kernel, &pipeline)?;
        }
        for names in [&["map", "stage", "threads"][..], &["map", "reuse", "normals", "threads", "guards"]] {
            let pipeline = Pipeline::of_names(names, &target());
            let pipeline = pipeline.map_err(|error| TestCaseError::fail(error.to_string()))?;
            assert_keeps_meaning(&kernel, &pipeline)?;
        }
        let pipeline = Pipeline::of_names(&["map", "threads", "unroll"], &target());
        let pipeline = pipeline.map_err(|error| TestCaseError::fail(error.to_string()))?;
        assert_keeps_meaning(&unrolled(&kernel), &pipeline)?;
    }

    #[test]
    fn the_pipeline_keeps_the_meaning_of_random_kernels(tape in proptest::collection::vec(any::<u8>(), 0..600)) {
        // `fuse_multiply_add` rounds once instead of twice, so its results are other bits; the teams of `split_reductions`
        // wait for each other, which the interpreter's threads cannot.
        let pipeline = Pipeline::for_target(&target()).without("fuse_multiply_add");
        let pipeline = pipeline.and_then(|pipeline| pipeline.without("split_reductions"));
        let pipeline = pipeline.map_err(|error| TestCaseError::fail(error.to_string()))?;
        assert_keeps_meaning(&generate(&tape), &pipeline)?;
    }

    #[test]
    fn every_prefix_leaves_valid_kernels(
        tape in proptest::collection::vec(any::<u8>(), 0..300),
        count in any::<prop::sample::Index>(),
    ) {
        let options = PipelineOptions { verify: true, ..PipelineOptions::default() };
        let pipeline = Pipeline::for_target(&target());
        let count = count.index(pipeline.optional_len() + 1);
        let mut kernel = generate(&tape);
        let run = pipeline.prefix(count).run(&mut kernel, &options, &mut |_| {});
        prop_assert!(run.is_ok(), "the first {count}: {run:?}");
        prop_assert!(kernel.launches.values().all(|launch| launch.phase == Phase::Staged));
    }
}

/// Does nothing, under a name.
struct Nothing(&'static str);

impl Pass for Nothing {
    fn name(&self) -> &str {
        self.0
    }

    fn reason(&self) -> &str {
        "for tests"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn run(&self, _: &mut Kernel, _: &PassContext) -> Changed {
        Changed::No
    }
}

/// Lists an instruction twice.
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

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let body = kernel.launches.values().next().map(|launch| launch.body);
        if let Some(block) = body.map(|body| &mut kernel.blocks[body]) {
            let first = block.insts[0];
            block.insts.insert(0, first);
        }
        Changed::Yes
    }
}

/// Changes something and says no, or does nothing and says yes.
struct Lies {
    says: Changed,
}

impl Pass for Lies {
    fn name(&self) -> &str {
        "lies"
    }

    fn reason(&self) -> &str {
        "for tests"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        if self.says == Changed::No {
            let launch = kernel.launches.keys().next().expect("a launch");
            kernel.launches[launch].resident = Some(1);
        }
        self.says
    }
}

#[test]
fn what_a_pass_says_of_itself_is_checked() {
    let verifying = PipelineOptions { verify: true, ..Default::default() };
    let message = |says| {
        let lying = Pipeline::for_target(&target()).then(Lies { says }).expect("a new name");
        lying.run(&mut generate(&[7; 90]), &verifying, &mut |_| {}).expect_err("a lie").to_string()
    };
    assert_eq!(
        message(Changed::Yes),
        "the pass `lies` says that it changed the kernel `random`, and did not"
    );
    assert_eq!(message(Changed::No), "the pass `lies` changed the kernel `random`, and says that it did not");
}

#[test]
fn pipelines_can_be_changed() -> Result<(), PipelineError> {
    let standard = || Pipeline::for_target(&target());
    let changed =
        standard().without("licm")?.after("soa", Nothing("mine"))?.before("dce", Nothing("last"))?;
    let names: Vec<&str> = changed.names().collect();
    // Where they stand beside others, not at which number: a new pass moves all behind it.
    let position = |name: &str| names.iter().position(|known| *known == name);
    assert_eq!(position("mine"), position("soa").map(|at| at + 1));
    assert_eq!(position("last").map(|at| at + 1), position("dce"));
    let others: Vec<&str> = names.iter().copied().filter(|name| !["mine", "last"].contains(name)).collect();
    let pipeline = standard();
    let expected: Vec<&str> = pipeline.names().filter(|name| *name != "licm").collect();
    assert_eq!(others, expected);
    let replaced = standard().replace("cse", Nothing("cse"))?.then(Nothing("end"))?;
    assert_eq!(replaced.names().last(), Some("end"));
    insta::assert_snapshot!(standard().to_string());
    Ok(())
}

#[test]
fn what_cannot_be_is_refused() {
    let standard = || Pipeline::for_target(&target());
    let text = |result: Result<Pipeline, PipelineError>| {
        result.err().map_or("accepted".into(), |error| error.to_string())
    };
    let mut kernel = generate(&[7; 90]);
    let unknown =
        PipelineOptions { print_after: PassSelection::Names(vec!["maps".into()]), ..Default::default() };
    let verifying = PipelineOptions { verify: true, ..Default::default() };
    let breaking = standard().after("soa", Breaks).expect("a new name");
    let refusals = [
        text(standard().without("licn")),
        text(standard().without("quicksort")),
        text(standard().without("map")),
        text(standard().after("map", Nothing("cse"))),
        text(standard().after("map", Soa)),
        text(standard().without("soa").and_then(|pipeline| pipeline.after("map", Soa))),
        text(standard().without("fold").and_then(|pipeline| pipeline.then(Fold))),
        text(Pipeline::of_names(&["fold", "fused"], &target())),
        standard().run(&mut kernel.clone(), &unknown, &mut |_| {}).expect_err("unknown").to_string(),
        breaking.run(&mut kernel, &verifying, &mut |_| {}).expect_err("broken").to_string(),
        standard().run(&mut kernel, &verifying, &mut |_| {}).expect_err("broken before").to_string(),
    ];
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn the_guilty_pass_is_named_however_often_the_kernel_is_verified() {
    let breaking = Pipeline::for_target(&target()).then(Breaks).expect("a new name");
    let message = |verify: bool| {
        let options = PipelineOptions { verify, ..Default::default() };
        let result = breaking.run(&mut generate(&[7; 90]), &options, &mut |_| {});
        result.expect_err("broken").to_string()
    };
    assert!(message(true).starts_with("the pass `breaks` broke"), "{}", message(true));
    assert_eq!(message(false), message(true));
}

#[test]
fn the_runner_reports_times_and_prints() -> Result<(), PipelineError> {
    let mut kernel = generate(&[3; 60]);
    let options = PipelineOptions {
        verify: true,
        barriers: true,
        time: true,
        print_before: PassSelection::Names(vec!["fold".into()]),
        print_after: PassSelection::Names(vec!["dce".into()]),
        diff: PassSelection::Names(vec!["map".into()]),
        spans: false,
    };
    let mut printed = Vec::new();
    let report = Pipeline::for_target(&target())
        .run(&mut kernel, &options, &mut |text| printed.push(text.to_string()))?;
    assert_eq!(report.passes.len(), Pipeline::for_target(&target()).names().count());
    assert!(report.passes.iter().any(|pass| !pass.duration.is_zero()));
    assert!(report.passes.iter().any(|pass| pass.name == "map" && pass.changed));
    let starts: Vec<&str> = printed.iter().filter_map(|text| text.lines().next()).collect();
    assert_eq!(starts, ["// before fold", "// changes of map", "// after dce"]);
    assert!(printed[1].contains("+         forall axis0 \"i\" = "), "{}", printed[1]);
    assert_eq!(verify(&kernel), Ok(()));
    Ok(())
}
