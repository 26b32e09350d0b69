//! Climbing the pipeline pass by pass: `krn ladder`, `krn run --bisect`, and the library behind them.

use crate::tool_support::{command, ended};
use krn_compiler::CompileOptions;
use krn_compiler::ir::kernel::{Kernel, Phase, Phases};
use krn_compiler::ir::op::Opcode;
use krn_compiler::passes::{Changed, Map, Pass, PassContext, Pipeline, TargetFacts};
use krn_compiler::source::SourceFile;
use krn_runtime::verify::{Bisection, Case, CheckOptions, Fill, Verdict, bisect, fill};
use krn_runtime::{Device, Selection};
use std::collections::BTreeMap;

/// Standard output and error; `path` is where a ptxas is looked for.
fn krn(arguments: &[&str], path: &str, ptxas: Option<&str>, code: i32) -> (String, String) {
    let mut command = command(arguments);
    command.env("PATH", path);
    match ptxas {
        Some(ptxas) => command.env("KRN_PTXAS", ptxas),
        None if path.is_empty() => &mut command,
        None => command.env_remove("KRN_PTXAS"),
    };
    ended(&mut command, code)
}

#[test]
fn a_ladder_counts_and_checks_every_step() {
    let arguments = ["ladder", "examples/saxpy.krn", "--device", "emulator", "-D", "n=3000"];
    let (out, _) = krn(&arguments, "", None, 0);
    assert!(out.contains("saxpy with n = 3000") && out.contains("NO TIME"), "{out}");
    assert!(out.contains("no ptxas found") && out.contains("KRN_PTXAS"), "{out}");
    assert!(out.contains("every step agrees with the reference"), "{out}");
    assert!(out.contains("  the same for all sizes\n"), "{out}");
    let row = |name: &str| out.lines().find(|line| line.trim_start().starts_with(name));
    let count = |line: &str| -> u64 {
        let cell = line.split_whitespace().find(|word| word.contains(','));
        cell.and_then(|cell| cell.replace(',', "").parse().ok()).expect("a grouped number")
    };
    let (first, last) = (row("(none)").expect("the lowest"), row("+ dce").expect("the highest"));
    assert!(count(first) > count(last), "{out}");
    assert!(row("+ soa").is_none(), "no struct is laid out anew: {out}");
    let nothing = row("changed nothing here").expect("said at the end");
    assert!(nothing.contains("soa") && !nothing.contains("dce"), "{out}");
}

#[test]
fn a_ladder_is_one_json_object_with_a_rung_a_pass() {
    let arguments =
        ["ladder", "examples/sum.krn", "--kernel", "total", "--device", "emulator", "-D", "n=1000", "--json"];
    let (out, _) = krn(&arguments, "", None, 0);
    let value: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    let rungs = value["rungs"].as_array().expect("rungs");
    let pipeline = Pipeline::for_target(&TargetFacts::new(90));
    let names: Vec<&str> = rungs.iter().filter_map(|rung| rung["pass"].as_str()).collect();
    assert_eq!(names, pipeline.optional_names().collect::<Vec<_>>());
    assert_eq!(rungs.len(), pipeline.optional_len() + 1);
    let made_for: Vec<&str> =
        value["made_for"].as_array().into_iter().flatten().filter_map(|line| line.as_str()).collect();
    assert!(
        made_for.contains(&"made for n = 1000") && made_for.iter().any(|line| line.starts_with("chosen by ")),
        "{made_for:?}"
    );
    assert!(value["agrees"] == true && value["ptxas"].is_null() && value["dims"]["n"] == 1000);
    for rung in rungs {
        assert_eq!(rung["lane_instructions"].is_u64(), rung["changed"] == true, "{rung}");
        assert!(rung["median_s"].is_null() && rung["registers"].is_null(), "{rung}");
    }
    // What is left out is no rung.
    let without: Vec<&str> = arguments.iter().copied().chain(["--without", "split_reductions"]).collect();
    let (out, _) = krn(&without, "", None, 0);
    assert!(!out.contains("split_reductions"), "{out}");
}

#[test]
fn a_ladder_tells_what_ptxas_says() {
    let ptxas = xtask::cuda_tools::find("ptxas").unwrap_or_else(|error| panic!("{error}"));
    let folder = ptxas.parent().expect("a folder").display().to_string();
    let arguments = [
        "ladder",
        "examples/sum.krn",
        "--kernel",
        "total",
        "--device",
        "emulator",
        "-D",
        "n=100000",
        "--json",
    ];
    let (named, _) = krn(&arguments, "", Some(&ptxas.display().to_string()), 0);
    let (found, _) = krn(&arguments, &folder, None, 0);
    assert_eq!(named, found);
    let value: serde_json::Value = serde_json::from_str(&named).expect("one JSON object");
    let changed: Vec<_> =
        value["rungs"].as_array().expect("rungs").iter().filter(|r| r["changed"] == true).collect();
    assert!(changed.iter().all(|rung| rung["registers"].as_u64().is_some_and(|count| count > 4)), "{value}");
    assert!(changed.iter().all(|rung| rung["spill_bytes"] == 0), "{value}");
    // One thread needs no shared memory; the blocks that share the work do.
    assert_eq!(changed[0]["shared_bytes"], 0);
    assert!(changed.last().is_some_and(|rung| rung["shared_bytes"].as_u64() > Some(0)), "{value}");
    let (_, err) = krn(&arguments, &folder, Some("/no/such/ptxas"), 5);
    assert!(err.contains("KRN_PTXAS names `/no/such/ptxas`, which is not a file"), "{err}");
}

