//! Assembles PTX with NVIDIA's `ptxas`, many modules at a time, with a cache by content.
//!
//! Tests use it so:
//!
//! ```no_run
//! use xtask::ptxas::Assembler;
//!
//! let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
//! let report = assembler.assemble(".version 7.8 …", "sm_90").expect("ptxas accepts it");
//! assert_eq!(report.warnings().count(), 0);
//! ```

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use crate::cuda_tools;
use crate::workspace::workspace_root;

/// What `ptxas -v` said about a module that it accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub log: String,
}

impl Report {
    /// The lines in which ptxas warns.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.log.lines().filter(|line| line.contains("warning"))
    }

    /// Registers a thread of each entry, in the order of the log.
    pub fn registers(&self) -> Vec<u32> {
        self.log
            .lines()
            .filter_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let used = words.iter().position(|word| *word == "Used")?;
                words.get(used + 1)?.parse().ok()
            })
            .collect()
    }

    /// Bytes of spilled registers, stores and loads together, over all entries.
    pub fn spilled_bytes(&self) -> u32 {
        self.log
            .split(',')
            .filter(|part| part.contains("bytes spill"))
            .filter_map(|part| part.split_whitespace().next()?.parse::<u32>().ok())
            .sum()
    }
}

/// One module to assemble.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    pub text: &'a str,
    /// `--gpu-name`, for example `sm_90a`.
    pub target: &'a str,
}

/// A `ptxas`, and the folder where its answers are kept.
#[derive(Clone, Debug)]
pub struct Assembler {
    program: PathBuf,
    /// Tells this ptxas from others.
    identity: String,
    cache: PathBuf,
}

impl Assembler {
    /// The installed ptxas; the error says how to install it.
    pub fn find() -> Result<Assembler> {
        let program = cuda_tools::find("ptxas")?;
        let size = fs::metadata(&program).context("cannot look at ptxas")?.len();
        let identity = format!("{} {size}", program.display());
        let cache = workspace_root().join("target").join("ptxas-cache");
        fs::create_dir_all(&cache).with_context(|| format!("cannot create `{}`", cache.display()))?;
        Ok(Assembler { program, identity, cache })
    }

    /// Assembles one module without optimising it: whether ptxas takes it does not depend on how hard it optimises, and
    /// thousands of modules wait. The error holds what ptxas said.
    pub fn assemble(&self, text: &str, target: &str) -> Result<Report> {
        self.at_level("0", text, target)
    }

    /// As [`assemble`](Self::assemble), as a user would: with the registers and spills of the code that runs.
    pub fn optimise(&self, text: &str, target: &str) -> Result<Report> {
        self.at_level("3", text, target)
    }

    /// The machine code of a module, as a user would assemble it, in nvdisasm's words.
    pub fn machine_code(&self, text: &str, target: &str) -> Result<String> {
        self.scratched(text, |input, output| {
            let mut assemble = Command::new(&self.program);
            said(assemble.args(["--gpu-name", target, "--output-file"]).arg(output).arg(input))?;
            said(Command::new(cuda_tools::find("nvdisasm")?).arg("--print-code").arg(output))
        })
    }

    fn at_level(&self, level: &str, text: &str, target: &str) -> Result<Report> {
        let mut hasher = DefaultHasher::new();
        (&self.identity, level, target, text).hash(&mut hasher);
        let kept = self.cache.join(format!("{:016x}-{}-{target}.log", hasher.finish(), text.len()));
        let answer = match fs::read_to_string(&kept) {
            Ok(answer) => answer,
            Err(_) => {
                let answer = self.run(level, text, target)?;
                // Written aside and renamed: another test may be reading.
                let aside = self.scratch("log");
                fs::write(&aside, &answer).context("cannot write to the cache of ptxas")?;
                fs::rename(&aside, &kept).context("cannot write to the cache of ptxas")?;
                answer
            }
        };
        match answer.split_once('\n') {
            Some(("accepted", log)) => Ok(Report { log: log.to_owned() }),
            Some((_, log)) => bail!("ptxas refuses the module for {target}:\n{}", log.trim_end()),
            None => bail!("the cache of ptxas is damaged: remove `{}`", kept.display()),
        }
    }

