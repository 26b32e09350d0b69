//! What generated code promises, as the error model that the reference evaluator checks results against.

use crate::check::typed::{Builtin, DirectiveKind, Kernel};
use crate::data::Scalar;
use crate::ptx::math::{MathFunction, Width, ulp_bound};
use crate::reference::{Accuracy, ErrorModel};

/// The built-ins that are elementary functions. `rand_normal` is made of several: its bound is the model's own.
const FUNCTIONS: [(Builtin, MathFunction); 14] = [
    (Builtin::Exp, MathFunction::Exp),
    (Builtin::Exp2, MathFunction::Exp2),
    (Builtin::Expm1, MathFunction::Expm1),
    (Builtin::Log, MathFunction::Log),
    (Builtin::Log2, MathFunction::Log2),
    (Builtin::Log10, MathFunction::Log10),
    (Builtin::Log1p, MathFunction::Log1p),
    (Builtin::Sin, MathFunction::Sin),
    (Builtin::Cos, MathFunction::Cos),
    (Builtin::Tan, MathFunction::Tan),
    (Builtin::Tanh, MathFunction::Tanh),
    (Builtin::Erf, MathFunction::Erf),
    (Builtin::Rsqrt, MathFunction::Rsqrt),
    (Builtin::Pow, MathFunction::Pow),
];

/// The errors that a device running Krn's PTX may make, without `fast_math`: the measured bounds of
/// `docs/math.md`, correctly rounded division and square root, and products contracted into sums.
pub fn error_model() -> ErrorModel {
    let mut model = ErrorModel::default();
    for (builtin, function) in FUNCTIONS {
        for (scalar, width) in [(Scalar::F32, Width::F32), (Scalar::F64, Width::F64)] {
            let accuracy = Accuracy { ulp: ulp_bound(function, width), absolute: 0.0 };
            model.set_accuracy(builtin, scalar, accuracy);
        }
    }
    model
}

/// The error model of a kernel: wider where one of its schedules says `fast_math`.
pub fn error_model_of(kernel: &Kernel) -> ErrorModel {
    let mut model = error_model();
    let mut directives = kernel.schedules.iter().flat_map(|schedule| &schedule.directives);
    if directives.any(|directive| matches!(directive.kind, DirectiveKind::FastMath)) {
        model.fast = true;
        // `div.full.f32`: 2 ulp over the whole range.
        model.division_ulp[0] = 2.0;
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_that_of_the_function() {
        let model = error_model();
        for (builtin, function) in FUNCTIONS {
            assert_eq!(format!("{builtin:?}"), format!("{function:?}"));
            assert_eq!(model.accuracy(builtin, Scalar::F32).ulp, ulp_bound(function, Width::F32));
            assert_eq!(model.accuracy(builtin, Scalar::F64).ulp, ulp_bound(function, Width::F64));
        }
        let default = ErrorModel::default();
        assert_ne!(model.accuracy(Builtin::Exp, Scalar::F32), default.accuracy(Builtin::Exp, Scalar::F32));
    }
}
