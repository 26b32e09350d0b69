//! A verdict is never empty: what is called verified was judged, and what was not judged is called so.

use crate::tool_support::run;
use std::fs;
use std::path::Path;

const LOGISTIC: &str = "kernel logistic(x: f32[n]) -> y: f32[n] {
    forall i in n {
        var v = 0.5 + 0.25 * x[i]
        for t in 0..100 { v = 3.9 * v * (1.0 - v) }
        y[i] = v
    }
}
";

const PENDULUM: &str = "kernel pendulum(x: f32[n], h: f32) -> y: f32[n] {
    forall i in n {
        var angle = x[i]
        var speed = 0.0
        for t in 0..5000 {
            speed = speed - h * sin(angle)
            angle = angle + h * speed
        }
        y[i] = angle
    }
}
";

/// Its last four values have gone through so many steps of a chaotic map that nobody can judge them.
const PARTLY: &str = "kernel partly(x: f32[n]) -> y: f32[n] {
    forall i in n {
        var v = 0.5 + 0.25 * x[i]
        let steps = if i < n - 4 { 1 } else { 300 }
        for t in 0..steps { v = 0.97 * sin(3.1415927 * v) }
        y[i] = v
    }
}
";

/// Promises of reductions that do not hold, one of each kind.
const BROKEN: &str = "reduction minus(a: f32, b: f32) -> f32 from 0.0 { a - b }
reduction left(a: f32, b: f32) -> f32 from -inf { if a == -inf { b } else { a } }
reduction above(a: i32, b: i32) -> i32 from 1 { a + b }
kernel one(x: f32[n]) -> y: f32 where n >= 4 { y = minus(i: x[i]) }
kernel two(x: f32[n]) -> y: f32 where n >= 4 { y = left(i: x[i]) }
kernel three(x: i32[n]) -> y: i32 where n >= 4 { y = above(i: x[i]) }
";

/// As `MERGE` in the language reference, but one of the products lacks a factor.
const UNWEIGHTED: &str = "struct Moments { n: f32, mean: f32, m2: f32 }
reduction merge(a: Moments, b: Moments) -> Moments from Moments { n: 0.0, mean: 0.0, m2: 0.0 } {
    let n = a.n + b.n
    let part = if n > 0.0 { b.n / n } else { 0.0 }
    let delta = b.mean - a.mean
    Moments { n: n, mean: a.mean + delta * part, m2: a.m2 + b.m2 + delta * delta * part }
}
kernel k(x: f32[n]) -> y: Moments where n >= 4 { y = merge(i: Moments { n: 1.0, mean: x[i], m2: 0.0 }) }
";

#[test]
fn promises_of_reductions_that_do_not_hold_are_shown_by_values() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "broken.krn", BROKEN);
    let (out, _) = run(&["test", &file, "--device", "emulator"], 3);
    for words in [
        "`minus` is not associative: for a = ",
        "`left` does not commute: for a = ",
        "`above` is changed by what it starts from: for a = ",
        "`minus(minus(a, b), c)` is ",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let file = write(folder.path(), "unweighted.krn", UNWEIGHTED);
    let (out, _) = run(&["run", &file, "--device", "emulator"], 3);
    assert!(out.contains("BROKEN PROMISE: the reduction `merge` is not associative"), "{out}");
    // With the factor it keeps its promises.
    let file =
        write(folder.path(), "weighted.krn", &UNWEIGHTED.replace("delta * part }", "a.n * delta * part }"));
    run(&["test", &file, "--device", "emulator"], 0);
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name).display().to_string();
    fs::write(&path, text).expect("a temporary file can be written");
    path
}

