//! What generated code promises, as the error model that the reference evaluator checks results against.

use crate::check::typed::{DirectiveKind, Kernel};
use crate::reference::ErrorModel;

/// The error model of a kernel: wider where one of its schedules says `fast_math`.
pub fn error_model_of(kernel: &Kernel) -> ErrorModel {
    let mut model = ErrorModel::default();
    let mut directives = kernel.schedules.iter().flat_map(|schedule| &schedule.directives);
    if directives.any(|directive| matches!(directive.kind, DirectiveKind::FastMath)) {
        model.fast = true;
        // `div.full.f32`: 2 ulp over the whole range.
        model.division_ulp[0] = 2.0;
    }
    model
}
