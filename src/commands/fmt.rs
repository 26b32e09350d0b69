//! `krn fmt`

use crate::arguments::FmtOptions;
use crate::exit::{Failure, INPUT, Result};
use crate::{files, messages};
use krn_compiler::format::format;
use krn_compiler::passes::diff;
use std::path::{Path, PathBuf};

pub fn run(options: &FmtOptions) -> Result<()> {
    let stdin = [PathBuf::from("-")];
    let paths = if options.stdin { &stdin[..] } else { &options.files };
    // The first failure decides the exit code; the other files are formatted all the same.
    let mut failed = None;
    for path in paths {
        if let Err(failure) = one(path, options) {
            failure.print();
            failed.get_or_insert(failure.code);
        }
    }
    failed.map_or(Ok(()), |code| Err(Failure::silent(code)))
}

fn one(path: &Path, options: &FmtOptions) -> Result<()> {
    let source = messages::load(path, options.message_format)?;
    let text = match format(&source) {
        Ok(text) => text,
        Err(reports) => {
            messages::show(&source, &reports, options.message_format)?;
            return Err(Failure::silent(INPUT));
        }
    };
    let same = text == source.text();
    match (options.check, path == Path::new("-")) {
        (true, _) if same => Ok(()),
        (true, _) => {
            files::print(&format!("{}:\n{}", source.name(), diff(source.text(), &text)))?;
            Err(Failure::new(INPUT, format!("{}: not formatted: `krn fmt` does it", source.name())))
        }
        (false, true) => files::print(&text),
        (false, false) if same => Ok(()),
        (false, false) => {
            files::rewrite(path, text.as_bytes())?;
            eprintln!("formatted {}", source.name());
            Ok(())
        }
    }
}
