//! Measures the error of the elementary functions, in ulp, and prints a Markdown table.
//!
//! `cargo run --release -p krn-compiler --example ulp -- [f32|f64|both|sizes] [--stride N] [--points N] [NAME ...]`
//!
//! f32: functions of one argument at every bit pattern (or every N-th), against f64; of two arguments, at
//! random ones. f64: at random arguments of every magnitude and in the interesting ranges, against 106-bit
//! arithmetic. `sizes` measures nothing and counts PTX instructions. `RUSTFLAGS=-Ctarget-cpu=native` makes the fused multiply-adds fast.

mod double_double;
mod points;
mod reference;

use krn_compiler::data::Scalar;
use krn_compiler::ptx::instruction::Op;
use krn_compiler::ptx::math::{MathFunction, emit, emit_fast, eval_f32, eval_f64};
use krn_compiler::ptx::{Entry, EntryBuilder, Reg, Statement, Type};

/// The largest error seen, and where.
#[derive(Clone, Debug, Default)]
struct Worst {
    error: f64,
    args: Vec<f64>,
    points: u64,
}

impl Worst {
    fn see(&mut self, error: f64, args: &[f64]) {
        self.points += 1;
        if error > self.error || error.is_nan() {
            *self = Worst { error, args: args.to_vec(), points: self.points };
        }
    }

    fn join(self, other: Worst) -> Worst {
        let points = self.points + other.points;
        let worst = if other.error > self.error { other } else { self };
        Worst { points, ..worst }
    }
}

fn sweep_f32(function: MathFunction, stride: u32) -> Worst {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let workers: Vec<_> = (0..threads)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut worst = Worst::default();
                let step = u64::from(stride) * u64::from(threads);
                let mut bits = u64::from(thread) * u64::from(stride);
                while bits <= u64::from(u32::MAX) {
                    let x = f32::from_bits(bits as u32);
                    let error = reference::error_f32(
                        eval_f32(function, &[x]),
                        reference::nearly_exact(function, &[x]),
                    );
                    worst.see(error, &[x.into()]);
                    bits += step;
                }
                worst
            })
        })
        .collect();
    workers
        .into_iter()
        .map(|worker| worker.join().expect("a worker ends"))
        .fold(Worst::default(), Worst::join)
}

fn random_f32(function: MathFunction, count: u64) -> Worst {
    let mut random = points::Random::new(1);
    let mut worst = Worst::default();
    for _ in 0..count {
        let args = points::arguments_f32(function, &mut random);
        let error = reference::error_f32(eval_f32(function, &args), reference::nearly_exact(function, &args));
        worst.see(error, &[args[0].into(), args[1].into()]);
    }
    worst
}

fn random_f64(function: MathFunction, count: u64) -> Worst {
    let mut random = points::Random::new(2);
    let mut worst = Worst::default();
    for _ in 0..count {
        let args = points::arguments_f64(function, &mut random);
        if let Some(exact) = reference::exact(function, &args) {
            worst.see(exact.error(eval_f64(function, &args)), &args);
        }
    }
    worst
}

fn print_row(function: MathFunction, scalar: Scalar, worst: &Worst, every: bool) {
    let args: Vec<String> = worst.args.iter().map(|arg| format!("{arg:e}")).collect();
    let ty = scalar.name();
    let points = if every { "all".to_owned() } else { format!("{:.1e}", worst.points as f64) };
    let bound = function.ulp_bound(scalar);
    let verdict = if worst.error <= bound { "" } else { " **over**" };
    println!(
        "| `{}` | {ty} | {:.3} | {bound}{verdict} | {} | {points} |",
        function.name(),
        worst.error,
        args.join(", ")
    );
}

/// Instructions on the usual path, and those behind the branch for large arguments.
fn count(entry: &Entry) -> String {
    let (mut usual, mut rare, mut inside) = (0, 0, false);
    for statement in &entry.body {
        match statement {
            Statement::Label(_) => inside = false,
            Statement::Instruction(_) if inside => rare += 1,
            Statement::Instruction(instruction) => {
                usual += 1;
                inside = matches!(instruction.op, Op::Bra(_));
            }
            _ => {}
        }
    }
    if rare == 0 { usual.to_string() } else { format!("{usual} (+ {rare})") }
}

fn print_sizes() {
    println!("| function | f32 | f64 | f32, fast |");
    println!("|---|---|---|---|");
    for function in MathFunction::ALL.iter().copied() {
        let build = |ty: Type, fast: bool| {
            let mut builder = EntryBuilder::new(function.name());
            let args: Vec<Reg> = (0..function.arity()).map(|_| builder.reg_for(ty, "x")).collect();
            let result = if fast {
                emit_fast(&mut builder, function, &args)
            } else {
                Some(emit(&mut builder, function, ty, &args))
            };
            result.map_or_else(|| "-".to_owned(), |_| count(builder.entry()))
        };
        let (narrow, wide, fast) = (build(Type::F32, false), build(Type::F64, false), build(Type::F32, true));
        println!("| `{}` | {narrow} | {wide} | {fast} |", function.name());
    }
}

fn main() {
    let (mut narrow, mut wide, mut stride, mut points) = (true, true, 1, 1_000_000);
    let mut names = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse().ok()).expect("a number follows");
        match arg.as_str() {
            "f32" => wide = false,
            "f64" => narrow = false,
            "both" => {}
            "sizes" => return print_sizes(),
            "--stride" => stride = number(),
            "--points" => points = u64::from(number()),
            _ => names.push(arg),
        }
    }
    println!("| function | type | largest error (ulp) | bound | at | points |");
    println!("|---|---|---|---|---|---|");
    for function in MathFunction::ALL.iter().copied() {
        if !names.is_empty() && !names.iter().any(|name| name == function.name()) {
            continue;
        }
        if narrow {
            let unary = function.arity() == 1;
            let worst = if unary { sweep_f32(function, stride) } else { random_f32(function, points * 10) };
            print_row(function, Scalar::F32, &worst, unary && stride == 1);
        }
        if wide {
            print_row(function, Scalar::F64, &random_f64(function, points), false);
        }
    }
}
