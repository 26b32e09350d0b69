//! Where the source's names are in an entry: which register holds a definition in front of an instruction.
//!
//! Selection notes from where on a register holds a value ([`krn_compiler::ptx::Binding`]). In front of an instruction it
//! does so still if every way there comes by that place, and on no way from there something else is written to the
//! register. A loop's next round comes by a place in the loop again: so what is found is of the round that runs.
//!
//! Where a pass has made several copies of a definition that this place may belong to, nobody knows which copy it is,
//! and nothing is said.

use crate::emulator::opcodes::Control;
use crate::emulator::program::{ALWAYS, Code, Place, Program};
use cranelift_entity::EntityRef;
use krn_compiler::data::Scalar;
use krn_compiler::ptx::{Binding, Entry, Operand};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// What is known of a definition in front of an instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Holding {
    /// It is there.
    Here(Operand, Scalar),
    /// It is somewhere in the entry, but not here: not computed yet, or its register holds something else by now.
    Elsewhere,
    /// So many copies of it are in the code around.
    Several(usize),
    /// The entry does not have it.
    Nowhere,
}

/// Where names are in one entry.
pub struct Names<'a> {
    program: &'a Program,
    bindings: &'a [Binding],
    by_name: FxHashMap<&'a str, Vec<usize>>,
    /// Of each binding the instruction in front of which the value is there first.
    places: Vec<usize>,
    /// Loops, by their first and their last instruction.
    loops: Vec<(usize, usize)>,
    predecessors: Vec<Vec<u32>>,
    /// For each instruction the one whose place in the source counts: what records failures stands behind the entry's end,
    /// and is where the check is that failed.
    origins: Vec<usize>,
    /// What has been found out.
    known: Mutex<FxHashMap<(usize, usize), bool>>,
}

impl<'a> Names<'a> {
    pub(in crate::emulator) fn new(entry: &'a Entry, program: &'a Program) -> Self {
        let mut by_name: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (at, binding) in entry.bindings.iter().enumerate() {
            by_name.entry(&binding.name).or_default().push(at);
        }
        let place =
            |binding: &Binding| program.statements.partition_point(|statement| *statement < binding.at);
        let places = entry.bindings.iter().map(place).collect();
        let mut names = Names {
            program,
            bindings: &entry.bindings,
            by_name,
            places,
            loops: Vec::new(),
            predecessors: vec![Vec::new(); program.code.len()],
            origins: (0..program.code.len()).collect(),
            known: Mutex::default(),
        };
        for at in 0..program.code.len() {
            for to in names.successors(at).into_iter().flatten() {
                names.predecessors[to].push(at as u32);
                if to <= at {
                    names.loops.push((to, at));
                }
            }
        }
        names.find_origins();
        names
    }

    fn find_origins(&mut self) {
        let code = &self.program.code;
        let is_end = |at: &usize| code[*at].code == Code::Control(Control::Exit) && code[*at].guard == ALWAYS;
        let Some(end) = (0..code.len()).find(is_end) else { return };
        for at in 0..end {
            let target = code[at].d as usize;
            if code[at].code != Code::Control(Control::Branch) || target <= end {
                continue;
            }
            for behind in target..code.len() {
                self.origins[behind] = at;
                if self.goes_back(behind) {
                    break;
                }
            }
        }
    }

    /// The instruction whose place in the source counts for one.
    pub(super) fn origin(&self, pc: usize) -> usize {
        self.origins.get(pc).copied().unwrap_or(pc)
    }

    /// Whether an instruction always jumps to an earlier one.
    pub(super) fn goes_back(&self, pc: usize) -> bool {
        let inst = &self.program.code[pc];
        inst.code == Code::Control(Control::Branch) && inst.guard == ALWAYS && (inst.d as usize) < pc
    }

