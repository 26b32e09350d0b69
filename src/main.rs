//! The tool `krn`: arguments, files and terminal output. Everything that another program could want to call is in
//! the libraries.

mod arguments;
mod array_files;
mod changed_ptx;
mod commands;
mod cuda_tools;
mod exit;
mod files;
mod formula;
mod interrupt;
mod lsp;
mod measuring;
mod memory;
mod messages;
mod numbers;
mod progress;
mod ptxas;
mod request;
mod sass;
mod subject;
mod table;
mod unfinished;
mod verdict;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

/// Compiling makes and drops many small things, on several threads: a sixth of its time with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    interrupt::watch();
    let result = match &arguments.command {
        Command::Check(options) => commands::check::run(options),
        Command::Fmt(options) => commands::fmt::run(options),
        Command::Build(options) => commands::build::run(options),
        Command::Opt(options) => commands::opt::run(options),
        Command::Run(options) if options.bisect => commands::bisect::run(options),
        Command::Run(options) => commands::run::run(options),
        Command::Test(options) => commands::test::run(options),
        Command::Bench(options) => commands::bench::run(options),
        Command::Profile(options) => commands::profile::run(options),
        Command::Report(options) => commands::report::run(options),
        Command::Ladder(options) => commands::ladder::run(options),
        Command::Explain(options) => commands::explain::run(options),
        Command::Lsp => commands::lsp::run(),
        Command::Doctor => commands::doctor::run(),
        Command::Reduce(options) => commands::reduce::run(options),
    };
    interrupt::check();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.code)
        }
    }
}