    /// Assembles many modules on all cores; the answers stand in the order of the jobs.
    pub fn assemble_all(&self, jobs: &[Job<'_>]) -> Vec<Result<Report>> {
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len().max(1));
        let mut answers: Vec<(usize, Result<Report>)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let mut answers = Vec::new();
                        loop {
                            let index = next.fetch_add(1, Ordering::Relaxed);
                            let Some(job) = jobs.get(index) else { return answers };
                            answers.push((index, self.assemble(job.text, job.target)));
                        }
                    })
                })
                .collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        });
        answers.sort_by_key(|(index, _)| *index);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Assembles one module for every target with `print` giving the text for each; returns the complaints, each
    /// with its target.
    pub fn assemble_for_targets(&self, targets: &[&str], print: impl Fn(&str) -> String) -> Vec<String> {
        let texts: Vec<String> = targets.iter().map(|target| print(target)).collect();
        let jobs: Vec<Job<'_>> =
            targets.iter().zip(&texts).map(|(target, text)| Job { text, target }).collect();
        self.assemble_all(&jobs)
            .into_iter()
            .filter_map(|answer| answer.err().map(|error| error.to_string()))
            .collect()
    }

    fn run(&self, level: &str, text: &str, target: &str) -> Result<String> {
        self.scratched(text, |input, output| {
            let run = Command::new(&self.program)
                .args(["-v", "--opt-level", level, "--gpu-name", target, "--output-file"])
                .arg(output)
                .arg(input)
                .output()
                .with_context(|| format!("cannot run `{}`", self.program.display()))?;
            let log =
                [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
            // The name of the scratch file means nothing to the reader, and is another one each time.
            let log = log.replace(&format!("{}, ", input.display()), "");
            match run.status.code() {
                Some(0) => Ok(format!("accepted\n{log}")),
                Some(_) => Ok(format!("refused\n{log}")),
                // Killed from outside: not an answer, so not kept.
                None => bail!("ptxas was stopped by a signal for {target}:\n{log}"),
            }
        })
    }

    /// What is made of a text in a file, and of a path for the machine code; both files go afterwards.
    fn scratched(&self, text: &str, make: impl FnOnce(&Path, &Path) -> Result<String>) -> Result<String> {
        let (input, output) = (self.scratch("ptx"), self.scratch("cubin"));
        fs::write(&input, text).context("cannot write the input of ptxas")?;
        let made = make(&input, &output);
        let _ = fs::remove_file(&input);
        let _ = fs::remove_file(&output);
        made
    }

    /// A new path in the cache folder that no other thread or process uses.
    fn scratch(&self, extension: &str) -> PathBuf {
        static COUNTER: AtomicUsize = AtomicUsize::new(0);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        self.cache.join(format!("scratch-{}-{count}.{extension}", std::process::id()))
    }
}

/// What a command prints; an error where it fails.
fn said(command: &mut Command) -> Result<String> {
    let run = command.output().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    if !run.status.success() {
        bail!("{:?} fails:\n{}", command.get_program(), String::from_utf8_lossy(&run.stderr));
    }
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read() {
        let log = "ptxas info    : 0 bytes gmem\n    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n\
                   ptxas info    : Used 10 registers, used 0 barriers, 360 bytes cmem[0]\n";
        let report = Report { log: log.to_owned() };
        assert_eq!(report.registers(), [10]);
        assert_eq!(report.spilled_bytes(), 28);
    }

    #[test]
    fn a_small_module_is_assembled_and_a_broken_one_is_refused() {
        let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
        let text = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n    ret;\n}\n";
        assert!(assembler.assemble(text, "sm_90").is_ok());
        let error = assembler.assemble(&text.replace("ret", "rot"), "sm_90").unwrap_err().to_string();
        assert!(error.contains("line 6"), "{error}");
    }
}