fn json(arguments: &[&str], code: i32) -> serde_json::Value {
    let (out, _) = run(&[arguments, &["--json"]].concat(), code);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Runs the PTX of a file with a piece of it replaced, which it must have.
fn run_changed(folder: &Path, file: &str, from: &str, to: &str, more: &[&str]) -> String {
    let (ptx, _) = run(&["build", file], 0);
    assert!(ptx.contains(from), "{ptx}");
    let changed = write(folder, "changed.ptx", &ptx.replacen(from, to, 1));
    let (out, _) = run(&[&["run", file, "--device", "emulator", "--ptx", &changed], more].concat(), 6);
    assert!(out.contains("NOT VERIFIED") && !out.contains(": verified"), "{out}");
    let value = json(&[&["run", file, "--device", "emulator", "--ptx", &changed], more].concat(), 6);
    assert!(value["agrees"] == false && value["verdict"] == "not verified", "{value}");
    out
}

#[test]
fn a_hundred_steps_of_a_chaotic_map_are_judged_bit_for_bit_and_a_wrong_constant_is_not_verified() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "logistic.krn", LOGISTIC);
    let arguments = ["run", &file, "--device", "emulator", "-D", "n=64"];
    let (out, _) = run(&arguments, 0);
    assert!(out.contains("y: verified, 64 values agree"), "{out}");
    assert!(
        out.contains("warning: there is no error bound for 64 of these; they agree bit for bit"),
        "{out}"
    );
    assert!(!out.contains("branch"), "{out}");
    let value = json(&arguments, 0);
    let output = &value["outputs"][0];
    assert!(value["agrees"] == true && output["judged"] == 64 && output["bit_for_bit"] == true, "{value}");
    // 4 for 3.9, and the next number after it.
    for wrong in ["0f40800000", "0f4079999B"] {
        let out = run_changed(folder.path(), &file, "0f4079999A", wrong, &["-D", "n=64"]);
        assert!(out.contains("y: NOT VERIFIED, 0 of 64 values judged"), "{out}");
        assert!(!out.contains("branch") && !out.contains("comparison or"), "{out}");
    }
}

#[test]
fn a_mean_over_chaotic_values_is_not_verified_whatever_its_constant_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mean = "fn orbit(start: f32) -> f32 {
    var v = 0.5 + 0.25 * start
    for t in 0..100 { v = 3.9 * v * (1.0 - v) }
    v
}
kernel mean(x: f32[n]) -> s: f32 { s = sum(i: orbit(x[i])) / n as f32 }
";
    let file = write(folder.path(), "mean.krn", mean);
    let (out, _) = run(&["run", &file, "--device", "emulator", "-D", "n=1000"], 6);
    assert!(out.contains("s: NOT VERIFIED, 0 of 1 values judged"), "{out}");
    for wrong in ["0f40733333", "0f407A3D71"] {
        let out = run_changed(folder.path(), &file, "0f4079999A", wrong, &["-D", "n=1000"]);
        assert!(out.contains("s: NOT VERIFIED, 0 of 1 values judged"), "{out}");
    }
}

#[test]
fn thousands_of_steps_are_judged_by_lawful_evaluations_and_a_step_that_is_too_large_is_not_verified() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "pendulum.krn", PENDULUM);
    let sizes = ["-D", "n=8", "--set", "h=0.01"];
    let (out, _) = run(&[&["run", &file, "--device", "emulator"], &sizes[..]].concat(), 0);
    assert!(out.contains("y: verified, 8 values agree"), "{out}");
    assert!(out.contains("warning: the error bound exceeds the value for 8 of these"), "{out}");
    let load = "ld.param.f32            %h, [p_h];";
    let four_times = format!("{load}\n    add.rn.f32 %h, %h, %h;\n    add.rn.f32 %h, %h, %h;");
    let out = run_changed(folder.path(), &file, load, &four_times, &sizes);
    assert!(out.contains("8 values are far from what 10 lawful evaluations give"), "{out}");
}

#[test]
fn values_that_nobody_judged_are_told_with_their_share() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "partly.krn", PARTLY);
    let run_with = |size: &str, code| run(&["run", &file, "--device", "emulator", "-D", size], code).0;
    let out = run_with("n=64", 0);
    assert!(out.contains("y: verified, 60 values agree"), "{out}");
    assert!(out.contains("warning: 60 of 64 values (93.7%) were judged; of the others"), "{out}");
    // Less than half is no verdict; nothing at all neither.
    let out = run_with("n=6", 6);
    assert!(out.contains("NOT VERIFIED: `y`: 2 of 6 values (33.3%) could be judged"), "{out}");
    let out = run_with("n=0", 6);
    assert!(out.contains("y: empty, nothing to compare") && out.contains("the outputs are empty"), "{out}");
    let (out, _) = run(&["run", &file, "--bisect", "--device", "emulator", "-D", "n=5"], 6);
    assert!(out.contains("NOT VERIFIED") && !out.contains("no pass does harm"), "{out}");
    let (out, _) = run(&["ladder", &file, "--device", "emulator", "-D", "n=5"], 6);
    assert!(out.contains("NOT VERIFIED") && !out.contains("every step agrees"), "{out}");
}

