//! What a schedule says of a product's tiles, and why it cannot be where it cannot.
//!
//! `tile` of the rows and columns is what a block computes, of the reduced axis how many steps come at a time;
//! `per_thread` is what a thread computes, `unroll` of the reduced axis how many steps the inner loop's body has, and
//! `stage … depth` how many chunks shared memory holds. What is not said is as in the shape of the table that comes
//! nearest.

use super::super::pattern::Pattern;
use super::found::Found;
use super::operand::{Operand, Walk};
use super::shape::Shape;
use crate::ir::schedule::{Directive, Refusal, RefusalKind};
use crate::passes::TargetFacts;

/// Sides of tiles up to which small shapes complete what is not said.
const SMALL_TILE: i64 = 64;

/// Results of a thread likewise.
const SMALL_THREAD: i64 = 16;

/// By side, rows and columns.
pub struct Wanted {
    tile: [Option<i64>; 2],
    per_thread: [Option<i64>; 2],
    depth: Option<i64>,
    /// Steps in the inner loop's body; 0 for all.
    unroll: Option<i64>,
    names: [String; 2],
    reduced: String,
    arrays: Vec<String>,
}

/// How many tiles of an array the schedule wants in shared memory, if it says a number that can be.
pub fn stages(pattern: &Pattern<'_>, found: &Found) -> Option<i64> {
    let said = |array: String| pattern.kernel.schedule.stage(&array)?.1;
    let mut depths = arrays(pattern, found).into_iter().filter_map(said).map(i64::from);
    depths.find(|depth| Shape::STAGES.contains(depth))
}

/// The names of the arrays that go through shared memory.
fn arrays(pattern: &Pattern<'_>, found: &Found) -> Vec<String> {
    found.loads.iter().flatten().filter_map(|source| pattern.array(source.load)).collect()
}

impl Wanted {
    /// `None` where the schedule says nothing of sizes, or does not say `stage` for one of the arrays: then the plain loop
    /// carries them out.
    pub fn new(pattern: &Pattern<'_>, found: &Found) -> Option<Self> {
        let schedule = &pattern.kernel.schedule;
        let reduced = pattern.reduce.as_ref()?.axis.name.to_string();
        let names = found.axes.map(|axis| pattern.axes[axis].name.to_string());
        let tile = [0, 1].map(|side| schedule.tile(&names[side]).map(i64::from));
        let per_thread = [0, 1].map(|side| schedule.per_thread(&names[side]).map(i64::from));
        let depth = schedule.tile(&reduced).map(i64::from);
        let unroll = schedule.unroll(&reduced).map(|factor| factor.map_or(0, i64::from));
        let shaped = tile.iter().chain(&per_thread).any(Option::is_some) || depth.is_some();
        let mut arrays = arrays(pattern, found);
        arrays.retain(|array| schedule.stage(array).is_some());
        let both = shaped && !arrays.is_empty();
        both.then_some(Self { tile, per_thread, depth, unroll, names, reduced, arrays })
    }

    /// The shape; `table` has those of the compiler's own choice, the largest first.
    pub fn shape(&self, table: &[Shape]) -> Option<Shape> {
        let thread: i64 = self.per_thread.iter().flatten().product();
        let small = if self.tile.iter().any(Option::is_some) {
            self.tile.iter().flatten().all(|size| *size <= SMALL_TILE)
        } else {
            self.per_thread.iter().any(Option::is_some) && thread <= SMALL_THREAD
        };
        let of_table = |name: &str| table.iter().find(|shape| shape.name == name);
        let mut shape = if small { of_table("tiled") } else { table.first() }?.clone();
        (shape.name, shape.resident) = ("tiled", 1);
        for side in [0, 1] {
            shape.tile[side] = self.tile[side].unwrap_or(shape.tile[side]);
            shape.per_thread[side] = self.per_thread[side].unwrap_or(shape.per_thread[side]);
        }
        shape.depth = self.depth.unwrap_or(shape.depth);
        shape.unroll = match self.unroll {
            Some(0) => shape.depth,
            Some(steps) => steps,
            None => shape.unroll.min(shape.depth),
        };
        Some(shape)
    }

    /// The directives that say all of a shape's sizes.
    pub fn directives(&self, shape: &Shape) -> Vec<Directive> {
        let size = |axis: &String, size: i64| Directive::Tile { axis: axis.clone(), size: size as u32 };
        let mut all = vec![Directive::Block(shape.threads() as u32)];
        for side in [0, 1] {
            let (axis, count) = (self.names[side].clone(), shape.per_thread[side] as u32);
            all.push(size(&axis, shape.tile[side]));
            all.push(Directive::PerThread { axis, count });
        }
        all.push(size(&self.reduced, shape.depth));
        all.extend(self.unroll.map(|said| {
            let factor = (said != 0).then_some(shape.unroll as u32);
            Directive::Unroll { axis: self.reduced.clone(), factor }
        }));
        all
    }

    /// Whether a directive is one of those that are read here.
    pub fn is_read(&self, known: &Directive) -> bool {
        match known {
            Directive::Tile { axis, .. } | Directive::PerThread { axis, .. } => {
                *axis == self.reduced || self.names.contains(axis)
            }
            Directive::Stage { array, .. } => self.arrays.contains(array),
            _ => false,
        }
    }

    /// Why no launch can have the shape.
    pub fn limit(
        &self,
        pattern: &mut Pattern<'_>,
        found: &Found,
        shape: &Shape,
        target: &TargetFacts,
    ) -> Option<Refusal> {
        let help = "tiles and steps are powers of two, of which a thread has a part; `docs/passes.md` has the limits";
        if let Err((kind, reason)) = shape.check(target) {
            return Some(Refusal::new(kind, reason, help));
        }
        let inner = pattern.reduce.as_ref()?.axis.clone();
        let mut bytes = 0;
        for (side, loads) in found.loads.iter().enumerate() {
            let outer = pattern.axes[found.axes[side]].clone();
            for load in loads {
                let Some(operand) =
                    Operand::new(pattern, *load, (&outer, &inner), (shape, side), Some(Walk::Even))
                else {
                    let threads = shape.threads();
                    let reason = format!(
                        "{} by {} elements at a time cannot be shared by {threads} threads",
                        shape.tile[side], shape.depth
                    );
                    return Some(Refusal::new(RefusalKind::DoesNotFit, reason, help));
                };
                bytes += operand.bytes(shape.stages);
            }
        }
        let most = i64::from(target.shared_bytes);
        if bytes > most {
            let reason = format!("its tiles have {bytes} bytes, and a block has {most}");
            let help =
                format!("make the tiles smaller, take fewer steps of `{}`, or less `depth`", self.reduced);
            return Some(Refusal::new(RefusalKind::TooMuchSharedMemory, reason, help));
        }
        match pattern.kernel.schedule.block() {
            Some(block) if i64::from(block) != shape.threads() => {
                let threads = shape.threads();
                let reason = format!("the tile makes blocks of {threads} threads here, not of {block}");
                let help = format!("write `block {threads}`, or leave one of the two out");
                Some(Refusal::new(RefusalKind::Contradiction, reason, help))
            }
            _ => None,
        }
    }
}
