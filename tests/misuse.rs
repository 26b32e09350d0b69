//! The tool in unfriendly hands: whatever it is given, it ends soon, without a panic, with a message that names the
//! place and the mend, and leaves no half-written file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krn"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn krn(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the tool can be started")
}

/// Runs, and checks the exit code and that `needle` is in what it says.
fn says(arguments: &[&str], code: i32, needle: &str) -> String {
    let output = krn(arguments);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{text:.2000}");
    assert!(text.contains(needle) && !text.contains("panicked"), "{arguments:?}\n{text:.2000}");
    text
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn write(folder: &Path, name: &str, contents: impl AsRef<[u8]>) -> String {
    let path: PathBuf = folder.join(name);
    fs::write(&path, contents).expect("a temporary file can be written");
    path.display().to_string()
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    fs::read_dir(folder).expect("the folder").map(name).collect()
}

#[test]
fn files_that_cannot_be_read_exit_with_5() {
    let folder = folder();
    let path = folder.path().display().to_string();
    for verb in ["check", "build", "run", "test"] {
        says(&[verb, &path], 5, &format!("cannot read `{path}`"));
        says(&[verb, "no/such/file.krn"], 5, "cannot read `no/such/file.krn`");
    }
}

#[test]
fn monstrous_sources_are_answered() {
    let folder = folder();
    let kernel = |body: &str| format!("kernel k(x: f32[n]) -> y: f32[n] {{ {body} }}\n");
    let n = 100_000;
    let name = "x".repeat(n);
    let cases = [
        ("long.krn", "// a line\n".repeat(1_000_000) + &kernel("y[i] = x[i]"), 0, "no mistakes"),
        ("parens.krn", kernel(&format!("y[i] = {}x[i]{}", "(".repeat(n), ")".repeat(n))), 1, "E0013"),
        ("blocks.krn", kernel(&format!("{}{}", "if true { ".repeat(n), "}".repeat(n))), 1, "E0013"),
        ("name.krn", kernel(&format!("let {name} = 1.0; y[i] = x[i]")), 1, "E0025"),
        ("unknown.krn", kernel(&format!("y[i] = {name}[i]")), 1, "E0025"),
        ("integer.krn", kernel(&format!("y[i] = x[i] + {}", "9".repeat(n))), 1, "E0006"),
        ("stray.krn", "x y (\n".repeat(n), 1, "E0012"),
        ("zeros.krn", "\0".repeat(n), 1, "E0001"),
        (
            "many.krn",
            (0..500).map(|k| kernel("y[i] = x[i]").replace(" k(", &format!(" k{k}("))).collect(),
            0,
            "",
        ),
    ];
    for (name, text, code, needle) in cases {
        let path = write(folder.path(), name, text);
        let answer = says(&["check", &path], code, needle);
        assert!(answer.len() < 20_000, "{name}: {} bytes of answer", answer.len());
    }
}

#[test]
fn sizes_beyond_memory_are_refused_before_anything_is_allocated() {
    let run = |arguments: &[&str], code: i32, needle: &str| {
        says(&[&["run", "--device", "emulator"], arguments].concat(), code, needle);
    };
    run(&["examples/saxpy.krn", "-D", "n=68719476736"], 4, "give smaller sizes");
    let folder = folder();
    let text = "// krn-test: dims n=68719476736\nkernel k(x: i32[n]) -> y: i32[n] { y[i] = x[i] }\n";
    let listed = write(folder.path(), "listed.krn", text);
    says(&["test", "--device", "emulator", &listed], 4, "give smaller sizes");
    run(&["examples/matmul.krn", "-D", "m=1000000", "n=1000000", "k=2"], 4, "needs 7.3 TiB of memory");
    run(&["examples/matmul.krn", "-D", "m=68719476736", "n=68719476736", "k=68719476736"], 4, "of memory");
    run(&["examples/saxpy.krn", "-D", "n=68719476737"], 2, "a whole number from 0 to 2^36");
    run(&["examples/saxpy.krn", "-D", "n=99999999999999999999999"], 2, "a whole number from 0 to 2^36");
}

#[test]
fn what_is_given_twice_or_makes_no_sense_is_refused() {
    let run = |arguments: &[&str], needle: &str| {
        let all = [&["run", "examples/saxpy.krn", "--device", "emulator"], arguments].concat();
        says(&all, 2, needle);
    };
    run(&["-D", "n=5", "n=6"], "-D n is given twice");
    run(&["--in", "x=ones", "--in", "x=zeros"], "--in x is given twice");
    run(&["--set", "alpha=1", "--set", "alpha=1"], "--set alpha is given twice");
    run(&["--out", "y=a.npy", "--out", "y=a.npy"], "writes `a.npy` twice");
    run(&["--in", "x=ramp(-1e300,1e300)"], "would go from -1");
    run(&["--in", "x=ramp(-9223372036854775808,9223372036854775807)"], "by at most 2^53");
    says(
        &["run", "examples/layer_norm.krn", "-D", "rows=2", "cols=0", "--device", "emulator"],
        2,
        "`cols >= 1`",
    );
    says(&["run", "examples/saxpy.krn", "--device", "cuda:99"], 4, "--device emulator");
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_run() {
    let folder = folder();
    let started = Instant::now();
    // Hours of work, if it were begun.
    let large = ["run", "examples/matmul.krn", "--device", "emulator", "-D", "m=3000", "n=3000", "k=3000"];
    for (path, why) in [
        ("/no/such/folder/c.npy".to_string(), "there is no directory `/no/such/folder`"),
        (folder.path().display().to_string(), "it is a directory"),
    ] {
        let out = format!("c={path}");
        says(&[&large[..], &["--out", &out]].concat(), 5, &format!("cannot write `{path}`: {why}"));
    }
    assert!(started.elapsed() < Duration::from_secs(60));
    says(&["build", "examples/saxpy.krn", "-o", "/no/such/folder/a.ptx"], 5, "there is no directory");
}

#[test]
fn input_files_of_the_wrong_kind_are_named() {
    let folder = folder();
    let npy = |name: &str, descr: &str, shape: &str, data: &[u8]| {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        write(folder.path(), name, bytes)
    };
    for (path, code, needle) in [
        (npy("type.npy", "'<f8'", "(2,)", &[0; 16]), 1, "holds `<f8` where `f32` is wanted"),
        (npy("rank.npy", "'<f4'", "(2, 1)", &[0; 8]), 2, "`x` has 1 axes"),
        (npy("short.npy", "'<f4'", "(2,)", &[0; 7]), 1, "7 bytes of data"),
        (
            npy("vast.npy", "'<f4'", "(1099511627776, 1099511627776)", &[]),
            1,
            "more elements than any file has",
        ),
        (npy("order.npy", "'>f4'", "(2,)", &[0; 8]), 1, "big-endian"),
        (write(folder.path(), "text.npy", "hello"), 1, "not a .npy file"),
        (folder.path().join("absent.npy").display().to_string(), 5, "cannot read"),
    ] {
        let input = format!("x={path}");
        says(&["run", "examples/saxpy.krn", "--device", "emulator", "--in", &input], code, needle);
    }
}

/// The sizes that divide nothing, and those of nothing: an answer for every kernel of every example.
#[test]
fn every_example_takes_any_size_or_says_why_not() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files: Vec<PathBuf> =
        fs::read_dir(examples).expect("the examples").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "krn"));
    files.sort();
    let mut runs = 0;
    for file in files {
        let file = file.display().to_string();
        let manifest = krn(&["build", &file, "--emit", "manifest"]);
        let manifest: serde_json::Value = serde_json::from_slice(&manifest.stdout).expect("a manifest");
        for kernel in manifest["kernels"].as_array().expect("kernels") {
            let symbols = kernel["symbols"].as_array().expect("symbols").iter();
            let dims: Vec<&str> = symbols
                .filter(|symbol| symbol["kind"].get("dim").is_some())
                .map(|symbol| symbol["name"].as_str().expect("a name"))
                .collect();
            for size in [0, 1, 7] {
                let sizes: Vec<String> = dims.iter().map(|name| format!("-D{name}={size}")).collect();
                let name = kernel["name"].as_str().expect("a name");
                let mut arguments = vec!["run", &file, "--kernel", name, "--device", "emulator"];
                arguments.extend(sizes.iter().map(String::as_str));
                let output = krn(&arguments);
                let err = String::from_utf8_lossy(&output.stderr);
                let answered = match output.status.code() {
                    Some(0) => true,
                    // Nothing was there to be compared, or too little of it could be judged.
                    Some(6) => String::from_utf8_lossy(&output.stdout).contains("NOT VERIFIED"),
                    Some(2) => err.contains("cannot run with") || err.contains("no sizes found"),
                    // Random indices reach outside of arrays this small.
                    Some(4) => err.contains(" is outside axis "),
                    _ => false,
                };
                assert!(answered, "{arguments:?}\n{err}");
                runs += usize::from(!dims.is_empty());
            }
        }
    }
    assert!(runs > 100, "only {runs} runs at given sizes");
}

