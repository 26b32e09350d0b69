//! The tool as a user runs it: what it prints, what it writes, and how it exits.

use crate::tool_support::{command, ended, run};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn write(folder: &Path, name: &str, contents: impl AsRef<[u8]>) -> String {
    let path: PathBuf = folder.join(name);
    fs::write(&path, contents).expect("a temporary file can be written");
    path.display().to_string()
}

#[test]
fn the_sanitizer_runs_on_the_emulator() {
    let file = "examples/transpose.krn";
    let (out, _) = run(&["run", file, "--kernel", "transpose", "-D", "m=70", "-D", "n=90", "--sanitize"], 0);
    assert!(out.contains("emulator (sanitizing)") && out.contains("verified"), "{out}");
    let (_, err) = run(&["run", file, "--kernel", "transpose", "--sanitize", "--device", "cuda:0"], 2);
    assert!(err.contains("--sanitize runs on the emulator"), "{err}");
    for file in [
        "examples/histogram.krn",
        "tests/kernels/reductions/rows_in_place.krn",
        "tests/kernels/reductions/read_first.krn",
    ] {
        let (out, _) = run(&["test", file, "--sanitize"], 0);
        assert!(out.contains("0 failed on emulator (sanitizing)"), "{out}");
    }
}

#[test]
fn a_wrong_command_line_is_told_once() {
    let (out, err) = run(&["test", "examples/sum.krn", "examples/dot.krn", "--without", "quicksort"], 2);
    assert_eq!(out, "");
    assert_eq!(
        err.matches("there is no pass `quicksort`; the passes are hoist_checks, ").count(),
        1,
        "{err}"
    );
    let (_, err) = ended(command(&["run", "-"]).stdin(std::process::Stdio::null()), 1);
    assert!(err.contains("no kernel in what came on standard input"), "{err}");
}

#[test]
fn matmul_runs_on_the_emulator_and_is_verified() {
    let (out, _) =
        run(&["run", "examples/matmul.krn", "--device", "emulator", "-D", "m=33", "k=17", "n=65"], 0);
    assert!(out.contains("matmul with k = 17, m = 33, n = 65 on emulator"), "{out}");
    assert!(out.contains("c: verified, 2,145 values agree"), "{out}");
}

#[test]
fn json_summaries_are_json() {
    let (out, _) = run(&["run", "examples/saxpy.krn", "--device", "emulator", "-D", "n=100", "--json"], 0);
    let value: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    assert_eq!(value["agrees"], true);
    assert_eq!(value["dims"]["n"], 100);
    assert_eq!(value["outputs"][0]["compared"], 100);
}

#[test]
fn mistakes_in_a_file_exit_with_1_and_all_are_reported() {
    let folder = folder();
    let path = write(
        folder.path(),
        "bad.krn",
        "kernel k(x: f32[n]) -> y: f32[n] {\n    y[i] = x[i] + z\n    y[j] = w\n}\n",
    );
    let (_, err) = run(&["check", &path], 1);
    assert!(err.contains("there is no `z` here") && err.contains("there is no `w` here"), "{err}");
    let (out, _) = run(&["check", &path, "--message-format", "json"], 1);
    for line in out.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("one JSON object a line");
        assert_eq!(value["code"], "E0101");
    }
    assert_eq!(out.lines().count(), 2);
}

#[test]
fn files_that_are_no_text_or_not_there_are_reported() {
    let folder = folder();
    let binary = write(folder.path(), "binary.krn", [0xffu8, 0xfe, 0, 1, 2, 0x80]);
    let (_, err) = run(&["check", &binary], 1);
    assert!(err.contains("E0003"), "{err}");
    let empty = write(folder.path(), "empty.krn", "");
    run(&["check", &empty], 0);
    run(&["run", &empty], 1);
    let (_, err) = run(&["build", "no/such/file.krn"], 5);
    assert!(err.contains("cannot read `no/such/file.krn`"), "{err}");
}

