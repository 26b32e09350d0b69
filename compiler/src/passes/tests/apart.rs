//! Wrong versions of passes that no random kernel reaches, each with a kernel that catches it: from text to numbers, as
//! `whole.rs` has it, with code for the sizes where a form is for some sizes alone.

use super::mutants::{caught_from_text_to_numbers, side_by_side};
use super::whole::Whole;
use crate::mutants::with;
use std::fs;
use std::path::Path;

/// Kernels of this test, where those of `tests/kernels` are large or reach nothing.
const OWN: &str = include_str!("apart.krn");

/// A kernel on what its directives say.
#[derive(PartialEq)]
struct Place {
    /// Below `tests/kernels`; `None` for [`OWN`].
    file: Option<&'static str>,
    kernel: &'static str,
    sizes: &'static [(&'static str, i64)],
    /// Whether its code is for these sizes, and not for all.
    for_them: bool,
}

const fn at(file: &'static str, kernel: &'static str, sizes: &'static [(&'static str, i64)]) -> Place {
    Place { file: Some(file), kernel, sizes, for_them: false }
}

const fn own(kernel: &'static str, sizes: &'static [(&'static str, i64)]) -> Place {
    Place { file: None, kernel, sizes, for_them: false }
}

const fn for_sizes(place: Place) -> Place {
    Place { for_them: true, ..place }
}

/// Few results of long sums.
const FEW_AT_ONCE: Place = for_sizes(at("reductions/few_at_once.krn", "gram", &[("n", 16384)]));

/// A sum of several products.
const fn concatenated(kernel: &'static str) -> Place {
    for_sizes(at("stage/concatenated.krn", kernel, &[("k", 24), ("m", 33), ("n", 40)]))
}

/// A product with a factor in parts.
const fn in_parts(kernel: &'static str, sizes: &'static [(&'static str, i64)]) -> Place {
    for_sizes(at("stage/parts.krn", kernel, sizes))
}

/// The same, with infinities in both factors.
const OF_AWKWARD: Place = in_parts("awkward", &[("k", 3008), ("m", 21), ("n", 72)]);

/// A product of rounded factors, of numbers of which cutting off leaves least.
const OF_UPPER_ENDS: Place =
    for_sizes(at("stage/tf32.krn", "upper_ends", &[("k", 8), ("m", 528), ("n", 290)]));

/// A product with copies of whole vectors of steps.
const fn in_a_copy(kernel: &'static str, sizes: &'static [(&'static str, i64)]) -> Place {
    for_sizes(at("stage/padded.krn", kernel, sizes))
}

/// A product whose steps are cut into pieces.
const OF_PIECES: Place = for_sizes(at("stage/pieces.krn", "gradient", &[("k", 1100), ("m", 66), ("n", 40)]));

/// A convolution whose input is packed.
const OF_WINDOWS: Place =
    for_sizes(at("stage/packed.krn", "of_windows", &[("b", 2), ("ch", 64), ("h", 17), ("o", 16), ("w", 18)]));

/// A product whose ranges of steps memory says.
const OF_RANGES: Place =
    for_sizes(at("stage/ragged.krn", "beside", &[("experts", 3), ("k", 40), ("n", 24), ("t", 200)]));

/// A product each row of which has a range of steps.
const OF_ROWS: Place = for_sizes(at("stage/ragged.krn", "up_to_the_row", &[("n", 19), ("t", 33)]));

/// Rows of which the threads of a block read elements of each other's.
const fn exchanged(kernel: &'static str) -> Place {
    for_sizes(at("reductions/exchanged.krn", kernel, &[("b", 3), ("s", 50)]))
}

/// Sums of whole numbers up to each element, or from there on.
const fn scanned(kernel: &'static str) -> Place {
    at("reductions/scans.krn", kernel, &[("n", 70)])
}

/// The mutants, and where each is caught.
const PLACES: &[(&str, Place)] = &[
    (
        "hoist_reductions: what is written stays as it was",
        for_sizes(own("what_was_there", &[("cols", 5), ("rows", 131)])),
    ),
    (
        "hoist_reductions: what stands behind a loop may come first",
        for_sizes(own("behind_a_loop", &[("cols", 5), ("rows", 131)])),
    ),
    (
        "hoist_reductions: what reads elsewhere comes first",
        for_sizes(at("locals/crossed.krn", "neighbours", &[("b", 3), ("t", 70)])),
    ),
    (
        "privatize: narrow numbers keep their sign",
        for_sizes(at("combine/narrow.krn", "least", &[("n", 70000)])),
    ),
    ("lower: `break` ends nothing", at("control/breaks.krn", "first_positive", &[("m", 31), ("n", 127)])),
    (
        "scalarize: each round begins with what was there first",
        at("locals/registers.krn", "four_sums", &[("m", 2), ("n", 1)]),
    ),
    (
        "speculate: every index lies within the array",
        for_sizes(at("reductions/masked.krn", "as_far_as_it_goes", &[("m", 1), ("n", 260)])),
    ),
    (
        "threads: nobody else reads what a row keeps",
        for_sizes(at("locals/products.krn", "normalized_product", &[("k", 20), ("m", 20), ("n", 20)])),
    ),
    ("threads: what a loop has written is there for all", exchanged("turned")),
    ("threads: what others still read is not written", exchanged("turned")),
    ("split_reductions: threads exchange what one loop writes once", exchanged("written_between")),
    (
        "split_reductions: all have read when one writes",
        for_sizes(at("reductions/read_first.krn", "at_once", &[("d", 3000), ("m", 2)])),
    ),
    (
        "split_reductions: the last rows have pieces too",
        for_sizes(at("reductions/few_columns.krn", "sums", &[("c", 7), ("n", 1000)])),
    ),
    (
        "reduce_atomics: what is read is not written before",
        at("combine/separate.krn", "of_what_was_written", &[("n", 40)]),
    ),
    (
        "privatize: each array has its own operation",
        for_sizes(at("combine/several_arrays.krn", "summary", &[("g", 3), ("n", 4000)])),
    ),
    (
        "split_reductions: the first index is the long one",
        for_sizes(at("reductions/several_axes.krn", "two_sums", &[("b", 2), ("c", 700), ("o", 33)])),
    ),
    (
        "strip_mine: the last neighbour is left out",
        at("reductions/packed_rows.krn", "pairs", &[("k", 5), ("n", 3)]),
    ),
    (
        "strip_mine: all neighbours are the first",
        at("reductions/packed_rows.krn", "pairs", &[("k", 5), ("n", 3)]),
    ),
    (
        "strip_mine: as many words as elements",
        at("reductions/packed_rows.krn", "pairs", &[("k", 5), ("n", 3)]),
    ),
    (
        "unroll_parts: the last part is left out",
        at("accesses/halves.krn", "in_a_row", &[("d", 23), ("n", 3)]),
    ),
    ("unroll_parts: all parts are the second", at("accesses/halves.krn", "in_a_row", &[("d", 23), ("n", 3)])),
    ("unroll_parts: below and above", at("accesses/halves.krn", "in_a_row", &[("d", 23), ("n", 3)])),
    (
        "unroll_components: the last component is left out",
        at("accesses/components.krn", "bytes", &[("h", 4), ("w", 7)]),
    ),
    (
        "unroll_components: all components are the first",
        at("accesses/components.krn", "bytes", &[("h", 4), ("w", 7)]),
    ),
    (
        "unroll_components: the last term is left out",
        at("accesses/components.krn", "unit", &[("h", 3), ("w", 33)]),
    ),
    (
        "unroll_interleaved: the last element is left out",
        at("accesses/interleaved.krn", "scaled", &[("h", 4), ("w", 7)]),
    ),
    (
        "unroll_interleaved: the first element is left out",
        at("accesses/interleaved.krn", "scaled", &[("h", 4), ("w", 7)]),
    ),
    (
        "unroll_interleaved: all elements are the first",
        at("accesses/interleaved.krn", "scaled", &[("h", 4), ("w", 7)]),
    ),
    ("scalarize: registers hold all of a narrow number", at("locals/registers.krn", "bytes", &[("n", 33)])),
    ("ranges: a late start is no start", at("reductions/ranges.krn", "late_starts", &[("n", 7), ("p", 3)])),
    (
        "fuse_launches: all components are one",
        at("accesses/components.krn", "in_the_middle", &[("n", 3), ("w", 6)]),
    ),
    ("join_branches: a load moves over stores", at("control/both_loads.krn", "written", &[("n", 33)])),
    (
        "join_branches: a store moves over accesses to its array",
        at("control/both_loads.krn", "stored_again", &[("n", 33)]),
    ),
    ("join_branches: two elements are one", at("control/both_loads.krn", "neighbours", &[("n", 33)])),
    (
        "separate_windows: the last place is left out",
        for_sizes(at("reductions/separated.krn", "mean_and_most", &[("h", 270), ("w", 263)])),
    ),
    (
        "separate_windows: all places are the first",
        for_sizes(at("reductions/separated.krn", "mean_and_most", &[("h", 270), ("w", 263)])),
    ),
    (
        "separate_windows: what moves with one index alone",
        for_sizes(at("reductions/separated.krn", "weighted", &[("h", 257), ("w", 256)])),
    ),
    ("fold: the other sign", at("stage/signs.krn", "turned", &[("n", 5)])),
    (
        "shared memory: what is used at once has one place",
        for_sizes(at("stage/matrices.krn", "short_copies", &[("k", 100), ("m", 140), ("n", 134)])),
    ),
    ("fold: a bit too many is masked out", at("accesses/words.krn", "wrapped", &[("n", 5)])),
    ("map: all elements of a word are the first", at("accesses/words.krn", "interleaved", &[("n", 33)])),
    (
        "select: halves of a word change places",
        for_sizes(at("conversions/stored.krn", "halves", &[("n", 64)])),
    ),
    ("tile contraction: all steps lie evenly", OF_WINDOWS),
    ("tile contraction: odd columns are the even ones", OF_WINDOWS),
    ("threads: an own array keeps the last term", own("pairs", &[("n", 33)])),
    (
        "threads: what comes once more sees rows change",
        for_sizes(at("reductions/rows_in_place.krn", "asserted", &[("m", 33), ("n", 8)])),
    ),
    (
        "canonical: a factor is left out",
        for_sizes(at("stage/spelled.krn", "diagonal_between", &[("k", 12), ("m", 12), ("n", 18)])),
    ),
    (
        "product: masks are asked in no chunk",
        for_sizes(at("stage/masked.krn", "doubles_up_to_a_row", &[("n", 14)])),
    ),
    (
        "product: a value has the term of another",
        for_sizes(at("stage/several.krn", "strangers", &[("k", 41), ("m", 33), ("n", 40)])),
    ),
    (
        "product: what a term subtracts is added",
        for_sizes(at("stage/several.krn", "complex", &[("k", 41), ("m", 33), ("n", 40)])),
    ),
    (
        "tile contraction: a chunk is read while it comes",
        for_sizes(own("quotients", &[("k", 41), ("m", 33), ("n", 24)])),
    ),
    (
        "tile contraction: one more step than there is",
        for_sizes(own("quotients", &[("k", 41), ("m", 33), ("n", 24)])),
    ),
    (
        "tile contraction: steps past the end are what the code makes of zeros",
        for_sizes(own("quotients", &[("k", 41), ("m", 33), ("n", 24)])),
    ),
    (
        "tile contraction: a short copy is a whole vector",
        for_sizes(at("stage/matrices.krn", "short_copies", &[("k", 100), ("m", 140), ("n", 134)])),
    ),
    (
        "tile contraction: all parts of a factor are the largest",
        in_parts("wide_rows", &[("k", 2816), ("m", 16), ("n", 72)]),
    ),
    ("tile contraction: all parts of a factor are added to one sum", OF_AWKWARD),
    ("tile contraction: parts of an infinity are added to it", OF_AWKWARD),
    ("tile contraction: factors of `tf32` are cut off", OF_UPPER_ENDS),
    ("select: numbers of `tf32` are cut off", OF_UPPER_ENDS),
    (
        "select: the bits of a NaN of `tf32` are cut off",
        for_sizes(at("stage/tf32.krn", "not_a_number", &[("k", 8), ("m", 528), ("n", 290)])),
    ),
    (
        "parts: the bits that make it a NaN are cut off",
        in_parts("not_a_number", &[("k", 3008), ("m", 16), ("n", 72)]),
    ),
    (
        "pad: what lies behind the last step is the last step",
        in_a_copy("both", &[("k", 1001), ("m", 40), ("n", 34)]),
    ),
    ("tile contraction: the last piece has steps that there are not", OF_PIECES),
    ("tile contraction: all pieces are the first", OF_PIECES),
    (
        "merge_axes: all rows are the first",
        at("stage/matrices.krn", "picked_gates", &[("b", 3), ("h", 2), ("k", 16), ("n", 5)]),
    ),
    (
        "privatize: a block walks to the end of its part",
        for_sizes(at("combine/privatized.krn", "of_long_rows", &[("n", 3), ("w", 131_100)])),
    ),
    ("tile contraction: a range begins at 0", OF_RANGES),
    ("tile contraction: the end of a range is not masked", OF_RANGES),
    ("tile contraction: the last steps of a range have no chunk", OF_RANGES),
    ("tile contraction: a block has the range of its shortest row", OF_ROWS),
    ("tile contraction: each row has the range of its block", OF_ROWS),
    (
        "tile contraction: what a guard leaves out is copied",
        for_sizes(at("stage/guarded.krn", "negated", &[("c", 16), ("m", 70), ("o", 24)])),
    ),
    ("unroll_and_jam: results are those of the place before", FEW_AT_ONCE),
    ("unroll_and_jam: all results are those of the first place", FEW_AT_ONCE),
    ("unroll_and_jam: the last place is left out", FEW_AT_ONCE),
    (
        "hoist_reductions: first values are copied before they are there",
        for_sizes(at("own/first_values.krn", "ridge", &[("nnz", 90), ("users", 7)])),
    ),
    ("concatenate_products: all terms load what the first one does", concatenated("nibbles")),
    ("concatenate_products: terms take each other's factors", concatenated("nibbles")),
    ("concatenate_products: what is subtracted is added", concatenated("real_part")),
    ("pack_operands: the first of each axis is not copied", OF_WINDOWS),
    ("pack_operands: the copy keeps the order of its axes", OF_WINDOWS),
    ("pack_operands: the product comes before the copy", OF_WINDOWS),
    ("scan: a block begins too late", scanned("running_count")),
    ("scan: a block is counted twice", scanned("running_count")),
    ("scan: a block is counted twice from behind", scanned("what_is_left")),
    ("scan: the last block is whole", scanned("running_count")),
    (
        "sink_loops: turns need not be apart",
        at("kernel_level/element_loops.krn", "columns_in_order", &[("h", 40), ("w", 33)]),
    ),
    (
        "sink_loops: what a turn hands on is what there was",
        at("kernel_level/element_loops.krn", "total", &[("n", 33)]),
    ),
    (
        "sink_loops: a branch may touch what is in a register",
        at("kernel_level/element_loops.krn", "positive", &[("n", 33)]),
    ),
    (
        "rebase_reductions: the ends of what runs backwards are those of what does not",
        at("reductions/rebased.krn", "backwards", &[("n", 33)]),
    ),
    (
        "rebase_reductions: all sums are the first one",
        at("reductions/rebased.krn", "neighbours", &[("n", 33)]),
    ),
    (
        "rebase_reductions: what runs backwards does as well",
        at("reductions/rebased.krn", "both_ways", &[("n", 33)]),
    ),
    (
        "scan: a thread walks the last block to its end",
        at("reductions/scans.krn", "down_columns", &[("c", 3), ("n", 70)]),
    ),
    ("scan: all elements are the first", at("reductions/scans.krn", "down_columns", &[("c", 3), ("n", 70)])),
    (
        "scan: a thread carries what lies before its block",
        at("reductions/scans.krn", "down_columns", &[("c", 3), ("n", 70)]),
    ),
    (
        "coalesce_axes: rows are places",
        for_sizes(at("accesses/odd_rows.krn", "both", &[("c", 37), ("n", 5)])),
    ),
    (
        "coalesce_axes: places go on behind a row's end",
        for_sizes(at("accesses/odd_rows.krn", "both", &[("c", 37), ("n", 5)])),
    ),
    (
        "strength_reduce: a row goes on behind its end",
        for_sizes(at("accesses/odd_rows.krn", "both", &[("c", 37), ("n", 5)])),
    ),
    (
        "strength_reduce: rows are shorter than a distance",
        for_sizes(at("accesses/odd_rows.krn", "digits", &[("c", 3), ("n", 40)])),
    ),
    ("forward_stores: memory holds all of a narrow number", at("locals/stored.krn", "rounded", &[("n", 70)])),
    ("promote_elements: all of an array is one place", at("locals/promoted.krn", "two_places", &[("n", 33)])),
    (
        "promote_elements: every turn comes to all",
        at("locals/promoted.krn", "some_have", &[("n", 40), ("m", 33)]),
    ),
    (
        "fuse_reductions: all ranges are one",
        at("reductions/one_walk.krn", "parts", &[("s", 3), ("n", 33), ("k", 20)]),
    ),
    (
        "fuse_reductions: terms are the first one's",
        at("reductions/one_walk.krn", "waves", &[("s", 3), ("n", 33), ("k", 20)]),
    ),
    (
        "collapse: a load of what the loop writes",
        at("forall/between.krn", "by_the_first", &[("n", 5), ("m", 300)]),
    ),
    (
        "licm: a branch leaves a loop whatever it reads",
        at("control/same_in_each_round.krn", "last_of_none", &[("n", 33), ("d", 0)]),
    ),
    ("promote_elements: all are stored first", at("locals/promoted.krn", "steps", &[("n", 33)])),
    ("promote_elements: all loops run", at("locals/promoted.krn", "rounds", &[("n", 33)])),
    ("forward_stores: all turns are the first", at("locals/stored.krn", "rounds", &[("n", 33)])),
    (
        "coalesce_axes: parts begin where the array does",
        for_sizes(at("accesses/odd_rows.krn", "part", &[("c", 37), ("n", 13)])),
    ),
    ("forward_stores: what is stored stays", at("locals/stored.krn", "stored_twice", &[("n", 33)])),
    ("vectorize: a load over a store", at("locals/stored.krn", "over_a_store", &[("n", 70)])),
    ("cse: memory holds all of a narrow number", at("locals/stored.krn", "rounded_pairs", &[("n", 70)])),
    ("cse: all stores are apart", at("locals/stored.krn", "perhaps_again", &[("n", 33)])),
    (
        "fuse_launches: another iteration's element is written",
        at("kernel_level/one_array.krn", "turned", &[("n", 37)]),
    ),
    ("trim_reductions: the last term is left out", at("reductions/trimmed.krn", "prefix", &[("n", 33)])),
    (
        "trim_reductions: what shows may be left out",
        at("reductions/trimmed.krn", "checked_before", &[("n", 33)]),
    ),
    ("trim_reductions: an end is left out", at("reductions/trimmed.krn", "band", &[("n", 33)])),
    ("trim_reductions: bounds may wrap around", at("reductions/trimmed.krn", "far", &[("n", 33)])),
    (
        "fold: sides are swapped, and the condition is not",
        at("reductions/trimmed.krn", "constant_first", &[("n", 33)]),
    ),
    (
        "fold: of two nested conditions one is left out",
        at("reductions/trimmed.krn", "one_in_another", &[("n", 33)]),
    ),
    (
        "split_boundary: an index may be the extent",
        for_sizes(at("accesses/windows.krn", "smoothed", &[("n", 303)])),
    ),
    (
        "split_boundary: one guard stands for all",
        for_sizes(at("accesses/windows.krn", "smoothed", &[("n", 303)])),
    ),
    (
        "split_boundary: a clamp is its bound",
        for_sizes(at("accesses/windows.krn", "smoothed_clamped", &[("h", 9), ("w", 600)])),
    ),
    (
        "fuse_launches: a launch passes what it reads",
        at("reductions/alike.krn", "in_order", &[("n", 40), ("v", 33)]),
    ),
    ("hoist_checks: an empty range is tested", own("empty_rows", &[("p", 8), ("r", 7)])),
    ("hoist_checks: nothing is beside the index", own("rows_beside", &[("p", 40), ("r", 7)])),
    ("hoist_checks: the last one is cut off", own("rows", &[("p", 40), ("r", 7)])),
    (
        "hoist_reductions: what its own loop writes is read",
        own("rows_once", &[("m", 5), ("n", 40), ("t", 1)]),
    ),
    ("inline: a reader keeps its load", at("locals/inline.krn", "differences", &[("h", 7), ("w", 5)])),
    ("inline: nobody writes what it is made of", at("locals/inline.krn", "overwritten", &[("n", 31)])),
    ("inline: every place reads what the first one does", at("locals/inline.krn", "rounded", &[("n", 1)])),
    (
        "pin_windows: a window is shorter",
        for_sizes(own("window", &[("a", 3), ("b", 2), ("h", 256), ("w", 257)])),
    ),
    (
        "pin_windows: all axes are as long as the first",
        for_sizes(own("window", &[("a", 3), ("b", 2), ("h", 256), ("w", 257)])),
    ),
    ("pin_windows: a window begins at 0", for_sizes(own("window_from_one", &[("a", 4), ("n", 65543)]))),
];

/// The names of the mutants that are caught here.
pub fn names() -> impl Iterator<Item = &'static str> {
    PLACES.iter().map(|(name, _)| *name)
}

impl Place {
    fn whole(&self) -> Whole {
        let text = match self.file {
            Some(file) => {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/kernels");
                fs::read_to_string(folder.join(file)).expect("a file of kernels")
            }
            None => OWN.to_string(),
        };
        Whole::at(&text, self.kernel, self.sizes, self.for_them).expect("the reference ends")
    }
}

/// What notices each of the mutants, and how often its place was reached. What the right compiler makes of a place is
/// worked out once for all mutants that are caught there.
pub fn tried() -> Vec<(&'static str, Option<String>, u64)> {
    let mut places: Vec<(&Place, Vec<&'static str>)> = Vec::new();
    for (name, place) in PLACES {
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, names)) => names.push(name),
            None => places.push((place, vec![name])),
        }
    }
    let tried = side_by_side(&places, |(place, names)| {
        let whole = place.whole();
        assert_eq!(whole.difference_of_the_right(), None, "{names:?}: {}", place.kernel);
        let tried = names.iter().map(|name| {
            let (caught, reached) = with(name, || caught_from_text_to_numbers(&whole));
            (*name, caught, reached)
        });
        tried.collect::<Vec<_>>()
    });
    tried.into_iter().flatten().collect()
}
