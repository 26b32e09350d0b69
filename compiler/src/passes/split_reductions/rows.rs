//! Rows: an iteration whose loops all walk one contiguous range is given to a team of threads.

use super::cost::{Cost, loop_cost, ragged_cost};
use super::length::{Length, length};
use super::said::{Said, said};
use super::streams::streams;
use crate::analysis::{Affine, Answer, Conditions, REGISTERS, Stride, accesses, ask, blocks_by_registers};
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Factor, Kernel, Level, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::ir::schedule::{Directive, SAID};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::accumulate::{accumulations, into_atomics};
use crate::passes::pass::TargetFacts;
use crate::passes::special::{Special, specialize};
use rustc_hash::FxHashMap;

/// An iteration whose loops a team can share.
pub struct Rows {
    /// Elements of a row, as the host knows it; of all rows, or about so many.
    pub extent: Expr,
    pub exact: bool,
    /// How many rows there are, in all and along the last axis, where the host knows.
    count: Option<(Expr, Expr)>,
    /// Neighbours that one access of a thread brings where rows are aligned.
    pub vector: i64,
    /// More than one loop walks the row: it is worth keeping it in registers.
    pub reused: bool,
    held: Held,
    checked: bool,
    /// A warp may have several of them: its lanes meet in each reduction, whatever the rows are like.
    packs: bool,
    /// So may it where rows of one length are too short for all of it.
    short: bool,
    /// A thread keeps elements of a row beside those that it reads.
    own_array: bool,
    /// The names of the outer axes.
    outer: Vec<String>,
    /// What the schedule says of the loops' axis: of the first one of which it says something.
    said: Said,
}

/// How a row is shared.
struct Shape {
    suffix: &'static str,
    /// Threads a row; below 32 × 2 a block has several rows.
    threads: i64,
    /// Groups that a thread holds at once; `None` walks the row by an open loop.
    held: Option<i64>,
    vector: i64,
    /// The row fills the threads' groups exactly: nothing is masked.
    exact: bool,
    words: Held,
    /// Subscripts are checked: a thread has the indices until all loads are under way.
    checked: bool,
    /// Fewer threads than there could be, each with more of the row: for so many rows that they fill the machine all the same.
    few: bool,
}

impl Shape {
    /// Elements of a row that its threads hold.
    fn holds(&self) -> Option<i64> {
        self.held.map(|held| held * self.vector * self.threads)
    }

