//! Tile programs run twice: as what a block does, and as what its threads do.

use super::LowerTiles;
use super::{random, random_matrices};
use crate::ir::entities::Buffer;
use crate::ir::kernel::{Kernel, Phase};
use crate::ir::op::Constant;
use crate::ir::testing::{Memory, Outcome, compiled_for, interpret};
use crate::ir::text::{PrintOptions, parse_kernel, print_kernel};
use crate::ir::{verify, verify_threads};
use crate::passes::{Pass, PassContext, TargetFacts};
use proptest::prelude::*;
use std::path::Path;

fn print(kernel: &Kernel) -> String {
    print_kernel(kernel, PrintOptions { spans: false })
}

/// What a kernel does for the sizes that it is compiled for. Small numbers, whose sums are exact.
fn run(kernel: &Kernel) -> Memory {
    let symbols = compiled_for(kernel);
    let fill = |buffer: Buffer, _: u32, at: usize| {
        // `special` makes of some remainders what is no number.
        let number = (i64::from(buffer.as_u32()) * 101 + at as i64) * 2_654_435_761 % 1009 % 50 - 20;
        number - number.rem_euclid(7) + 3
    };
    match interpret(kernel, &symbols, &fill) {
        Outcome::Finished(memory) => memory,
        other => panic!("{other:?}\n{}", print(kernel)),
    }
}

/// Whether two scalars are the same, but for the last bits of floats that were combined in other orders.
fn alike(left: Constant, right: Constant) -> bool {
    let number = |constant| match constant {
        Constant::F32(bits) => Some(f64::from(f32::from_bits(bits))),
        Constant::F64(bits) => Some(f64::from_bits(bits)),
        _ => None,
    };
    match (number(left), number(right)) {
        (Some(left), Some(right)) => {
            left == right
                || (left.is_nan() && right.is_nan())
                || (left - right).abs() <= 1e-5 * left.abs().max(1.0)
        }
        _ => left == right,
    }
}

/// Lowers a tile program, and holds what its threads do against what its blocks do.
fn assert_lowered(kernel: &Kernel) -> Kernel {
    verify(kernel).unwrap_or_else(|errors| panic!("{}\n{}", errors[0], print(kernel)));
    let again = parse_kernel(&print(kernel)).unwrap_or_else(|error| panic!("{error}\n{}", print(kernel)));
    assert_eq!(print(&again), print(kernel), "it is read back");
    let mut lowered = kernel.clone();
    LowerTiles.run(&mut lowered, &PassContext::new(TargetFacts::new(90)));
    assert!(lowered.launches.values().all(|launch| launch.phase == Phase::Staged));
    // Values have other numbers once they are read.
    let read = |text: &str| print(&parse_kernel(text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let again = read(&print(&lowered));
    assert_eq!(read(&again), again, "it is read back");
    verify(&lowered)
        .and_then(|()| verify_threads(&lowered))
        .unwrap_or_else(|errors| panic!("{}\n{}\n{}", errors[0], print(kernel), print(&lowered)));
    let (blocks, threads) = (run(kernel), run(&lowered));
    for (place, expected) in &blocks {
        for (at, (expected, found)) in expected.iter().zip(&threads[place]).enumerate() {
            assert!(
                alike(*expected, *found),
                "{place:?} at {at}: {found:?}, not {expected:?}\n{}\n{}",
                print(kernel),
                print(&lowered)
            );
        }
    }
    lowered
}

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiles").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn program(name: &str) -> Kernel {
    parse_kernel(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn programs_by_hand_do_as_threads_what_they_do_as_blocks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiles");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("a folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".kir"))
        .collect();
    names.sort();
    assert!(names.len() >= 7);
    for name in names {
        assert_lowered(&program(&name));
    }
}

