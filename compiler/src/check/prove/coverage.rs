//! Coverage: that every element of a result is written before it is read, and by the end of the kernel.
//!
//! What was written is a list of *pieces*: a store with its loops and conditions. An element is covered by a
//! piece if there are iterations for which the subscripts are that element's and the conditions hold. So the
//! proof finds a witness for each piece, the iteration that would write the element (`witness.rs`), which
//! leaves conditions on the element; and then shows that these cannot all fail: for every way of failing one
//! condition of one piece, another piece covers.
//!
//! A read is covered in the same way. The loops that are open at the read are not searched: only what the same
//! iteration wrote counts, and what earlier iterations of a sequential loop around the read wrote (`earlier.rs`).

use super::digits;
use super::earlier::Pending;
use super::types::{LeafStep, leaves};
use super::vocabulary::{Facts, Interval, Mark, Poly};
use super::walker::{Guard, Level, Walker};
use super::witness;
use crate::check::typed::*;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use cranelift_entity::SecondaryMap;

/// Conditions assumed to fail, in one proof.
const CASES: u32 = 120;
/// Steps for each condition.
const CONDITION_BUDGET: u32 = 120;

/// A store into a result.
#[derive(Clone)]
pub struct Piece {
    /// Subscripts, then the path.
    pub place: Vec<Poly>,
    pub levels: Vec<Level>,
    pub guards: Vec<Guard>,
}

#[derive(Clone, Default)]
struct State {
    pieces: Vec<Piece>,
    /// The first combination into elements that were not covered.
    combined: Option<CombineOp>,
    /// An error was given: say no more of this result.
    reported: bool,
}

#[derive(Default)]
pub struct Coverage {
    states: SecondaryMap<ArrayId, State>,
    /// What was known before each sequential loop that is open.
    pub loops: Vec<Mark>,
    /// Reads inside of these that what was written before does not cover.
    pub pending: Vec<Pending>,
}

impl Coverage {
    /// The pieces of an array, which may be put in the place of others for a while.
    pub fn pieces_mut(&mut self, array: ArrayId) -> &mut Vec<Piece> {
        &mut self.states[array].pieces
    }
}

