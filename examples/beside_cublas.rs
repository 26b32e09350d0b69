//! Beside another CUDA library: a product by cuBLAS, and a kernel of ours behind it on the same stream.
//!
//!     cargo run --release --example beside_cublas
//!     cargo run --release --example beside_cublas -- /usr/local/cuda/lib64/libcublas.so.12
//!
//! cuBLAS is loaded when the program runs; where there is none, or no GPU, it says so. Two of the matrices are arrays of
//! ours, which cuBLAS finds by their addresses; the result lies in memory that the driver gave, which our kernel borrows.
//! Nothing is waited for between the two: the stream keeps them in order.

use anyhow::{Context, Result, ensure};
use krn::{Argument, Array, Device, Error, Module, Selection, ViewMut};
use libloading::Library;
use std::ffi::{c_int, c_void};

/// What one would else pay another pass over the memory for, had cuBLAS no name for it.
const EPILOGUE: &str = "
kernel bias_relu(c: inout f32[m, n], bias: f32[n]) { c[i, j] = max(c[i, j] + bias[j], 0.0) }
";

const NAMES: [&str; 7] = [
    "libcublas.so.13",
    "libcublas.so.12",
    "libcublas.so.11",
    "libcublas.so",
    "cublas64_13.dll",
    "cublas64_12.dll",
    "cublas64_11.dll",
];
const DRIVERS: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

fn main() -> Result<()> {
    let device = match Device::open_as(Selection::Cuda(0)) {
        Err(Error::NoDevice(what)) => {
            println!("nothing to run on: {what}");
            return Ok(());
        }
        device => device?,
    };
    let given = std::env::args().nth(1);
    let names: Vec<&str> = given.as_deref().map_or(NAMES.to_vec(), |path| vec![path]);
    let Some(cublas) = open(&names) else {
        println!("nothing to run beside: there is no cuBLAS ({})", names.join(", "));
        return Ok(());
    };
    let driver = open(&DRIVERS).context("the driver was there a moment ago")?;

    let (m, k, n) = (96, 64, 80);
    let values = |count: usize, step: usize| -> Vec<f32> {
        (0..count).map(|at| (at * step % 23) as f32 / 8.0 - 1.0).collect()
    };
    let (a, b, bias) = (values(m * k, 7), values(k * n, 5), values(n, 3));
    let ours_a = Array::from_slice(&device, [m, k], &a)?;
    let ours_b = Array::from_slice(&device, [k, n], &b)?;
    let ours_bias = Array::from_slice(&device, [n], &bias)?;
    let stream = device.stream()?;
    let module = Module::from_source(&device, "epilogue.krn", EPILOGUE)?;
    let bias_relu = module.kernel("bias_relu")?;

    // Their calls are for the context that is current on this thread, which this makes ours.
    device.synchronize()?;
    let theirs = Memory::new(&driver, m * n * size_of::<f32>())?;
    let blas = Blas::new(&cublas, stream.raw()?)?;
    // SAFETY: so many bytes lie there until `theirs` is dropped, after the view and all work on it.
    let mut c: ViewMut<'_, f32, 2> = unsafe { ViewMut::from_raw(&device, theirs.pointer, [m, n])? };

    let address = |array: &Array<f32, 2>| array.pointers().next().unwrap_or_default();
    let (at_a, at_b, at_c) = (address(&ours_a), address(&ours_b), theirs.pointer);
    stream
        .foreign()
        .reads(&ours_a)
        .reads(&ours_b)
        .writes(&mut c)
        .queue(|| blas.product([m, k, n], at_a, at_b, at_c))??;
    let arguments = [("c", Argument::Array(c.dynamic())), ("bias", Argument::Array(ours_bias.dynamic()))];
    bias_relu.launch_on(&stream, &arguments)?;
    stream.synchronize()?;

    let result = c.to_vec()?;
    let mut worst = 0.0f32;
    for (at, value) in result.iter().enumerate() {
        let (i, j) = (at / n, at % n);
        let sum: f32 = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        worst = worst.max((value - (sum + bias[j]).max(0.0)).abs());
    }
    println!(
        "a product by cuBLAS, then bias and relu by Krn on its stream: at most {worst:e} away from the host's"
    );
    ensure!(worst < 1e-3, "the results differ");
    Ok(())
}

/// The first of these libraries that is there.
fn open(names: &[&str]) -> Option<Library> {
    // SAFETY: their initialisers are NVIDIA's.
    names.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}

/// Calls a function of a library by name, with arguments of these types, and checks that it answers 0.
macro_rules! call {
    ($library:expr, $name:literal, $($argument:expr => $ty:ty),*) => {{
        // SAFETY: the library's function of that name has these arguments; what they point to is there.
        let status = unsafe {
            let function = $library.get::<unsafe extern "C" fn($($ty),*) -> c_int>($name)?;
            function($($argument),*)
        };
        match status {
            0 => Ok(()),
            status => Err(anyhow::anyhow!("{} answers {status}", $name.escape_ascii())),
        }
    }};
}

/// Memory of the driver's, freed when it is dropped.
struct Memory<'l> {
    driver: &'l Library,
    pointer: u64,
}

impl<'l> Memory<'l> {
    fn new(driver: &'l Library, bytes: usize) -> Result<Self> {
        let mut pointer = 0u64;
        call!(driver, b"cuMemAlloc_v2", &mut pointer => *mut u64, bytes => usize)?;
        Ok(Self { driver, pointer })
    }

    fn free(&self) -> Result<()> {
        call!(self.driver, b"cuMemFree_v2", self.pointer => u64)
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.free() {
            eprintln!("{error}");
        }
    }
}

/// A handle of cuBLAS that queues its work on one stream.
struct Blas<'l> {
    cublas: &'l Library,
    handle: *mut c_void,
}

impl<'l> Blas<'l> {
    fn new(cublas: &'l Library, stream: *mut c_void) -> Result<Self> {
        let mut handle: *mut c_void = std::ptr::null_mut();
        call!(cublas, b"cublasCreate_v2", &mut handle => *mut *mut c_void)?;
        let blas = Self { cublas, handle };
        call!(cublas, b"cublasSetStream_v2", handle => *mut c_void, stream => *mut c_void)?;
        Ok(blas)
    }

    /// Queues `c = a b` for row-major matrices: to cuBLAS, which counts by columns, they are the transposed ones, and
    /// the product of those is `b a`.
    fn product(&self, sizes: [usize; 3], a: u64, b: u64, c: u64) -> Result<()> {
        const AS_IT_IS: c_int = 0;
        let [m, k, n] = sizes.map(|size| c_int::try_from(size).unwrap_or(c_int::MAX));
        let (one, zero) = (1.0f32, 0.0f32);
        call!(
            self.cublas, b"cublasSgemm_v2", self.handle => *mut c_void,
            AS_IT_IS => c_int, AS_IT_IS => c_int, n => c_int, m => c_int, k => c_int,
            &one => *const f32, b => u64, n => c_int, a => u64, k => c_int,
            &zero => *const f32, c => u64, n => c_int
        )
    }

    fn destroy(&self) -> Result<()> {
        call!(self.cublas, b"cublasDestroy_v2", self.handle => *mut c_void)
    }
}

impl Drop for Blas<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.destroy() {
            eprintln!("{error}");
        }
    }
}
