//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use krn_runtime::Selection;
use std::path::PathBuf;

/// Krn: a small tiling-and-array language for GPU kernels.
///
/// Exit codes: 0 all is well; 1 mistakes in the input file, or one that `fmt --check` would change; 2 wrong use of the
/// command line; 3 a result differs from the reference; 4 a device, launch, bounds or assertion failure; 5 a file could
/// not be read or written; 6 not verified, since too little could be judged; 130 interrupted.
#[derive(Parser, Debug)]
#[command(name = "krn", version = krn_compiler::VERSIONS)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check files: report every mistake, write nothing
    Check(CheckOptions),
    /// Write files in the style of the language
    Fmt(FmtOptions),
    /// Compile a file to PTX, IR or a launch manifest
    Build(BuildOptions),
    /// Run passes on a .kir file
    Opt(OptOptions),
    /// Run the kernels of a file, or one of them, and check every output against the reference evaluator
    Run(RunOptions),
    /// Run and check every kernel of the files over many shapes
    Test(TestOptions),
    /// Time a kernel on the device, inputs and caches as a caller would find them
    Bench(BenchOptions),
    /// Count what a kernel does to a GPU's memory, by source line, and say what limits it; needs no GPU
    Profile(ProfileOptions),
    /// Write one page of HTML about a kernel: source, schedule, IR, PTX, counters, and pictures of what memory sees
    Report(ReportOptions),
    /// Add the compiler's passes one by one: check each step, and say what it costs
    Ladder(LadderOptions),
    /// Print the schedules that the compiler chose for a file, or the page of a diagnostic code
    Explain(ExplainOptions),
    /// Serve editors: the Language Server Protocol over standard input and output
    Lsp,
    /// Let editors step through a kernel on the emulator: the Debug Adapter Protocol over standard input and output
    Dap,
    /// Say what there is on this machine to run and to assemble kernels with: driver, GPU, ptxas
    Doctor,
    /// Make a file small for which a command still succeeds: the kernel of a report, or of a failing test
    Reduce(ReduceOptions),
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MessageFormat {
    /// For people
    #[default]
    Human,
    /// One JSON object a line, for editors
    Json,
}

/// What becomes of warnings of which the file itself says nothing.
#[derive(Args, Debug)]
pub struct LevelArguments {
    /// Leave warnings of this code out, or all `warnings`; may be repeated
    #[arg(long, value_name = "CODE")]
    pub allow: Vec<String>,
    /// Make errors of warnings of this code, or of all `warnings`; may be repeated
    #[arg(long, value_name = "CODE")]
    pub deny: Vec<String>,
}

#[derive(Args, Debug)]
pub struct CheckOptions {
    /// .krn files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The GPU whose schedules and limits count: sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100 or sm_120
    #[arg(long, value_name = "SM", default_value = "sm_90")]
    pub target: String,
    /// Only this kernel, of those files that have it; mistakes of the others are told all the same
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub levels: LevelArguments,
    #[arg(long, value_enum, default_value_t)]
    pub message_format: MessageFormat,
}