#[test]
fn build_writes_ptx_ir_and_manifest_the_same_every_time() {
    let folder = folder();
    for (emit, sign) in
        [("ptx", ".visible .entry transpose"), ("ir", "transpose"), ("manifest", "\"kernels\"")]
    {
        let (first, _) = run(&["build", "examples/transpose.krn", "--emit", emit], 0);
        let (second, _) = run(&["build", "examples/transpose.krn", "--emit", emit], 0);
        assert_eq!(first, second);
        assert!(first.contains(sign), "{first}");
        let path = folder.path().join(emit);
        run(&["build", "examples/transpose.krn", "--emit", emit, "-o", &path.display().to_string()], 0);
        assert_eq!(fs::read_to_string(&path).expect("the file was written"), first);
    }
    run(&["build", "examples/transpose.krn", "-o", "/no/such/folder/x.ptx"], 5);
}

#[test]
fn one_kernel_of_a_file_is_built_alone() {
    let file = "examples/transpose.krn";
    let (both, _) = run(&["build", file, "--allow", "warnings"], 0);
    let (one, _) = run(&["build", file, "--kernel", "transpose", "--allow", "warnings"], 0);
    assert!(both.contains("transpose_lanes_along_j") && !one.contains("transpose_lanes_along_j"), "{one}");
    assert!(one.contains(".visible .entry transpose"), "{one}");
    let (_, err) = run(&["build", file, "--kernel", "transpos"], 2);
    assert!(err.contains("there is no kernel `transpos`; the file has `transpose`, "), "{err}");
}

#[test]
fn passes_can_be_left_out_printed_and_run_on_text() {
    let (_, err) = run(
        &["build", "examples/matmul.krn", "--without", "licm", "--print-after", "map", "--time-passes"],
        0,
    );
    assert!(err.contains("after map") && err.contains("fold"), "{err}");
    let (_, err) = run(&["build", "examples/matmul.krn", "--without", "licn"], 2);
    assert!(err.contains("did you mean `licm`"), "{err}");
    let folder = folder();
    let (ir, _) = run(&["build", "examples/saxpy.krn", "--emit", "ir"], 0);
    let path = write(folder.path(), "saxpy.kir", &ir);
    let (out, _) = run(&["opt", &path, "--passes", "fold,dce"], 0);
    assert!(out.contains("saxpy"), "{out}");
    let (_, err) = run(&["opt", &path, "--passes", "nothing"], 1);
    assert!(err.contains("nothing"), "{err}");
}

#[test]
fn wrong_use_of_the_command_line_exits_with_2() {
    run(&["frobnicate"], 2);
    let (_, err) = run(&["run", "examples/transpose.krn", "--kernel", "transpos"], 2);
    assert!(err.contains("there is no kernel `transpos`"), "{err}");
    run(&["run", "examples/saxpy.krn", "-D", "n=-3"], 2);
    run(&["run", "examples/saxpy.krn", "-D", "q=3"], 2);
    let (_, err) = run(&["run", "examples/saxpy.krn", "-D", "alpha=3"], 2);
    assert!(err.contains("`--set alpha=…`"), "{err}");
    run(&["run", "examples/saxpy.krn", "--set", "alpha=many"], 2);
    run(&["run", "examples/saxpy.krn", "--in", "y=sometimes"], 2);
    run(&["run", "examples/saxpy.krn", "--device", "abacus"], 2);
    run(&["build", "examples/saxpy.krn", "--target", "sm_1"], 2);
    run(&["run", "examples/saxpy.krn", "--device", "cuda:99"], 4);
}

#[test]
fn every_code_is_explained() {
    let (list, _) = run(&["explain"], 0);
    assert_eq!(list.lines().count(), krn_compiler::diagnostic::codes::ALL.len(), "{list}");
    for line in list.lines() {
        let code = line.split_whitespace().next().expect("a code");
        let (page, _) = run(&["explain", code], 0);
        assert!(page.starts_with(&format!("# {code}")), "{page}");
    }
    let (_, err) = run(&["explain", "E9999"], 1);
    assert!(err.contains("there is no code `E9999`"), "{err}");
}

