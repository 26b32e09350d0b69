//! What the first launch of a kernel costs beyond the context, and what follows it: a repeated launch, sizes that a loaded
//! guard covers, and sizes that need other code.
//!
//!     cargo build --release -p krn-runtime --example first_launch
//!     CUDA_CACHE_DISABLE=1 target/release/examples/first_launch      # nothing in the driver's cache
//!     target/release/examples/first_launch                           # the second time: from the driver's cache
//!
//! Host milliseconds from the call to the end of the work on the device, each in a device that has run a kernel before.
//! `compile` is from the text of the kernel to its plans. Needs a GPU.

use krn_compiler::{CompileOptions, compile, source::SourceFile};
use krn_runtime::{Argument, Device, DeviceArray, ElementType, Layout, Scalar, Stream, scalar};
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

/// A kernel of the examples: its file, its name, the sizes of the first launches, others for which the same code may run,
/// and others that divide nothing; its arrays with their axes, as places in the sizes.
struct Case {
    file: &'static str,
    text: &'static str,
    name: &'static str,
    sizes: [&'static [u64]; 3],
    arrays: &'static [(&'static str, &'static [usize])],
    scalar: Option<&'static str>,
}

const MATRICES: [&[u64]; 3] = [&[4096, 4096], &[8192, 4096], &[1001, 777]];

const CASES: [Case; 4] = [
    Case {
        file: "saxpy.krn",
        text: include_str!("../../examples/saxpy.krn"),
        name: "saxpy",
        sizes: [&[1 << 20], &[1 << 21], &[1_000_003]],
        arrays: &[("x", &[0]), ("y", &[0])],
        scalar: Some("alpha"),
    },
    Case {
        file: "softmax.krn",
        text: include_str!("../../examples/softmax.krn"),
        name: "softmax",
        sizes: MATRICES,
        arrays: &[("x", &[0, 1]), ("y", &[0, 1])],
        scalar: None,
    },
    Case {
        file: "layer_norm.krn",
        text: include_str!("../../examples/layer_norm.krn"),
        name: "layer_norm",
        sizes: MATRICES,
        arrays: &[("x", &[0, 1]), ("gain", &[1]), ("shift", &[1]), ("y", &[0, 1])],
        scalar: Some("epsilon"),
    },
    Case {
        file: "matmul.krn",
        text: include_str!("../../examples/matmul.krn"),
        name: "matmul",
        sizes: [&[4096, 4096, 4096], &[2048, 4096, 8192], &[1001, 777, 1003]],
        arrays: &[("a", &[0, 1]), ("b", &[1, 2]), ("c", &[0, 2])],
        scalar: None,
    },
];

fn main() -> Result<(), Failure> {
    let device = Device::open()?;
    println!("{}", device.description());
    let stream = device.stream()?;
    println!(
        "{:12} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "kernel", "compile", "first", "again", "covered", "other"
    );
    // The first row holds what the context and the driver's own first use cost: it is not a kernel's.
    for case in std::iter::once(&CASES[0]).chain(&CASES) {
        println!("{:12} {}", case.name, row(&device, &stream, case)?);
    }
    Ok(())
}

/// Milliseconds of one kernel, a column each.
fn row(device: &Device, stream: &Stream, case: &Case) -> Result<String, Failure> {
    let element = ElementType::scalar(Scalar::F32);
    let arrays = |sizes: &[u64]| -> Result<Vec<(&str, DeviceArray)>, Failure> {
        let mut made = Vec::new();
        for (name, axes) in case.arrays {
            let shape = axes.iter().map(|&axis| sizes[axis]).collect();
            made.push((*name, device.zeros(element.clone(), shape, Layout::Aos)?));
        }
        Ok(made)
    };
    let [first, covered, other] = case.sizes;
    let (first, covered, other) = (arrays(first)?, arrays(covered)?, arrays(other)?);
    let one = scalar(Scalar::F32, &1.0_f32.to_le_bytes());
    device.synchronize()?;
    let start = Instant::now();
    let compiled = compile(&SourceFile::new(case.file, case.text), &CompileOptions::default())?.compiled;
    let mut times = vec![start.elapsed()];
    let start = Instant::now();
    let module = device.load(&compiled)?;
    let kernel = module.kernel(case.name)?;
    let mut start = Some(start);
    for arrays in [&first, &first, &covered, &other] {
        let arguments = arrays.iter().map(|(name, array)| (*name, Argument::Array(array)));
        let arguments: Vec<_> =
            arguments.chain(case.scalar.map(|name| (name, Argument::Value(&one)))).collect();
        let from = start.take().unwrap_or_else(Instant::now);
        kernel.launch_on(stream, &arguments)?;
        stream.synchronize()?;
        times.push(from.elapsed());
    }
    Ok(times.iter().map(|time| format!("{:8.2}", time.as_secs_f64() * 1e3)).collect::<Vec<_>>().join(" "))
}
