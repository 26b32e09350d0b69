//! Random well-typed kernels as source text, with sizes and a seed for their data.
//!
//! A program is a function of lists of numbers, one for the signature and one for each statement at kernel level:
//! wherever the generator has a choice it takes the next number, and 0 (also past the end of a list) always takes
//! the simplest. So fewer or shorter lists, or smaller numbers, are a simpler program that is still well typed, and
//! proptest's ordinary shrinking of lists shrinks programs.
//!
//! What comes out is meant to pass the checker without an error, by construction: names are fresh, every
//! literal has its type, subscripts are bare names of the right range, guarded, or reduced into range, and no
//! iteration reads what another one writes. Of the compiler the crate knows the table of built-in functions alone, of
//! which each is called: it writes the language as its documentation says it is.

mod accesses;
mod branches;
mod builtins;
mod choices;
mod columns;
mod contractions;
mod expressions;
mod folds;
mod forms;
mod kernel;
mod kernel_level;
mod locals;
mod loops;
mod own;
mod own_patterns;
mod patterns;
mod permutations;
mod random_schedule;
mod schedules;
mod scope;
mod statements;
mod strides;
mod structs;
mod types;
mod writes;

pub use random_schedule::random_schedule;

use proptest::prelude::{Strategy, any};
use std::fmt;

/// A program with one kernel, `random`, and what to run it with.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    pub source: String,
    /// Every dimension of the kernel, by name.
    pub dims: Vec<(String, i64)>,
    /// For the inputs' data.
    pub seed: u64,
}

impl Program {
    /// The program without its schedule, which may say what the kernel has no place for.
    pub fn unscheduled(&self) -> Program {
        let end = self.source.find("\nschedule random").unwrap_or(self.source.len());
        Program { source: self.source[..end].to_string(), ..self.clone() }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "// {:?}, seed {}", self.dims, self.seed)?;
        f.write_str(&self.source)
    }
}

/// The program that lists of choices stand for: the first for data and signature, the others for a statement each.
pub fn program(choices: &[Vec<u32>]) -> Program {
    kernel::generate(choices)
}

/// Statements at kernel level.
const MOST_STATEMENTS: usize = 3;

/// Programs of all sizes; shrinks.
pub fn programs() -> impl Strategy<Value = Program> {
    let list = proptest::collection::vec(any::<u32>(), 0..300);
    proptest::collection::vec(list, 1..=MOST_STATEMENTS + 1).prop_map(|choices| program(&choices))
}

/// Products, transposes, rows and the like, large enough for the launches that the compiler makes of them; shrinks.
pub fn patterns() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..40).prop_map(|choices| patterns::generate(&choices))
}

/// Iterations with arrays of their own, which are read in one place or in several, and searched; shrinks.
pub fn locals() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..150).prop_map(|choices| locals::generate(&choices))
}

/// Small kernels of the forms that passes look for; shrinks.
pub fn forms() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..120).prop_map(|choices| form(&choices))
}

/// Small kernels of statements over one space, which can be computed together or nearly can; shrinks.
pub fn spaces() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..60).prop_map(|choices| forms::of_one_space(&choices))
}

/// Small kernels with reductions of their own, arrays in place, results that are read again and loops that the device ends;
/// shrinks.
pub fn idioms() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..120).prop_map(|choices| forms::of_idioms(&choices))
}

/// Loops at kernel level that change an array in place by what lies around each element.
pub fn time_steps() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..60).prop_map(|choices| forms::of_time_steps(&choices))
}

/// Reductions of one's own at sizes that give them teams, blocks and pieces; shrinks.
pub fn own_patterns() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..20).prop_map(|choices| own_patterns::generate(&choices))
}

/// Element-wise kernels whose arrays lie along different axes; shrinks.
pub fn permutations() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..40).prop_map(|choices| permutations::generate(&choices))
}

/// Kernels whose iterations walk an axis several times that is not that of neighbours; shrinks.
pub fn columns() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..40).prop_map(|choices| columns::generate(&choices))
}

/// Loops in order that are parallel or nearly so, digits of indices, and triangles of products.
pub fn loops() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..40).prop_map(|choices| loops::generate(&choices))
}

/// Loops in order that combine what they carry, or nearly do so; shrinks.
pub fn folds() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..40).prop_map(|choices| folds::generate(&choices))
}

/// Branches whose sides do nearly the same, and products that they store; shrinks.
pub fn branches() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..40).prop_map(|choices| branches::generate(&choices))
}

/// Contractions whose axes stand in any order; shrinks.
pub fn contractions() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..60).prop_map(|choices| contractions::generate(&choices))
}

/// Sums in which indices decide by their remainders which terms count.
pub fn strides() -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u32>(), 0..50).prop_map(|choices| strides::generate(&choices))
}

/// The small kernel that a list of choices stands for.
pub fn form(choices: &[u32]) -> Program {
    forms::generate(choices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_choices_give_the_simplest_program() {
        let simplest = program(&[]);
        assert_eq!(simplest.source, "kernel random(x0: f32[n]) -> y0: f32[n] {\n    y0[i0] = x0[i0]\n}\n");
        assert_eq!(simplest.dims, [("n".to_string(), 3)]);
    }

    #[test]
    fn the_same_choices_give_the_same_program() {
        let lists = (0..20u32)
            .map(|list| (0..300u32).map(move |at| (at * 31 + list * 7).wrapping_mul(2_654_435_761) >> 9));
        let lists: Vec<Vec<u32>> = lists.map(Iterator::collect).collect();
        let lists: Vec<&[Vec<u32>]> = lists.chunks(2).collect();
        for choices in lists.iter().copied() {
            assert_eq!(program(choices), program(choices));
        }
        assert!(lists.iter().any(|choices| program(choices).source.len() > 500));
    }
}
