//! Softmax of each row of a NumPy file.
//!
//!     cargo run --example softmax -- scores.npy probabilities.npy
//!
//! The input holds `f32` numbers in two axes: `numpy.save("scores.npy", x.astype("float32"))`. Without arguments the
//! program makes up some scores and keeps the answer to itself.

use anyhow::{Context, Result, bail};
use krn::{Array, Device, Element, HostArray, npy};
use std::fs;

krn::kernels!("softmax.krn");

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let (scores, output) = match arguments.as_slice() {
        [] => (made_up(&device)?, None),
        [input] => (read(&device, input)?, None),
        [input, output] => (read(&device, input)?, Some(output)),
        _ => bail!("give an input file and an output file: `softmax scores.npy probabilities.npy`"),
    };
    let probabilities = softmax::Kernels::load(&device)?.softmax(&scores)?;

    let [rows, cols] = probabilities.shape();
    let values = probabilities.to_vec()?;
    let sums = values.chunks(cols.max(1)).map(|row| row.iter().sum::<f32>());
    let worst = sums.map(|sum| (sum - 1.0).abs()).fold(0.0, f32::max);
    println!("{rows} rows of {cols}; a row's sum is at most {worst:e} away from 1");
    if let Some(output) = output {
        let bytes = npy::write(&probabilities.dynamic().download()?);
        fs::write(output, bytes).with_context(|| format!("cannot write `{output}`"))?;
    }
    anyhow::ensure!(worst < 1e-4, "rows do not add up to 1");
    Ok(())
}

fn read(device: &Device, path: &str) -> Result<Array<f32, 2>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read `{path}`"))?;
    let HostArray { shape, bytes, .. } =
        npy::read(&bytes, &f32::element_type()).with_context(|| format!("in `{path}`"))?;
    let [rows, cols] = shape[..] else {
        bail!("`{path}` holds {} axes, but scores have two", shape.len());
    };
    let values: Vec<f32> =
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    Ok(Array::from_slice(device, [usize::try_from(rows)?, usize::try_from(cols)?], &values)?)
}

fn made_up(device: &Device) -> Result<Array<f32, 2>> {
    let scores: Vec<f32> = (0..64 * 1000).map(|at| 4.0 * (at as f32 * 0.37).sin()).collect();
    Ok(Array::from_slice(device, [64, 1000], &scores)?)
}