#[test]
fn no_output_takes_the_place_of_an_input() {
    let folder = folder();
    let source = fs::read_to_string("examples/saxpy.krn").expect("the example");
    let file = write(folder.path(), "saxpy.krn", &source);
    let y = folder.path().join("y.npy").display().to_string();
    let run = |input: &str, output: &str, code, needle: &str| {
        let (input, output) = (format!("y={input}"), format!("y={output}"));
        let sizes = ["run", &file, "--device", "emulator", "-D", "n=5"];
        let arguments = [&sizes[..], &["--in", &input, "--out", &output]].concat();
        says(&arguments, code, needle)
    };
    run("ones", &y, 0, "verified");
    let before = fs::read(&y).expect("written");
    // By another way to the same file as well.
    let around = folder.path().join(".").join("y.npy").display().to_string();
    for output in [&y, &around] {
        run(&y, output, 2, "is an input of this command, and would be overwritten");
    }
    run("ones", &file, 2, "is an input of this command");
    says(&["build", &file, "-o", &file], 2, "is an input of this command");
    says(
        &["report", &file, "-D", "n=64", "--device", "emulator", "-o", &file],
        2,
        "is an input of this command",
    );
    assert!(
        fs::read(&y).expect("still there") == before && fs::read_to_string(&file).expect("there") == source
    );
    // What a run has written may be written again.
    run("ones", &y, 0, "verified");
}

