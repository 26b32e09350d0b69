//! Goes through a launch as its threads do, from barrier to barrier, and holds each access to shared memory against
//! those that no barrier separates it from.
//!
//! A loop with a barrier in it is gone through several times: its first turn, some turn, and the one after that, so that
//! what lies before the loop meets the first turn and each turn the next. A loop without is gone through once, as if
//! every thread were in a turn of its own.
//!
//! A copy in the background is open until its thread has waited for its group, and then until the next barrier; several
//! turns may pass until then.

use super::conflict::{Access, conflict};
use super::depends::Dependence;
use super::forms::{Form, Forms, Mask};
use super::{VerifierError, text};
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::Layout;
use rustc_hash::{FxHashMap, FxHashSet};

/// Whether a launch has anything to check: shared memory, barriers or shuffles.
pub fn needs_check(kernel: &Kernel, launch: Launch) -> bool {
    let mut found = false;
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        let effect = kernel.insts[inst].opcode.info().effect;
        found |= effect == Effect::Collective || is_shared(kernel, inst);
    });
    found
}

fn is_shared(kernel: &Kernel, inst: Inst) -> bool {
    matches!(
        kernel.insts[inst].payload,
        Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }
            if kernel.buffers[buffer].kind == BufferKind::Shared
    )
}

/// The pairs of accesses that race. Relies on barriers being reached by all threads.
pub fn check(kernel: &Kernel, launch: Launch, depends: &Dependence) -> Vec<VerifierError> {
    let root = kernel.launches[launch].body;
    let mut walk = Walk {
        kernel,
        depends,
        forms: Forms::new(kernel, depends, root),
        holds: FxHashMap::default(),
        open: Vec::new(),
        next: 0,
        reported: FxHashSet::default(),
        errors: Vec::new(),
    };
    walk.find(root);
    walk.block(root, None);
    walk.errors
}

/// What a region or instruction has inside.
#[derive(Clone, Copy, Default)]
struct Holds {
    /// Of shared memory, and what says which copies are over.
    accesses: bool,
    barriers: bool,
    commits: bool,
}

/// So many turns of a loop are gone through one after the other, before what is still open of the first meets any.
const EXACT_TURNS: usize = 6;
/// Loops of a literal number of turns, and copies in them, are gone through turn by turn up to so many.
const FEW_TURNS: i64 = 8;

struct Walk<'k> {
    kernel: &'k Kernel,
    depends: &'k Dependence,
    forms: Forms<'k>,
    holds: FxHashMap<Inst, Holds>,
    /// The accesses since the last barrier.
    open: Vec<Access>,
    next: u32,
    reported: FxHashSet<(Inst, Inst)>,
    errors: Vec<VerifierError>,
}

