//! The command line: what the program `krn` does, for other programs to have it as well.

use crate::arguments::{Arguments, Command};
use crate::{commands, exit, interrupt};
use clap::Parser;
use std::ffi::OsString;

/// Does what a command line asks for, its first word being the program's name, and gives the exit code. It writes to the
/// terminal, and watches for Ctrl-C from then on: it is the whole of a process.
pub fn tool(words: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(said) => {
            // Nobody is there to be told where the terminal is gone.
            let _ = said.print();
            return if said.use_stderr() { exit::USAGE } else { 0 };
        }
    };
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
        Command::Dap => commands::dap::run(),
        Command::Doctor => commands::doctor::run(),
        Command::Reduce(options) => commands::reduce::run(options),
    };
    interrupt::check();
    match result {
        Ok(()) => 0,
        Err(failure) => {
            failure.print();
            failure.code
        }
    }
}
