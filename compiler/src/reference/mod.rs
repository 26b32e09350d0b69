//! The oracle: a slow, obvious evaluator of the typed kernel.
