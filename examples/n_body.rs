//! A few hundred bodies under their own gravity, step by step.
//!
//!     cargo run --release --example n_body -- 512 20
//!
//! The arrays stay on the device between the steps: they are uploaded once, each step updates them in place, and only
//! what is printed comes back. Momentum should stay what it is, whatever the bodies do.

use anyhow::{Context, Result};
use krn_compiler::data::{ElementType, HostArray};
use krn_compiler::manifest::ArgumentKind;
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Argument, Device, Kernel};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const KERNEL: &str = include_str!("n_body.krn");

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: u64| match arguments.next() {
        Some(text) => text.parse().with_context(|| format!("`{text}` is no number")),
        None => Ok(otherwise),
    };
    let (n, steps) = (number(256)?, number(10)?);

    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let source = SourceFile::new("n_body.krn", KERNEL);
    let module = device.load(&compile(&source, &CompileOptions::default())?.compiled)?;
    let advance = module.kernel("advance")?;

    // Host arrays hold structs as C would; `layout` says how the kernel wants them on the device.
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let bodies: Vec<[f32; 4]> = (0..n)
        .map(|_| [(); 4].map(|()| rng.random_range(-1.0..1.0f32)))
        .map(|[x, y, z, mass]| [x, y, z, mass.abs() / n as f32])
        .collect();
    let masses: Vec<f32> = bodies.iter().map(|body| body[3]).collect();
    let body = device.upload(&structs(&advance, "body", &bodies)?, advance.layout("body")?)?;
    let at_rest = vec![[0.0; 3]; bodies.len()];
    let velocity = device.upload(&structs(&advance, "velocity", &at_rest)?, advance.layout("velocity")?)?;
    let (dt, eps2) = (HostArray::from_value(0.01f32), HostArray::from_value(0.01f32));

    for step in 0..steps {
        advance.launch(&[
            ("body", Argument::Array(&body)),
            ("velocity", Argument::Array(&velocity)),
            ("dt", Argument::Value(&dt)),
            ("eps2", Argument::Value(&eps2)),
        ])?;
        if (step + 1) % 5 == 0 || step + 1 == steps {
            let (energy, momentum) = motion(&masses, &floats(&velocity.download()?));
            println!("step {:3}: kinetic energy {energy:.6}, momentum {momentum:.1e}", step + 1);
            anyhow::ensure!(momentum < 1e-4, "momentum appeared from nowhere");
        }
    }
    Ok(())
}

/// An array of the structs that the kernel's argument holds, whose fields are all `f32`.
fn structs<const FIELDS: usize>(
    kernel: &Kernel<'_>,
    name: &str,
    rows: &[[f32; FIELDS]],
) -> Result<HostArray> {
    let element = element(kernel, name).with_context(|| format!("the kernel has an array `{name}`"))?;
    anyhow::ensure!(element.size == 4 * FIELDS as u64, "`{}` has other fields", element.name);
    let bytes = rows.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    Ok(HostArray { element, shape: vec![rows.len() as u64], bytes })
}

fn element(kernel: &Kernel<'_>, name: &str) -> Option<ElementType> {
    let argument = kernel.manifest().arguments.iter().find(|argument| argument.name == name)?;
    match &argument.kind {
        ArgumentKind::Array { buffer, .. } => Some(buffer.element.clone()),
        _ => None,
    }
}

fn floats(array: &HostArray) -> Vec<f32> {
    let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    array.bytes.chunks_exact(4).map(number).collect()
}

/// Kinetic energy, and the length of the whole momentum.
fn motion(masses: &[f32], velocities: &[f32]) -> (f32, f32) {
    let mut energy = 0.0;
    let mut momentum = [0.0f32; 3];
    for (mass, v) in masses.iter().zip(velocities.chunks_exact(3)) {
        energy += 0.5 * mass * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        for axis in 0..3 {
            momentum[axis] += mass * v[axis];
        }
    }
    (energy, momentum.iter().map(|part| part * part).sum::<f32>().sqrt())
}
