//! How fast the compiler is: `cargo build --release && cargo bench -p krn-compiler`. What it prints is explained in
//! `docs/compile-speed.md`.
//!
//! The bench fails where the compiler misses its aims. Those for one product are held by the median; every other figure is
//! the least of several runs, since whatever else the machine does only adds to a time. Memory is allocated as the tool
//! `krn` does it, by mimalloc.

use krn_compiler::passes::PipelineOptions;
use krn_compiler::ptx::select::{SelectOptions, select};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, check_source, compile, ir, ptx, syntax};
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// From the text of a matrix product to its PTX, in the process.
const ONE_KERNEL: Duration = Duration::from_millis(3);

/// The same by the command `krn build`, from its start to its end.
const ONE_COMMAND: Duration = Duration::from_millis(15);

/// The time for one of 10,000 kernels, as a multiple of that for one of 1,000.
const GROWTH: f64 = 1.5;

/// The time for one of 4,000 statements of a kernel, as a multiple of that for one of 1,000.
const STATEMENT_GROWTH: f64 = 2.0;

const MATMUL: &str = "\
kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {
    c[i, j] = sum(p: a[i, p] * b[p, j])
}
";

/// A file of so many kernels, all a little different.
fn many(kernels: usize) -> SourceFile {
    let kernel = |at: usize| match at % 4 {
        0 => format!("kernel k{at}(x: f32[n], y: inout f32[n]) {{ y[i] = {at}.0 * x[i] + y[i] }}\n"),
        1 => format!("kernel k{at}(a: f32[m, n]) -> b: f32[n, m] {{ b[j, i] = a[i, j] + {at}.0 }}\n"),
        2 => format!(
            "kernel k{at}(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {{ c[i, j] = sum(p: a[i, p] * b[p, j]) + {at}.0 }}\n"
        ),
        _ => format!(
            "kernel k{at}(u: f32[h, w]) -> v: f32[h, w] {{ v[y, x] = (u[y - 1, x] else {at}.0) + (u[y, x + 1] else 0.0) }}\n"
        ),
    };
    SourceFile::new("many.krn", (0..kernels).map(kernel).collect::<String>())
}

/// A kernel of so many statements, each of which becomes a launch.
fn statements(count: usize) -> SourceFile {
    let lines: String = (0..count).map(|at| format!("    y[i] += {at}.0 * x[i]\n")).collect();
    SourceFile::new("statements.krn", format!("kernel s(x: f32[n], y: inout f32[n]) {{\n{lines}}}\n"))
}

