//! Which scratch buffers a launch needs: those of the variants that its plan takes.

use krn_compiler::manifest::{LaunchArgument, Step, Value, Variant};

/// One a scratch buffer, in order: whether a launch that the plan takes for these symbols has it as an argument. In a
/// `Repeat`, whose counter conditions may depend on, both sides of a branch count.
pub fn needed(variant: &Variant, symbols: &[Value]) -> Vec<bool> {
    let mut needed = vec![false; variant.scratch.len()];
    mark(&variant.plan, Some(symbols), &mut needed);
    needed
}

fn mark(steps: &[Step], symbols: Option<&[Value]>, needed: &mut [bool]) {
    for step in steps {
        match step {
            Step::Launch(launch) => {
                for argument in &launch.arguments {
                    if let LaunchArgument::Scratch { scratch, .. } = argument {
                        needed[*scratch] = true;
                    }
                }
            }
            Step::Repeat { body, .. } => mark(body, None, needed),
            Step::Branch { condition, then, otherwise } => {
                let taken = symbols.and_then(|symbols| condition.evaluate(symbols));
                if taken != Some(Value::Bool(false)) {
                    mark(then, symbols, needed);
                }
                if taken != Some(Value::Bool(true)) {
                    mark(otherwise, symbols, needed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use krn_compiler::CompileOptions;
    use krn_compiler::source::SourceFile;

    /// Row sums have a variant for few rows, whose pieces are 32 times the result: of many rows nobody needs them.
    #[test]
    fn scratch_of_variants_that_are_not_taken_is_not_needed() {
        let source =
            SourceFile::new("test.krn", "kernel k(x: f32[m, n]) -> y: f32[m] { y[i] = sum(j: x[i, j]) }\n");
        let options = CompileOptions::for_target("sm_90");
        let compiled = krn_compiler::compile(&source, &options).expect("it compiles").compiled;
        let variant = &compiled.manifest.kernels[0].variants[0];
        let needed = |m: i128, n: i128| {
            let symbols = [super::Value::Int(m), super::Value::Int(n)];
            super::needed(variant, &symbols).contains(&true)
        };
        assert!(!variant.scratch.is_empty());
        assert!(needed(2, 1 << 24), "two long rows are cut into pieces");
        assert!(!needed(1 << 24, 64), "many short ones are not");
    }
}