#[test]
fn test_counts_what_is_not_verified_apart_and_fails_where_no_run_judged_anything() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "partly.krn", &format!("// krn-test: dims n=0,5,64\n{PARTLY}"));
    let (out, _) = run(&["test", "-v", "--device", "emulator", &file], 0);
    assert!(out.contains("partly (3 runs, 1 empty, 1 not verified)"), "{out}");
    assert!(out.contains("  n = 0: empty\n") && out.contains("  n = 64: 60 of 64 values judged\n"), "{out}");
    assert!(out.contains("  n = 5: NOT VERIFIED: `y`: 1 of 5 values"), "{out}");
    assert!(out.contains("1 run not verified: -v says which and why"), "{out}");
    let file = write(folder.path(), "never.krn", &format!("// krn-test: dims n=0,5\n{PARTLY}"));
    let (out, _) = run(&["test", "--device", "emulator", &file], 6);
    assert!(out.contains("0 kernels passed, 0 failed, 1 not verified"), "{out}");
    assert!(out.contains("NOT VERIFIED") && !out.contains("ok "), "{out}");
    let value = json(&["test", "--device", "emulator", &file], 6);
    assert!(
        value["verdict"] == "not verified" && value["empty"] == 1 && value["not_verified"] == 1,
        "{value}"
    );
    assert!(value["cases"][1]["sizes"] == "n = 5" && value["cases"][1]["judged"] == 1, "{value}");
}

#[test]
fn sizes_satisfy_facts_about_divisibility_and_leave_something_to_do() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(
        folder.path(),
        "heads.krn",
        "kernel heads(q: f32[h, n], k: f32[hk, n]) -> y: f32[h, n] where h % hk == 0 {\n    \
         y[i, j] = q[i, j] * k[i / (h / hk), j]\n}\n",
    );
    let value = json(&["test", "--device", "emulator", &file], 0);
    let cases = value["cases"].as_array().expect("cases");
    let empty = cases.iter().filter(|case| case["finding"] == "empty").count();
    // One for each of the axes of `y` that is empty, and one where all are.
    assert!(cases.len() >= 9 && empty <= 3, "{value}");
    assert!(value["empty"] == empty, "{value}");
    let shown: Vec<&str> = cases.iter().filter_map(|case| case["sizes"].as_str()).collect();
    let sizes = |text: &str| -> Vec<u64> {
        text.split(", ").filter_map(|part| part.split_once(" = ")?.1.parse().ok()).collect()
    };
    // More than one head a group, somewhere.
    assert!(shown.iter().any(|text| matches!(sizes(text)[..], [h, hk, _] if hk > 1 && h > hk)), "{shown:?}");
    let (out, _) = run(&["run", &file, "--device", "emulator"], 0);
    assert!(out.contains("y: verified"), "{out}");
}

/// A fact about the values of an array that does not hold ends the run, and says where.
#[test]
fn an_array_with_equal_elements_is_refused_where_the_kernel_says_that_there_are_none() {
    let bare =
        ["run", "examples/permute.krn", "--kernel", "place", "--device", "emulator", "-D", "n=3", "m=9"];
    run(&bare, 0);
    let equal = [&bare[..], &["--in", "to=random(7, 7)"]].concat();
    let words = "kernel `place`: `to` holds 7 at position 0 and at position ";
    let (_, err) = run(&equal, 4);
    assert!(err.contains("examples/permute.krn:15:60: ") && err.contains(words), "{err}");
    assert!(err.contains("; the kernel says `where injective(to)`"), "{err}");
    let value = json(&equal, 4);
    assert!(
        value["verdict"] == "refused" && value["refused"].as_str().expect("words").contains(words),
        "{value}"
    );
    // Behind the check that failed two iterations write one element: that is its consequence, not another mistake.
    let (_, err) = run(&[&equal[..], &["--sanitize"]].concat(), 4);
    assert!(err.contains(words) && !err.contains("race"), "{err}");
    // Without the check the device runs; the reference knows.
    let (_, err) = run(&[&equal[..], &["--unchecked"]].concat(), 3);
    assert!(
        err.contains(
            "the reference evaluator refuses this run: `to` holds 7 at position 0 and at position 1"
        ),
        "{err}"
    );
    let entries = |more: &[&str]| {
        let (ptx, _) = run(&[&["build", "examples/permute.krn", "--kernel", "place"], more].concat(), 0);
        ptx.matches(".entry").count()
    };
    // The last launch of the check does the statement as well.
    assert_eq!((entries(&[]), entries(&["--unchecked"])), (3, 1));
    let explained = |more: &[&str]| run(&[&["explain", "examples/permute.krn"], more].concat(), 0).0;
    assert!(
        explained(&[]).contains("// `injective(to)`: checked on the device, with 8 bytes of scratch memory")
    );
    assert!(explained(&["--unchecked"]).contains("// `injective(to)`: not checked"));
    // More positions than values.
    let (_, err) = run(&["run", "examples/permute.krn", "--kernel", "place", "-D", "n=5", "m=4"], 2);
    assert!(err.contains("5 different values from 0 to 4, the end excluded, are asked for"), "{err}");
}
