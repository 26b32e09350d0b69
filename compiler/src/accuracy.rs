//! What generated code promises, as the error model that the reference evaluator checks results against.

use crate::check::typed::{DirectiveKind, Kernel};
use crate::reference::ErrorModel;

/// The error model of a kernel: wider where one of its schedules says `fast_math`, or `tf32`.
pub fn error_model_of(kernel: &Kernel) -> ErrorModel {
    let mut model = ErrorModel::default();
    for directive in kernel.schedules.iter().flat_map(|schedule| &schedule.directives) {
        match directive.kind {
            DirectiveKind::FastMath => {
                model.fast = true;
                // `div.full.f32`: 2 ulp over the whole range.
                model.division_ulp[0] = 2.0;
            }
            DirectiveKind::Tf32 => model.tf32 = true,
            _ => {}
        }
    }
    model
}