#[test]
fn wrong_use_of_ladder_and_bisect_is_told() {
    let on =
        |arguments: &[&str], code| krn(&[arguments, &["--device", "emulator"]].concat(), "", None, code).1;
    let err = on(&["ladder", "examples/sum.krn"], 2);
    assert!(err.contains("pick one of `total`, `row_sums`, `column_sums` by --kernel"), "{err}");
    assert!(on(&["ladder", "examples/saxpy.krn", "--without", "licn"], 2).contains("did you mean `licm`"));
    assert!(
        on(&["run", "examples/saxpy.krn", "--bisect", "--without", "licn"], 2)
            .contains("did you mean `licm`")
    );
    assert!(on(&["ladder", "examples/saxpy.krn", "-D", "q=3"], 2).contains("`q`"));
    assert!(on(&["ladder", "no/such.krn"], 5).contains("cannot read `no/such.krn`"));
    assert!(on(&["run", "examples/saxpy.krn", "--bisect", "--no-check"], 2).contains("--no-check"));
    // Every step is refused for the same reason: that is a bounds failure, not a difference.
    let gather =
        ["examples/gather_scatter.krn", "--kernel", "gather", "-D", "n=10", "--in", "from=random(10,11)"];
    let err = on(&[&["ladder"], &gather[..]].concat(), 4);
    assert!(err.contains("is outside axis"), "{err}");
}

#[test]
fn bisecting_a_good_pipeline_says_that_no_pass_does_harm() {
    let arguments =
        ["run", "examples/matmul.krn", "--bisect", "--device", "emulator", "-D", "m=17", "k=9", "n=21"];
    let (out, _) = krn(&arguments, "", None, 0);
    let all = Pipeline::for_target(&TargetFacts::new(90)).optional_len() + 1;
    let said = format!("no pass does harm: all {all} prefixes of the pipeline agree with the reference");
    assert!(out.contains(&said) && out.contains("matmul with k = 9, m = 17, n = 21"), "{out}");
    let (out, _) = krn(&[&arguments[..], &["--json"]].concat(), "", None, 0);
    let value: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    assert!(value["agrees"] == true && value["first_wrong"].is_null());
    assert_eq!(value["steps"].as_array().map(Vec::len), Some(all));
}

/// A pass that makes every operation of one kind another.
struct Confuse {
    name: &'static str,
    from: Opcode,
    to: Opcode,
}

impl Pass for Confuse {
    fn name(&self) -> &str {
        self.name
    }

    fn reason(&self) -> &str {
        "does harm"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for inst in kernel.insts.keys().collect::<Vec<_>>() {
            let data = &mut kernel.insts[inst];
            if data.opcode == self.from {
                data.opcode = self.to;
                changed = true;
            }
        }
        changed.into()
    }
}

/// `map`, and harm.
struct WrongMap;

impl Pass for WrongMap {
    fn name(&self) -> &str {
        "map"
    }

    fn reason(&self) -> &str {
        "does harm"
    }

    fn needs(&self) -> Phases {
        Map.needs()
    }

    fn leaves(&self) -> Option<Phase> {
        Map.leaves()
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        Confuse { name: "", from: Opcode::Sub, to: Opcode::Max }.run(kernel, context);
        Map.run(kernel, context)
    }
}

fn bisected(pipeline: Pipeline) -> Bisection {
    let text = "kernel difference(x: f32[n]) -> y: f32[n] { y[i] = x[i] - 2.0 }\n";
    let source = SourceFile::new("difference.krn", text);
    let element = krn_compiler::data::ElementType::scalar(krn_compiler::data::Scalar::F32);
    let x = fill("x", &element, &[50], &Fill::Random.into(), 1).expect("small");
    let case = Case { params: BTreeMap::new(), arrays: BTreeMap::from([("x".to_string(), x)]) };
    let device = Device::open_as(Selection::Emulator).expect("always there");
    let options = CompileOptions { pipeline: Some(pipeline), ..CompileOptions::for_target("sm_90") };
    bisect(&device, &source, &options, "difference", &case, &CheckOptions::default()).expect("it runs")
}

fn standard() -> Pipeline {
    Pipeline::for_target(&TargetFacts::new(90))
}

#[test]
fn bisecting_names_the_first_pass_that_does_harm() {
    let wrong = |name| Confuse { name, from: Opcode::Sub, to: Opcode::Min };
    let pipeline = standard().after("licm", wrong("first")).expect("it fits");
    let pipeline = pipeline.after("cse", wrong("second")).expect("it fits");
    let found = bisected(pipeline);
    let step = found.first_wrong().expect("it is wrong");
    assert_eq!(step.added.as_deref(), Some("first"));
    let Verdict::Wrong(report) = &step.verdict else { panic!("{:?}", step.verdict) };
    assert!(report.outputs[0].report.mismatches > 0);
    assert!(found.steps.iter().rev().skip(1).all(|step| matches!(step.verdict, Verdict::Agrees)));
    assert!(bisected(standard()).first_wrong().is_none());
}

#[test]
fn a_required_pass_that_does_harm_is_wrong_from_the_start() {
    let found = bisected(standard().replace("map", WrongMap).expect("it fits"));
    assert_eq!(found.steps.len(), 1);
    assert_eq!(found.first_wrong().map(|step| step.added.as_deref()), Some(None));
}

#[test]
fn a_pass_whose_kernel_the_verifier_refuses_is_named() {
    // `and` wants bits.
    let broken = Confuse { name: "broken", from: Opcode::Sub, to: Opcode::And };
    let found = bisected(standard().before("collapse", broken).expect("it fits"));
    let step = found.first_wrong().expect("it is broken");
    assert_eq!(step.added.as_deref(), Some("broken"));
    let Verdict::Broken(error) = &step.verdict else { panic!("{:?}", step.verdict) };
    assert!(error.to_string().contains("the pass `broken` broke the kernel `difference`"), "{error}");
}
