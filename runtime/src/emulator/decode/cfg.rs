//! The control-flow graph of a decoded program: basic blocks, reconvergence points, and which columns are read
//! before they are written.
//!
//! The reconvergence point of a branch is its immediate post-dominator: the first instruction that both ways have to
//! pass. A way that only leads to an early exit or a trap does not count: lanes that leave do not come back, and the
//! others should join again all the same. So of several exits one is taken to be the program's end (that which
//! most blocks lead to) and the others to be nothing at all.

use crate::emulator::opcodes::Control;
use crate::emulator::program::{ALWAYS, Code, Effects, Inst, NEVER, Place};

/// What is live where each block starts: bits over the places, so many words a block.
struct Live {
    places: Vec<Place>,
    words: usize,
    bits: Vec<u64>,
}

/// Basic blocks, in program order.
pub struct Graph {
    /// First instruction of each block, and one past the last block.
    starts: Vec<usize>,
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
}

fn is_guarded(inst: &Inst) -> bool {
    inst.guard != ALWAYS
}

impl Graph {
    /// Branches hold their targets in `d`.
    pub fn new(code: &[Inst]) -> Graph {
        let mut leads = vec![false; code.len() + 1];
        leads[0] = true;
        for (at, inst) in code.iter().enumerate() {
            if let Code::Control(op) = inst.code {
                match op {
                    Control::Branch => {
                        leads[inst.d as usize] = true;
                        leads[at + 1] = true;
                    }
                    Control::Exit | Control::Trap => leads[at + 1] = true,
                    _ => {}
                }
            }
        }
        let mut starts: Vec<usize> = (0..code.len()).filter(|at| leads[*at]).collect();
        let count = starts.len();
        starts.push(code.len());
        let block_of = |at: usize| starts.partition_point(|start| *start <= at) - 1;
        let mut successors = vec![Vec::new(); count];
        let mut predecessors = vec![Vec::new(); count];
        for block in 0..count {
            let last = &code[starts[block + 1] - 1];
            let mut to = Vec::new();
            let mut falls_through = true;
            match last.code {
                Code::Control(Control::Branch) => {
                    to.push(block_of(last.d as usize));
                    falls_through = is_guarded(last);
                }
                Code::Control(Control::Exit | Control::Trap) => falls_through = is_guarded(last),
                _ => {}
            }
            if falls_through && block + 1 < count && !to.contains(&(block + 1)) {
                to.push(block + 1);
            }
            for successor in &to {
                predecessors[*successor].push(block);
            }
            successors[block] = to;
        }
        Graph { starts, successors, predecessors }
    }

    fn len(&self) -> usize {
        self.successors.len()
    }

    /// The blocks from which `end` can be reached, in an order in which a depth-first walk backwards leaves them.
    fn leading_to(&self, end: usize) -> Vec<usize> {
        let mut order = Vec::new();
        let mut seen = vec![false; self.len()];
        let mut stack = vec![(end, 0)];
        seen[end] = true;
        while let Some((block, next)) = stack.pop() {
            match self.predecessors[block].get(next) {
                Some(before) => {
                    stack.push((block, next + 1));
                    if !seen[*before] {
                        seen[*before] = true;
                        stack.push((*before, 0));
                    }
                }
                None => order.push(block),
            }
        }
        order
    }

    /// The exit that counts as the end of the program: that which most blocks lead to; of equals a `ret`, and the
    /// last.
    fn end(&self, code: &[Inst]) -> Option<usize> {
        let last = |block: &usize| &code[self.starts[block + 1] - 1];
        (0..self.len())
            .filter(|block| {
                let last = last(block);
                matches!(last.code, Code::Control(Control::Exit)) && !is_guarded(last)
            })
            .max_by_key(|block| (self.leading_to(*block).len(), last(block).imm, *block))
    }

