//! Races: within one kernel-level statement, no iteration may touch what another one writes.
//!
//! Two accesses of one array can meet in different iterations of a parallel name `d` that encloses both, with
//! all loops outside of `d` at the same iteration (what differs in an outer loop is that loop's case, and
//! iterations of an outer sequential loop are ordered). So for each such `d` the second access is moved to
//! another iteration, `d'` and fresh names for everything inside, and it is shown that no element is touched by
//! both for `d < d'` and for `d > d'`. What holds for one iteration (ranges, conditions) is copied with it.
//!
//! A private array is one an iteration: only names inside its declaration count. Combining by one operator is
//! no race, but makes the combination an atomic where two iterations may meet.

use super::conflicts;
use super::disjoint;
use super::vocabulary::{Atom, Mark, Poly};
use super::walker::{LevelKind, Walker};
use crate::check::typed::*;
use crate::source::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touching {
    Read,
    Write,
    /// And whether it is a statement of its own, whose [`Combine::may_meet`] is decided here: inside expressions it is where
    /// they are walked.
    Combine(CombineOp, bool),
}

/// A read or write of one element or part of it.
#[derive(Clone, Debug)]
pub struct Access {
    pub array: ArrayId,
    /// Subscripts, and then the steps of the path.
    pub place: Vec<Poly>,
    pub touching: Touching,
    pub span: Span,
}

/// A loop around an access.
#[derive(Clone, Debug)]
pub struct NestReference {
    pub id: u32,
    pub atom: Option<Atom>,
    pub index: Option<IndexId>,
    pub parallel: bool,
}

/// An access, with what held where it stands.
#[derive(Clone, Debug)]
pub struct Record {
    pub access: Access,
    pub nest: Vec<NestReference>,
    /// Assumed since the region began.
    pub facts: Vec<Poly>,
}

/// One kernel-level statement while it is walked.
pub struct Region {
    mark: Mark,
    /// Sorted.
    written: Vec<ArrayId>,
    records: Vec<Record>,
}

impl Region {
    pub fn new(mark: Mark, written: Vec<ArrayId>) -> Self {
        Region { mark, written, records: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The records from `from` on happen in each iteration of `nest`, inside of it.
    pub fn deepen(&mut self, from: usize, nest: &[NestReference]) {
        for record in &mut self.records[from..] {
            let inner = record.nest.iter().filter(|level| nest.iter().all(|outer| outer.id != level.id));
            record.nest = nest.iter().chain(inner).cloned().collect();
        }
    }
}

impl Walker<'_> {
    pub fn nest_references(&self) -> Vec<NestReference> {
        let reference = |level: &super::walker::Level| NestReference {
            id: level.id,
            atom: level.atom,
            index: level.index,
            parallel: level.kind == LevelKind::Parallel,
        };
        self.nest.iter().map(reference).collect()
    }

    /// Notes an access of an array that the region writes.
    pub fn touch(&mut self, access: Access) {
        let nest = self.nest_references();
        if let Some(region) = &mut self.region
            && region.written.binary_search(&access.array).is_ok()
        {
            let facts = self.facts.since(region.mark).to_vec();
            region.records.push(Record { access, nest, facts });
        }
    }
}

/// Reports the races of a region, and gives for each combining statement, in order, whether it may meet.
pub fn check(walker: &mut Walker, region: Region) -> Vec<bool> {
    let records = region.records;
    let mut meets = vec![false; records.len()];
    let mut reported: Vec<ArrayId> = Vec::new();
    for (second, later) in records.iter().enumerate() {
        for (first, earlier) in records[..=second].iter().enumerate() {
            let array = later.access.array;
            let reads = |record: &Record| record.access.touching == Touching::Read;
            if earlier.access.array != array || reads(earlier) && reads(later) || reported.contains(&array) {
                continue;
            }
            let Some(level) = meeting(walker, earlier, later, first == second) else { continue };
            let combines = match (earlier.access.touching, later.access.touching) {
                (Touching::Combine(left, _), Touching::Combine(right, _)) => left == right,
                _ => false,
            };
            if combines {
                (meets[first], meets[second]) = (true, true);
            } else {
                conflicts::report(walker, earlier, later, first == second, &level);
                reported.push(array);
            }
        }
    }
    let combines = records.iter().zip(meets);
    combines
        .filter(|(record, _)| matches!(record.access.touching, Touching::Combine(_, true)))
        .map(|(_, meets)| meets)
        .collect()
}

/// The outermost parallel loop in whose different iterations the two accesses may meet.
fn meeting(walker: &mut Walker, earlier: &Record, later: &Record, same: bool) -> Option<NestReference> {
    let array = earlier.access.array;
    let outermost = match walker.kernel.arrays[array].role {
        ArrayRole::Private => walker.declared[array],
        _ => 0,
    };
    let common = earlier.nest.iter().zip(&later.nest).take_while(|(left, right)| left.id == right.id).count();
    let extents = walker.extents[array].clone();
    (outermost..common).filter(|at| earlier.nest[*at].parallel).find_map(|at| {
        // A pair of one access with itself is symmetric.
        let apart = disjoint::in_order(&mut walker.facts, &extents, earlier, later, at)
            && (same || disjoint::in_order(&mut walker.facts, &extents, later, earlier, at));
        (!apart).then(|| earlier.nest[at].clone())
    })
}

/// Writes down, in the order of [`check`], which combinations may meet.
pub fn mark_combines(statement: &mut Stmt, meets: &mut impl Iterator<Item = bool>) {
    match &mut statement.kind {
        StmtKind::Store { combine: Some(combine), .. } => combine.may_meet = meets.next().unwrap_or(true),
        StmtKind::Forall { body, .. } | StmtKind::For { body, .. } | StmtKind::While { body, .. } => {
            body.statements.iter_mut().for_each(|one| mark_combines(one, meets));
        }
        StmtKind::If { then, otherwise, .. } => {
            then.statements.iter_mut().for_each(|one| mark_combines(one, meets));
            otherwise.statements.iter_mut().for_each(|one| mark_combines(one, meets));
        }
        _ => {}
    }
}
