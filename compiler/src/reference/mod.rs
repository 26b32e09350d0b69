//! The oracle: a slow, obvious evaluator of the typed kernel.
//!
//! It walks the tree of [`crate::check::typed`], whose header fixes the meaning; nothing is lowered, reordered
//! or vectorised on the way, so that whatever the rest of the compiler does can be held against it.
//!
//! # How floats are computed
//!
//! * Arithmetic on `f32` values rounds to `f32` after every operation, as the device does, so that branches,
//!   `floor`, casts and bit tricks see the same numbers. `f64` arithmetic is f64.
//! * Sums and products accumulate in higher precision (`f32` terms in f64, `f64` terms with the rounding errors
//!   kept beside them) and round once.
//! * Transcendental built-ins are evaluated in f64 and round once.
//!
//! # How far the device may be off
//!
//! Every float carries an absolute bound on `|device - reference|` under a stated [`ErrorModel`], propagated
//! through every operation: see [`bound`]. A bound of zero demands equality (the class, for NaN and infinities);
//! an infinite one means that nothing can be promised, because a comparison, a cast or a subscript upstream was
//! closer to its edge than the bounds of its operands. So [`compare()`] needs no tolerance from anybody: it
//! follows from the number of terms, the types and the data. Where bounds say nothing, lawful evaluations do: see
//! [`rounding`]. [`OutputArray::uncertain`] says how many scalars
//! could not be judged.

mod access;
mod arithmetic;
pub mod bound;
mod builtins;
#[cfg(test)]
mod builtins_tests;
mod combine;
mod compare;
mod convert;
mod cost;
mod error;
mod evaluations;
mod evaluator;
mod expressions;
mod fast;
mod injections;
mod launch;
mod layout;
mod math;
mod memory;
mod own;
mod reduce;
pub mod rounding;
mod sample;
mod samples;
mod statements;
#[cfg(test)]
mod tests;
mod uncertain;
mod value;
mod wanted;
mod work;

pub use bound::{Accuracy, ErrorModel};
pub use compare::{CompareError, CompareReport, Worst, compare, compare_with};
pub use cost::{Cost, estimate_cost};
pub use error::EvalError;
pub use evaluations::{
    ArrayEvaluations, Deviation, Evaluations, LEAST_EVALUATIONS, Second, evaluate_lawfully,
};
pub use launch::{Launch, bind, initial_statics, shapes};
pub use memory::{read_bytes, write_bytes};
pub use own::BrokenLaw;
pub use sample::{SampleSpec, can_sample};
pub use value::{Number, Plain, Value};
pub use wanted::Elements;
pub use work::{Work, estimate_work};

use crate::check::typed::{ArrayRole, Kernel, Program};
use crate::data::{ElementType, HostArray};
use evaluator::{Evaluator, Run};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

/// One launch of a kernel. Arrays are borrowed: a large input is never copied.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    /// Dimensions are read off the arrays' shapes; those given here are compared with that.
    pub dims: BTreeMap<String, i64>,
    /// Scalar and struct parameters, as rank-0 arrays of the parameter's own (perhaps narrow) type.
    pub params: BTreeMap<String, HostArray>,
    /// Inputs, and inouts as they are before the launch.
    pub arrays: BTreeMap<String, &'a HostArray>,
    /// The statics' current values ([`initial_statics`] before the first launch); those that the kernel uses
    /// must be here.
    pub statics: BTreeMap<String, &'a HostArray>,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// Evaluation steps (nodes of the tree, iterations), so that no `while` hangs.
    pub step_limit: u64,
    /// Bytes for what the kernel writes, bounds included.
    pub memory_limit: u64,
    /// What the device is allowed to do.
    pub model: ErrorModel,
    /// Evaluate chosen iterations only, where [`can_sample`] says that this is sound; otherwise no effect.
    pub sample: Option<SampleSpec>,
    /// Evaluate only iterations that write one of these, of the sample if there is one, where [`can_sample`] says that
    /// this is sound; otherwise no effect.
    pub elements: Option<Elements>,
    /// Where the steps so far are written now and then, for whoever waits.
    pub progress: Option<&'static AtomicU64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            step_limit: 1 << 33,
            memory_limit: 16 << 30,
            model: ErrorModel::default(),
            sample: None,
            elements: None,
            progress: None,
        }
    }
}

