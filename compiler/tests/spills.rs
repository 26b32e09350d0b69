//! Registers: no kernel keeps values in memory because its launch says how many blocks a multiprocessor shall hold.

use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use xtask::ptxas::Assembler;

/// Entries that may, each with the reason.
const EXEMPT: &[(&str, &str)] = &[
    ("a_place_counts_row_256_masked_general", PAIRS),
    ("a_place_decides_row_256", PAIRS),
    ("a_place_decides_row_256_masked_general", PAIRS),
    ("alibi_weights_product_matrices_general", THROUGH),
    ("awkward_numbers_matrices_general", THROUGH),
    ("batched_matrices_general", THROUGH),
    ("bert_embedding_row_128_masked_general", HALVES),
    ("bf16_extremes_row_128_masked_general", PAIRS),
    ("bf16_extremes_row_256_half", PAIRS),
    ("channels_last_matrices", GATHERED),
    ("channels_last_matrices_general", GATHERED),
    ("codebook_linear_matrices_general", THROUGH),
    ("dora_linear_3_matrices_general", THROUGH),
    ("f16_extremes_row_128_masked_general", PAIRS),
    ("f16_extremes_row_256_half", PAIRS),
    ("f32_extremes_row_256_masked_general", PAIRS),
    ("farthest_points_row_256", PAIRS),
    ("farthest_points_row_256_masked_general", PAIRS),
    ("for_some_matrices", THROUGH),
    ("found_f16_row_128_masked_general", PAIRS),
    ("found_f32_row_256", PAIRS),
    ("fp8_rows_row_256_half", HALVES),
    ("grouped_decode_product_matrices_general", THROUGH),
    ("i32_extremes_row_256_masked_general", PAIRS),
    ("i8_extremes_row_128_masked_general", PAIRS),
    ("infinite_matrices_general", THROUGH),
    ("latent_decode_product_hoisted_matrices_general", THROUGH),
    ("linear_residual_layer_norm_2_row_256_half", HALVES),
    ("lora_backward_1_matrices_general", THROUGH),
    ("moments_decide_row_256_masked_general", PAIRS),
    ("mri_q_pieces", ANGLES),
    ("norm_qkv_rotary_3_matrices_general", THROUGH),
    ("patch_stem_norm_product_matrices_general", ANYWHERE),
    ("places_row_256", PAIRS),
    ("places_row_256_masked_general", PAIRS),
    ("ties_row_256", PAIRS),
    ("ties_row_256_masked_general", PAIRS),
    ("tn_matrices", THROUGH),
    ("top_p_sample_row_128", PAIRS),
    ("top_p_sample_row_128_masked_general", PAIRS),
    ("top_two_row_256_masked_general", PAIRS),
    ("tridiagonal_columns", ARRAYS),
    ("tt_matrices", THROUGH),
    ("u32_extremes_row_256_masked_general", PAIRS),
    ("u8_extremes_row_128_masked_general", PAIRS),
    ("wavenet_layer_2_matrices_general", THROUGH),
];

/// An index of 64 bits stands beside each value, and the order in which the assembler combines them is not counted.
const PAIRS: &str = "several reductions of one row, those of places among them";

/// Of a row that two blocks share, a thread has few registers beside the elements.
const HALVES: &str = "what is computed of an element takes more registers than are counted for a held row";

/// A product of matrix instructions counts what it gathers as one element each, and not the indices of four loops.
const GATHERED: &str = "a factor of a convolution comes through registers, with the quotients of its places";

/// Three words: rows of windows lie anywhere, and short copies have many addresses.
const ANYWHERE: &str = "each short copy has an address of its own, and the quotients that it is made of";

/// The assembler keeps addresses of both chunks that are under way, which it could compute again.
const THROUGH: &str = "factors come through registers, beside the fragments that are read ahead";

/// A sine or cosine is one operation until it is selected.
const ANGLES: &str = "what a cosine and a sine of large angles are made of is not counted";

/// What does not fit is little, and two blocks take 0.6 of the time of one that holds all (`passes/map`).
const ARRAYS: &str = "each thread has long arrays in registers, and a multiprocessor two blocks all the same";

/// What says how many blocks of an entry a multiprocessor shall hold.
const BOUND: &str = ".minnctapersm";

fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "krn") {
            found.push(path);
        }
    }
}

/// The entries of a module that have such a bound, each as a module with its name.
fn bounded(ptx: &str) -> Vec<(String, String)> {
    let mut parts = ptx.split(".visible .entry ");
    let head = parts.next().unwrap_or_default();
    let entries = parts.filter(|entry| entry.contains(BOUND));
    let of = |entry: &str| {
        let name = entry.split('(').next().unwrap_or_default().to_owned();
        (name, format!("{head}.visible .entry {entry}"))
    };
    entries.map(of).collect()
}

fn without_bound(ptx: &str) -> String {
    ptx.lines().filter(|line| !line.starts_with(BOUND)).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn no_kernel_spills_for_the_number_of_its_blocks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let mut paths = Vec::new();
    for folder in ["bench", "examples", "tests/kernels"] {
        programs(&root.join(folder), &mut paths);
    }
    paths.retain(|path| {
        let name = path.strip_prefix(root).expect("inside").to_string_lossy().replace('\\', "/");
        xtask::is_program_in_share(&name)
    });
    paths.sort();
    let entries = |path: &PathBuf| {
        let source = SourceFile::new(path.to_string_lossy(), fs::read_to_string(path).expect("a program"));
        let done =
            compile(&source, &CompileOptions::for_target("sm_90")).unwrap_or_else(|error| panic!("{error}"));
        bounded(&done.compiled.ptx)
    };
    let entries: Vec<(String, String)> = paths.par_iter().flat_map(entries).collect();
    let least = if xtask::tests_run_in_full() { 100 } else { 40 };
    assert!(entries.len() >= least, "only {} entries say how many blocks there shall be", entries.len());
    let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    let spilled = |ptx: &str| {
        let report = assembler.optimise(ptx, "sm_90").unwrap_or_else(|error| panic!("{error}"));
        report.spilled_bytes()
    };
    let spills = |(name, ptx): &(String, String)| {
        let bytes = spilled(ptx);
        (bytes > 0 && spilled(&without_bound(ptx)) < bytes).then(|| name.clone())
    };
    let mut found: Vec<String> = entries.par_iter().filter_map(spills).collect();
    found.sort();
    let is_there = |name: &&str| entries.iter().any(|(entry, _)| entry == name);
    let known: Vec<&str> = EXEMPT.iter().map(|(name, _)| *name).filter(is_there).collect();
    assert!(!xtask::tests_run_in_full() || known.len() == EXEMPT.len(), "entries that are no more");
    assert_eq!(found, known, "entries that have fewer registers than they need");
}