#[test]
fn the_schedules_of_a_file_are_explained_and_can_be_pasted() {
    let (all, _) = run(&["explain", "examples/transpose.krn"], 0);
    assert!(all.matches("schedule ").count() > 1, "{all}");
    let (one, _) = run(&["explain", "examples/saxpy.krn", "--kernel", "saxpy", "--target", "sm_80"], 0);
    assert!(one.starts_with("// the same for all sizes\n"), "{one}");
    assert!(one.contains("\n// saxpy: 4 elements a thread, 16 bytes\nschedule saxpy {\n"), "{one}");
    assert!(one.contains("per_thread i:"), "{one}");
    assert!(one.lines().skip(3).filter(|line| *line != "}").all(|line| line.contains("// ")), "{one}");
    let folder = folder();
    let source = fs::read_to_string("examples/saxpy.krn").expect("an example");
    let path = write(folder.path(), "saxpy.krn", format!("{source}\n{one}"));
    run(&["test", &path, "--device", "emulator"], 0);
    let (_, err) = run(&["explain", "examples/saxpy.krn", "--kernel", "sax"], 2);
    assert!(err.contains("there is no kernel `sax`"), "{err}");
    run(&["explain", "no_such.krn"], 5);
}

#[test]
fn arrays_go_to_npy_files_and_come_back() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let source = write(
        folder.path(),
        "k.krn",
        "struct P { x: f32, n: u8 }\nkernel k(p: P[n]) -> q: P[n] {\n    q[i] = P { x: p[i].x * 2.0, n: p[i].n }\n}\nschedule k {\n    layout p: soa\n    layout q: aosoa(8)\n}\n",
    );
    let q = path("q.npy");
    run(&["run", &source, "--device", "emulator", "-D", "n=37", "--out", &format!("q={q}")], 0);
    let (out, _) = run(&["run", &source, "--device", "emulator", "--in", &format!("p={q}")], 0);
    assert!(out.contains("n = 37") && out.contains("verified"), "{out}");
    let (_, err) = run(&["run", &source, "--device", "emulator", "--in", &format!("p={q}"), "-D", "n=5"], 2);
    assert!(err.contains("has 37"), "{err}");
    let wrong = write(folder.path(), "wrong.npy", b"not numpy");
    run(&["run", &source, "--device", "emulator", "--in", &format!("p={wrong}")], 1);
}

#[test]
fn floats_of_another_precision_are_read_when_asked() {
    let folder = folder();
    let path = folder.path().join("y.npy").display().to_string();
    let wide = write(folder.path(), "wide.krn", "kernel k(x: f64[n]) -> y: f64[n] { y[i] = x[i] * 0.3 }\n");
    let narrow = write(folder.path(), "narrow.krn", "kernel k(x: bf16[n]) -> y: f32[n] { y[i] = x[i] }\n");
    run(&["run", &wide, "--device", "emulator", "-D", "n=9", "--out", &format!("y={path}")], 0);
    let read =
        |file: &str, text: String, code| run(&["run", file, "--device", "emulator", "--in", &text], code);
    let (_, err) = read(&narrow, format!("x={path}"), 1);
    assert!(err.contains(&format!("--in 'x={path} as bf16'")), "{err}");
    let (out, _) = read(&narrow, format!("x={path} as bf16"), 0);
    assert!(out.contains("n = 9") && out.contains("verified"), "{out}");
    let (_, err) = read(&narrow, format!("x={path} as f32"), 1);
    assert!(err.contains("which is `bf16`"), "{err}");
    read(&narrow, format!("x={path} as i32"), 2);
    let out = format!("y={path} as f64");
    let (_, err) = run(&["run", &narrow, "--device", "emulator", "-D", "n=9", "--out", &out], 2);
    assert!(err.contains("results are written as they are"), "{err}");
}

