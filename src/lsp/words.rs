//! Words of the language that are no names of the file: what an editor says of them.

use krn_compiler::builtins::Builtin;
use krn_compiler::check::directives;
use krn_compiler::data::Scalar;
use krn_compiler::syntax::REDUCTIONS;

/// `exp(x)`
pub fn signature(builtin: Builtin) -> String {
    format!("{}({})", builtin.name(), builtin.parameters().join(", "))
}

/// What a built-in function does, takes and gives, and its error.
pub fn builtin(builtin: Builtin) -> String {
    let signature = builtin.signature();
    let mut text =
        format!("{}\n\nTakes {}; gives {}.", builtin.meaning(), signature.arguments(), signature.gives());
    if let Builtin::Math(function) = builtin {
        let (narrow, wide) = (function.ulp_bound(Scalar::F32), function.ulp_bound(Scalar::F64));
        text.push_str(&format!("\n\nError: at most {narrow} ulp in `f32`, {wide} ulp in `f64`."));
    }
    text
}

/// What a reduction gives, and over nothing.
pub fn reduction(word: &str) -> Option<String> {
    let text = match word {
        "sum" => "The sum of numbers, or of structs field by field. Over nothing 0.",
        "prod" => "The product of numbers, or of structs field by field. Over nothing 1.",
        "min" => "The least value; NaN if any is NaN. Over nothing the largest value of the type.",
        "max" => "The largest value; NaN if any is NaN. Over nothing the least value of the type.",
        "any" => "Whether any condition holds. Over nothing `false`.",
        "all" => "Whether all conditions hold. Over nothing `true`.",
        "count" => "How many conditions hold, as `i64`. Over nothing 0.",
        "argmin" => "The position of the least value, the lowest among equals, as `i64`. Over nothing -1.",
        "argmax" => "The position of the largest value, the lowest among equals, as `i64`. Over nothing -1.",
        "and" => "The bits that all values have. Over nothing all bits.",
        "or" => "The bits that any value has. Over nothing 0.",
        "xor" => "The bits that an odd number of values have. Over nothing 0.",
        _ => return REDUCTIONS.contains(&word).then(|| "A reduction.".to_string()),
    };
    Some(text.to_string())
}

/// A statement that the language has and that says nothing of itself.
pub fn statement(word: &str) -> Option<&'static str> {
    Some(match word {
        "forall" => "Iterations in any order, on as many threads as there is room for.",
        "for" => "Iterations one after the other.",
        "while" => "Iterations one after the other, as long as the condition holds.",
        "break" => "Ends the loop around it.",
        "assert" => {
            "Where the condition does not hold, the launch fails, with the line and the indices. `--unchecked` leaves it out."
        }
        "print" => {
            "Tells values of this iteration, where prints are asked for: `krn run --prints`, `prints = true` in `kernels!`, \
             `ModuleOptions::prints`. Otherwise it is left out, and costs nothing."
        }
        _ => return None,
    })
}

/// A directive: how it is written, and what may stand in it.
pub fn directive(word: &str) -> Option<String> {
    let (_, form) = directives().find(|(name, _)| *name == word)?;
    let forms: Vec<&str> = form.split('`').step_by(2).collect();
    let range = range(word).map(|range| format!("\n\n{range}")).unwrap_or_default();
    Some(format!("`{}`{range}", forms.join("`, `")))
}

/// The values that a directive takes.
pub fn range(word: &str) -> Option<&'static str> {
    Some(match word {
        "block" => "Threads in a block: 1 to 1024.",
        "order" => "Nesting of the parallel names, outermost first; the last one gets the lanes.",
        "layout" => "Structs on the device: `aos`, `soa`, or `aosoa(8)` to `aosoa(1024)`, a power of two.",
        "cache" => "Accesses of an array: `ca`, `cg`, `cs`, or `nc` where it is not written.",
        "tile" => "Iterations of each parallel name that one block computes; names without a tile have 1.",
        "per_thread" => "Iterations over a parallel name that one thread computes side by side.",
        "stage" => "Tiles of an array go through shared memory; `depth` is 1 to 4.",
        "pad" => "Behind `stage`: elements between the rows of a tile.",
        "swizzle" => "Behind `stage`: places of a row are exchanged.",
        "depth" => "Behind `stage`: chunks that shared memory holds, 1 to 4.",
        "unroll" => "Iterations of a serial loop without a test between; without a number all, up to 64.",
        "vectorize" => "Neighbours that one access brings, at most 16 bytes.",
        "warps" => "Warps of a block along a name.",
        "split" => "Pieces into which a long reduction is cut over the grid; 1 keeps it whole.",
        "atomic" => "The pieces of a split reduction meet in this array itself, in any order.",
        "fast_math" => "Approximate functions, `/` and `sqrt` of `f32`.",
        "tf32" => {
            "Matrix instructions for products of `f32`: factors are rounded to 10 bits behind the point. From sm_80 on."
        }
        "allow" => "Warnings of these codes are left out.",
        "deny" => "Warnings of these codes are errors.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directive_and_reduction_is_explained() {
        for (name, _) in directives() {
            assert!(range(name).is_some(), "{name}");
            assert!(
                directive(name).is_some_and(|text| text.starts_with('`') && text.contains("\n\n")),
                "{name}"
            );
        }
        for word in REDUCTIONS {
            assert!(reduction(word).is_some_and(|text| text.contains("Over nothing")), "{word}");
        }
    }
}
