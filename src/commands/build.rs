//! `krn build`

use crate::arguments::{BuildOptions, Emit};
use crate::exit::{FILE, Failure, Result, USAGE};
use crate::ptxas::{self, Ptxas};
use crate::{files, messages, numbers, request, sass};
use krn_compiler::fat::{Fat, Image};
use krn_compiler::ir::text::{PrintOptions, print_module};
use krn_compiler::passes::PassSelection;
use krn_compiler::source::SourceFile;
use krn_compiler::{Advise, Compilation, CompileOptions, CompiledModule, TARGETS, Variants};
use std::time::Duration;

pub fn run(options: &BuildOptions) -> Result<()> {
    let source = messages::load(&options.file, options.message_format)?;
    let mut compile = messages::options(&options.compile, None)?;
    messages::set_levels(&mut compile, &options.levels, Advise::Denied)?;
    compile.passes.print_after = selection(&options.print_after);
    compile.passes.print_before = selection(&options.print_before);
    compile.passes.time = options.time_passes;
    compile.sizes = request::dims(&options.dims)?;
    compile.only.clone_from(&options.kernel);
    let values = options.for_sizes.iter().map(|text| request::symbol_values(text));
    compile.variants = Variants::With(values.collect::<Result<_>>()?);
    if options.emit == Emit::Fat {
        let text = fat(&source, options, &mut compile)?;
        return files::write_or_print(options.output.as_deref(), &text);
    }
    compile.ir = options.emit == Emit::Ir;
    compile.text_only = true;
    let compilation =
        messages::compile(&source, &compile, options.kernel.as_deref(), options.message_format)?;
    known(&compilation, options)?;
    eprint!("{}", compilation.printed);
    if options.time_passes {
        print_times(&compilation.reports);
    }
    let compiled = &compilation.compiled;
    let text = match options.emit {
        Emit::Ir => {
            let Some(ir) = compilation.ir() else { unreachable!("the options ask for it") };
            print_module(&ir, PrintOptions::default())
        }
        Emit::Manifest => {
            let mut json = serde_json::to_string_pretty(&compiled.manifest)
                .map_err(|error| Failure::new(FILE, format!("cannot write the manifest as JSON: {error}")))?;
            json.push('\n');
            json
        }
        Emit::Cubin => {
            let Some(path) = files::named(options.output.as_deref()) else {
                return Err(Failure::new(USAGE, "machine code is written to a file: add `-o kernels.cubin`"));
            };
            let ptxas = Ptxas::find()?.ok_or_else(|| Failure::new(FILE, ptxas::ADVICE))?;
            return files::write(path, &ptxas.code(&compiled.ptx, &compile.target)?);
        }
        Emit::Sass => {
            let ptxas = Ptxas::find()?.ok_or_else(|| Failure::new(FILE, ptxas::ADVICE))?;
            sass::listing(&source, &ptxas.code_with_lines(&compiled.ptx, &compile.target)?)?
        }
        Emit::Ptx | Emit::Fat => compiled.ptx.clone(),
    };
    files::write_or_print(options.output.as_deref(), &text)
}

/// A document with code for all targets that `--target` lists, or all that there are.
fn fat(source: &SourceFile, options: &BuildOptions, compile: &mut CompileOptions) -> Result<String> {
    let listed = options.compile.target.as_deref();
    let targets: Vec<&str> = listed.map_or(TARGETS.to_vec(), |listed| listed.split(',').collect());
    let mut modules = Vec::with_capacity(targets.len());
    for target in &targets {
        compile.target = target.to_string();
        // What there is to say of the file is said once, for the first target.
        let compilation = match modules.is_empty() {
            true => messages::compile(source, compile, options.kernel.as_deref(), options.message_format)?,
            false => krn_compiler::compile(source, compile)
                .map_err(|error| messages::refused(source, error, options.message_format))?,
        };
        known(&compilation, options)?;
        compile.advise = Advise::Nothing;
        modules.push(compilation.compiled);
    }
    let ptxas = Ptxas::find()?;
    if ptxas.is_none() {
        eprintln!("note: {}; the document has PTX alone", ptxas::ADVICE);
    }
    let image = |(target, module): (&&str, CompiledModule)| match &ptxas {
        Some(ptxas) => Image::assembled(target, module, |ptx, target| ptxas.code(ptx, target)),
        None => Ok(Image::new(target, module, None)),
    };
    let mut images = targets.iter().zip(modules).map(image).collect::<Result<Vec<_>>>()?;
    if options.no_source {
        images.iter_mut().for_each(|image| image.source = None);
    }
    Ok(Fat::new(images).to_json() + "\n")
}

/// That there is the kernel that is asked for.
fn known(compilation: &Compilation, options: &BuildOptions) -> Result<()> {
    match &options.kernel {
        Some(name) => request::pick_named(&compilation.program, name).map(|_| ()),
        None => Ok(()),
    }
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