    /// For each branch, the instruction at which its ways join.
    pub fn joins(&self, code: &mut [Inst]) {
        let Some(end) = self.end(code) else {
            return;
        };
        // Cooper, Harvey and Kennedy's algorithm, on the graph turned around.
        let order = self.leading_to(end);
        let mut rank = vec![usize::MAX; self.len()];
        for (at, block) in order.iter().enumerate() {
            rank[*block] = at;
        }
        let mut parent = vec![usize::MAX; self.len()];
        parent[end] = end;
        let mut changed = true;
        while changed {
            changed = false;
            for block in order.iter().rev().copied().filter(|block| *block != end) {
                let known = self.successors[block].iter().copied().filter(|next| parent[*next] != usize::MAX);
                let meet = known.reduce(|mut a, mut b| {
                    while a != b {
                        while rank[a] < rank[b] {
                            a = parent[a];
                        }
                        while rank[b] < rank[a] {
                            b = parent[b];
                        }
                    }
                    a
                });
                if let Some(meet) = meet
                    && parent[block] != meet
                {
                    parent[block] = meet;
                    changed = true;
                }
            }
        }
        for (block, parent) in parent.iter().enumerate() {
            let last = &mut code[self.starts[block + 1] - 1];
            if last.code == Code::Control(Control::Branch) {
                let joins = *parent != usize::MAX && block != end;
                last.a = if joins { self.starts[*parent] as u32 } else { NEVER };
            }
        }
    }

    /// The places that are live where each block starts: those that may be read before they are written again.
    fn live_in(&self, code: &[Inst], effects: &[Effects]) -> Live {
        let mut places: Vec<Place> = effects.iter().flat_map(|effect| effect.reads.iter().copied()).collect();
        places.sort_unstable();
        places.dedup();
        let index = |place: &Place| places.binary_search(place).ok();
        let words = places.len().div_ceil(64);
        let mut needed = vec![0u64; self.len() * words];
        let mut killed = vec![0u64; self.len() * words];
        for block in 0..self.len() {
            let (needed, killed) =
                (&mut needed[block * words..][..words], &mut killed[block * words..][..words]);
            for at in self.starts[block]..self.starts[block + 1] {
                for read in effects[at].reads.iter().filter_map(index) {
                    if killed[read / 64] >> (read % 64) & 1 == 0 {
                        needed[read / 64] |= 1 << (read % 64);
                    }
                }
                // A guarded write leaves some lanes as they were.
                if !is_guarded(&code[at]) {
                    for write in effects[at].writes.iter().filter_map(index) {
                        killed[write / 64] |= 1 << (write % 64);
                    }
                }
            }
        }
        // `needed` grows from what a block needs itself to what is live where it starts.
        let mut work: Vec<usize> = (0..self.len()).collect();
        let mut queued = vec![true; self.len()];
        while let Some(block) = work.pop() {
            queued[block] = false;
            let mut grew = false;
            for word in 0..words {
                let after =
                    self.successors[block].iter().fold(0, |bits, next| bits | needed[next * words + word]);
                let at = block * words + word;
                let live = needed[at] | (after & !killed[at]);
                grew |= live != needed[at];
                needed[at] = live;
            }
            if grew {
                for before in &self.predecessors[block] {
                    if !queued[*before] {
                        queued[*before] = true;
                        work.push(*before);
                    }
                }
            }
        }
        Live { places, words, bits: needed }
    }

    /// The places that may be read before anything is written to them, in ascending order.
    pub fn read_first(&self, code: &[Inst], effects: &[Effects]) -> Vec<Place> {
        let Live { places, words, bits } = self.live_in(code, effects);
        let live = |at: usize| words > 0 && bits[at / 64] >> (at % 64) & 1 == 1;
        places.iter().enumerate().filter(|(at, _)| live(*at)).map(|(_, place)| *place).collect()
    }

    /// Calls back for every instruction, with the places that are live behind it.
    pub fn live_backwards(
        &self,
        code: &[Inst],
        effects: &[Effects],
        mut each: impl FnMut(&mut dyn Iterator<Item = Place>),
    ) {
        let Live { places, words, bits } = self.live_in(code, effects);
        let index = |place: &Place| places.binary_search(place).ok();
        let mut live = vec![0u64; words];
        for block in 0..self.len() {
            live.fill(0);
            for next in &self.successors[block] {
                live.iter_mut().zip(&bits[next * words..][..words]).for_each(|(bits, more)| *bits |= more);
            }
            for at in (self.starts[block]..self.starts[block + 1]).rev() {
                each(
                    &mut (0..places.len())
                        .filter(|at| live[at / 64] >> (at % 64) & 1 == 1)
                        .map(|at| places[at]),
                );
                if !is_guarded(&code[at]) {
                    for write in effects[at].writes.iter().filter_map(index) {
                        live[write / 64] &= !(1 << (write % 64));
                    }
                }
                for read in effects[at].reads.iter().filter_map(index) {
                    live[read / 64] |= 1 << (read % 64);
                }
            }
        }
    }
}
