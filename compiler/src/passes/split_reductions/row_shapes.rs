//! The shapes in which rows may be shared among threads, and the sizes that each is for.

use super::said::Said;
use crate::analysis::{Conditions, REGISTERS};
use crate::ir::kernel::Kernel;
use crate::ir::schedule::Directive;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::pass::TargetFacts;

/// An iteration whose loops a team can share.
pub struct Rows {
    /// Elements of a row, as the host knows it; of all rows, or about so many.
    pub extent: Expr,
    pub exact: bool,
    /// How many rows there are, in all and along the last axis, where the host knows.
    pub count: Option<(Expr, Expr)>,
    /// Neighbours that one access of a thread brings where rows are aligned.
    pub vector: i64,
    /// Whether all that it brings was left by other launches.
    pub is_left: bool,
    /// More than one loop walks the row: it is worth keeping it in registers.
    pub reused: bool,
    pub held: Held,
    pub checked: bool,
    /// A warp may have several of them: its lanes meet in each reduction, whatever the rows are like.
    pub packs: bool,
    /// So may it where rows of one length are too short for all of it.
    pub short: bool,
    /// Where neighbours of a row lie apart: so many rows are worth a team each.
    pub at_most: Option<i64>,
    /// A thread keeps elements of a row beside those that it reads.
    pub own_array: bool,
    /// Each thread walks the row by itself as well, as its elements are taken in order: a warp does so as fast as a block.
    pub in_order: bool,
    /// Threads read elements that others of the team have written: all threads of a block are one team.
    pub exchanges: bool,
    /// The names of the outer axes.
    pub outer: Vec<String>,
    /// What the schedule says of the loops' axis: of the first one of which it says something.
    pub said: Said,
}

/// How a row is shared.
pub struct Shape {
    pub suffix: &'static str,
    /// Threads a row; below 32 × 2 a block has several rows.
    pub threads: i64,
    /// Groups that a thread holds at once; `None` walks the row by an open loop.
    pub held: Option<i64>,
    pub vector: i64,
    /// The row fills the threads' groups exactly: nothing is masked.
    pub exact: bool,
    pub words: Held,
    /// Subscripts are checked: a thread has the indices until all loads are under way.
    pub checked: bool,
    /// Fewer threads than there could be, each with more of the row: for so many rows that they fill the machine all the same.
    pub few: bool,
    /// As many threads as a block can have: for so few rows that fewer would leave multiprocessors half empty.
    pub wide: bool,
}

impl Shape {
    /// Elements of a row that its threads hold.
    fn holds(&self) -> Option<i64> {
        self.held.map(|held| held * self.vector * self.threads)
    }

    /// 32-bit registers of a thread that holds its part of a row: those of each element, those of the reductions' results for
    /// each place in a vector, and those of the code.
    pub fn registers(&self) -> Option<u64> {
        let held = self.held?;
        let results = (self.vector * self.words.results - USUAL_RESULTS).max(0);
        // Short rows leave registers enough for what is computed of their elements.
        let few = OTHER_REGISTERS.min(OTHER_REGISTERS / 2 + 4 * held);
        let other = if self.threads <= 32 && self.vector > 4 { OTHER_REGISTERS } else { few };
        // Whether a group lies within the row is one comparison each time, or a bit.
        let masks = if self.exact || held * self.vector >= 32 { 0 } else { 8 };
        let checks = if self.checked { CHECK_REGISTERS } else { 0 };
        u64::try_from(held * self.vector * self.words.element + results + other + masks + checks).ok()
    }

    /// Whether a thread has registers enough, and it pays to hold the row. Long rows of scalars are fetched again as quickly,
    /// from the cache, by threads with fewer registers (on an H200, bf16, 16384×10001: layer norm 2300 GB/s walked and
    /// 1877 held, RMS norm 2950 and 2497), unless there is an array that would have to be in memory (softmax 121 and 1666).
    fn fits(&self, own_array: bool) -> bool {
        let walks = self.vector == 1 && self.threads >= 512 && self.held.is_some_and(|held| held >= 32);
        let threads = self.threads.max(256) as u64;
        let enough = self.registers().is_none_or(|registers| registers * threads <= REGISTERS);
        self.exact || (enough && (own_array || !walks))
    }
}