#[test]
fn several_arrays_go_to_one_npz_file_and_come_back() {
    let folder = folder();
    let file = folder.path().join("all.npz").display().to_string();
    let source = write(
        folder.path(),
        "k.krn",
        "kernel k(x: f32[n]) -> y: f32[n], z: i32[n] {\n    y[i] = 2.0 * x[i]\n    z[i] = x[i] as i32\n}\n",
    );
    let run = |arguments: &[&str], code| {
        run(&[&["run", &source, "--device", "emulator"], arguments].concat(), code)
    };
    let (y, z) = (format!("y={file}"), format!("z={file}:whole"));
    run(&["-D", "n=37", "--out", &y, &z], 0);
    // NumPy calls them `y` and `whole`; `x` is read by the name that it has there.
    let from = format!("x={file}:y");
    let (out, _) = run(&["--in", &from], 0);
    assert!(out.contains("n = 37") && out.contains("verified"), "{out}");
    let (_, err) = run(&["--in", &format!("x={file}")], 1);
    assert!(err.contains("the file has no array `x`; it has `y`, `whole`"), "{err}");
    let (_, err) = run(&["--in", &format!("x={file}:whole")], 1);
    assert!(err.contains("`whole`: the file holds `<i4` where `f32` is wanted"), "{err}");
    let (_, err) = run(&["--out", &y, &format!("z={file}:y")], 2);
    assert!(err.contains("all.npz:y` twice"), "{err}");
}

#[test]
fn an_access_outside_is_reported_with_its_place() {
    let folder = folder();
    let source = write(
        folder.path(),
        "gather.krn",
        "kernel gather(x: f32[n], idx: i32[k]) -> y: f32[k] {\n    y[i] = x[idx[i]]\n}\n",
    );
    let arguments =
        ["run", &source, "--device", "emulator", "-D", "n=10", "k=4", "--in", "idx=random(10,11)"];
    let (_, err) = run(&arguments, 4);
    assert!(err.contains("gather.krn:2:14") && err.contains("index 10 is outside axis 0 of `x`"), "{err}");
    let mut unchecked = arguments.to_vec();
    unchecked.extend(["--in", "x=zeros"]);
    run(&unchecked, 4);
}

#[test]
fn test_reports_wrong_files_and_goes_on() {
    let folder = folder();
    let bad = write(folder.path(), "bad.krn", "kernel k( {\n");
    let (out, _) = run(&["test", &bad, "examples/vector_add.krn", "--device", "emulator"], 1);
    assert!(out.contains("ok") && out.contains("vector_add"), "{out}");
}

#[test]
fn every_value_that_a_directive_sets_has_a_run() {
    let folder = folder();
    let text = "// krn-test: dims n=3\n// krn-test: set b=0.1,0.3,1.5; on=true,false\n\
                kernel floats(b: f32, on: bool, x: f32[n]) -> y: f32[n] { y[i] = if on { b * x[i] } else { b } }\n\
                // krn-test: dims n=3\n// krn-test: set k=9007199254740993,18446744073709551615\n\
                kernel large(k: u64) -> y: u64[n] where k >= 9007199254740993 { forall i in n { y[i] = k } }\n";
    let source = write(folder.path(), "set.krn", text.replace("(k: u64)", "(k: u64, x: f32[n])"));
    let (out, err) = run(&["test", "-v", "--device", "emulator", &source], 0);
    assert!(out.contains("floats (3 runs)") && out.contains("large (2 runs)"), "{out}{err}");
    let text =
        "// krn-test: set k=256\nkernel small(k: u8, x: f32[n]) -> y: f32[n] { y[i] = x[i] * k as f32 }\n";
    let (out, err) = run(&["test", "--device", "emulator", &write(folder.path(), "range.krn", text)], 1);
    assert!(format!("{out}{err}").contains("`256` is no value of `k`, which is of type u8"), "{out}{err}");
}