#[derive(Args, Debug)]
pub struct FmtOptions {
    /// .krn files, which are changed in place; `-` is standard input, and is written to standard output
    #[arg(required_unless_present = "stdin", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write nothing: print what would change, and exit with 1 where anything would
    #[arg(long)]
    pub check: bool,
    /// Read standard input and write to standard output
    #[arg(long, conflicts_with = "files")]
    pub stdin: bool,
    #[arg(long, value_enum, default_value_t)]
    pub message_format: MessageFormat,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Emit {
    #[default]
    Ptx,
    /// The kernel IR after the last pass
    Ir,
    /// The launch manifest, as JSON
    Manifest,
    /// Machine code for one target, through NVIDIA's ptxas
    Cubin,
    /// The instructions of that machine code by source line, through NVIDIA's ptxas and nvdisasm
    Sass,
    /// PTX, manifest and, where ptxas is found, machine code for each --target, as one JSON document
    Fat,
}

/// What decides the code that comes out.
#[derive(Args, Debug, Clone)]
pub struct CompileArguments {
    /// The GPU to compile for: sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100 or sm_120
    #[arg(long, value_name = "SM")]
    pub target: Option<String>,
    /// Leave device-side checks out: of bounds, of `injective` and of `assert`
    #[arg(long)]
    pub unchecked: bool,
    /// Let `print` tell values; it is left out otherwise
    #[arg(long)]
    pub prints: bool,
    /// Leave a pass out; may be repeated
    #[arg(long, value_name = "PASS")]
    pub without: Vec<String>,
    /// IR that takes the place of the kernels of its names, before all passes: what `krn build --emit ir --without …` prints,
    /// changed by hand, or tile programs
    #[arg(long, value_name = "FILE.kir")]
    pub ir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct BuildOptions {
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where to write; standard output if left out, or `-`
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t)]
    pub emit: Emit,
    /// Only this kernel; the others are checked all the same
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// A dimension that is known now: -D k=64; the kernels that have it take no other size, and trip counts are exact
    #[arg(short = 'D', value_name = "NAME=SIZE", num_args = 1.., value_delimiter = ',')]
    pub dims: Vec<String>,
    /// Also make a variant for these sizes: --for m=4096,n=4096; may be repeated
    #[arg(long = "for", value_name = "NAME=SIZE,…")]
    pub for_sizes: Vec<String>,
    #[command(flatten)]
    pub compile: CompileArguments,
    /// Leave the source out of a document (--emit fat): programs then run the variants that it has, and compile no others
    #[arg(long)]
    pub no_source: bool,
    /// Print the IR after a pass (or after `all`) to standard error; may be repeated
    #[arg(long, value_name = "PASS")]
    pub print_after: Vec<String>,
    /// Print the IR before a pass (or before `all`) to standard error; may be repeated
    #[arg(long, value_name = "PASS")]
    pub print_before: Vec<String>,
    /// Print how long each pass took to standard error
    #[arg(long)]
    pub time_passes: bool,
    #[command(flatten)]
    pub levels: LevelArguments,
    #[arg(long, value_enum, default_value_t)]
    pub message_format: MessageFormat,
}

#[derive(Args, Debug)]
pub struct OptOptions {
    /// A .kir file, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Passes to run, in order; none only parses, verifies and prints
    #[arg(long, value_name = "PASSES", value_delimiter = ',')]
    pub passes: Vec<String>,
    #[arg(long, value_name = "SM", default_value = "sm_90")]
    pub target: String,
    /// Where to write; standard output if left out, or `-`
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
}