/// Rows of one length that are shorter than this are not a warp's, but some lanes'.
pub const MIN_ROW: i64 = 32;
/// The same of rows of different lengths, by their mean: how many lanes such a row gets, and from which mean length on.
const TEAMS: [(i64, i64, &str); 5] = [
    (2, 3, "row_2_walk"),
    (4, 6, "row_4_walk"),
    (8, 12, "row_8_walk"),
    (16, 24, "row_16_walk"),
    (32, 48, "row_warp_walk"),
];
/// The same of rows that cannot share a warp: the threads of a warp that has several of them wait for the longest.
const MIN_MEAN: i64 = 12;
/// Lanes that bring a line of 128 bytes by one vector each: how few take a row without more requests.
const LINE_LANES: i64 = 8;
/// Elements of a row that a lane has at most where few lanes take it.
const LANE_ELEMENTS: i64 = 16;
/// The same, times the 32-bit registers that a reduction's results take: those of extremes and where they are take three,
/// and a comparison each (argmax of f32 on an H100, rows of 256: 50 us by 8 elements a lane, 61 by 16).
const LANE_RESULTS: i64 = 32;
/// Threads of a multiprocessor with which few lanes a row keep its memory busy, each with several accesses under way.
const BUSY_THREADS: i64 = 1024;
/// Threads of the largest block, of which a multiprocessor holds two.
const WIDE: i64 = 1024;
/// Threads of a block for the elements of a row that threads exchange; of shorter rows there are fewer.
const SHARED_ROW: i64 = 256;
/// Rows of fewer elements are one warp's.
const WARP_ROW: i64 = 1024;
/// 32-bit registers that a thread of four groups or more has beside the elements that it holds.
const OTHER_REGISTERS: i64 = 32;
/// How many of those are results of reductions.
const USUAL_RESULTS: i64 = 8;
/// The same of one that checks subscripts, beside those.
const CHECK_REGISTERS: i64 = 8;
/// Groups under way in one turn of an open loop.
pub const GROUPS: i64 = 4;

/// What a thread keeps of the rows that it holds, in 32-bit registers.
#[derive(Clone, Copy)]
pub struct Held {
    /// For each element: of all arrays that are kept from one loop to the next. What all rows share counts for nothing: it is
    /// near, and what is computed of it and another array is held in the other's place.
    pub element: i64,
    /// The results of the reduction that has most of them.
    pub results: i64,
}