    /// The names that the entry has, with their definitions.
    pub fn all(&self) -> impl Iterator<Item = &'a str> {
        let bindings = self.bindings;
        bindings.iter().map(|binding| &*binding.name)
    }

    /// What holds a definition, by its name, in front of an instruction.
    pub fn holding(&self, pc: usize, name: &str) -> Holding {
        let Some(all) = self.by_name.get(name) else { return Holding::Nowhere };
        // Copies in loops that the instruction is not in are of other rounds.
        let near: Vec<usize> = all.iter().copied().filter(|at| self.encloses(self.places[*at], pc)).collect();
        let Some(first) = near.first() else { return Holding::Elsewhere };
        let value = &self.bindings[*first].value;
        let mut others: Vec<&Operand> = near.iter().map(|at| &self.bindings[*at].value).collect();
        others.dedup();
        if others.iter().any(|other| *other != value) {
            return Holding::Several(near.len());
        }
        match near.iter().find(|at| self.holds(**at, pc)) {
            Some(at) => Holding::Here(self.bindings[*at].value, self.bindings[*at].ty),
            None => Holding::Elsewhere,
        }
    }

    /// How many copies there are of a definition, by its name, in the loop that is innermost around another one's place.
    pub fn copies_beside(&self, name: &str, beside: &str, pc: usize) -> usize {
        let places = |name: &str| self.by_name.get(name).into_iter().flatten().map(|at| self.places[*at]);
        let Some(home) = places(beside).filter(|at| self.encloses(*at, pc)).max() else { return 0 };
        places(name).filter(|at| self.encloses(home, *at)).count()
    }

    /// Whether every loop around one instruction is around another one.
    fn encloses(&self, place: usize, pc: usize) -> bool {
        let within = |(first, last): &(usize, usize), at: usize| (*first..=*last).contains(&at);
        self.loops.iter().filter(|around| within(around, place)).all(|around| within(around, pc))
    }

    fn holds(&self, binding: usize, pc: usize) -> bool {
        // Entries are put in whole: what a panic leaves is good.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry((binding, pc)).or_insert_with(|| self.reaches(binding, pc))
    }

    fn reaches(&self, binding: usize, pc: usize) -> bool {
        let start = self.places[binding];
        if start == pc {
            return true;
        }
        // Instructions from which one comes to `pc` without coming by the start.
        let mut before = vec![false; self.program.code.len()];
        before[pc] = true;
        let mut open = vec![pc];
        while let Some(at) = open.pop() {
            for &from in &self.predecessors[at] {
                let from = from as usize;
                if from != start && !std::mem::replace(&mut before[from], true) {
                    open.push(from);
                }
            }
        }
        if before[0] || start >= self.program.code.len() {
            return false;
        }
        let Operand::Reg(reg) = self.bindings[binding].value else { return true };
        let Some(register) = self.program.registers.get(reg.index()) else { return false };
        // What is executed between the start and `pc`.
        let mut seen = vec![false; self.program.code.len()];
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            let leads = self.successors(at).into_iter().flatten().filter(|to| *to != start && before[*to]);
            let mut on_the_way = false;
            for to in leads {
                on_the_way = true;
                if !std::mem::replace(&mut seen[to], true) {
                    open.push(to);
                }
            }
            if on_the_way && self.writes(at, *register) {
                return false;
            }
        }
        seen[pc]
    }

    fn writes(&self, at: usize, register: Place) -> bool {
        self.program.effects[at].writes.contains(&register)
    }

    fn successors(&self, at: usize) -> [Option<usize>; 2] {
        let inst = &self.program.code[at];
        let next = Some(at + 1).filter(|next| *next < self.program.code.len());
        let guarded = inst.guard != ALWAYS;
        match inst.code {
            Code::Control(Control::Branch) => [Some(inst.d as usize), next.filter(|_| guarded)],
            Code::Control(Control::Exit | Control::Trap) => [None, next.filter(|_| guarded)],
            _ => [None, next],
        }
    }
}
