//! `krn build`: sizes that are known, machine code, and documents for several GPUs.

use crate::tool_support::{command, ended};
use krn_compiler::fat::Fat;

/// Standard output and error of a run with a ptxas that ends with this exit code.
fn run(arguments: &[&str], code: i32) -> (String, String) {
    let ptxas = xtask::cuda_tools::find("ptxas").expect("`cargo xtask setup` installs it");
    ended(command(arguments).env("KRN_PTXAS", ptxas), code)
}

#[test]
fn known_sizes_are_numbers_in_the_code() {
    let (general, _) = run(&["build", "examples/matmul.krn"], 0);
    let (known, _) = run(&["build", "examples/matmul.krn", "-D", "m=256", "n=256", "k=64"], 0);
    assert!(general.matches(".visible .entry").count() > 1, "variants for what is not known");
    assert_eq!(known.matches(".visible .entry").count(), 1, "{known}");
    assert!(!known.contains("[p_k]"), "no parameter for what is known:\n{known}");
}

#[test]
fn a_dash_is_standard_output_and_machine_code_does_not_go_there() {
    let (out, _) = run(&["build", "examples/saxpy.krn"], 0);
    let (dashed, _) = run(&["build", "examples/saxpy.krn", "-o", "-"], 0);
    assert_eq!(dashed, out);
    let (_, err) = run(&["build", "examples/saxpy.krn", "--emit", "cubin", "-o", "-"], 2);
    assert!(err.contains("add `-o kernels.cubin`") && !std::path::Path::new("-").exists(), "{err}");
}

#[test]
fn a_kernel_for_known_sizes_takes_no_others() {
    let sizes = ["-D", "m=70", "n=33", "k=20"];
    let run_with = |more: &[&str], code| {
        let arguments = [&["run", "examples/matmul.krn", "--device", "emulator"], &sizes[..], more].concat();
        run(&arguments, code)
    };
    let (out, _) = run_with(&["--specialize"], 0);
    assert!(out.contains("c: verified, 2,310 values agree"), "{out}");
    let (_, err) = run(&["run", "examples/matmul.krn", "--specialize"], 2);
    assert!(err.contains("-D"), "{err}");
}

#[test]
fn sizes_are_those_of_the_kernel_that_is_picked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("several.krn");
    let text = "kernel any(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }\n\
                kernel even(x: f32[n]) -> y: f32[n] where n % 2 == 0 { y[i] = x[i] }\n\
                kernel fixed(x: f32[4]) -> y: f32[4] { y[i] = x[i] }\n";
    std::fs::write(&file, text).expect("written");
    let file = file.display().to_string();
    let with = |kernel: &str, more: &[&str], code| {
        run(
            &[&["run", &file, "--device", "emulator", "--kernel", kernel, "--specialize"], more].concat(),
            code,
        )
    };
    // The other kernel of that dimension could not be launched so.
    assert!(with("any", &["-D", "n=33"], 0).0.contains("verified"));
    assert!(with("even", &["-D", "n=33"], 1).1.contains("error[E0410]"));
    assert!(run(&["build", &file, "-D", "n=33"], 1).1.contains("error[E0410]"));
    assert!(run(&["explain", &file, "-D", "n=33", "--kernel", "any"], 0).0.contains("schedule any"));
    // Where there is nothing to fix, nothing has to be given.
    assert!(with("fixed", &[], 0).0.contains("verified"));
    assert!(with("any", &[], 2).1.contains("add -D n=…"));
    let (_, err) = with("any", &["-D", "q=3"], 2);
    assert_eq!(err, "error: kernel `any` has no dimension `q`; there are n\n");
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let (_, err) = run(&["build", "examples/matmul.krn", "-D", "q=3"], 2);
    assert_eq!(err, "error: no kernel has a dimension `q`; there are k, m, n\n");
    let (_, err) = run(&["build", "examples/matmul.krn", "-D", "k=99999999999999"], 2);
    assert!(err.contains("from 0 to 2^36"), "{err}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("fact.krn");
    std::fs::write(&file, "kernel k(x: f32[n]) -> y: f32[n] where n % 4 == 0 { y[i] = x[i] }\n")
        .expect("written");
    let file = file.display().to_string();
    let (_, err) = run(&["build", &file, "-D", "n=6"], 1);
    assert!(err.contains("E0410") && err.contains("`n % 4 == 0` can never hold with n = 6"), "{err}");
    assert!(err.contains("n = 6 is fixed here (by `-D`)"), "{err}");
    let (out, _) = run(&["build", &file, "-D", "n=8"], 0);
    assert!(out.contains("// k: representative sizes n = 8\n"), "{out}");
}

