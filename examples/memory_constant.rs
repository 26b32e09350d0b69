//! Constants and statics: what belongs to a module and not to an argument.
//!
//!     cargo run --example memory_constant
//!
//! A `const` array is known when the kernel is compiled, and lies in constant memory (64 KiB for all of a module's; an
//! array beyond that lies in device memory). So a host writes a constant by writing it into the source: here, the
//! coefficients of a filter. A `static` is a variable in device memory that keeps its value between launches; the host
//! reads and writes it by name.

use anyhow::{Result, ensure};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Argument, Array, Device};

/// The kernel for these coefficients.
fn source(taps: &[f32]) -> String {
    let list = taps.iter().map(|tap| format!("{tap:?}")).collect::<Vec<_>>().join(", ");
    let count = taps.len();
    format!(
        "const TAPS: f32[{count}] = [{list}]
         static gain: f32[2] = [1.0, 0.0]
         static samples: u64 = 0

         kernel filter(x: f32[n], y: inout f32[m])
         where n >= m + {count} {{
             y[i] = gain[0] * sum(k in 0..{count}: TAPS[k] * x[i + k]) + gain[1]
             samples += m as u64
         }}"
    )
}

fn main() -> Result<()> {
    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let text = source(&[0.25, 0.5, 0.25]);
    let compiled = compile(&SourceFile::new("filter.krn", text), &CompileOptions::default())?.compiled;
    let module = device.load(&compiled)?;
    let filter = module.kernel("filter")?;

    let m = 1000;
    let x = Array::from_slice(&device, [m + 3], &vec![2.0f32; m + 3])?;
    let y = Array::<f32, 1>::zeros(&device, [m])?;
    let arguments = [("x", Argument::Array(x.dynamic())), ("y", Argument::Array(y.dynamic()))];
    filter.launch(&arguments)?;
    ensure!(y.to_vec()? == vec![2.0; m], "a wrong sum");

    let gain = module.static_value::<f32>("gain")?;
    gain.write(&[10.0, 0.5])?;
    filter.launch(&arguments)?;
    let samples = module.static_value::<u64>("samples")?;
    println!(
        "{}: gain {:?} makes {:?}; {:?} samples so far",
        device.description(),
        gain.read()?,
        y.view(0..4)?.to_vec()?,
        samples.read()?
    );
    ensure!(y.to_vec()? == vec![20.5; m] && samples.read()? == [2000], "a wrong result");

    match module.static_value::<f64>("gain") {
        Err(error) => println!("refused: {error}"),
        Ok(_) => anyhow::bail!("a static was given out as another type"),
    }
    Ok(())
}
