//! The first thing that somebody does with an example: `krn run FILE`, and nothing more said.

use crate::tool_support::run;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Mutex;

/// Lane instructions of one kernel: some tenths of a second of the emulator.
const EMULATOR_WORK: u64 = 1 << 27;

fn examples() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = std::fs::read_dir(folder).expect("the examples are there");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "krn"));
    files.sort();
    files
}

/// What a bare run says of each kernel of a file.
fn bare(path: &str) -> Vec<Value> {
    let (out, _) = run(&["run", path, "--device", "emulator", "--json"], 0);
    out.lines().map(|line| serde_json::from_str(line).expect("one JSON object a kernel")).collect()
}

/// A quarter of them, unless tests run in full: `krn test` runs all.
#[test]
fn a_bare_run_of_an_example_takes_seconds_and_checks_something() {
    let mut files = examples();
    files.retain(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        xtask::is_in_share(&name, 4)
    });
    assert!(files.len() >= 4, "only {files:?}");
    let files = Mutex::new(files);
    let check = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("readable");
        let kernels = text.lines().filter(|line| line.starts_with("kernel ")).count();
        let runs = bare(&path.display().to_string());
        assert_eq!(runs.len(), kernels, "{}: every kernel runs", path.display());
        for run in runs {
            let work = run["lane_instructions"].as_u64().expect("the emulator counts");
            assert!((1..=EMULATOR_WORK).contains(&work), "{work} lane instructions: {run}");
            assert_eq!(run["agrees"], true, "{run}");
            for output in run["outputs"].as_array().expect("it was checked") {
                assert!(output["judged"].as_u64().expect("a number") > 0, "{run}");
                assert!(output["sampled"].is_null(), "{run}");
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(path) = files.lock().expect("no panic with it").pop() else { return };
                    check(&path);
                }
            });
        }
    });
}

#[test]
fn directives_give_inputs_and_sizes_where_the_command_line_does_not() {
    let sizes = |arguments: &[&str]| {
        let (out, _) = run(&[&["run", "examples/gather_scatter.krn", "--json"], arguments].concat(), 0);
        let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.map(|run| (run["dims"]["n"].as_i64(), run["dims"]["m"].as_i64())).collect::<Vec<_>>()
    };
    // Of the lists, the run with the most work.
    assert_eq!(sizes(&[]), [(Some(1000), Some(1000)), (Some(1000), Some(333))]);
    assert_eq!(sizes(&["-D", "m=50"]), [(Some(1000), Some(50)), (Some(1000), Some(50))]);
    // Indices that are inside for the directive's sizes, and outside if they are taken for other ones.
    assert_eq!(sizes(&["--kernel", "gather", "-D", "n=7"]), [(Some(7), Some(1000))]);
    let outside =
        ["run", "examples/gather_scatter.krn", "--kernel", "gather", "--in", "from=random(n, n + 2)"];
    let (_, err) = run(&outside, 4);
    assert!(err.contains("out of bounds") || err.contains("outside"), "{err}");
    // What the command line says of one field leaves the others to the directive.
    let option = ["run", "examples/black_scholes.krn", "-D", "n=5", "--in", "option.spot=ramp(1.5, 2.5)"];
    run(&option, 0);
    let (_, err) = run(&["run", "examples/saxpy.krn", "--in", "y=random(0, q)"], 2);
    assert!(err.contains("`q` is neither a number nor a dimension"), "{err}");
    let (_, err) = run(&["run", "examples/saxpy.krn", "--in", "y=ramp(n, 0)"], 2);
    assert!(err.contains("`ramp(n, 0)` would go from"), "{err}");
}

#[test]
fn what_is_said_of_several_kernels_goes_to_those_that_have_it() {
    let sum = "examples/sum.krn";
    let (out, _) = run(&["run", sum, "-D", "n=77", "rows=3", "cols=5"], 0);
    assert!(out.contains("total with n = 77 ") && out.contains("row_sums with cols = 5, rows = 3 "), "{out}");
    let (_, err) = run(&["run", sum, "-D", "q=3"], 2);
    assert!(err.contains("no kernel of the file has a dimension `q`"), "{err}");
    let (_, err) = run(&["run", "examples/argmax.krn", "--set", "q=3"], 2);
    assert!(err.contains("no kernel of the file has a scalar parameter `q`"), "{err}");
    let (_, err) = run(&["run", sum, "--in", "q=ones"], 2);
    assert!(err.contains("no kernel of the file has an input `q`"), "{err}");
    let (_, err) = run(&["run", "examples/transpose.krn", "--out", "b=b.npy"], 2);
    assert!(err.contains("pick one of them by --kernel"), "{err}");
}