/// How long each of several runs takes, the shortest one first.
fn sorted(runs: usize, mut work: impl FnMut()) -> Vec<Duration> {
    let mut one = || {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let mut times: Vec<Duration> = (0..runs).map(|_| one()).collect();
    times.sort_unstable();
    times
}

fn median(runs: usize, work: impl FnMut()) -> Duration {
    sorted(runs, work).get(runs / 2).copied().unwrap_or_default()
}

fn least(runs: usize, work: impl FnMut()) -> Duration {
    sorted(runs, work).first().copied().unwrap_or_default()
}

fn compile_all(source: &SourceFile, options: &CompileOptions) {
    match compile(source, options) {
        Ok(done) => drop(black_box(done)),
        Err(error) => panic!("{}: {error}", source.name()),
    }
}

/// `krn build` of the product to a file, by the tool that was built beside this bench; `None` where it cannot be run.
fn command() -> Option<Duration> {
    let bench = std::env::current_exe().ok()?;
    let tool = bench.parent()?.parent()?.join(format!("krn{}", std::env::consts::EXE_SUFFIX));
    let folder = std::env::temp_dir().join(format!("krn-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).ok()?;
    let (source, ptx) = (folder.join("matmul.krn"), folder.join("matmul.ptx"));
    std::fs::write(&source, MATMUL).ok()?;
    let mut built = true;
    let time = median(200, || {
        let run = Command::new(&tool).arg("build").arg(&source).arg("-o").arg(&ptx).output();
        built &= run.is_ok_and(|output| output.status.success());
    });
    let _ = std::fs::remove_dir_all(&folder);
    built.then_some(time)
}

fn print_row(name: &str, time: Duration) {
    println!("  {name:<23} {time:>10.1?}");
}

/// Where the time of one kernel, `whole`, goes.
fn print_stages(source: &SourceFile, options: &CompileOptions, whole: Duration) {
    let parse = least(200, || drop(black_box(syntax::parse(source))));
    let check = least(200, || drop(black_box(check_source(source))));
    print_row("lexing and parsing", parse);
    print_row("checking and proving", check.saturating_sub(parse));
    let timed = CompileOptions {
        passes: PipelineOptions { time: true, ..PipelineOptions::default() },
        ..options.clone()
    };
    let mut passes: Vec<(String, Duration)> = Vec::new();
    for _ in 0..200 {
        let Ok(done) = compile(source, &timed) else { return };
        let rows = done.reports.iter().flat_map(|(_, report)| &report.passes);
        for (at, row) in rows.enumerate() {
            match passes.get_mut(at) {
                Some((_, best)) => *best = (*best).min(row.duration),
                None => passes.push((row.name.clone(), row.duration)),
            }
        }
    }
    for (name, duration) in &passes {
        print_row(&format!("pass {name}"), *duration);
    }
    let all: Duration = passes.iter().map(|(_, duration)| *duration).sum();
    print_row("all passes", all);
    let Ok(done) = compile(source, &CompileOptions { ir: true, ..options.clone() }) else { return };
    let Some(ir) = done.ir() else { return };
    let verify = least(200, || ir.kernels.iter().for_each(|kernel| drop(black_box(ir::verify(kernel)))));
    print_row("verifying the IR", verify);
    let capability = krn_compiler::capability(&options.target).unwrap_or_default();
    let to = SelectOptions { target: options.target.clone(), capability, names: false };
    let selected = least(200, || drop(black_box(select(&ir, source, &to))));
    print_row("selecting to text", selected);
    let print = least(200, || drop(black_box(ptx::print(&done.compiled.module))));
    print_row("  printing, one thread", print);
    let rest = whole.saturating_sub(check + all + verify + selected);
    print_row("all else", rest);
    let lines = done.compiled.ptx.lines().count() as u32;
    println!("  {lines} lines of PTX: {:.0?} a line", whole / lines.max(1));
}

fn main() -> ExitCode {
    let options = CompileOptions::default();
    let mut missed = Vec::new();
    println!("{} cores", std::thread::available_parallelism().map_or(1, usize::from));
    let source = SourceFile::new("matmul.krn", MATMUL);
    let one = median(2000, || compile_all(&source, &options));
    println!("a matrix product, from text to PTX: {one:.2?} (the median; aim: under {ONE_KERNEL:?})");
    print_stages(&source, &options, one);
    if one >= ONE_KERNEL {
        missed.push(format!("a matrix product takes {one:.1?}"));
    }
    match command() {
        Some(time) => {
            println!("`krn build` of it: {time:.1?} (the median; aim: under {ONE_COMMAND:?})");
            if time >= ONE_COMMAND {
                missed.push(format!("`krn build` of a matrix product takes {time:.1?}"));
            }
        }
        None => missed.push("`krn build` cannot be run: `cargo build --release` first".to_string()),
    }
    let mut per_kernel = Vec::new();
    for (kernels, runs) in [(100, 20), (1_000, 5), (10_000, 3)] {
        let source = many(kernels);
        let time = least(runs, || compile_all(&source, &options));
        let each = time / kernels as u32;
        println!("{kernels:>6} kernels in one file: {time:>8.1?}, {each:.1?} a kernel");
        per_kernel.push(each.as_secs_f64());
    }
    let growth = per_kernel[2] / per_kernel[1];
    println!("one of 10,000 takes {growth:.2} times as long as one of 1,000 (aim: at most {GROWTH})");
    if growth > GROWTH {
        missed.push(format!("10,000 kernels take {growth:.2} times as long a kernel as 1,000"));
    }
    let per_statement = [1_000, 4_000].map(|count| {
        let source = statements(count);
        let each = least(5, || compile_all(&source, &options)) / count as u32;
        println!("{count:>6} statements in one kernel: {each:.1?} a statement");
        each.as_secs_f64()
    });
    let growth = per_statement[1] / per_statement[0];
    println!(
        "one of 4,000 takes {growth:.2} times as long as one of 1,000 (aim: at most {STATEMENT_GROWTH})"
    );
    if growth > STATEMENT_GROWTH {
        missed.push(format!("4,000 statements take {growth:.2} times as long a statement as 1,000"));
    }
    for miss in &missed {
        println!("MISSED: {miss}");
    }
    if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