impl Walker<'_> {
    fn is_result(&self, array: ArrayId) -> bool {
        matches!(self.kernel.arrays[array].role, ArrayRole::Result(_))
    }

    pub fn coverage_of_write(&mut self, array: ArrayId, place: Vec<Poly>) {
        if self.is_result(array) {
            let piece = Piece { place, levels: self.nest.clone(), guards: self.guards.clone() };
            self.coverage.states[array].pieces.push(piece);
        }
    }

    pub fn coverage_of_combine(&mut self, access: &Access, op: CombineOp, place: &[Poly]) {
        let array = access.array;
        if !self.is_result(array) || self.covered_inside(array, place) {
            return;
        }
        let state = &mut self.coverage.states[array];
        match state.combined {
            None => state.combined = Some(op),
            Some(first) if first != op && state.pieces.is_empty() && !state.reported => {
                state.reported = true;
                let name = &self.kernel.arrays[array].name;
                self.diagnostics.push(
                    Diagnostic::error(
                        codes::E0412,
                        access.span,
                        format!("result `{name}` is combined by two operators and never written"),
                        "with two operators there is no value to start from",
                    )
                    .help(format!("write it first, for example `{name}[i] = 0`, in a statement of its own")),
                );
            }
            Some(_) => {}
        }
    }

    pub fn coverage_of_read(&mut self, access: &Access, place: &[Poly]) {
        let array = access.array;
        if !self.is_result(array) || self.coverage.states[array].reported {
            return;
        }
        let state = &self.coverage.states[array];
        let from_identity = state.pieces.is_empty() && state.combined.is_some();
        if from_identity || self.covered_inside(array, place) {
            return;
        }
        match self.coverage.loops.first() {
            // Earlier iterations may have written it: that is known when the loop's body is.
            Some(outermost) => {
                let facts = self.facts.since(*outermost).to_vec();
                let nest = self.nest_references();
                self.coverage.pending.push(Pending {
                    array,
                    place: place.to_vec(),
                    nest,
                    facts,
                    span: access.span,
                });
            }
            None => self.report_read(array, access.span),
        }
    }

    pub fn report_read(&mut self, array: ArrayId, span: Span) {
        if std::mem::replace(&mut self.coverage.states[array].reported, true) {
            return;
        }
        let data = &self.kernel.arrays[array];
        let name = &data.name;
        self.diagnostics.push(
            Diagnostic::error(
                codes::E0411,
                span,
                format!("result `{name}` is read where it is not known to be written"),
                "this element may not have a value yet",
            )
            .label(data.span, format!("`{name}` starts without values"))
            .help(format!(
                "write all of `{name}` in a statement before, or make it a parameter that has values: `{name}: inout {}[…]`",
                data.element.name
            )),
        );
    }

    /// What each result starts from, at the end of the kernel.
    pub fn result_starts(&mut self) -> Vec<(ArrayId, ResultStart)> {
        let kernel = self.kernel;
        // A race is reported: what it leaves unwritten is no news.
        let silent = self.diagnostics.has_errors();
        let results = kernel.arrays.iter().filter(|(_, data)| matches!(data.role, ArrayRole::Result(_)));
        let mut starts = Vec::new();
        for (array, data) in results {
            let state = &self.coverage.states[array];
            let start = match (state.pieces.is_empty(), state.combined) {
                (true, Some(op)) => ResultStart::Identity(op),
                (true, None) => {
                    if !silent && !state.reported {
                        self.report_never_written(data);
                    }
                    ResultStart::Zero
                }
                (false, combined) => {
                    if combined.is_none() && self.covered_wholly(array) {
                        ResultStart::Written
                    } else {
                        if !silent && !self.coverage.states[array].reported {
                            self.warn_not_covered(array, data);
                        }
                        ResultStart::Zero
                    }
                }
            };
            starts.push((array, start));
        }
        starts
    }

    fn report_never_written(&mut self, data: &Array) {
        self.diagnostics.push(
            Diagnostic::error(
                codes::E0414,
                data.span,
                format!("result `{}` is never written", data.name),
                "no statement gives it a value",
            )
            .help(format!("write it, for example `{}[i] = …`, or leave it out of the signature", data.name)),
        );
    }

    fn warn_not_covered(&mut self, array: ArrayId, data: &Array) {
        let combined = self.coverage.states[array].combined.is_some();
        let label = if combined {
            "combined into before it is wholly written"
        } else {
            "some elements may be left out"
        };
        self.diagnostics.push(
            Diagnostic::warning(
                codes::W0401,
                data.span,
                format!("result `{}` is not proved to be written everywhere: it starts from zero", data.name),
                label,
            )
            .help(format!(
                "write every element, or say that zero is meant: `{}[…] = 0` in a statement before",
                data.name
            )),
        );
    }

    /// Whether every element of `array` is covered by now.
    fn covered_wholly(&mut self, array: ArrayId) -> bool {
        let extents = self.extents[array].clone();
        self.scoped(|walker| {
            let place: Vec<Poly> =
                extents.iter().map(|extent| any_below(&mut walker.facts, extent)).collect();
            walker.covered(array, &place)
        })
    }

    /// Whether the element at `place` is covered, if there is one: an access that is outside touches nothing,
    /// since it is guarded or checked on the device.
    pub fn covered_inside(&mut self, array: ArrayId, place: &[Poly]) -> bool {
        let extents = self.extents[array].clone();
        let here = self.scoped(|walker| {
            for (subscript, extent) in place.iter().zip(&extents) {
                walker.facts.assume(subscript.clone());
                if let Some(room) = extent.subtract(subscript).and_then(|room| room.add_constant(-1)) {
                    walker.facts.assume(room);
                }
            }
            walker.covered(array, place)
        });
        // Subscripts of many terms may be too much for the proof about this one element.
        here || self.covered_wholly(array)
    }

    /// Whether the element (or part of it) at `place` is covered by what was written up to here.
    fn covered(&mut self, array: ArrayId, place: &[Poly]) -> bool {
        let pieces = std::mem::take(&mut self.coverage.states[array].pieces);
        let longest = pieces.iter().map(|piece| piece.place.len()).max().unwrap_or(0);
        let covered = if pieces.is_empty() {
            false
        } else if longest <= place.len() {
            self.point_covered(&pieces, place)
        } else {
            let rest = self.leaves_below(array, place);
            rest.into_iter().all(|path| {
                self.scoped(|walker| {
                    let mut point = place.to_vec();
                    for step in path {
                        point.push(match step {
                            LeafStep::Field(position) => Poly::constant(position as i128),
                            LeafStep::Elements(length) => {
                                any_below(&mut walker.facts, &Poly::constant(length as i128))
                            }
                        });
                    }
                    walker.point_covered(&pieces, &point)
                })
            })
        };
        self.coverage.states[array].pieces = pieces;
        covered
    }

    fn leaves_below(&self, array: ArrayId, place: &[Poly]) -> Vec<Vec<LeafStep>> {
        let mut ty = self.kernel.arrays[array].ty.clone();
        for step in place.iter().skip(self.extents[array].len()) {
            ty = match ty {
                Type::Struct(id) => {
                    let position = step.as_constant().and_then(|position| usize::try_from(position).ok());
                    match position.and_then(|position| self.program.structs[id].fields.get(position)) {
                        Some(field) => field.ty.clone(),
                        None => return vec![Vec::new()],
                    }
                }
                Type::Array(element, _) => *element,
                scalar => scalar,
            };
        }
        leaves(self.program, &ty)
    }

    fn point_covered(&mut self, pieces: &[Piece], point: &[Poly]) -> bool {
        let open: Vec<u32> = self.nest.iter().map(|level| level.id).collect();
        let mut conditions: Vec<Vec<Poly>> = Vec::new();
        for piece in pieces {
            for list in witness::conditions(&mut self.facts, piece, point, &open) {
                if !conditions.contains(&list) {
                    conditions.push(list);
                }
            }
        }
        let mut cases = CASES;
        one_holds(&mut self.facts, &conditions, &mut cases)
    }
}