/// What a launch leaves behind.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// Results and inouts, by name.
    pub arrays: BTreeMap<String, OutputArray>,
    /// The statics that the kernel uses, by name.
    pub statics: BTreeMap<String, OutputArray>,
    /// Steps taken.
    pub steps: u64,
    /// A comparison or a conversion to an integer was met that rounding may decide either way.
    pub undecided: bool,
    /// What is not so of the file's own reductions that was promised, as far as it was seen.
    pub broken: Vec<BrokenLaw>,
}

/// An array after the launch, with a bound for every scalar.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputArray {
    pub element: ElementType,
    pub shape: Vec<u64>,
    /// Which elements were evaluated, as row-major positions in order; `None` for all of them.
    pub evaluated: Option<Vec<u64>>,
    /// The evaluated elements, in their C layout.
    pub bytes: Vec<u8>,
    /// For each evaluated element, for each of its scalars in memory order: how far the device may be off.
    pub bounds: Vec<f64>,
}

impl OutputArray {
    /// The whole array; `None` if it was sampled.
    pub fn to_host(&self) -> Option<HostArray> {
        let whole = self.evaluated.is_none();
        whole.then(|| HostArray {
            element: self.element.clone(),
            shape: self.shape.clone(),
            bytes: self.bytes.clone(),
        })
    }

    /// How many scalars nothing is promised about.
    pub fn uncertain(&self) -> u64 {
        self.bounds.iter().filter(|bound| **bound == f64::INFINITY).count() as u64
    }
}

/// Evaluates one launch.
///
/// # Errors
///
/// Whatever the launch checks refuse, the first access that is outside, and the limits of `options`.
pub fn evaluate(inputs: &Inputs<'_>, options: &Options) -> Result<Outputs, EvalError> {
    evaluate_boxed(inputs, options).map_err(|error| *error)
}

fn evaluate_boxed(inputs: &Inputs<'_>, options: &Options) -> Run<Outputs> {
    let launch = bind(inputs).map_err(Box::new)?;
    injections::check(inputs, &launch, options)?;
    let chosen = (options.sample.is_some() || options.elements.is_some()) && can_sample(inputs.kernel);
    let mut evaluator = Evaluator::new(inputs, &launch, options);
    evaluator.memory = launch::allocate(inputs, &launch, options, chosen)?;
    match chosen {
        true => evaluator.run_sampled(options.sample, options.elements.as_ref())?,
        false => evaluator.statements(&inputs.kernel.body)?,
    }
    let (steps, undecided) = (evaluator.steps(), evaluator.undecided);
    let broken = evaluator.broken_laws();
    let mut outputs = Outputs { arrays: BTreeMap::new(), statics: BTreeMap::new(), steps, undecided, broken };
    for (array, storage) in inputs.kernel.arrays.values().zip(evaluator.memory) {
        let into = match array.role {
            ArrayRole::InOut | ArrayRole::Result(_) => &mut outputs.arrays,
            ArrayRole::Static(_) => &mut outputs.statics,
            ArrayRole::Input | ArrayRole::Temporary | ArrayRole::Private | ArrayRole::Constant(_) => continue,
        };
        let (shape, evaluated) = (storage.extents.clone(), storage.chosen());
        let (bytes, bounds) = storage.into_parts();
        let output = OutputArray { element: array.element.clone(), shape, evaluated, bytes, bounds };
        into.insert(array.name.clone(), output);
    }
    Ok(outputs)
}
