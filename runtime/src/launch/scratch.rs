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
            Step::While { test, body, .. } => {
                mark(test, symbols, needed);
                mark(body, symbols, needed);
            }
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
    use krn_compiler::data::{ElementType, Scalar};
    use krn_compiler::manifest::{
        BinaryOp, BufferManifest, Expr, Launch, LaunchArgument, Layout, Step, Value, Variant,
    };

    /// What only one side of a branch is given is not needed where the other one is taken.
    #[test]
    fn scratch_of_launches_that_are_not_taken_is_not_needed() {
        let launch = |scratch| {
            vec![Step::Launch(Launch {
                entry: "k".to_string(),
                grid: [const { Expr::Int(1) }; 3],
                block: [32, 1, 1],
                shared_bytes: Expr::Int(0),
                arguments: vec![LaunchArgument::Scratch { scratch, leaf: 0 }],
            })]
        };
        let condition = Expr::binary(BinaryOp::Less, Expr::Symbol(0), Expr::Int(10));
        let branch = || Step::Branch { condition: condition.clone(), then: launch(0), otherwise: launch(1) };
        let buffer = || BufferManifest {
            name: "pieces".to_string(),
            element: ElementType::scalar(Scalar::F32),
            extents: vec![Expr::Int(32)],
            layout: Layout::Aos,
        };
        let scratch = vec![buffer(), buffer()];
        let mut variant = Variant { guard: Default::default(), scratch, plan: vec![branch()] };
        let needed = |variant: &Variant, size| super::needed(variant, &[Value::Int(size)]);
        assert_eq!(needed(&variant, 9), [true, false]);
        assert_eq!(needed(&variant, 10), [false, true]);
        // The condition may depend on the counter, which takes many values.
        let (low, high, step) = (Expr::Int(0), Expr::Int(20), Expr::Int(1));
        variant.plan = vec![Step::Repeat { symbol: 0, low, high, step, body: vec![branch()] }];
        assert_eq!(needed(&variant, 9), [true, true]);
    }
}