/// Some integer from 0 to `extent`, exclusive.
fn any_below(facts: &mut Facts, extent: &Poly) -> Poly {
    let highest = facts.range(extent).high.saturating_sub(1);
    let name = Poly::atom(facts.atoms.name(Interval::new(0, highest)));
    if let Some(room) = extent.subtract(&name).and_then(|room| room.add_constant(-1)) {
        facts.assume(room);
    }
    name
}

/// Whether in every case all conditions of one of the lists hold.
fn one_holds(facts: &mut Facts, lists: &[Vec<Poly>], cases: &mut u32) -> bool {
    if facts.is_contradictory() {
        return true;
    }
    let mut fewest: Option<(usize, Vec<Poly>)> = None;
    for (position, list) in lists.iter().enumerate() {
        let open: Vec<Poly> = list
            .iter()
            .filter(|condition| {
                !facts.proves_within(condition, CONDITION_BUDGET) && !digits::proves(facts, condition)
            })
            .cloned()
            .collect();
        if open.is_empty() {
            return true;
        }
        if fewest.as_ref().is_none_or(|(_, best)| open.len() < best.len()) {
            fewest = Some((position, open));
        }
    }
    let Some((position, open)) = fewest else { return false };
    let rest: Vec<Vec<Poly>> = lists
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != position)
        .map(|(_, list)| list.clone())
        .collect();
    open.into_iter().all(|condition| {
        let Some(failed) = condition.negate().and_then(|negated| negated.add_constant(-1)) else {
            return false;
        };
        if *cases == 0 {
            return false;
        }
        *cases -= 1;
        let mark = facts.mark();
        facts.assume(failed);
        let holds = one_holds(facts, &rest, cases);
        facts.forget_since(mark);
        holds
    })
}
