//! `krn build`

use crate::arguments::{BuildOptions, Emit};
use crate::exit::{FILE, Failure, Result};
use crate::{files, messages, numbers};
use krn_compiler::ir::text::{PrintOptions, print_module};
use krn_compiler::passes::PassSelection;
use std::time::Duration;

pub fn run(options: &BuildOptions) -> Result<()> {
    let source = messages::load(&options.file, options.message_format)?;
    let mut compile = messages::options(&options.compile, None);
    compile.passes.print_after = selection(&options.print_after);
    compile.passes.print_before = selection(&options.print_before);
    compile.passes.time = options.time_passes;
    let compilation = messages::compile(&source, &compile, options.message_format)?;
    eprint!("{}", compilation.printed);
    if options.time_passes {
        print_times(&compilation.reports);
    }
    let text = match options.emit {
        Emit::Ptx => compilation.compiled.ptx.clone(),
        Emit::Ir => print_module(&compilation.ir, PrintOptions::default()),
        Emit::Manifest => {
            let mut json = serde_json::to_string_pretty(&compilation.compiled.manifest)
                .map_err(|error| Failure::new(FILE, format!("cannot write the manifest as JSON: {error}")))?;
            json.push('\n');
            json
        }
    };
    files::write_or_print(options.output.as_deref(), &text)
}

fn selection(names: &[String]) -> PassSelection {
    match names {
        [] => PassSelection::None,
        names if names.iter().any(|name| name == "all") => PassSelection::All,
        names => PassSelection::Names(names.to_vec()),
    }
}

fn print_times(reports: &[(String, krn_compiler::passes::PipelineReport)]) {
    for (kernel, report) in reports {
        let total: Duration = report.passes.iter().map(|pass| pass.duration).sum();
        eprintln!("{kernel}: {}", numbers::duration(total));
        for pass in &report.passes {
            let changed = if pass.changed { "changed" } else { "" };
            eprintln!("  {:<20} {:>10}  {changed}", pass.name, numbers::duration(pass.duration));
        }
    }
}
