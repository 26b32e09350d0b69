//! `krn opt`

use crate::arguments::OptOptions;
use crate::exit::{Failure, INPUT, Result, USAGE};
use crate::files;
use krn_compiler::passes::{TargetFacts, run_text};

pub fn run(options: &OptOptions) -> Result<()> {
    let Some(capability) = krn_compiler::capability(&options.target) else {
        return Err(Failure::new(USAGE, format!("`{}` is no target", options.target)));
    };
    let bytes = files::read_source(&options.file)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(INPUT, format!("`{}` is not UTF-8 text", options.file.display())))?;
    let passes: Vec<&str> = options.passes.iter().map(String::as_str).collect();
    let output = run_text(&text, &passes, &TargetFacts::new(capability))
        .map_err(|error| Failure::new(INPUT, format!("{}: {error}", options.file.display())))?;
    files::write_or_print(options.output.as_deref(), &output)
}