#[test]
fn negative_extents_are_told_with_their_kernel() {
    let folder = folder();
    let file = write(
        folder.path(),
        "k.krn",
        "kernel k(x: f32[n]) -> s: f32 {\n    let t[i in 0..n - 5] = x[i]\n    s = sum(i: t[i])\n}\n",
    );
    says(&["run", &file, "-D", "n=3"], 1, "kernel `k`: axis 0 of `t` has the negative extent -2");
}

#[cfg(unix)]
#[test]
fn what_has_no_end_is_not_read_for_ever() {
    let started = Instant::now();
    says(&["check", "/dev/zero"], 5, "`/dev/zero` has more than 2^28 bytes, and may have no end");
    for (verb, code, needle) in [("lsp", 5, "a line of a header has more than 4096 bytes"), ("dap", 0, "")] {
        let endless = fs::File::open("/dev/zero").expect("it can be read");
        let output = command(&[verb]).stdin(endless).output().expect("the tool can be started");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && text.contains(needle), "{verb}: {text}");
    }
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[cfg(unix)]
#[test]
fn a_file_that_is_too_large_is_not_read() {
    let folder = folder();
    let path = folder.path().join("large.krn");
    // It takes no place: nothing is written to it.
    fs::File::create(&path).and_then(|file| file.set_len((1 << 30) + 1)).expect("a file with a hole");
    says(&["check", &path.display().to_string()], 5, "has 1073741825 bytes; a source may have 2^30");
}

#[test]
fn what_a_killed_run_left_is_gone_after_the_next() {
    let folder = folder();
    write(folder.path(), ".krn-left.unfinished", "half of it");
    // Another process is at work on this one.
    let held = write(folder.path(), ".krn-held.unfinished", "half of it");
    let held = fs::File::open(held).expect("there");
    held.lock().expect("locked");
    let out = folder.path().join("a.ptx").display().to_string();
    says(&["build", "examples/saxpy.krn", "-o", &out], 0, "");
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, [".krn-held.unfinished", "a.ptx"]);
}

#[test]
fn bounds_errors_say_what_the_source_says() {
    let folder = folder();
    let file = write(
        folder.path(),
        "bounds.krn",
        "struct Row { w: f32, v: f32[4] }\nkernel far(x: f32[n], at: u64) -> y: f32 { y = x[at] }\n\
         kernel part(x: Row[n], at: i32) -> y: f32 { y = x[0].v[at] }\n",
    );
    let run = |kernel: &str, at: &str, needle: &str| {
        let at = format!("at={at}");
        let arguments = ["run", &file, "--device", "emulator", "-D", "n=5", "--kernel", kernel, "--set", &at];
        says(&arguments, 4, needle);
    };
    run(
        "far",
        "18446744073709551615",
        "index 18446744073709551615 is outside axis 0 of `x`, whose extent is 5",
    );
    run("far", "5", "index 5 is outside");
    run("part", "-2", "index -2 is outside axis 0 of `x.v`, whose extent is 4");
}

#[test]
fn local_arrays_of_negative_extents_are_refused_by_name() {
    let folder = folder();
    let file = write(
        folder.path(),
        "local.krn",
        "kernel k(x: f32[n], m: i64) -> y: f32[n] {\n    forall i in n {\n        \
         let e[c in 0..m - n] = x[i] * c as f32\n        y[i] = sum(c: e[c])\n    }\n}\n",
    );
    let run = |m: &str, code, needle: &str| {
        says(&["run", &file, "--device", "emulator", "-D", "n=5", "--set", m], code, needle)
    };
    run("m=2", 2, "the extent of axis 0 of `e`");
    run("m=5", 0, "verified");
    run("m=9", 0, "verified");
}

