//! Softmax of each row of a NumPy file.
//!
//!     cargo run --example softmax -- scores.npy probabilities.npy
//!
//! The input holds `f32` numbers in two axes: `numpy.save("scores.npy", x.astype("float32"))`. Without arguments the
//! program makes up some scores and keeps the answer to itself.

use anyhow::{Context, Result, bail};
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Device, npy};
use std::fs;

const KERNEL: &str = include_str!("softmax.krn");

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (input, output) = match arguments.as_slice() {
        [] => (made_up()?, None),
        [input] => (read(input)?, None),
        [input, output] => (read(input)?, Some(output)),
        _ => bail!("give an input file and an output file: `softmax scores.npy probabilities.npy`"),
    };

    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let source = SourceFile::new("softmax.krn", KERNEL);
    let module = device.load(&compile(&source, &CompileOptions::default())?.compiled)?;
    // An array of another rank is refused here, by name and before anything runs.
    let outputs = module.kernel("softmax")?.run(&[("x", &input)])?;
    let (_, probabilities) = outputs.arrays.first().context("the kernel has one result")?;

    let values = probabilities.values::<f32>().context("it is f32")?;
    let cols = usize::try_from(input.shape[1])?.max(1);
    let worst = values.chunks(cols).map(|row| (row.iter().sum::<f32>() - 1.0).abs()).fold(0.0, f32::max);
    println!("{} rows of {cols}; a row's sum is at most {worst:e} away from 1", values.len() / cols);
    if let Some(output) = output {
        fs::write(output, npy::write(probabilities)).with_context(|| format!("cannot write `{output}`"))?;
    }
    anyhow::ensure!(worst < 1e-4, "rows do not add up to 1");
    Ok(())
}

fn read(path: &str) -> Result<HostArray> {
    let bytes = fs::read(path).with_context(|| format!("cannot read `{path}`"))?;
    npy::read(&bytes, &ElementType::scalar(Scalar::F32)).with_context(|| format!("in `{path}`"))
}

fn made_up() -> Result<HostArray> {
    let (rows, cols) = (64u64, 1000u64);
    let scores: Vec<f32> = (0..rows * cols).map(|at| 4.0 * (at as f32 * 0.37).sin()).collect();
    HostArray::from_values(&[rows, cols], &scores).context("as many values as the shape holds")
}
