//! Compiles a kernel with a pass of one's own, shows what the pass changed, and runs the kernel.
//!
//!     cargo run -p own-pass

use anyhow::{Context, Result};
use krn_compiler::data::HostArray;
use krn_compiler::passes::{PassSelection, PipelineOptions, TargetFacts};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Device, Selection};

const KERNEL: &str = "kernel reflect(x: f32[n]) -> y: f32[n] { y[i] = abs(2.0 * x[i]) }\n";

fn main() -> Result<()> {
    let source = SourceFile::new("reflect.krn", KERNEL);
    let mut options = CompileOptions::for_target("sm_90");
    options.pipeline = Some(own_pass::pipeline(&TargetFacts::new(90))?);
    // The runner prints and compares IR for every pass alike.
    options.passes = PipelineOptions {
        diff: PassSelection::Names(vec!["doubling".to_string()]),
        ..PipelineOptions::default()
    };
    let compilation = compile(&source, &options)?;
    print!("{}", compilation.printed);

    let device = Device::open_as(Selection::Emulator)?;
    let module = device.load(&compilation.compiled)?;
    let x = HostArray::from_values(&[4], &[-1.5f32, 0.0, 0.25, 8.0]).context("four values")?;
    let outputs = module.kernel("reflect")?.run(&[("x", &x)])?;
    let (name, y) = outputs.arrays.first().context("the kernel has one result")?;
    println!("{name} = {:?}", y.values::<f32>().context("it is f32")?);
    Ok(())
}
