//! The IR from pass to pass, cut into its launches, so that each is compared with itself.

use super::listing::split_before;
use krn_compiler::passes::PassSelection;
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileError, CompileOptions, compile};

/// A part of a kernel's text: what stands in front of its launches, a launch, or what comes after them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The launch's name, `declarations` or `plan`.
    pub name: String,
    pub text: String,
}

/// The IR after a pass.
pub struct Stage {
    /// Nothing for what lowering made.
    pub pass: Option<String>,
    pub reason: String,
    pub parts: Vec<Part>,
}

/// The IR as lowering leaves it, then after each pass.
///
/// # Errors
/// As for [`compile`].
pub fn stages(
    source: &SourceFile,
    options: &CompileOptions,
    kernel: &str,
) -> Result<Vec<Stage>, CompileError> {
    let pipeline = options.resolved_pipeline()?;
    let mut options = CompileOptions { only: Some(kernel.to_string()), ..options.clone() };
    options.passes.print_before =
        PassSelection::Names(pipeline.names().take(1).map(str::to_string).collect());
    options.passes.print_after = PassSelection::All;
    let printed = compile(source, &options)?.printed;
    let mut stages: Vec<Stage> = Vec::new();
    // Each piece starts with a comment that names the pass; the IR has no others.
    for piece in split_before(&printed, "// ").1 {
        let (head, text) = piece.split_once('\n').unwrap_or((piece, ""));
        let pass = head.strip_prefix("// after ").map(str::to_string);
        let reason = pipeline
            .passes()
            .find(|(name, _)| Some(*name) == pass.as_deref())
            .map(|(_, reason)| reason.to_string());
        stages.push(Stage { pass, reason: reason.unwrap_or_default(), parts: parts(text) });
    }
    Ok(stages)
}

/// Cuts a printed kernel at its launches, which stand one step in.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = vec![Part { name: "declarations".to_string(), text: String::new() }];
    for line in text.split_inclusive('\n') {
        let name = if line.starts_with("    launch ") {
            line.split('"').nth(1).map(str::to_string)
        } else if line.starts_with("    plan ") {
            Some("plan".to_string())
        } else {
            None
        };
        match (name, parts.last_mut()) {
            (Some(name), _) => parts.push(Part { name, text: line.to_string() }),
            (None, Some(part)) => part.text.push_str(line),
            (None, None) => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_those_of_the_pipeline_and_parts_those_of_the_kernel() {
        let text = "kernel twice(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }\n";
        let options = CompileOptions::for_target("sm_90");
        let stages = stages(&SourceFile::new("k.krn", text), &options, "twice").expect("it compiles");
        let passes: Vec<&str> = stages.iter().filter_map(|stage| stage.pass.as_deref()).collect();
        let pipeline = options.resolved_pipeline().expect("a pipeline");
        assert_eq!(passes, pipeline.names().collect::<Vec<_>>());
        assert_eq!(stages.len(), passes.len() + 1);
        assert!(stages[1..].iter().all(|stage| !stage.reason.is_empty()));
        let last = &stages[stages.len() - 1];
        let names: Vec<&str> = last.parts.iter().map(|part| part.name.as_str()).collect();
        assert!(names[0] == "declarations" && names[1] == "twice" && names.last() == Some(&"plan"));
        let whole: String = last.parts.iter().map(|part| part.text.as_str()).collect();
        assert!(whole.starts_with("kernel \"twice\" {\n") && whole.ends_with("}\n"), "{whole}");
    }
}