#[test]
fn bench_counts_on_the_emulator_and_says_that_it_has_no_time() {
    let arguments = ["bench", "bench/workloads.krn", "--device", "emulator", "--kernel"];
    let bench = |more: &[&str], code| run(&[&arguments[..], more].concat(), code);
    let (out, _) = bench(&["add", "-D", "n=1000"], 0);
    assert!(out.contains("add with n = 1000 on emulator") && out.contains("NO TIME"), "{out}");
    assert!(out.contains("lane instructions in one launch") && out.contains("12,000 useful bytes"), "{out}");
    let json = |more: &[&str]| -> serde_json::Value {
        let (out, _) = bench(&[more, &["--json"]].concat(), 0);
        serde_json::from_str(&out).expect("one JSON object")
    };
    let value = json(&["axpy", "-D", "n=64", "--set", "alpha=2.5"]);
    assert_eq!(value["emulator"], true);
    assert_eq!(value["median_s"], serde_json::Value::Null);
    assert!(value["lane_instructions"].as_u64().is_some_and(|count| count > 64 * 4), "{value}");
    assert_eq!((value["bytes"].as_f64(), value["flops"].as_f64()), (Some(768.0), Some(128.0)));
    assert_eq!(value["params"]["alpha"], "2.5");
    // Only the field that is read counts.
    assert_eq!(json(&["struct_x", "-D", "n=100"])["bytes"].as_f64(), Some(800.0));
    assert_eq!(json(&["struct_both", "-D", "n=100"])["bytes"].as_f64(), Some(1600.0));
    let value = json(&["matmul_f32", "-D", "m=8", "k=9", "n=10"]);
    assert_eq!(value["flops"].as_f64(), Some(2.0 * 8.0 * 9.0 * 10.0));
    let value = json(&["matmul_f32", "-D", "m=8", "k=9", "n=10", "--flops", "m*(2*k-1)*n", "--bytes", "4*m"]);
    assert_eq!((value["flops"].as_f64(), value["bytes"].as_f64()), (Some(1360.0), Some(32.0)));
    // Three differences, six for the distance, one root, six products and three sums.
    assert_eq!(json(&["n_body", "-D", "n=10"])["flops"].as_f64(), Some(19.0 * 100.0));
    // An input longer than the part of it that is random.
    let (_, _) = bench(&["histogram", "-D", "n=5000001", "--in", "x=random(0,256)"], 0);
    let (_, err) = bench(&["add", "--flops", "2*q"], 2);
    assert!(err.contains("--flops") && err.contains("`q`"), "{err}");
    let (_, err) = bench(&["subtract"], 2);
    assert!(err.contains("there is no kernel `subtract`"), "{err}");
    bench(&["add", "--runs", "0"], 2);
}

#[test]
fn bench_measures_schedules_in_turns_and_says_which_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let schedules = "schedule softmax { warps c: 2 }\n// A comment.\nschedule softmax {\n    split c: 4\n}\n\
                     schedule softmax { block 256 } schedule softmax { warps c: 2 }\n";
    let file = write(folder.path(), "tried.krn", schedules);
    let bench = |more: &[&str], code| {
        let arguments = ["bench", "examples/softmax.krn", "-D", "rows=8", "cols=512", "--device", "emulator"];
        run(&[&arguments[..], more].concat(), code)
    };
    let (out, _) = bench(&["--schedules", &file], 0);
    assert!(out.contains("as it is") && out.contains("warps c: 2") && out.contains("NO TIME"), "{out}");
    assert!(out.contains("`split c: 4`: error[E0512]") && out.contains("refused"), "{out}");
    let (out, _) = bench(&["--schedules", &file, "--json"], 0);
    let value: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    let rows = value["schedules"].as_array().expect("rows");
    assert_eq!(rows.len(), 5);
    let counts: Vec<Option<u64>> = rows.iter().map(|row| row["lane_instructions"].as_u64()).collect();
    assert!(counts[0].is_some() && counts[1].is_some() && counts[0] != counts[1], "{out}");
    assert!(counts[2].is_none() && rows[2]["refused"].is_string(), "{out}");
    // The fourth one says what the second one says.
    assert_eq!(rows[4]["same_as"], 1);
    assert!(rows[1]["choice"].as_str().is_some_and(|choice| choice.contains("team of 64 threads")), "{out}");
    // Another kernel's schedule, no schedule, mistakes.
    for text in
        ["schedule other { block 64 }", "// none\n", "schedule softmax {", "fn f(x: f32) -> f32 { x }"]
    {
        let (_, err) = bench(&["--schedules", &write(folder.path(), "wrong.krn", text)], 1);
        assert!(err.contains("wrong.krn"), "{err}");
    }
    bench(&["--schedules", &file, "--general"], 2);
}

