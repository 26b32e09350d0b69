//! `krn explain FILE` prints what the compiler chose: pasted into the file in the place of the kernels' own schedules,
//! it compiles to the same bytes.

use krn_compiler::check::typed::Program;
use krn_compiler::manifest::{Guard, Manifest};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, SymbolValues, Variants, compile, explain_schedules};
use std::fs;
use std::path::{Path, PathBuf};

fn krn_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of kernels") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            krn_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "krn") {
            files.push(path);
        }
    }
    files.sort();
}

/// As it is called in the repository.
fn name(path: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    path.strip_prefix(root).expect("inside").to_string_lossy().replace('\\', "/")
}

/// The text with all schedules blanked out, its lines where they were.
fn without_schedules(text: &str, program: &Program) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for schedule in program.kernels.iter().flat_map(|kernel| &kernel.schedules) {
        for byte in &mut bytes[schedule.span.start as usize..schedule.span.end as usize] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).expect("schedules are ASCII but for comments, which are blanked whole")
}

/// What is wrong with the explained schedules of a file.
fn complaint(path: &Path, target: &str) -> Option<String> {
    let text = fs::read_to_string(path).expect("a file of kernels");
    let variants = Variants::For(SymbolValues::new());
    let options = CompileOptions { variants, ..CompileOptions::for_target(target) };
    let before = match compile(&SourceFile::new("k.krn", text.as_str()), &options) {
        Ok(before) => before,
        Err(error) => return Some(error.to_string()),
    };
    let explained = explain_schedules(&before);
    let mut pasted = without_schedules(&text, &before.program);
    pasted.extend(explained.iter().map(|schedule| format!("\n{}", schedule.text)));
    let after = match compile(&SourceFile::new("k.krn", pasted.as_str()), &options) {
        Ok(after) => after,
        Err(error) => return Some(format!("{error}\n{}", &pasted[text.len()..])),
    };
    // What the schedule says is not asked.
    let without_guards = |manifest: &Manifest| {
        let mut manifest = manifest.clone();
        let variants = manifest.kernels.iter_mut().flat_map(|kernel| &mut kernel.variants);
        variants.for_each(|variant| variant.guard = Guard::default());
        manifest
    };
    let [same, other] = [&before, &after].map(|found| without_guards(&found.compiled.manifest));
    if after.compiled.ptx == before.compiled.ptx && same == other {
        return None;
    }
    // Which kernels: their entries are the parts of the module.
    let entries = |ptx: &str| -> Vec<String> { ptx.split(".entry").map(str::to_string).collect() };
    let known = entries(&before.compiled.ptx);
    let changed: Vec<String> = entries(&after.compiled.ptx)
        .into_iter()
        .filter(|entry| !known.contains(entry))
        .map(|entry| entry.split('(').next().unwrap_or_default().trim().to_string())
        .collect();
    let of = |kernel: &str| changed.iter().any(|entry| entry.starts_with(kernel));
    let schedules: Vec<&str> =
        explained.iter().filter(|known| of(&known.kernel)).map(|known| known.text.as_str()).collect();
    Some(format!("{} differ\n{}", changed.join(", "), schedules.join("\n")))
}

fn check(folder: &str, targets: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").join(folder);
    let mut files = Vec::new();
    krn_files(&folder, &mut files);
    assert!(files.len() > 20, "the kernels are there");
    files.retain(|path| xtask::is_program_in_share(&name(path)));
    let mut wrong = Vec::new();
    for path in &files {
        for target in targets {
            if let Some(complaint) = complaint(path, target) {
                wrong.push(format!("{} for {target}: {complaint}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

#[test]
fn examples_compile_to_the_same_code_with_their_explained_schedules() {
    check("examples", &["sm_75", "sm_90"]);
}

#[test]
fn test_kernels_compile_to_the_same_code_with_their_explained_schedules() {
    check("tests/kernels", &["sm_90"]);
}

/// Which tiles of a product are shared no directive says: a comment tells it, and which one keeps them whole.
#[test]
fn a_comment_tells_that_tiles_of_a_product_are_shared() {
    let text =
        "kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }";
    let explained = |text: String| {
        let compilation = crate::support::compiled(&text, &[]);
        (explain_schedules(&compilation)[0].text.clone(), compilation.compiled.ptx)
    };
    let (schedule, shared) = explained(text.to_string());
    let remark = "// matmul_tiled_large_vector: tiles that do not fill a wave are shared among all multiprocessors: \
                  `split p: 1` keeps each in one block";
    assert!(schedule.lines().any(|line| line.trim() == remark), "{schedule}");
    let (whole, ptx) = explained(format!("{text}\nschedule matmul {{ split p: 1 }}"));
    assert!(!whole.contains("are shared"), "{whole}");
    assert!(shared.contains(".entry matmul_tiled_large_sums(") && !ptx.contains("_sums("), "{ptx}");
}

/// What no directive says is not said to be the work of one thread.
#[test]
fn kernels_without_choices_say_who_does_the_work() {
    let text = "kernel nested(x: f32[m, n]) -> y: f32 { y = sum(i: sqrt(sum(j: x[i, j]))) }\n\
                kernel one() -> y: f32 { y = 1.0 }\n";
    let compiled = compile(&SourceFile::new("k.krn", text), &CompileOptions::for_target("sm_90"));
    let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
    let [nested, one] = &explain_schedules(&compiled)[..] else { panic!("two kernels") };
    let alone = "one thread does all of it";
    let several = compiled.compiled.ptx.contains("%tid");
    assert_eq!(nested.text.contains(alone), !several, "{}", nested.text);
    assert!(one.text.contains(alone), "{}", one.text);
}
