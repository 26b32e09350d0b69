//! `krn reduce`: makes a file small for which a command still succeeds.

use crate::arguments::{MessageFormat, ReduceOptions};
use crate::exit::{FILE, Failure, Result, USAGE};
use crate::{files, interrupt, messages, numbers};
use krn_compiler::syntax::reduce::reduce;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// How often is looked whether a command has ended, at first and at most.
const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_millis(20);

/// How often a line of progress is printed, at most.
const LINES: Duration = Duration::from_secs(1);

pub fn run(options: &ReduceOptions) -> Result<()> {
    let source = messages::load(&options.file, MessageFormat::Human)?;
    let output = output(options)?;
    let mut trial = Trial::new(options)?;
    let (succeeds, why) = trial.run(source.text())?;
    if !succeeds {
        let (command, file) = (options.command.join(" "), options.file.display());
        let message = format!(
            "`{command}` does not succeed for `{file}` itself ({why}): it must exit with 0 where a file shows what is looked for"
        );
        return Err(Failure::new(USAGE, message));
    }
    let mut failed = None;
    let mut runs = 1u64;
    let mut progress = Progress::new(source.text().len());
    let smallest = reduce(source.text(), &mut |text| {
        interrupt::check();
        // After a failure nothing more is tried.
        if failed.is_some() {
            return false;
        }
        runs += 1;
        let kept = trial.run(text).and_then(|(succeeds, _)| {
            // What was found is there also where Ctrl-C comes next.
            if succeeds { files::write(&output, text.as_bytes()).map(|()| true) } else { Ok(false) }
        });
        progress.tell(runs, kept.as_ref().is_ok_and(|kept| *kept).then_some(text.len()));
        kept.unwrap_or_else(|failure| {
            failed = Some(failure);
            false
        })
    });
    if let Some(failure) = failed {
        return Err(failure);
    }
    files::write(&output, smallest.as_bytes())?;
    files::print(&format!(
        "{}: {} bytes became {} in {} runs: {}\n",
        options.file.display(),
        numbers::grouped(source.text().len() as u64),
        numbers::grouped(smallest.len() as u64),
        numbers::grouped(runs),
        output.display()
    ))
}

/// Where the result goes.
fn output(options: &ReduceOptions) -> Result<PathBuf> {
    let output = match (&options.output, options.file.file_stem()) {
        (Some(output), _) => output.clone(),
        (None, Some(stem)) if options.file != Path::new("-") => {
            options.file.with_file_name(format!("{}.reduced.krn", stem.to_string_lossy()))
        }
        _ => {
            return Err(Failure::new(
                USAGE,
                "the file comes on standard input: say by --output where the result goes",
            ));
        }
    };
    let same = fs::canonicalize(&output).ok().zip(fs::canonicalize(&options.file).ok());
    if same.is_some_and(|(output, file)| output == file) {
        let message = format!("`{}` would be overwritten: give another --output", options.file.display());
        return Err(Failure::new(USAGE, message));
    }
    // Known to be writable before the work begins.
    files::Target::new(&output)?;
    Ok(output)
}

/// A file for the command to look at, and the command.
struct Trial<'o> {
    file: NamedTempFile,
    options: &'o ReduceOptions,
}

impl<'o> Trial<'o> {
    fn new(options: &'o ReduceOptions) -> Result<Self> {
        let stem = options.file.file_stem().map_or("stdin".into(), |stem| stem.to_string_lossy());
        let prefix = format!("{stem}-");
        let make = || tempfile::Builder::new().prefix(&prefix).suffix(".krn").tempfile();
        let file = interrupt::create(make, NamedTempFile::path)
            .map_err(|error| Failure::new(FILE, format!("cannot make a temporary file: {error}")))?;
        Ok(Self { file, options })
    }

    /// Whether the command succeeds for a text, and how it ended.
    fn run(&mut self, text: &str) -> Result<(bool, String)> {
        let path = self.file.path().display().to_string();
        fs::write(self.file.path(), text)
            .map_err(|error| Failure::new(FILE, format!("cannot write `{path}`: {error}")))?;
        let mut words: Vec<String> =
            self.options.command.iter().map(|word| word.replace("{}", &path)).collect();
        if words == self.options.command {
            words.push(path);
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn();
        let mut child =
            child.map_err(|error| Failure::new(USAGE, format!("cannot run `{}`: {error}", words[0])))?;
        let limit = Duration::from_secs(self.options.timeout);
        let status = wait(&mut child, limit)
            .map_err(|error| Failure::new(FILE, format!("`{}`: {error}", words[0])))?;
        Ok(match status {
            Some(status) => (status.success(), status.to_string()),
            None => (false, format!("it took longer than {} s", self.options.timeout)),
        })
    }
}

/// Waits for a command; one that takes longer is ended, and has no status.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let (start, mut pause) = (Instant::now(), SHORT);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            // It may just have ended.
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONG);
    }
}

/// Lines that tell how far it has come, on terminals.
struct Progress {
    smallest: usize,
    told: Option<Instant>,
}

impl Progress {
    fn new(bytes: usize) -> Self {
        Self { smallest: bytes, told: std::io::stderr().is_terminal().then(Instant::now) }
    }

    fn tell(&mut self, runs: u64, smaller: Option<usize>) {
        self.smallest = smaller.unwrap_or(self.smallest);
        if let Some(told) = self.told.as_mut().filter(|told| told.elapsed() > LINES) {
            *told = Instant::now();
            eprintln!(
                "{} bytes after {} runs",
                numbers::grouped(self.smallest as u64),
                numbers::grouped(runs)
            );
        }
    }
}