    /// 32-bit registers of a thread that holds its part of a row: those of each element, those of the reductions' results for
    /// each place in a vector, and those of the code.
    fn registers(&self) -> Option<u64> {
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
const MIN_ROW: i64 = 32;
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
/// Rows of fewer elements are one warp's.
const WARP_ROW: i64 = 1024;
/// 32-bit registers that a thread of four groups or more has beside the elements that it holds.
const OTHER_REGISTERS: i64 = 32;
/// How many of those are results of reductions.
const USUAL_RESULTS: i64 = 8;
/// The same of one that checks subscripts, beside those.
const CHECK_REGISTERS: i64 = 8;
/// Groups under way in one turn of an open loop.
const GROUPS: i64 = 4;

/// What of a launch's outer loop is rows, if it pays to share them.
pub fn find(kernel: &Kernel, forall: Inst) -> Option<Rows> {
    let body = kernel.insts[forall].regions[0];
    let mut loops = Vec::new();
    if !collect(kernel, body, &mut loops) || loops.is_empty() {
        return None;
    }
    if !buffers_allow(kernel, body, &loops) {
        return None;
    }
    let Length { extent, exact } = length(kernel, forall, &loops)?;
    let outer = *kernel.blocks[body].params.last()?;
    let mut own = Cost::default();
    let mut shared = Cost::default();
    for inst in &loops {
        let region = kernel.insts[*inst].regions[0];
        let index = kernel.blocks[region].params[0];
        shared.add(loop_cost(kernel, region, index));
        // Where the rows begin, memory says.
        let (low, _) = kernel.loop_bounds(*inst)[0];
        let mut affine = Affine::new(kernel);
        own.add(match affine.depends(low, outer) && affine.coefficient(low, outer).is_none() {
            true => ragged_cost(kernel, region, index, outer),
            false => loop_cost(kernel, region, outer),
        });
    }
    if shared.sectors >= own.sectors {
        return None;
    }
    let vector = vector(kernel, &loops);
    let said = loops.iter().map(|inst| said(kernel, *inst));
    let said = said.reduce(|first, next| Said {
        threads: first.threads.or(next.threads),
        vector: first.vector.or(next.vector),
        axis: if first.vector.is_none() && next.vector.is_some() { next.axis } else { first.axis },
        ..first
    })?;
    let mut own_array = false;
    kernel.walk(body, &mut |_, inst| {
        let Payload::Access { buffer, .. } = kernel.insts[inst].payload else { return };
        own_array |= !matches!(kernel.buffers[buffer].kind, BufferKind::Argument { .. });
    });
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return None };
    let outer = axes.iter().map(|axis| kernel.axes[*axis].name.clone()).collect();
    // Where rows begin and end differs: none begins at a multiple of a vector, or is held.
    let vector = if exact { vector } else { 1 };
    let last = kernel.loop_bounds(forall).last().and_then(|(low, high)| kernel.symbolic_extent(*low, *high));
    let count = kernel.symbolic_iterations(forall).zip(last);
    let mut checked = false;
    kernel.walk(body, &mut |_, inst| checked |= kernel.insts[inst].opcode == Opcode::Check);
    let straight = &kernel.blocks[body].insts;
    let meets = loops.iter().all(|inst| straight.contains(inst));
    Some(Rows {
        reused: loops.len() > 1 && exact,
        held: held(kernel, &kernel.blocks[body].params, &loops),
        checked,
        packs: !exact && meets,
        short: exact && meets,
        own_array,
        outer,
        extent,
        exact,
        count,
        vector,
        said,
    })
}

/// What a thread keeps of the rows that it holds, in 32-bit registers.
#[derive(Clone, Copy)]
struct Held {
    /// For each element: of all arrays that are kept from one loop to the next. What all rows share counts for nothing: it is
    /// near, and what is computed of it and another array is held in the other's place.
    element: i64,
    /// The results of the reduction that has most of them.
    results: i64,
}

fn held(kernel: &Kernel, outer: &[Value], loops: &[Inst]) -> Held {
    let words = |scalar: Scalar| if scalar.size() > 4 { 2 } else { 1 };
    // From the first loop that accesses an array to the last one.
    let mut arrays: FxHashMap<(Buffer, u32), (usize, usize)> = FxHashMap::default();
    let mut results = 0;
    for (at, owner) in loops.iter().enumerate() {
        let data = &kernel.insts[*owner];
        if data.opcode == Opcode::Reduce {
            results = results.max(data.results.iter().map(|value| words(kernel.value_type(*value))).sum());
        }
        let index = kernel.blocks[data.regions[0]].params[0];
        let mut affine = Affine::new(kernel);
        for access in accesses(kernel, data.regions[0]) {
            let mut stays = |index: &Value| affine.stride(access.inst, *index) == Stride::Bytes(0);
            let is_own = kernel.buffers[access.buffer].kind == BufferKind::Private;
            if stays(&index) || (outer.iter().all(&mut stays) && !is_own) {
                continue;
            }
            arrays.entry((access.buffer, access.leaf)).or_insert((at, at)).1 = at;
        }
    }
    let of = |buffer: Buffer, leaf: u32| kernel.buffers[buffer].element.leaves[leaf as usize].scalar;
    let behind = |at: usize| -> i64 {
        let kept = arrays.iter().filter(|(_, (first, last))| *first <= at && *last > at);
        kept.map(|((buffer, leaf), _)| words(of(*buffer, *leaf))).sum()
    };
    let element = (0..loops.len()).map(behind).max().unwrap_or(0);
    Held { element: element.max(1), results }
}

/// The outermost loops of one axis that stand under straight control; `false` where something forbids sharing.
fn collect(kernel: &Kernel, block: Block, loops: &mut Vec<Inst>) -> bool {
    kernel.blocks[block].insts.iter().all(|inst| {
        let data = &kernel.insts[*inst];
        match (&data.payload, data.opcode) {
            (_, Opcode::While) => false,
            (Payload::Loop { axes }, Opcode::Forall) | (Payload::Reduce { axes, .. }, _) => {
                loops.push(*inst);
                let mut whiles = false;
                kernel.walk(data.regions[0], &mut |_, inst| {
                    whiles |= kernel.insts[inst].opcode == Opcode::While;
                });
                axes.len() == 1 && !whiles
            }
            _ => data.regions.iter().all(|region| collect(kernel, *region, loops)),
        }
    })
}

/// Whether memory that the iteration writes is only ever touched by the thread that a loop gives the element to.
fn buffers_allow(kernel: &Kernel, body: Block, loops: &[Inst]) -> bool {
    let parents = kernel.parents_in(body);
    let mut written: Vec<Buffer> = Vec::new();
    let mut touched: FxHashMap<Buffer, Vec<(Block, Inst)>> = FxHashMap::default();
    kernel.walk(body, &mut |block, inst| {
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else { return };
        touched.entry(buffer).or_default().push((block, inst));
        if data.opcode.info().effect.shows() && !written.contains(&buffer) {
            written.push(buffer);
        }
    });
    let combined: Vec<Buffer> = accumulations(kernel, body).iter().map(|known| known.buffer).collect();
    written.iter().all(|buffer| {
        if combined.contains(buffer) {
            return true;
        }
        let accesses = &touched[buffer];
        let rank = kernel.buffers[*buffer].extents.len();
        let mut leading: Option<RowPlace> = None;
        let reads = accesses.iter().any(|(_, inst)| kernel.insts[*inst].opcode == Opcode::Load);
        let owner = |inst: Inst| parents.enclosing(inst).find(|outer| loops.contains(outer));
        if !reads && kernel.buffers[*buffer].kind != BufferKind::Private {
            // Written only: any thread may, as long as each element is written once.
            return true;
        }
        let inside = accesses.iter().filter(|(_, inst)| owner(*inst).is_some()).count();
        if inside == 0 {
            // Straight code: private arrays are every thread's own; memory is written by one and read by all.
            return kernel.buffers[*buffer].kind == BufferKind::Private;
        }
        inside == accesses.len()
            && rank > 0
            && accesses.iter().all(|(_, inst)| {
                let Some(owner) = owner(*inst) else { return false };
                let index = kernel.blocks[kernel.insts[owner].regions[0]].params[0];
                let Some(place) = row_place(&kernel.insts[*inst].arguments[..rank], index) else {
                    return false;
                };
                *leading.get_or_insert_with(|| place.clone()) == place
            })
    })
}

/// Which subscript is the row's index, and the others.
pub type RowPlace = (usize, Vec<Value>);

/// The one subscript that is the index; `None` where none is or several are.
pub fn row_place(subscripts: &[Value], index: Value) -> Option<RowPlace> {
    let at = subscripts.iter().position(|value| *value == index)?;
    let mut others = subscripts.to_vec();
    others.remove(at);
    (!others.contains(&index)).then_some((at, others))
}

/// 16 bytes of the narrowest array that the loops walk contiguously.
fn vector(kernel: &Kernel, loops: &[Inst]) -> i64 {
    let mut narrowest = None;
    for inst in loops {
        let region = kernel.insts[*inst].regions[0];
        let param = kernel.blocks[region].params[0];
        let mut affine = Affine::new(kernel);
        for access in accesses(kernel, region) {
            let buffer = &kernel.buffers[access.buffer];
            let width = buffer.element.leaves[access.leaf as usize].scalar.size();
            let memory =
                !matches!(buffer.kind, BufferKind::Private | BufferKind::Constant(_) | BufferKind::Scratch);
            if memory && affine.stride(access.inst, param) == Stride::Bytes(width as i64) {
                narrowest = Some(narrowest.map_or(width, |known: u64| known.min(width)));
            }
        }
    }
    narrowest.map_or(1, |width| (16 / width.max(1)).clamp(1, 8) as i64)
}

/// The ways in which rows may be shared, the best one first.
fn shapes(kernel: &Kernel, rows: &Rows, target: &TargetFacts) -> Vec<Shape> {
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
    };
    // Several rows of a thread's own are for longer ones: lanes of one warp could not meet.
    let several =
        |known: &Directive| matches!(known, Directive::PerThread { axis, .. } if rows.outer.contains(axis));
    let short = rows.short && !kernel.schedule.directives.iter().any(|said| several(&said.directive));
    // Short ones at once, by as few lanes as can: what lies beyond the row's end costs as much as what lies within. Where rows
    // are not multiples of a vector, scalar by scalar.
    let of_lane = (GROUPS / vector).max(1);
    let mut at_once: Vec<(i64, i64, &'static str)> = Vec::new();
    // What the schedule wants unrolled is walked.
    let walks = rows.own_array || kernel.schedule.unroll(&said.axis).is_some();
    if rows.exact && (rows.reused || !walks) {
        let teams = [(2, "row_2"), (4, "row_4"), (8, "row_8"), (16, "row_16")];
        at_once.extend(teams.iter().filter(|_| short).map(|(lanes, suffix)| (*lanes, of_lane, *suffix)));
        let warps = [(1, "row_warp"), (2, "row_warp_2"), (4, "row_warp_4")];
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
        shapes.push(shape(suffix, lanes, Some(held), vector, false));
        if vector > 1 {
            shapes.push(shape(suffix, lanes, Some(held * vector), 1, false));
        }
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
        for (threads, held, suffix) in only(said.threads, &exact, "row_exact", "row_exact_wide") {
            shapes.push(shape(suffix, threads, Some(held), vector, true));
        }
        // Each twice as many threads as the one before: a group beyond the row's end costs nearly as many instructions as
        // one within, and these are what short rows wait for. The longest are those of a vocabulary (softmax, f32,
        // 16384×30000 on an H200: 1.16 ms held, 17.0 ms walked with an array in memory).
        let masked = [
            (64, 4, "row_64_masked"),
            (128, 4, "row_128_masked"),
            (256, 4, "row_256_masked"),
            (512, 4, "row_512_masked"),
            (512, 8, "row_512_masked_wide"),
            (512, 16, "row_512_masked_widest"),
        ];
        for (threads, held, suffix) in only(said.threads, &masked, "row_masked", "row_masked_wide") {
            shapes.push(shape(suffix, threads, Some(held), vector, false));
            if vector > 1 {
                shapes.push(shape(suffix, threads, Some(held * vector), 1, false));
            }
        }
    }
    let long = said.threads.unwrap_or(if rows.reused { 512 } else { 256 });
    let mut vectors = vec![vector, 1];
    vectors.dedup();
    if rows.packs {
        shapes.extend(TEAMS.iter().map(|(lanes, _, suffix)| shape(*suffix, *lanes, None, 1, false)));
    }
    for vector in vectors {
        if !rows.reused && !rows.packs {
            shapes.push(shape("row_warp_walk", 32, None, vector, false));
        }
        shapes.push(shape("row_walk", long, None, vector, false));
    }
    shapes.retain(|shape| shape.threads <= i64::from(target.max_threads) && shape.fits(rows.own_array));
    shapes
}

/// Whether the threads that share a row hold it: loops after the first one find it there, or nearer than in memory where
/// a row is less than a warp's.
pub fn are_held(kernel: &mut Kernel, launch: Launch, rows: &Rows, target: &TargetFacts) -> bool {
    if !rows.said.team_fits() {
        return false;
    }
    let shapes = shapes(kernel, rows, target);
    let mut held = shapes.iter().filter(|shape| shape.held.is_some());
    if held.any(|shape| ask(kernel, launch, &conditions(rows, shape, target)) != Answer::No) {
        return true;
    }
    let long = Conditions::new().prefers_at_least(&rows.extent, MIN_ROW);
    ask(kernel, launch, &long) == Answer::No
}

/// Makes copies of a launch that share its rows among teams, and lets the plan choose by the length of a row.
pub fn share(kernel: &mut Kernel, launch: Launch, rows: &Rows, target: &TargetFacts) -> bool {
    let said = &rows.said;
    if !said.team_fits() {
        return false;
    }
    let vector = said.vector(rows.vector);
    let shapes = shapes(kernel, rows, target);
    let (mut changed, mut held) = (false, false);
    for shape in shapes {
        // For all sizes, one way to hold a row and one to walk it are enough.
        if held && shape.held.is_some() && kernel.specialization.is_general() {
            continue;
        }
        let special =
            specialize(kernel, launch, &conditions(rows, &shape, target), shape.suffix, |kernel, launch| {
                let applied = apply(kernel, launch, &shape, said);
                if applied {
                    let width = if shape.threads < 32 { shape.vector } else { vector };
                    record(kernel, launch, &shape, said, width);
                }
                applied
            });
        changed |= special.is_some();
        if special == Some(Special::Always) {
            break;
        }
        held |= special.is_some() && shape.held.is_some();
    }
    if changed {
        said.done(kernel, rows.vector);
        // How many rows a thread has is for shorter ones.
        kernel
            .schedule
            .done(|known| matches!(known, Directive::PerThread { axis, .. } if rows.outer.contains(axis)));
    }
    changed
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

/// Records how a row is shared, as directives.
fn record(kernel: &mut Kernel, launch: Launch, shape: &Shape, said: &Said, vector: i64) {
    let name = kernel.launches[launch].name.clone();
    let as_said = SAID.to_string();
    if let Some(threads) = kernel.launches[launch].threads {
        let reason = match (said.threads.is_some(), shape.threads) {
            (true, _) => as_said.clone(),
            (false, 32) => format!("a warp takes a short row over `{}`", said.axis),
            (false, lanes @ ..32) => format!("{lanes} lanes of a warp take a short row over `{}`", said.axis),
            (false, _) => format!("a block takes a row over `{}`", said.axis),
        };
        let block = Directive::Block(threads);
        match shape.held {
            // Which lengths a thread holds at most is no directive.
            Some(_) if said.threads.is_none() => kernel.schedule.noted(&name, block, reason),
            _ => kernel.schedule.chose(&name, block, reason),
        }
    }
    let reason = match vector {
        _ if said.vector.is_some() => as_said,
        1 => "lanes take elements of a row one by one".to_string(),
        _ => format!("one access brings {vector} neighbours of a row"),
    };
    let (axis, width) = (said.axis.clone(), vector as u32);
    kernel.schedule.chose_vector(&name, axis, width, reason, said.vector.is_some());
}

/// How many rows a block has.
fn rows_of_block(shape: &Shape, said: &Said) -> i64 {
    match shape.threads {
        ..=32 => 32 / shape.threads.max(1) * (said.threads.unwrap_or(256) / 32),
        _ => 1,
    }
}

/// When a shape fits.
fn conditions(rows: &Rows, shape: &Shape, target: &TargetFacts) -> Conditions {
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
    if shape.held.is_none() && shape.threads <= 32 {
        let next = team.and_then(|team| TEAMS.get(team + 1)).map_or(WARP_ROW, |(_, least, _)| *least);
        conditions = conditions.prefers(compared(BinaryOp::Less, next));
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

/// Sets the factors of a launch's loops.
fn apply(kernel: &mut Kernel, launch: Launch, shape: &Shape, said: &Said) -> bool {
    let Some(forall) = super::outer_loop(kernel, launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    into_atomics(kernel, body);
    let mut loops = Vec::new();
    collect(kernel, body, &mut loops);
    let Payload::Loop { axes } = kernel.insts[forall].payload.clone() else { return false };
    // A block of several warps, each with a row of its own, or with several.
    let rows_a_warp = 32 / shape.threads.clamp(1, 32) as u64;
    let rows_a_block = rows_of_block(shape, said) as u64 / rows_a_warp;
    for (at, axis) in axes.iter().enumerate() {
        let mut factors = vec![Factor { level: Level::Grid, size: None }];
        if at + 1 == axes.len() && rows_a_block > 1 {
            factors.push(Factor { level: Level::Warp, size: Some(rows_a_block) });
        }
        if at + 1 == axes.len() && rows_a_warp > 1 {
            factors.push(Factor { level: Level::Lane, size: Some(rows_a_warp) });
        }
        kernel.axes[*axis].factors = factors;
    }
    if shape.held.is_some() {
        kernel.launches[launch].streams = streams(kernel, body, &loops);
    }
    for inst in loops {
        let (Payload::Loop { axes } | Payload::Reduce { axes, .. }) = &kernel.insts[inst].payload else {
            continue;
        };
        let axis = axes[0];
        if let Some(held) = shape.held.filter(|_| shape.exact) {
            literal_end(kernel, inst, held * shape.vector * shape.threads);
        }
        let mut factors = match shape.held {
            Some(held) => vec![Factor { level: Level::Serial, size: Some(held as u64) }],
            None => vec![
                Factor { level: Level::Serial, size: None },
                Factor { level: Level::Serial, size: Some(GROUPS as u64) },
            ],
        };
        if shape.threads > 32 {
            factors.push(Factor { level: Level::Warp, size: Some(shape.threads as u64 / 32) });
        }
        factors.push(Factor { level: Level::Lane, size: Some(shape.threads.min(32) as u64) });
        if shape.vector > 1 {
            factors.push(Factor { level: Level::Vector, size: Some(shape.vector as u64) });
        }
        kernel.axes[axis].factors = factors;
    }
    let threads = shape.threads as u64 * rows_a_warp * rows_a_block;
    kernel.launches[launch].threads = u32::try_from(threads).ok();
    // As many blocks as leave a thread the registers that it needs.
    kernel.launches[launch].resident =
        shape.registers().map(|registers| blocks_by_registers(threads, registers));
    true
}

/// Says by a literal where a loop ends that begins at 0: the launch is run for that length alone.
fn literal_end(kernel: &mut Kernel, inst: Inst, length: i64) {
    if kernel.int_of(kernel.insts[inst].arguments[0]) != Some(0) {
        return;
    }
    let Some(block) = kernel.parents().block_of[inst].expand() else { return };
    let literal = Payload::Constant(Constant::Int(Scalar::I64, length.into()));
    let literal = kernel.make_inst(Opcode::Const, literal, &[], kernel.insts[inst].span);
    let Some(position) = kernel.blocks[block].insts.iter().position(|other| *other == inst) else { return };
    kernel.blocks[block].insts.insert(position, literal);
    kernel.insts[inst].arguments[1] = kernel.insts[literal].results[0];
}
