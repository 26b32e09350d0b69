//! The standard pipeline: every pass that the compiler has, in order.

use super::map::Map;
use super::pass::Pass;
use std::sync::Arc;

/// The rows: the pass, and whether selection needs what it leaves.
pub fn rows() -> Vec<(Arc<dyn Pass>, bool)> {
    vec![(Arc::new(Map), true)]
}