/// Reference against emulator: every example, every small kernel and a share of the benchmarks, at the shapes of `krn test`.
#[test]
fn every_example_and_test_kernel_agrees_with_the_reference() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("bench"), root.join("examples"), root.join("tests/kernels")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of kernels") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "krn") {
                let name = path.strip_prefix(root).expect("inside").to_string_lossy().replace('\\', "/");
                if !name.starts_with("bench/") || xtask::is_program_in_share(&name) {
                    files.push(path.display().to_string());
                }
            }
        }
    }
    files.sort();
    assert!(files.len() > 80, "the kernels are there");
    // By two processes: it takes longer than all other tests beside it.
    let tested = |first: usize| {
        let mut arguments = vec!["test", "--device", "emulator"];
        arguments.extend(files.iter().map(String::as_str).skip(first).step_by(2));
        let (out, _) = run(&arguments, 0);
        assert!(out.contains(" kernels passed, 0 failed"), "{out}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| tested(1));
        tested(0);
    });
}

#[test]
fn machine_code_is_listed_by_source_line() {
    let [ptxas, nvdisasm] = ["ptxas", "nvdisasm"]
        .map(|tool| xtask::cuda_tools::find(tool).unwrap_or_else(|error| panic!("{error}")));
    let arguments = ["build", "examples/saxpy.krn", "--emit", "sass"];
    let (out, _) = ended(command(&arguments).env("KRN_PTXAS", &ptxas).env("KRN_NVDISASM", &nvdisasm), 0);
    let text = std::fs::read_to_string("examples/saxpy.krn").expect("the example");
    let number = text.lines().position(|line| line.contains("y[i] =")).expect("the statement") + 1;
    let line = text.lines().nth(number - 1).expect("the statement").trim();
    assert!(out.contains("saxpy:\n") && out.contains(&format!("  // line {number}: {line}\n")), "{out}");
    assert!(out.contains("FFMA") && out.contains("EXIT ;"), "{out}");
    let (_, err) = run(&arguments, 5);
    assert!(err.contains("no ptxas found") && err.contains("cargo xtask setup"), "{err}");
    let (_, err) = ended(command(&arguments).env("KRN_PTXAS", &ptxas), 5);
    assert!(err.contains("no nvdisasm found"), "{err}");
}

#[test]
fn the_version_names_the_compiler_and_its_figures() {
    let (out, _) = run(&["--version"], 0);
    assert_eq!(out, format!("krn {}\n", krn_compiler::VERSIONS));
    let (version, table) = out.trim_end().split_once(" (table ").expect("both");
    let hashes = [version.rsplit_once('+').expect("a hash").1, table.trim_end_matches(')')];
    for hash in hashes {
        assert!(hash.len() == 16 && hash.chars().all(|digit| digit.is_ascii_hexdigit()), "{out}");
    }
    let (ptx, _) = run(&["build", "examples/softmax.krn"], 0);
    let head: Vec<&str> = ptx.lines().take(2).collect();
    let sizes = "// softmax: representative sizes rows = 4096, cols = 4096";
    assert_eq!(head, [format!("// krn {}", krn_compiler::VERSIONS).as_str(), sizes]);
}

#[test]
fn the_doctor_says_what_there_is_and_what_to_do() {
    let (out, _) = run(&["doctor"], 0);
    assert!(out.contains("emulator") && out.contains("ran, and its results are right"), "{out}");
    assert!(out.contains("ptxas      none") && out.contains("pip install nvidia-cuda-nvcc"), "{out}");
    let ptxas = xtask::cuda_tools::find("ptxas").unwrap_or_else(|error| panic!("{error}"));
    let (out, _) = ended(command(&["doctor"]).env("KRN_PTXAS", &ptxas), 0);
    assert!(out.contains("release 13") && out.contains("assembles for sm_"), "{out}");
    // What is there and does not work is a failure.
    let folder = folder();
    let fake = write(folder.path(), "ptxas", "not a program");
    let (out, _) = ended(command(&["doctor"]).env("KRN_PTXAS", &fake), 4);
    assert!(out.contains("ptxas      of unknown version"), "{out}");
}

/// Two warnings of different codes, of which the schedules say nothing.
const SLOW: &str = "kernel turn(a: f32[m, n]) -> b: f32[n, m] { b[j, i] = a[i, j] }\nschedule turn { order i, j }\n\
                    kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }\nschedule double { block 32 }\n";

