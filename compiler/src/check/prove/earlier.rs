//! Reads of what earlier iterations of a sequential loop wrote: `x[i - 1]` where the loop over `i` writes `x[i]`.
//!
//! Such a read comes before its store in the text. So it waits until its loop has been walked; then it is moved to an
//! iteration of a fresh name, with all that holds there, and has to be covered by what was written before the loop, or
//! in it by an iteration before that one. What does not hold for one loop may hold for the one around it. Iterations
//! of a parallel loop around both are the same one.

use super::races::NestReference;
use super::vocabulary::{Atom, Poly};
use super::walker::{Level, Walker};
use crate::check::typed::ArrayId;
use crate::source::Span;
use rustc_hash::FxHashMap;

/// A read in a sequential loop, of an element of a result that is not known to be written yet.
pub struct Pending {
    pub array: ArrayId,
    pub place: Vec<Poly>,
    pub nest: Vec<NestReference>,
    /// Assumed since the outermost sequential loop began.
    pub facts: Vec<Poly>,
    pub span: Span,
}

impl Walker<'_> {
    /// Once a sequential loop is left: its reads that waited for it are covered, or wait for the next one around it.
    pub fn settle_reads(&mut self, left: &Level) {
        let pending = std::mem::take(&mut self.coverage.pending);
        for read in pending {
            let is_inside = read.nest.iter().any(|level| level.id == left.id);
            if is_inside && self.covered_earlier(&read, left).unwrap_or(false) {
                continue;
            }
            if self.coverage.loops.is_empty() {
                self.report_read(read.array, read.span);
            } else {
                self.coverage.pending.push(read);
            }
        }
    }

    /// Whether what was written before the loop, and by its iterations before the read's one, covers the read. `None`
    /// where the arithmetic gave up.
    fn covered_earlier(&mut self, read: &Pending, left: &Level) -> Option<bool> {
        let counter = left.atom?;
        let depth = read.nest.iter().position(|level| level.id == left.id)?;
        let mut moved: FxHashMap<Atom, Poly> = FxHashMap::default();
        for atom in read.nest[depth..].iter().filter_map(|level| level.atom) {
            let range = self.facts.atoms.get(atom).range;
            moved.insert(atom, Poly::atom(self.facts.atoms.name(range)));
        }
        let mut copies = |list: &[Poly]| -> Option<Vec<Poly>> {
            list.iter().map(|poly| self.facts.atoms.substitute(poly, &moved)).collect()
        };
        let (place, facts) = (copies(&read.place)?, copies(&read.facts)?);
        let before = moved.get(&counter)?.subtract(&Poly::atom(counter))?.add_constant(-1)?;
        let all = self.coverage.pieces_mut(read.array).clone();
        let mut earlier = all.clone();
        for level in earlier.iter_mut().flat_map(|piece| &mut piece.levels) {
            if level.id == left.id {
                level.constraints.push(before.clone());
            }
        }
        *self.coverage.pieces_mut(read.array) = earlier;
        let covered = self.scoped(|walker| {
            walker.facts.assume_all(&facts);
            walker.covered_inside(read.array, &place)
        });
        *self.coverage.pieces_mut(read.array) = all;
        Some(covered)
    }
}