#[test]
fn threads_wait_between_accesses_of_one_array_by_others() {
    let text = print(&assert_lowered(&program("diagonal.kir")));
    let places = ["store buf1[", "barrier", "load buf1["].map(|what| text.find(what));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}\n{text}");
}

/// The lines of a loop's body, and those in front of it.
fn around_the_loop<'t>(text: &'t str, name: &str) -> (Vec<&'t str>, Vec<&'t str>) {
    let lines: Vec<&str> = text.lines().collect();
    let is_head = |line: &&str| line.contains(" = for ") && line.contains(name);
    let head = lines.iter().position(is_head).unwrap_or_else(|| panic!("{text}"));
    let depth = |line: &str| line.len() - line.trim_start().len();
    let end = (head + 1..lines.len()).find(|at| depth(lines[*at]) == depth(lines[head])).expect("an end");
    (lines[..head].to_vec(), lines[head..end].to_vec())
}

fn count(lines: &[&str], what: &str) -> usize {
    lines.iter().filter(|line| line.contains(what)).count()
}

#[test]
fn a_ring_has_one_barrier_a_turn_and_an_outer_product_a_step() {
    let text = print(&assert_lowered(&program("ring.kir")));
    let (before, body) = around_the_loop(&text, "chunk");
    let counts = ["barrier", "outer 4", "copy_async", "copy_wait 1"].map(|what| count(&body, what));
    assert_eq!(counts, [1, 4, 4, 1], "{text}");
    let places =
        ["copy_wait 1", "barrier", "copy_async"].map(|what| body.iter().position(|it| it.contains(what)));
    assert!(places.is_sorted(), "{places:?}\n{text}");
    assert_eq!(count(&before, "barrier"), 2, "{text}");
}

#[test]
fn what_is_read_while_it_is_copied_is_refused() {
    let text = text("ring.kir").replace("copy_wait 1", "copy_wait 3");
    let mut kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}"));
    LowerTiles.run(&mut kernel, &PassContext::new(TargetFacts::new(90)));
    let errors = verify_threads(&kernel).expect_err("chunks are still under way");
    assert!(errors[0].message.contains("races with"), "{}", errors[0]);
}

#[test]
fn two_places_filled_by_turns_need_one_barrier_a_turn() {
    let text = print(&assert_lowered(&program("product.kir")));
    let (before, body) = around_the_loop(&text, "chunk");
    assert_eq!(count(&body, "barrier"), 1, "{text}");
    assert_eq!(count(&body, "outer 4"), 8, "{text}");
    assert_eq!(count(&before, "barrier"), 0, "{text}");
}

#[test]
fn a_product_in_one_place_waits_twice_a_turn() {
    // Both turns use the same place: what is read there is waited for before it is filled again.
    let text = text("product.kir").replace("= rem v28, v9", "= mul v28, v7");
    let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}"));
    let text = print(&assert_lowered(&kernel));
    let (_, body) = around_the_loop(&text, "chunk");
    assert_eq!(count(&body, "barrier"), 2, "{text}");
}

#[test]
fn integers_are_multiplied_and_added() {
    let text = text("product.kir");
    for (ty, zero) in [("i32", "0"), ("i64", "0"), ("f64", "0.0")] {
        let text = text.replace("f32", ty).replace("const 0.0", &format!("const {zero}"));
        let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}"));
        let lowered = print(&assert_lowered(&kernel));
        assert_eq!(lowered.contains("outer 4"), ty == "f64", "{lowered}");
    }
}

#[test]
fn fragments_of_a_ring_are_loaded_as_matrices() {
    let text = print(&assert_lowered(&program("tensor.kir")));
    let (before, body) = around_the_loop(&text, "chunk");
    let counts =
        ["barrier", "= load_matrix buf3", "= load_matrix_transposed buf4", "= mma bf16 bf16", "pack"];
    assert_eq!(counts.map(|what| count(&body, what)), [1, 2, 2, 4, 0], "{text}");
    assert_eq!(count(&before, "load_matrix"), 2, "{text}");
}

