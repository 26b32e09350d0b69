//! Partial results: what each thread of a team has of a reduction before the team meets.

use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Value};
use crate::ir::kernel::{Definition, Kernel};
use crate::ir::op::{Combiner, Opcode};

/// The reduction of which each thread has a part.
pub struct Partial<'a> {
    pub combiners: &'a [Combiner],
    pub types: &'a [Scalar],
    /// Later iterations have higher positions.
    pub in_order: bool,
}

impl Partial<'_> {
    pub fn identity(&self, emit: &mut Emit<'_>) -> Vec<Value> {
        let mut values = Vec::with_capacity(self.types.len());
        for combiner in self.combiners {
            let scalar = self.types[values.len()];
            values.extend(emit.identity(*combiner, scalar));
        }
        values
    }

    pub fn combine(&self, emit: &mut Emit<'_>, a: &[Value], b: &[Value]) -> Vec<Value> {
        let mut values = Vec::with_capacity(a.len());
        for combiner in self.combiners {
            let range = values.len()..values.len() + combiner.width();
            values.extend(emit.combine(*combiner, &a[range.clone()], &b[range]));
        }
        values
    }

    /// What a thread has so far, and the contribution of an iteration after all of these.
    pub fn follow(&self, emit: &mut Emit<'_>, known: &[Value], part: &[Value]) -> Vec<Value> {
        if !self.in_order {
            return self.combine(emit, known, part);
        }
        let mut values = Vec::with_capacity(known.len());
        for combiner in self.combiners {
            let range = values.len()..values.len() + combiner.width();
            values.extend(emit.combine_later(*combiner, &known[range.clone()], &part[range]));
        }
        values
    }

    /// Whether a combiner is the user's own, or has code as those have.
    pub fn has_own(&self) -> bool {
        self.combiners.iter().any(|combiner| matches!(combiner, Combiner::Own(..)))
    }

    /// What several groups contribute to each place in a vector, combined pair by pair: single contributions have
    /// literals among their values, which what a thread has so far has not, and wait for nothing.
    pub fn merged(&self, emit: &mut Emit<'_>, groups: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
        let width = self.types.len();
        let places = groups.first().map_or(0, |group| group.len() / width);
        let mut all = Vec::new();
        for place in 0..places {
            let parts = groups.iter().map(|group| group[place * width..(place + 1) * width].to_vec());
            all.extend(self.all(emit, parts.collect()));
        }
        vec![all]
    }

    /// The contribution where it counts, else the identity.
    pub fn masked(&self, emit: &mut Emit<'_>, active: Value, values: &[Value]) -> Vec<Value> {
        let identity = self.identity(emit);
        values.iter().zip(identity).map(|(value, identity)| emit.select(active, *value, identity)).collect()
    }

    /// All of them combined, pair by pair.
    pub fn all(&self, emit: &mut Emit<'_>, mut columns: Vec<Vec<Value>>) -> Vec<Value> {
        if self.types.is_empty() {
            return Vec::new();
        }
        while columns.len() > 1 {
            columns = columns
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => self.combine(emit, a, b),
                    other => other.concat(),
                })
                .collect();
        }
        columns.pop().unwrap_or_default()
    }
}

/// Whether the positions that a loop's body yields for argmin and argmax rise with the loop's index: they are that
/// index, or the sum of it and something from outside.
pub fn positions_rise(kernel: &Kernel, body: Block, combiners: &[Combiner]) -> bool {
    let Some(index) = kernel.blocks[body].params.last().copied() else { return false };
    let inside = |value: Value| match kernel.values[value].definition {
        Definition::Result(inst, _) => kernel.blocks[body].insts.contains(&inst),
        Definition::Param(block, _) => block == body,
    };
    let yields = kernel.yields(body);
    let mut at = 0;
    combiners.iter().all(|combiner| {
        let range = at..at + combiner.width();
        at = range.end;
        let Some([_, position]) = yields.get(range).filter(|_| combiner.is_position()) else { return true };
        *position == index
            || kernel.definition_data(*position).is_some_and(|data| {
                data.opcode == Opcode::Add
                    && data.arguments.contains(&index)
                    && data.arguments.iter().filter(|value| inside(**value)).count() == 1
            })
    })
}
