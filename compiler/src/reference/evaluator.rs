//! The evaluator's state, its limits, and iteration over axes.

use super::error::EvalError;
use super::launch::Launch;
use super::memory::Storage;
use super::rounding::Sites;
use super::samples::Samples;
use super::value::{Plain, Value};
use super::{ErrorModel, Inputs, Number, Options};
use crate::check::typed::*;
use crate::data::Scalar;
use crate::source::Span;
use std::sync::atomic::Ordering;

/// A result whose error is boxed, so that values stay small on their way up the tree.
pub(super) type Run<T> = Result<T, Box<EvalError>>;

/// Steps after which it is said how far the evaluation has come: a power of two, some milliseconds.
const PROGRESS: u64 = 1 << 18;

pub(super) struct Evaluator<'a> {
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    pub options: &'a Options,
    /// What the device is allowed to do: the options', but for what own reductions try.
    pub model: ErrorModel,
    /// `f32` is evaluated in `f64`.
    pub wide: bool,
    /// What the file's own reductions combined, some of it; by [`ReductionId`].
    pub combined: Vec<Samples>,
    /// By [`DimId`].
    pub dims: Vec<i64>,
    /// By [`ParamId`].
    pub params: Vec<Value>,
    /// By [`LocalId`].
    pub locals: Vec<Value>,
    /// By [`IndexId`].
    pub indices: Vec<i64>,
    /// By [`ArrayId`]; empty while the launch is being checked.
    pub memory: Vec<Storage<'a>>,
    steps_left: u64,
    /// More than 0 inside what runs only if an uncertain condition holds: all that is written is uncertain.
    pub uncertain_depth: u32,
    /// A comparison or a conversion to an integer was met that rounding may decide either way.
    pub undecided: bool,
    /// Where products feed sums; empty but for one lawful evaluation.
    pub sites: Sites,
    /// By [`LocalId`]: what its value is the product of; empty but for one lawful evaluation.
    pub products: Vec<Option<(Plain, Plain)>>,
}

impl<'a> Evaluator<'a> {
    /// Without arrays.
    pub fn new(inputs: &Inputs<'a>, launch: &Launch, options: &'a Options) -> Self {
        let kernel = inputs.kernel;
        let tries = options.model.rounding.is_some() || !kernel.reductions.is_empty();
        let nothing = Value::Number(Number::exact(Plain::Bool(false)));
        Evaluator {
            program: inputs.program,
            kernel,
            options,
            model: options.model.clone(),
            wide: false,
            combined: vec![Samples::default(); kernel.reductions.len()],
            dims: launch.dims.clone(),
            params: launch.params.clone(),
            locals: vec![nothing; kernel.locals.len()],
            indices: vec![0; kernel.indices.len()],
            memory: Vec::new(),
            steps_left: options.step_limit,
            uncertain_depth: 0,
            undecided: false,
            sites: if tries { Sites::of(kernel) } else { Sites::default() },
            products: vec![None; if tries { kernel.locals.len() } else { 0 }],
        }
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.options.step_limit - self.steps_left
    }

    /// The type in which values of a type are evaluated here.
    pub fn evaluated(&self, scalar: Scalar) -> Scalar {
        if self.wide && scalar == Scalar::F32 { Scalar::F64 } else { scalar }
    }

    /// Counts one step.
    #[inline]
    pub fn step(&mut self) -> Run<()> {
        match self.steps_left.checked_sub(1) {
            Some(left) => {
                self.steps_left = left;
                if left.is_multiple_of(PROGRESS)
                    && let Some(progress) = self.options.progress
                {
                    progress.store(self.steps(), Ordering::Relaxed);
                }
                Ok(())
            }
            None => Err(Box::new(EvalError::StepLimit { limit: self.options.step_limit })),
        }
    }

    pub fn malformed<T>(&self, what: &'static str, span: Span) -> Run<T> {
        Err(Box::new(EvalError::Malformed { what, span }))
    }

    /// Runs `body` once for every tuple of the axes, in row-major order. Gives whether a bound was uncertain;
    /// while it is, everything that `body` writes is.
    pub fn each<F>(&mut self, axes: &'a [Axis], body: &mut F) -> Run<bool>
    where
        F: FnMut(&mut Self) -> Run<()>,
    {
        let Some((axis, rest)) = axes.split_first() else {
            body(self)?;
            return Ok(false);
        };
        let (low, low_uncertain) = self.integer(&axis.low)?;
        let (high, high_uncertain) = self.integer(&axis.high)?;
        let uncertain = low_uncertain || high_uncertain;
        self.uncertain_depth += u32::from(uncertain);
        let mut inner_uncertain = false;
        let indices = axis.ends.last(low, high).map(|last| low..=last);
        for index in indices.into_iter().flatten() {
            self.step()?;
            self.indices[axis.index.as_u32() as usize] = index;
            inner_uncertain |= self.each(rest, body)?;
        }
        self.uncertain_depth -= u32::from(uncertain);
        Ok(uncertain || inner_uncertain)
    }
}