#[test]
fn machine_code_is_written_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("saxpy.cubin");
    let text = path.display().to_string();
    run(&["build", "examples/saxpy.krn", "--emit", "cubin", "--target", "sm_90", "-o", &text], 0);
    let code = std::fs::read(&path).expect("the file is there");
    assert_eq!(&code[..4], b"\x7fELF");
    let (_, err) = run(&["build", "examples/saxpy.krn", "--emit", "cubin"], 2);
    assert!(err.contains("-o kernels.cubin"), "{err}");
    let entries = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(entries, 1, "nothing else is left");
}

#[test]
fn a_fat_document_has_code_for_each_target() {
    let arguments = ["build", "examples/saxpy.krn", "--emit", "fat", "--target", "sm_80,sm_90"];
    let (out, err) = run(&arguments, 0);
    assert_eq!(err, "");
    assert_eq!(out, run(&arguments, 0).0, "the same bytes each time");
    let fat = Fat::parse(&out).expect("a document");
    let targets: Vec<&str> = fat.images.iter().map(|image| image.target.as_str()).collect();
    assert_eq!(targets, ["sm_80", "sm_90"]);
    for image in &fat.images {
        assert!(image.ptx.contains(&format!(".target {}", image.target)), "{}", image.ptx);
        assert_eq!(image.manifest.target, image.target);
        let capability = krn_compiler::capability(&image.target).expect("a target");
        assert_eq!(image.waits, image.target == "sm_90");
        assert_eq!(&image.code(capability).expect("good").expect("ptxas is there")[..4], b"\x7fELF");
    }
    let (_, err) = run(&["build", "examples/saxpy.krn", "--emit", "fat", "--target", "sm_80,sm_1"], 2);
    assert!(err.contains("`sm_1` is no target"), "{err}");
}

#[test]
fn ptx_changed_by_hand_runs_in_the_place_of_the_compilers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (good, _) = run(&["build", "examples/saxpy.krn"], 0);
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, text).expect("written");
        path
    };
    let with = |path: &str, code| {
        run(&["run", "examples/saxpy.krn", "-D", "n=100", "--device", "emulator", "--ptx", path], code)
    };
    with(&write("same.ptx", &good), 0);
    // The reference knows better.
    with(&write("wrong.ptx", &good.replace("%alpha, %x, %y;", "%alpha, %x, %x;")), 3);
    let (_, err) = with(&write("broken.ptx", &good.replace("ret;", "rett;")), 1);
    assert!(err.contains("broken.ptx:"), "{err}");
    let (_, err) = with(&write("other.ptx", &good.replace(".entry saxpy", ".entry saxpi")), 1);
    assert!(err.contains("it has no entry `saxpy`"), "{err}");
    let target = good.lines().find(|line| line.starts_with(".target")).expect("a target");
    let (_, err) = with(&write("target.ptx", &good.replace(target, ".target sm_1000")), 1);
    assert!(
        err.contains("target.ptx: its `.target sm_1000` is none that Krn knows; known are sm_75"),
        "{err}"
    );
    let version = good.lines().find(|line| line.starts_with(".version")).expect("a version");
    let (_, err) = with(&write("old.ptx", &good.replace(version, ".version 4.2")), 1);
    assert!(err.contains("old.ptx: `.target sm_90` needs `.version 7.8`, and it says 4.2"), "{err}");
    let (_, err) = with("examples", 5);
    assert!(err.contains("cannot read"), "{err}");
}

#[test]
fn ptx_changed_by_hand_is_measured_in_the_place_of_the_compilers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (good, _) = run(&["build", "examples/saxpy.krn"], 0);
    let path = folder.path().join("changed.ptx").display().to_string();
    let bench = |more: &[&str], code| {
        let mut arguments = vec!["bench", "examples/saxpy.krn", "-D", "n=100", "--device", "emulator"];
        arguments.extend(more);
        run(&arguments, code)
    };
    let counted = |text: &str| {
        let line = text.lines().find(|line| line.contains("lane instructions")).expect("counted").to_string();
        line.split_whitespace()
            .next()
            .and_then(|word| word.replace(',', "").parse::<u64>().ok())
            .expect("a number")
    };
    let (before, _) = bench(&[], 0);
    assert!(!before.contains("PTX of"), "{before}");
    // One instruction more in every launch.
    let changed = good.replace(" ret;", " mov.u32 %r, %tid.x;\n    ret;");
    assert_ne!(changed, good);
    std::fs::write(&path, changed).expect("written");
    let (after, _) = bench(&["--ptx", &path], 0);
    assert!(counted(&after) > counted(&before), "{before}{after}");
    assert!(after.contains("its results not checked"), "{after}");
    std::fs::write(&path, "nothing").expect("written");
    let (_, err) = bench(&["--ptx", &path], 1);
    assert!(err.contains("changed.ptx:"), "{err}");
}
