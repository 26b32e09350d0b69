//! The way of a launch that was made before: it asks for no memory of the host's, whatever takes turns.

#![cfg(target_os = "linux")]

mod fake;

use krn_compiler::{CompileOptions, compile, source::SourceFile};
use krn_runtime::{Array, Device, Launcher, Operand, Selection};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

/// Counts what each thread asks for. The driver, which is a library of its own, asks elsewhere.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TEXT: &str = "
kernel add(x: f32[n], y: f32[n], z: inout f32[n]) { z[i] = x[i] + y[i] }
kernel axpy(alpha: f32, x: f32[n], y: inout f32[n]) { y[i] += alpha * x[i] }
// Two launches, and scratch memory between them.
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }
// Checked on the device.
kernel gather(x: f32[n], at: i32[n], y: inout f32[n]) { y[i] = x[at[i]] }
";

fn array(array: &Array<f32, 1>) -> Operand<'_> {
    Operand::Array(array.dynamic())
}

#[test]
fn launches_that_were_made_before_take_no_memory() {
    fake::with_driver("launches_that_were_made_before_take_no_memory", "", |_| {
        let device = Device::open_as(Selection::Cuda(0)).expect("the fake one");
        let compiled = compile(&SourceFile::new("path.krn", TEXT), &CompileOptions::for_target("sm_90"));
        let module = Arc::new(device.load(&compiled.expect("it compiles").compiled).expect("it loads"));
        let [add, axpy, total, gather] =
            ["add", "axpy", "total", "gather"].map(|name| Launcher::new(&module, name).expect("there"));
        let streams = [0, 1].map(|_| device.stream().expect("opens"));
        let sum = Array::<f32, 0>::zeros(&device, []).expect("small");
        // As many as a kernel keeps plans for, on two streams.
        let sets: Vec<_> = [8, 9, 1000, 1 << 20]
            .map(|count| {
                let zeros = || Array::<f32, 1>::zeros(&device, [count]).expect("small");
                let at = Array::<i32, 1>::zeros(&device, [count]).expect("small");
                (zeros(), zeros(), zeros(), at)
            })
            .into();
        let round = |alpha: f32| {
            for stream in &streams {
                for (x, y, z, at) in &sets {
                    add.launch(stream, &[array(x), array(y), array(z)])?;
                    axpy.launch(stream, &[Operand::value(&alpha), array(x), array(z)])?;
                    total.launch(stream, &[array(z), Operand::Array(sum.dynamic())])?;
                    gather.launch(stream, &[array(x), Operand::Array(at.dynamic()), array(y)])?;
                }
            }
            Ok::<(), krn_runtime::Error>(())
        };
        let before = ASKED.get();
        round(1.0).expect("queued");
        assert!(ASKED.get() > before, "plans are made, and it is counted");
        let before = ASKED.get();
        for alpha in 0..50 {
            round(alpha as f32).expect("queued");
        }
        assert_eq!(ASKED.get() - before, 0);
        device.synchronize().expect("nothing failed");
    });
}