#[test]
fn data_that_cannot_be_is_no_panic() {
    let folder = folder();
    let kernel = "kernel k(x: f32[n], r: i32[n]) -> y: f32[n] { y[i] = x[i] + r[i] as f32 }\n";
    for (directive, needle) in [
        ("in r=ramp(5, 2)", "`ramp(5, 2)` would go from 5 to 2"),
        ("in x=random(3, -3)", "`random(3, -3)` would go from 3 to -3"),
        ("in x=random(0, 1e400)", "would go from 0 to inf"),
        ("dims n=-3", "`dims n=-3`: a size is from 0 to 2^36"),
        ("dims n=99999999999999999999", "a size is from 0 to 2^36"),
    ] {
        let file = write(folder.path(), "data.krn", format!("// krn-test: {directive}\n{kernel}"));
        says(&["test", &file, "--device", "emulator"], 1, needle);
    }
    // Of nothing, nothing is asked.
    let file = write(
        folder.path(),
        "data.krn",
        format!("// krn-test: dims n=0,3\n// krn-test: in r=ramp(0, n - 1)\n{kernel}"),
    );
    says(&["test", &file, "--device", "emulator"], 0, "1 kernel passed");
}

#[test]
fn tests_end_with_the_code_of_what_went_wrong() {
    let folder = folder();
    let at = |name: &str, text: &str| write(folder.path(), name, text);
    let good = at("good.krn", "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] }\n");
    let bounds = at(
        "bounds.krn",
        "// krn-test: dims n=3\nkernel k(x: f32[n]) -> y: f32[n] { forall i in n { y[i] = x[i + n * (1 - i)] } }\n",
    );
    let wrong = at(
        "wrong.krn",
        "// krn-test: expect bounds-error\nkernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] }\n",
    );
    let syntax = at("syntax.krn", "kernel k(\n");
    let directive =
        at("directive.krn", "// krn-test: dims q=3\nkernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] }\n");
    for (files, code) in [
        (vec![&good], 0),
        (vec![&good, &bounds], 4),
        (vec![&bounds, &syntax, &wrong], 3),
        (vec![&syntax, &bounds], 1),
        (vec![&directive, &good], 1),
    ] {
        let mut arguments = vec!["test", "--device", "emulator"];
        arguments.extend(files.into_iter().map(String::as_str));
        says(&arguments, code, "passed");
    }
}

#[test]
fn many_processes_write_one_file_whole() {
    let folder = folder();
    let path = folder.path().join("all.ptx").display().to_string();
    let expected = krn(&["build", "examples/matmul.krn"]).stdout;
    let start = |_| command(&["build", "examples/matmul.krn", "-o", &path]).spawn().expect("the tool starts");
    let children: Vec<Child> = (0..6).map(start).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
        assert!(fs::read(&path).expect("the file") == expected);
    }
    assert_eq!(names(folder.path()), ["all.ptx"]);
}

/// What Ctrl-C does in the middle of work.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_soon_with_130_and_leaves_no_file() {
    let folder = folder();
    let out = folder.path().join("c.npy").display().to_string();
    let named = format!("c={out}");
    let slow = "y[i] = sum(j in n: x[j] * x[i])";
    let long = write(
        folder.path(),
        "long.krn",
        (0..100_000)
            .map(|k| format!("kernel k{k}(x: f32[n]) -> y: f32[n] {{ {slow} }}\n"))
            .collect::<String>(),
    );
    let large = ["-D", "m=3000", "n=3000", "k=3000", "--device", "emulator", "--out", &named];
    let full = ["-D", "m=700", "n=700", "k=700", "--device", "emulator", "--full-check"];
    for arguments in [
        [&["run", "examples/matmul.krn"], &large[..]].concat(),
        [&["run", "examples/matmul.krn"], &full[..]].concat(),
        vec!["test", &long, "--device", "emulator"],
        vec!["build", &long, "-o", &out],
        vec!["check", &long],
    ] {
        let mut child = command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool starts");
        std::thread::sleep(Duration::from_millis(700));
        let pressed = Instant::now();
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success(), "{arguments:?} ended too soon");
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(130), "{arguments:?}");
        assert!(pressed.elapsed() < Duration::from_secs(5), "{arguments:?}: {:?}", pressed.elapsed());
        assert_eq!(names(folder.path()), ["long.krn"], "{arguments:?}");
    }
}