/// One kernel of a file, its sizes and its data.
#[derive(Args, Clone, Debug)]
pub struct KernelArguments {
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Which kernel, where the file has several
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// A dimension: -D n=1000; several as -D m=100 n=50 or -D m=100,n=50
    #[arg(short = 'D', value_name = "NAME=SIZE", num_args = 1.., value_delimiter = ',')]
    pub dims: Vec<String>,
    /// Compile for exactly the sizes that -D gives: trip counts are exact, other sizes are refused; with --kernel, those
    /// of that kernel alone
    #[arg(long)]
    pub specialize: bool,
    /// A scalar parameter (a struct's field by `name.field=value`): --set alpha=2.0
    #[arg(long, value_name = "NAME=VALUE", num_args = 1..)]
    pub set: Vec<String>,
    /// An input (a struct's field by `name.field=…`): a .npy file, FILE.npz:NAME (or FILE.npz for its array NAME), floats of another precision by `FILE.npy as bf16`, random, random(LOW,HIGH), zeros, ones, iota, ramp(LOW,HIGH), permutation or special; LOW and HIGH may be `n - 1` and the like. Left out, as the file's `krn-test` comments say, or random
    #[arg(long = "in", value_name = "NAME=WHAT", num_args = 1..)]
    pub inputs: Vec<String>,
    /// Picks the random inputs
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

#[derive(Args, Debug)]
pub struct RunOptions {
    #[command(flatten)]
    pub kernel: KernelArguments,
    /// Write a result or inout array to a .npy file, or several into one FILE.npz (:NAME calls them otherwise)
    #[arg(long = "out", value_name = "NAME=FILE", num_args = 1..)]
    pub outputs: Vec<String>,
    /// auto, emulator, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    pub device: Selection,
    #[command(flatten)]
    pub compile: CompileArguments,
    #[command(flatten)]
    pub levels: LevelArguments,
    /// Do not check the outputs against the reference evaluator
    #[arg(long)]
    pub no_check: bool,
    /// Check every element, however long it takes
    #[arg(long, conflicts_with = "no_check")]
    pub full_check: bool,
    /// Stop at races between threads and at reads of what nobody has written; on the emulator, many times slower
    #[arg(long, conflicts_with = "bisect")]
    pub sanitize: bool,
    /// Turns that a `while` at kernel level may have, 0 for any number [default: 100000]
    #[arg(long, value_name = "TURNS")]
    pub turns: Option<u64>,
    /// Add the passes one by one, and name the first with which the outputs differ from the reference
    #[arg(long, conflicts_with_all = ["no_check", "outputs"])]
    pub bisect: bool,
    /// Run this PTX, which `krn build` wrote of the same file and somebody changed since, in the place of the compiler's
    #[arg(long, value_name = "FILE", conflicts_with = "bisect")]
    pub ptx: Option<PathBuf>,
    /// Print one JSON object a kernel
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct TestOptions {
    /// .krn files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only this kernel, of those files that have it
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// A size at which `--costs` counts, in the place of those of `cost` directives: -D n=4096
    #[arg(short = 'D', value_name = "NAME=SIZE", num_args = 1.., value_delimiter = ',', requires = "costs")]
    pub dims: Vec<String>,
    /// Picks the random inputs
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// auto, emulator, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    pub device: Selection,
    #[command(flatten)]
    pub compile: CompileArguments,
    #[command(flatten)]
    pub levels: LevelArguments,
    /// Stop at races between threads and at reads of what nobody has written; on the emulator, many times slower
    #[arg(long)]
    pub sanitize: bool,
    /// Compare the time that every kernel is predicted to take with the table FILE.costs beside the file, and fail where it
    /// rose by more than 2 %; checks no results
    #[arg(long, conflicts_with_all = ["sanitize", "json", "seed"])]
    pub costs: bool,
    /// One table for all files, in the place of one beside each
    #[arg(long, requires = "costs", value_name = "TABLE")]
    pub table: Option<PathBuf>,
    /// Write the table instead
    #[arg(long, requires = "costs")]
    pub accept: bool,
    /// Why lines may cost more than they did: it is written beside them
    #[arg(long, requires = "accept", value_name = "REASON")]
    pub because: Option<String>,
    /// One line a kernel instead of one a file
    #[arg(short, long)]
    pub verbose: bool,
    /// Print one JSON object a kernel
    #[arg(long)]
    pub json: bool,
}

impl TestOptions {
    /// Whether a kernel is one of those that are asked for.
    pub fn asks_for(&self, kernel: &str) -> bool {
        self.kernel.as_ref().is_none_or(|name| kernel == name)
    }
}

/// How to measure, and what a launch is good for.
#[derive(Args, Clone, Debug)]
pub struct MeasureArguments {
    /// Measurements; left out, about two seconds' worth
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// Launches before the first measurement; left out, a tenth of a second's worth
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub warmup: Option<u32>,
    /// Launches in one measurement; left out, as many as take 0.2 ms
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub batch: Option<u32>,
    /// Floating-point operations of one launch, over dimensions: --flops '2*m*n*k'; left out, counted from the kernel
    #[arg(long, value_name = "EXPR")]
    pub flops: Option<String>,
    /// Useful bytes of one launch, over dimensions; left out, each field of an input read once and of a result
    /// written once
    #[arg(long, value_name = "EXPR")]
    pub bytes: Option<String>,
}

#[derive(Args, Debug)]
pub struct BenchOptions {
    #[command(flatten)]
    pub kernel: KernelArguments,
    /// auto, emulator, cuda or cuda:N; the emulator counts instructions, it has no time
    #[arg(long, default_value = "auto")]
    pub device: Selection,
    #[command(flatten)]
    pub compile: CompileArguments,
    #[command(flatten)]
    pub measure: MeasureArguments,
    /// Measure this PTX, which `krn build` wrote of the same file and somebody changed since, in the place of the compiler's
    #[arg(long, value_name = "FILE")]
    pub ptx: Option<PathBuf>,
    /// Measure the plan that is right for all sizes, in the place of the code for these
    #[arg(long)]
    pub general: bool,
    /// Measure each schedule of this file, which has schedules of the kernel and nothing else, in the place of the kernel's
    /// own, in turns with it
    #[arg(long, value_name = "FILE.krn", conflicts_with_all = ["ptx", "general"])]
    pub schedules: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ProfileOptions {
    #[command(flatten)]
    pub profile: ProfileArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ReportOptions {
    #[command(flatten)]
    pub profile: ProfileArguments,
    /// Where to write the page
    #[arg(short, long, value_name = "PATH", default_value = "report.html")]
    pub output: PathBuf,
}

/// What a kernel is counted with, and held against.
#[derive(Args, Debug)]
pub struct ProfileArguments {
    #[command(flatten)]
    pub kernel: KernelArguments,
    /// The GPU whose limits are compared with: h200, h100, a100, rtx3090, rtx4090 or t4
    #[arg(long, value_name = "NAME", default_value = "h200")]
    pub gpu: String,
    /// Where time is measured, beside what the emulator counts: cuda or cuda:N; auto, where there is one
    #[arg(long, default_value = "auto")]
    pub device: Selection,
    #[command(flatten)]
    pub compile: CompileArguments,
    #[command(flatten)]
    pub measure: MeasureArguments,
}

#[derive(Args, Debug)]
pub struct LadderOptions {
    #[command(flatten)]
    pub kernel: KernelArguments,
    /// auto, emulator, cuda or cuda:N; the emulator counts instructions, it has no time
    #[arg(long, default_value = "auto")]
    pub device: Selection,
    #[command(flatten)]
    pub compile: CompileArguments,
    #[command(flatten)]
    pub measure: MeasureArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ExplainOptions {
    /// A .krn file, or a code such as E0101; without either, lists the codes
    #[arg(value_name = "FILE|CODE")]
    pub subject: Option<String>,
    /// Only the schedule of this kernel
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// A dimension that is known at compile time, as in `krn build`; with --kernel, one of that kernel alone
    #[arg(short = 'D', value_name = "NAME=SIZE", num_args = 1.., value_delimiter = ',')]
    pub dims: Vec<String>,
    /// The sizes whose code is explained, instead of representative ones: --for m=4096,n=4096
    #[arg(long = "for", value_name = "NAME=SIZE,…")]
    pub for_sizes: Option<String>,
    #[command(flatten)]
    pub compile: CompileArguments,
    #[arg(long, value_enum, default_value_t)]
    pub message_format: MessageFormat,
}

#[derive(Args, Debug)]
pub struct ReduceOptions {
    /// The file to make small; it stays as it is
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where the smallest file goes, as soon as there is one; NAME.reduced.krn beside FILE if left out
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Seconds that the command may take: one that takes longer did not succeed
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// Exits with 0 where a file still shows what is looked for. `{}` is the file to look at; it comes last where no `{}` stands
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