impl Walk<'_> {
    /// Finds what each instruction with regions has inside.
    fn find(&mut self, block: Block) -> Holds {
        let kernel = self.kernel;
        let mut all = Holds::default();
        for inst in &kernel.blocks[block].insts {
            let mut own = Holds {
                accesses: is_shared(kernel, *inst)
                    || matches!(kernel.insts[*inst].opcode, Opcode::CopyCommit | Opcode::CopyWait),
                barriers: kernel.insts[*inst].opcode == Opcode::Barrier,
                commits: kernel.insts[*inst].opcode == Opcode::CopyCommit,
            };
            for region in &kernel.insts[*inst].regions {
                let inside = self.find(*region);
                own.accesses |= inside.accesses;
                own.barriers |= inside.barriers;
                own.commits |= inside.commits;
            }
            if !kernel.insts[*inst].regions.is_empty() {
                self.holds.insert(*inst, own);
            }
            all.accesses |= own.accesses;
            all.barriers |= own.barriers;
            all.commits |= own.commits;
        }
        all
    }

    fn block(&mut self, block: Block, mask: Option<&Mask>) {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            let data = &kernel.insts[*inst];
            if data.opcode == Opcode::Barrier {
                self.open.retain(|access| access.under_way.is_some());
            } else if data.opcode == Opcode::CopyCommit {
                self.open.iter_mut().filter_map(|access| access.under_way.as_mut()).for_each(|age| *age += 1);
            } else if let (Opcode::CopyWait, Payload::Lanes(most)) = (data.opcode, &data.payload) {
                // Of the thread itself: the others know after a barrier.
                let over = |age: &u32| *age > u32::from(*most);
                self.open
                    .iter_mut()
                    .filter(|a| a.under_way.as_ref().is_some_and(over))
                    .for_each(|a| a.under_way = None);
            } else if is_shared(kernel, *inst) {
                self.access(*inst, mask);
            } else if let Some(holds) = self.holds.get(inst).copied()
                && (holds.accesses || holds.barriers)
            {
                match data.opcode {
                    Opcode::If => self.branch(*inst, mask),
                    _ if holds.barriers => self.turns(*inst, mask),
                    _ => self.free_loop(*inst, mask),
                }
            }
        }
    }

    /// How many consecutive elements some neighbouring scalars lie in, the first of them a leaf of the first element.
    fn elements(&self, (buffer, leaf): (Buffer, u32), scalars: usize) -> i64 {
        let data = &self.kernel.buffers[buffer];
        let leaf = &data.element.leaves[leaf as usize];
        // The other subscripts of an array in an element are not looked at.
        if data.layout != Layout::Aos || !leaf.extents.is_empty() {
            return scalars as i64;
        }
        let end = leaf.offset + scalars as u64 * leaf.scalar.size();
        end.div_ceil(data.element.size.max(1)) as i64
    }

    fn access(&mut self, inst: Inst, mask: Option<&Mask>) {
        let data = &self.kernel.insts[inst];
        let (buffer, leaf) = match data.payload {
            Payload::Access { buffer, leaf } | Payload::Atomic { buffer, leaf, .. } => (buffer, leaf),
            _ => return,
        };
        let extents = &self.kernel.buffers[buffer].extents;
        let forms: Vec<Form> =
            data.arguments.iter().take(extents.len()).map(|value| self.forms.of(*value)).collect();
        let width = match data.opcode {
            Opcode::CopyAsync | Opcode::CopyAsyncIf => {
                let scalar = self.kernel.buffers[buffer].element.leaves[leaf as usize].scalar;
                let bytes = self.kernel.copied_bytes(data);
                bytes.map_or(1, |bytes| bytes as usize / scalar.size() as usize)
            }
            _ => self.kernel.width(data),
        };
        let (scalar, width) = (width == 1, self.elements((buffer, leaf), width));
        let access = Access {
            id: self.next,
            inst,
            opcode: data.opcode,
            buffer,
            leaf,
            forms,
            scalar,
            width,
            mask: mask.cloned(),
            turned: Vec::new(),
            under_way: matches!(data.opcode, Opcode::CopyAsync | Opcode::CopyAsyncIf).then_some(0),
        };
        self.next += 1;
        if self.open.iter().any(|other| other.turned.is_empty() && other.is_like(&access)) {
            return;
        }
        let threads = self.depends.threads;
        let mut found: Vec<(usize, (usize, usize))> = Vec::new();
        for (at, earlier) in self.open.iter().enumerate() {
            if !self.reported.contains(&(earlier.inst, inst))
                && let Some(pair) = conflict(&self.forms, threads, extents, earlier, &access)
            {
                self.reported.insert((earlier.inst, inst));
                found.push((at, pair));
            }
        }
        for (at, pair) in found {
            self.report(at, inst, pair);
        }
        let other = Access { under_way: None, ..access.clone() };
        let own = conflict(&self.forms, threads, extents, &other, &access);
        self.open.push(access);
        if let Some(pair) = own
            && self.reported.insert((inst, inst))
        {
            self.report(self.open.len() - 1, inst, pair);
        }
    }

    fn report(&mut self, earlier: usize, later: Inst, (first, second): (usize, usize)) {
        let kernel = self.kernel;
        let earlier = &self.open[earlier];
        let name = &kernel.buffers[earlier.buffer].name;
        let way = match earlier.turned.as_slice() {
            [] if earlier.inst == later => "in threads side by side".to_string(),
            [] => "on the way to it".to_string(),
            loops => {
                let loops: Vec<String> = loops.iter().map(|inst| text(kernel, *inst)).collect();
                format!("on the way to it through the next turn of {}", loops.join(", then of "))
            }
        };
        let both = if earlier.inst == later { "itself".to_string() } else { text(kernel, later) };
        let message = format!(
            "races with {both}: threads {first} and {second} may touch the same element of `{name}` ({}), and no barrier stands {way}",
            earlier.buffer
        );
        let spans = vec![kernel.insts[earlier.inst].span, kernel.insts[later].span];
        self.errors.push(VerifierError { place: text(kernel, earlier.inst), message, spans });
    }

    fn branch(&mut self, inst: Inst, mask: Option<&Mask>) {
        let data = &self.kernel.insts[inst];
        let (condition, then, otherwise) = (data.arguments[0], data.regions[0], data.regions[1]);
        let masks = [true, false].map(|truth| {
            let known = self.truth(condition, truth, 0);
            both(known, mask.cloned())
        });
        // Threads that all go the same way are never on both.
        let before = (self.depends.of(condition) == 0).then(|| self.open.clone());
        self.block(then, masks[0].as_ref());
        let Some(before) = before else {
            self.block(otherwise, masks[1].as_ref());
            return;
        };
        let after = std::mem::replace(&mut self.open, before);
        self.block(otherwise, masks[1].as_ref());
        self.join(after);
    }

    /// The threads for which a condition may be `truth`; `None` where that may be all.
    fn truth(&mut self, condition: Value, truth: bool, depth: u32) -> Option<Mask> {
        if let Some(table) = self.forms.table(condition) {
            return Some(table.iter().map(|value| (*value != 0) == truth).collect());
        }
        let data = self.kernel.definition_data(condition)?;
        let splits = matches!((data.opcode, truth), (Opcode::And, true) | (Opcode::Or, false));
        if !splits || depth > 8 {
            return None;
        }
        let (a, b) = (data.arguments[0], data.arguments[1]);
        let a = self.truth(a, truth, depth + 1);
        both(a, self.truth(b, truth, depth + 1))
    }

    /// Adds the accesses that another path has left open.
    fn join(&mut self, other: Vec<Access>) {
        for access in other {
            let same = |own: &&mut Access| {
                own.id == access.id || (own.is_like(&access) && own.turned == access.turned)
            };
            match self.open.iter_mut().find(same) {
                // Still under way on one of the paths.
                Some(own) => {
                    own.under_way = match (own.under_way, access.under_way) {
                        (Some(a), Some(b)) => Some(a.min(b)),
                        (a, b) => a.or(b),
                    }
                }
                None => self.open.push(access),
            }
        }
    }

    /// A loop without barriers: threads need not be in the same turn.
    fn free_loop(&mut self, inst: Inst, mask: Option<&Mask>) {
        let data = &self.kernel.insts[inst];
        for region in &data.regions {
            self.forms.forget(*region);
            self.forms.out_of_step(*region);
        }
        let indices = self.indices(inst);
        if let (Some(turns), true) =
            (self.few_turns(inst), self.holds.get(&inst).is_some_and(|held| held.commits))
        {
            let carried: Vec<Form> = data.arguments[3..].iter().map(|value| self.forms.of(*value)).collect();
            let mut now = (indices.iter().map(|(_, low, _)| low.clone()).collect::<Vec<_>>(), carried);
            for _ in 0..turns {
                self.turn(inst, &now.0, &now.1, mask);
                let Some(next) = self.next_turn(inst, &indices, &now.0) else { return };
                now = next;
            }
            return;
        }
        for (at, low, step) in indices {
            let turns = Form::unknown(self.forms.atom(false));
            let index = match step {
                Some(step) => low.add(&turns.scale(step)),
                None => turns,
            };
            self.forms.bind(self.kernel.blocks[data.regions[0]].params[at], index);
        }
        for region in &data.regions {
            self.block(*region, mask);
        }
    }

    /// How often a `for` runs, where that is a small literal.
    fn few_turns(&mut self, inst: Inst) -> Option<i64> {
        let data = &self.kernel.insts[inst];
        let [low, high, step] = *data.arguments.get(..3)? else { return None };
        let of = |value: Value| i64::try_from(self.kernel.int_of(value)?).ok();
        let (low, high, step) = (of(low)?, of(high)?, of(step)?);
        let is_for = data.opcode == Opcode::For && step > 0;
        let turns = high.checked_sub(low)?.checked_add(step - 1)?.div_euclid(step.max(1));
        (is_for && (0..=FEW_TURNS).contains(&turns)).then_some(turns)
    }

    /// Of each index of a loop: which parameter, where it starts, and its step where that is a literal.
    fn indices(&mut self, inst: Inst) -> Vec<(usize, Form, Option<i64>)> {
        let data = &self.kernel.insts[inst];
        let step = match data.opcode {
            Opcode::For => self.forms.of(data.arguments[2]).as_constant(),
            _ => Some(1),
        };
        let bounds = self.kernel.loop_bounds(inst);
        bounds.iter().enumerate().map(|(at, (low, _))| (at, self.forms.of(*low), step)).collect()
    }

    /// A loop with barriers, through which all threads go in step.
    fn turns(&mut self, inst: Inst, mask: Option<&Mask>) {
        let data = &self.kernel.insts[inst];
        let before = self.open.clone();
        let indices = self.indices(inst);
        let initial = match data.opcode {
            Opcode::For => &data.arguments[3..],
            Opcode::While => data.arguments.as_slice(),
            _ => &[],
        };
        let ordered = matches!(data.opcode, Opcode::For | Opcode::While);

        let outer: FxHashSet<u32> = before.iter().map(|access| access.id).collect();
        let mut left = before;

        // The first turns, until nothing is open of what was before.
        if ordered {
            let carried: Vec<Form> = initial.iter().map(|value| self.forms.of(*value)).collect();
            let mut next = (indices.iter().map(|(_, low, _)| low.clone()).collect::<Vec<_>>(), carried);
            for _ in 0..EXACT_TURNS {
                self.turn(inst, &next.0, &next.1, mask);
                self.open.retain(|access| outer.contains(&access.id));
                if self.open.is_empty() {
                    break;
                }
                let Some(following) = self.next_turn(inst, &indices, &next.0) else { break };
                next = following;
            }
        } else {
            let any = self.any_turn(inst, &indices);
            self.turn(inst, &any.0, &any.1, mask);
            self.open.retain(|access| outer.contains(&access.id));
        }

        // Some turn, and the next ones, until nothing is open of it.
        let start = self.forms.atoms();
        let mut now = self.any_turn(inst, &indices);
        self.turn(inst, &now.0, &now.1, mask);
        left.extend(self.open.iter().cloned());
        let crossed: FxHashSet<u32> =
            self.open.iter().map(|access| access.id).filter(|id| !outer.contains(id)).collect();
        self.open.iter_mut().filter(|access| crossed.contains(&access.id)).for_each(|a| a.turned.push(inst));
        for _ in 0..EXACT_TURNS {
            let next = if ordered { self.next_turn(inst, &indices, &now.0) } else { None };
            now = match next {
                Some(next) => next,
                None => self.any_turn(inst, &indices),
            };
            self.turn(inst, &now.0, &now.1, mask);
            left.extend(self.open.iter().filter(|access| crossed.contains(&access.id)).cloned());
            self.open.retain(|access| crossed.contains(&access.id));
            if self.open.is_empty() || !ordered {
                break;
            }
        }

        // What many turns leave open meets all later ones.
        if !self.open.is_empty() {
            for access in &mut self.open {
                access.forms = access.forms.iter().map(|form| self.forms.widened(form, start)).collect();
                access.id = self.next;
                self.next += 1;
            }
            let (index, own) = self.any_turn(inst, &indices);
            self.turn(inst, &index, &own, mask);
            left.append(&mut self.open);
        }
        self.open.clear();
        self.join(left);
        for region in &data.regions {
            self.forms.forget(*region);
        }
    }

    /// Indices and carried values of the turn after the one that has just been gone through; `None` where the step is
    /// not a literal.
    fn next_turn(
        &mut self,
        inst: Inst,
        indices: &[(usize, Form, Option<i64>)],
        index: &[Form],
    ) -> Option<(Vec<Form>, Vec<Form>)> {
        let next = |((_, _, step), index): (&(usize, Form, Option<i64>), &Form)| {
            step.map(|step| index.add(&Form::constant(step)))
        };
        let index = indices.iter().zip(index).map(next).collect::<Option<Vec<Form>>>()?;
        let last = *self.kernel.insts[inst].regions.last()?;
        Some((index, self.kernel.yields(last).iter().map(|value| self.forms.of(*value)).collect()))
    }

    /// Indices and carried values of a turn of which nothing is known.
    fn any_turn(&mut self, inst: Inst, indices: &[(usize, Form, Option<i64>)]) -> (Vec<Form>, Vec<Form>) {
        let region = self.kernel.insts[inst].regions[0];
        let params = &self.kernel.blocks[region].params;
        let mut index = Vec::with_capacity(indices.len());
        for (at, low, step) in indices {
            let turns = self.forms.unknown(params[*at]);
            index.push(match step {
                Some(step) => low.add(&turns.scale(*step)),
                None => turns,
            });
        }
        (index, params[indices.len()..].iter().map(|param| self.forms.unknown(*param)).collect())
    }

    /// Goes through the regions of a loop once.
    fn turn(&mut self, inst: Inst, index: &[Form], carried: &[Form], mask: Option<&Mask>) {
        let kernel = self.kernel;
        let regions = &kernel.insts[inst].regions;
        for region in regions {
            self.forms.forget(*region);
        }
        for region in regions {
            for (param, form) in kernel.blocks[*region].params.iter().zip(index.iter().chain(carried)) {
                if kernel.value_type(*param) == crate::data::Scalar::I64 {
                    self.forms.bind(*param, form.clone());
                }
            }
        }
        for region in regions {
            self.block(*region, mask);
        }
    }
}

fn both(a: Option<Mask>, b: Option<Mask>) -> Option<Mask> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.iter().zip(b.iter()).map(|(a, b)| *a && *b).collect()),
        (a, b) => a.or(b),
    }
}