#[test]
fn fragments_that_do_not_lie_in_rows_are_packed() {
    // Rows that begin at no multiple of 16 bytes.
    let text = text("tensor.kir").replace("[4, 32, 40]", "[4, 32, 42]");
    let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut lowered = kernel.clone();
    LowerTiles.run(&mut lowered, &PassContext::new(TargetFacts::new(90)));
    let text = print(&lowered);
    assert_eq!((text.matches("load_matrix").count(), text.matches("= pack bf16").count()), (0, 24), "{text}");
}

#[test]
fn tiles_that_are_no_fragments_are_refused() {
    let refused = |text: String, message: &str| {
        let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}"));
        let errors = verify(&kernel).expect_err("it is refused");
        assert!(errors[0].message.contains(message), "{}", errors[0]);
    };
    let text = text("tensor.kir");
    refused(text.replace("contract mma", "contract tf32"), "no instruction `tf32` multiplies bf16 and bf16");
    refused(
        text.replace("contract mma", "contract"),
        "the atom `fma` takes no factors of the storage type bf16",
    );
    // Steps of a lane that lie elsewhere.
    let moved = text
        .replace("h = register:2@2 · lane:4@1 · register:2@1", "h = lane:4@1 · register:2@2 · register:2@1");
    refused(moved, "are no fragments of `mma.sync` on bf16 and bf16 along `h`");
    // Warps that have other rows.
    let exchanged = text.replace("i = warp:2@2 · register:2@2 · lane:8@4, h = register:2@4 · lane:4@1 · register:2@1, _ = warp:2@1", "i = warp:2@1 · register:2@2 · lane:8@4, h = register:2@4 · lane:4@1 · register:2@1, _ = warp:2@2")
        .replace("i = warp:2@2 · register:2@2 · lane:8@4, _ = warp:2@1 · register:2@4", "i = warp:2@1 · register:2@2 · lane:8@4, _ = warp:2@2 · register:2@4");
    refused(exchanged, "a warp has other rows than its results need");
}

/// What notices that lowering is wrong: programs by hand, then random products, then random programs, which take longest.
pub fn caught() -> Option<String> {
    let by_hand = ["copy", "transpose", "softmax", "columns", "diagonal", "product", "ring", "tensor"];
    let by_hand = by_hand.into_iter().map(|name| (name.to_string(), program(&format!("{name}.kir"))));
    let tape = |seed: u64| -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..200).map(|_| next()).collect()
    };
    let random = (0..60).map(|seed| (format!("random {seed}"), random::program(&tape(seed))));
    let matrices = (0..30).map(|seed| (format!("matrices {seed}"), random_matrices::program(&tape(seed))));
    by_hand.chain(matrices).chain(random).find_map(|(name, kernel)| {
        let lowered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| assert_lowered(&kernel)));
        let message = lowered.err()?;
        let text = message.downcast_ref::<String>().and_then(|text| text.lines().next()).unwrap_or("a panic");
        Some(format!("{name}: {text}"))
    })
}

#[test]
fn a_transposition_has_no_conflicts_in_its_offsets_and_one_barrier() {
    let lowered = assert_lowered(&program("transpose.kir"));
    let text = print(&lowered);
    assert_eq!(text.matches("barrier").count(), 1, "{text}");
    assert_eq!(text.matches("shuffle_xor").count(), 0, "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: xtask::share_of_cases(200), ..ProptestConfig::default() })]

    #[test]
    fn random_products_of_matrices_do_as_threads_what_they_do_as_blocks(tape in proptest::collection::vec(any::<u8>(), 0..40)) {
        assert_lowered(&random_matrices::program(&tape));
    }

    #[test]
    fn random_programs_do_as_threads_what_they_do_as_blocks(tape in proptest::collection::vec(any::<u8>(), 0..200)) {
        assert_lowered(&random::program(&tape));
    }
}