/// The codes that `krn check` shows, with the severity of each.
fn shown(arguments: &[&str], code: i32) -> Vec<String> {
    let (_, err) = run(&[&["check"], arguments].concat(), code);
    let heads = err.lines().filter(|line| line.starts_with("warning[") || line.starts_with("error["));
    heads.filter_map(|line| Some(line.split_once(']')?.0.to_string() + "]")).collect()
}

#[test]
fn warnings_are_allowed_and_denied_by_the_command_line_and_the_file() {
    let folder = folder();
    let file = write(folder.path(), "slow.krn", SLOW);
    let file = file.as_str();
    assert_eq!(shown(&[file], 0), ["warning[W0601]", "warning[W0609]"]);
    assert_eq!(shown(&[file, "--allow", "W0601"], 0), ["warning[W0609]"]);
    assert_eq!(shown(&[file, "--deny", "W0601"], 1), ["error[W0601]", "warning[W0609]"]);
    assert_eq!(shown(&[file, "--deny", "warnings", "--allow", "W0609"], 1), ["error[W0601]"]);
    assert_eq!(shown(&[file, "--allow", "W0601", "--allow", "w0609"], 0), [""; 0]);
    assert_eq!(shown(&[file, "--allow", "warnings"], 0), [""; 0]);
    assert_eq!(shown(&[file, "--allow", "warnings", "--deny", "W0601"], 1), ["error[W0601]"]);
    let (_, err) = run(&["check", file, "--allow", "warnings", "--deny", "warnings"], 2);
    assert!(err.contains("contradict"), "{err}");
    let (_, err) = run(&["check", file, "--allow", "W0699"], 2);
    assert!(err.contains("there is no warning `W0699`"), "{err}");
    let (_, err) = run(&["build", file, "--deny", "W0601"], 1);
    assert!(err.contains("error[W0601]"), "{err}");
    // The file counts before the command line, a kernel's schedule before the file's.
    let said = write(folder.path(), "said.krn", format!("schedule {{ allow W0601, W0609 }}\n{SLOW}"));
    assert_eq!(shown(&[&said, "--deny", "warnings"], 0), [""; 0]);
    let denied = SLOW.replace("order i, j", "order i, j; deny W0601");
    let denied = write(folder.path(), "denied.krn", format!("schedule {{ allow W0601 }}\n{denied}"));
    assert_eq!(shown(&[&denied], 1), ["error[W0601]", "warning[W0609]"]);
}

#[test]
fn what_is_said_of_other_kernels_is_left_out_where_one_is_named() {
    let folder = folder();
    let text = format!(
        "fn common(x: f32) -> f32 {{ let spare = x; x }}\n{}",
        SLOW.replace("* x[i]", "* common(x[i])")
    );
    let file = write(folder.path(), "slow.krn", text);
    for (kernel, sizes, own) in [("turn", "m=2 n=3", true), ("double", "n=3", false)] {
        let mut arguments = vec!["run", &file, "--kernel", kernel, "--device", "emulator", "-D"];
        arguments.extend(sizes.split(' '));
        let (_, err) = run(&arguments, 0);
        assert_eq!((err.contains("[W0601]"), err.contains("[W0101]")), (own, true), "{kernel}: {err}");
    }
}

#[test]
fn check_asks_the_assembler_where_there_is_one() {
    let ptxas = xtask::cuda_tools::find("ptxas").unwrap_or_else(|error| panic!("{error}"));
    let file = "compiler/tests/diagnostics/W0605-a-sort-in-memory.krn";
    let check = |ptxas: Option<&Path>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_krn"));
        command.args(["check", file]).current_dir(env!("CARGO_MANIFEST_DIR")).env("PATH", "");
        match ptxas {
            Some(ptxas) => command.env("KRN_PTXAS", ptxas),
            None => command.env("KRN_PTXAS", ""),
        };
        let output = command.output().expect("the tool can be started");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let asked = check(Some(&ptxas));
    assert!(asked.contains("warning[W0605]") && asked.contains("remove `unroll b: 1`"), "{asked}");
    let silent = check(None);
    assert!(!silent.contains("W0605") && silent.contains("no mistakes"), "{silent}");
}