/// The ways in which rows may be shared, the best one first.
pub fn shapes(kernel: &Kernel, rows: &Rows, target: &TargetFacts) -> Vec<Shape> {
    let said = &rows.said;
    let vector = said.vector(rows.vector);
    let mut shapes = Vec::new();
    let shape = |suffix, threads, held, vector, exact| Shape {
        suffix,
        threads,
        held,
        vector,
        exact,
        words: rows.held,
        checked: rows.checked,
        few: false,
        wide: false,
    };
    // Rows that are no whole vectors are whole halves or quarters of them often enough.
    let halves = std::iter::successors(Some(vector), |width| (*width > 1).then_some(width / 2));
    let widths: Vec<i64> = halves.collect();
    // Several rows of a thread's own are for longer ones: lanes of one warp could not meet.
    let of_several =
        |known: &Directive| matches!(known, Directive::PerThread { axis, .. } if rows.outer.contains(axis));
    let several = kernel.schedule.directives.iter().any(|said| of_several(&said.directive));
    let short = rows.short && !several;
    // Short ones at once, by as few lanes as can: what lies beyond the row's end costs as much as what lies within. Where rows
    // are not multiples of a vector, scalar by scalar.
    let of_lane = (GROUPS / vector).max(1);
    let mut at_once: Vec<(i64, i64, &'static str)> = Vec::new();
    // What the schedule wants unrolled is walked.
    let walks = rows.own_array || kernel.schedule.unroll(&said.axis).is_some();
    if rows.exact && (rows.reused || !walks) {
        let teams = [(2, "row_2"), (4, "row_4"), (8, "row_8"), (16, "row_16")];
        at_once.extend(teams.iter().filter(|_| short).map(|(lanes, suffix)| (*lanes, of_lane, *suffix)));
        let warps = [(1, "row_warp"), (2, "row_warp_2"), (3, "row_warp_3"), (4, "row_warp_4")];
        let more = warps.iter().filter(|(groups, _)| *groups >= of_lane && said.threads.is_none());
        at_once.extend(more.map(|(groups, suffix)| (32, *groups, *suffix)));
    }
    let lines = [
        (LINE_LANES, 2, "row_8_of_2"),
        (LINE_LANES, 4, "row_8_of_4"),
        (2 * LINE_LANES, 2, "row_16_of_2"),
        (2 * LINE_LANES, 4, "row_16_of_4"),
    ];
    let mut few: Vec<Shape> = Vec::new();
    if short && vector > 1 && !at_once.is_empty() && said.threads.is_none() {
        for (lanes, groups, suffix) in lines {
            let elements = groups * vector;
            let fits = elements <= LANE_ELEMENTS && elements * rows.held.results <= LANE_RESULTS;
            let new = Shape { few: true, ..shape(suffix, lanes, Some(groups), vector, false) };
            if groups > of_lane && fits && few.last().is_none_or(|last| last.holds() < new.holds()) {
                few.push(new);
            }
        }
    }
    for (lanes, held, suffix) in at_once {
        // As long rows by fewer lanes first.
        let holds = |few: &mut Shape| few.holds() <= Some(lanes * held * vector) && few.threads < lanes;
        shapes.extend(few.extract_if(.., holds));
        shapes.extend(
            widths.iter().map(|width| shape(suffix, lanes, Some(held * vector / width), *width, false)),
        );
    }
    if rows.reused {
        // Held whole, by as few threads as can: usual lengths exactly, others masked; then rows that are not
        // multiples of a vector, scalar by scalar.
        let mut exact =
            [(128, 4, "row_128"), (256, 4, "row_256"), (512, 4, "row_512"), (512, 8, "row_512_wide")];
        // Of narrow types a vector takes two registers a word, of wide ones another thread's addresses cost more: layer
        // norm on an H200, bf16, 32768×4096: 4045 GB/s with 256 threads, 4022 with 128; f32, 16384²: 4089 with 256
        // threads, 4045 with 512. A thread with an array of its own has no registers for either.
        match (rows.own_array, vector) {
            (false, 8) => exact[0] = (256, 2, "row_256_half"),
            (false, 4) => exact[3] = (256, 16, "row_256_wide"),
            _ => {}
        }
        if !rows.exchanges {
            for (threads, held, suffix) in only(said.threads, &exact, "row_exact", "row_exact_wide") {
                shapes.push(shape(suffix, threads, Some(held), vector, true));
            }
        }
        // Steps of a third or a half: a group beyond the row's end costs nearly as many instructions as one within, and
        // these are what short rows wait for. The longest are those of a vocabulary (softmax, f32, 16384×30000 on an
        // H200: 1.16 ms held, 17.0 ms walked with an array in memory).
        let mut masked = vec![
            (64, 3, "row_64_of_3"),
            (64, 4, "row_64_masked"),
            (128, 3, "row_128_of_3"),
            (128, 4, "row_128_masked"),
            (256, 3, "row_256_of_3"),
            (256, 4, "row_256_masked"),
            (256, 6, "row_256_of_6"),
            (256, 8, "row_256_masked_wide"),
            (512, 6, "row_512_of_6"),
            (512, 8, "row_512_masked_wide"),
            (512, 12, "row_512_of_12"),
            (512, 16, "row_512_masked_widest"),
        ];
        if rows.exchanges {
            // For each element a thread walks what the others have written: all do so at once.
            masked.retain(|(_, held, _)| held % 4 == 0);
            masked[..4].iter_mut().for_each(|(_, held, _)| *held = 1);
        }
        for (threads, held, suffix) in only(said.threads, &masked, "row_masked", "row_masked_wide") {
            shapes.extend(
                widths.iter().map(|width| shape(suffix, threads, Some(held * vector / width), *width, false)),
            );
        }
    }
    let long = match (rows.at_most, rows.reused) {
        (Some(_), _) if !rows.exchanges => WIDE,
        (_, true) => 512,
        (_, false) => SHARED_ROW,
    };
    let long = said.threads.unwrap_or(long);
    if rows.packs && !several {
        shapes.extend(TEAMS.iter().map(|(lanes, _, suffix)| shape(*suffix, *lanes, None, 1, false)));
    }
    for vector in widths {
        if (!rows.reused || rows.in_order) && !rows.packs {
            shapes.push(shape("row_warp_walk", 32, None, vector, false));
        }
        if said.threads.is_none() && rows.exchanges {
            let small = [(64, "row_64_walk"), (128, "row_128_walk")];
            shapes.extend(small.map(|(threads, suffix)| shape(suffix, threads, None, vector, false)));
        }
        if said.threads.is_none() && long < WIDE && rows.count.is_some() {
            shapes.push(Shape { wide: true, ..shape("row_wide_walk", WIDE, None, vector, false) });
        }
        shapes.push(shape("row_walk", long, None, vector, false));
    }
    let most = if rows.in_order && said.threads.is_none() { 32 } else { i64::from(target.max_threads) };
    // Those that exchange something meet as blocks.
    let least = if rows.exchanges { 33 } else { 0 };
    shapes.retain(|shape| (least..=most).contains(&shape.threads) && shape.fits(rows.own_array));
    shapes
}

/// The shapes of a list, or where the schedule says how many threads a row or block has, two of so many.
fn only(
    threads: Option<i64>,
    shapes: &[(i64, i64, &'static str)],
    suffix: &'static str,
    wide: &'static str,
) -> Vec<(i64, i64, &'static str)> {
    match threads {
        Some(threads) => vec![(threads, 4, suffix), (threads, 8, wide)],
        None => shapes.to_vec(),
    }
}

/// How many rows a block has.
pub fn rows_of_block(shape: &Shape, said: &Said) -> i64 {
    match shape.threads {
        ..=32 => 32 / shape.threads.max(1) * (said.threads.unwrap_or(256) / 32),
        _ => 1,
    }
}

/// When a shape fits.
pub fn conditions(rows: &Rows, shape: &Shape, target: &TargetFacts) -> Conditions {
    let extent = || rows.extent.clone();
    let compared = |op, number: i64| Expr::binary(op, extent(), Expr::Int(number));
    let is_team = rows.packs || shape.threads < 32;
    let team = TEAMS.iter().position(|(lanes, ..)| is_team && *lanes == shape.threads);
    let mut conditions = Conditions::new();
    if rows.exact && team.is_some() && rows.said.threads.is_some() {
        conditions = conditions.prefers(compared(BinaryOp::LessEqual, MIN_ROW));
    }
    let least = match (team, rows.exact) {
        // What one access brings is one thread's.
        (Some(team), true) => TEAMS[team].1.max(rows.vector + 1),
        (Some(team), false) => TEAMS[team].1,
        (None, true) => MIN_ROW,
        (None, false) => MIN_MEAN,
    };
    conditions = conditions.prefers(compared(BinaryOp::GreaterEqual, least));
    if let (Some(most), Some((count, _))) = (rows.at_most, &rows.count) {
        conditions = conditions.prefers(Expr::binary(BinaryOp::LessEqual, count.clone(), Expr::Int(most)));
    }
    if shape.held.is_none() && shape.threads <= 32 && !rows.in_order {
        let next = team.and_then(|team| TEAMS.get(team + 1)).map_or(WARP_ROW, |(_, least, _)| *least);
        conditions = conditions.prefers(compared(BinaryOp::Less, next));
    }
    if shape.held.is_none() && rows.exchanges && rows.said.threads.is_none() && shape.threads < SHARED_ROW {
        // What a thread does for its element is long, and one without an element waits for it.
        conditions = conditions.prefers(compared(BinaryOp::LessEqual, shape.threads));
    }
    if let (true, Some((count, _))) = (shape.wide, &rows.count) {
        // Each thread of a long row has its share of it in several turns.
        let all = Expr::Int(2 * i64::from(target.multiprocessors));
        conditions = conditions
            .prefers(compared(BinaryOp::GreaterEqual, WIDE * GROUPS))
            .prefers(Expr::binary(BinaryOp::LessEqual, count.clone(), all));
    }
    if shape.vector > 1 {
        let rest = Expr::binary(BinaryOp::Rem, extent(), Expr::Int(shape.vector));
        conditions = conditions.needs(Expr::binary(BinaryOp::Equal, rest, Expr::Int(0)));
    }
    match shape.holds() {
        Some(most) if shape.exact => conditions.needs(compared(BinaryOp::Equal, most)),
        // The general plan holds rows as well, and tests that they are not longer.
        Some(most) => {
            let held = compared(BinaryOp::LessEqual, most);
            let conditions = conditions.prefers(held.clone()).expects(held);
            match (shape.few, &rows.count) {
                (false, _) => conditions,
                // A block has rows of one value of the other axes.
                (true, Some((count, last))) => conditions
                    .prefers_at_least(count, i64::from(target.multiprocessors) * BUSY_THREADS / shape.threads)
                    .prefers_at_least(last, 2 * rows_of_block(shape, &rows.said)),
                (true, None) => conditions.prefers(Expr::Bool(false)),
            }
        }
        None => conditions,
    }
}
