//! What `print` tells, and in which order; that it does so once for each iteration, whatever passes do; and that it costs
//! nothing where it is left out.

use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, CompiledModule, compile};
use krn_runtime::{Argument, Array, Device, Error, ModuleOptions, Prints, kernels};
use std::sync::mpsc::{Receiver, channel};

kernels!("prints.krn", name = silent, targets = ["sm_90"]);
kernels!("prints.krn", name = telling, targets = ["sm_90"], prints = true);

fn iota(shape: &[u64]) -> HostArray {
    let count = shape.iter().product::<u64>();
    let bytes = (0..count as i32).flat_map(i32::to_le_bytes).collect();
    HostArray { element: ElementType::scalar(Scalar::I32), shape: shape.to_vec(), bytes }
}

fn printing(text: &str, without: &[&str]) -> CompiledModule {
    let mut options = CompileOptions { prints: true, ..CompileOptions::for_target("sm_90") };
    options.without = without.iter().map(ToString::to_string).collect();
    compile(&SourceFile::new("t.krn", text), &options)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .compiled
}

fn watched() -> (Device, Receiver<Prints>) {
    let device = crate::support::device();
    let (sender, receiver) = channel();
    device.watch_prints(move |prints| sender.send(prints.clone()).expect("the test listens"));
    (device, receiver)
}

/// What a kernel whose array `x` counts prints.
fn told_by(module: &CompiledModule, shape: &[u64]) -> String {
    let (device, receiver) = watched();
    let module = device.load(module).expect("it loads");
    module.kernel("k").and_then(|kernel| kernel.run(&[("x", &iota(shape))])).expect("it runs");
    receiver.try_iter().map(|prints| format!("{prints}\n")).collect()
}

fn told(text: &str, shape: &[u64]) -> String {
    told_by(&printing(text, &[]), shape)
}

/// Passes without which every iteration has a thread of its own, or all have one.
const SIMPLE: [&str; 12] = [
    "fuse_launches",
    "fuse",
    "tile",
    "stage",
    "split_reductions",
    "privatize",
    "unroll_short",
    "per_thread",
    "unroll",
    "peel",
    "cse",
    "vectorize",
];

#[test]
fn lines_are_in_the_order_of_iterations() {
    let text = "\
fn f(v: i32) -> i32 {
    print(v)
    v + 1
}
kernel k(x: i32[n]) -> y: i32[n] {
    forall i in n {
        var s = 0
        if x[i] % 2 == 1 {
            print(x[i], i + 1, x[i] > 1)
        }
        for t in 0..2 {
            s += f(x[i])
        }
        while s < 6 {
            print(s)
            s += 3
        }
        y[i] = s
    }
}
";
    let lines = "\
t.krn:2:5: for i = 0, t = 0: v = 0
t.krn:2:5: for i = 0, t = 1: v = 0
t.krn:15:13: for i = 0: s = 2
t.krn:15:13: for i = 0: s = 5
t.krn:9:13: for i = 1: x[i] = 1, i + 1 = 2, x[i] > 1 = false
t.krn:2:5: for i = 1, t = 0: v = 1
t.krn:2:5: for i = 1, t = 1: v = 1
t.krn:15:13: for i = 1: s = 4
t.krn:2:5: for i = 2, t = 0: v = 2
t.krn:2:5: for i = 2, t = 1: v = 2
";
    assert_eq!(told(text, &[3]), lines);
    assert_eq!(told_by(&printing(text, &SIMPLE), &[3]), lines);
}

#[test]
fn a_team_prints_once_and_nobody_past_the_end() {
    let text = "\
kernel k(x: i32[m, n]) -> y: i32[m] {
    forall r in m {
        let s = sum(c: x[r, c])
        print(s)
        y[r] = max(c: { if c % 100 == 7 { print(c) }; x[r, c] - s })
    }
}
";
    let mut lines = String::new();
    for r in 0..3 {
        let s: i32 = (0..150).map(|c| 150 * r + c).sum();
        lines += &format!("t.krn:4:9: for r = {r}: s = {s}\n");
        for c in [7, 107] {
            lines += &format!("t.krn:5:43: for r = {r}, c = {c}: c = {c}\n");
        }
    }
    assert_eq!(told(text, &[3, 150]), lines);
    assert_eq!(told_by(&printing(text, &SIMPLE), &[3, 150]), lines);
}

#[test]
fn every_iteration_prints_once_where_threads_have_several() {
    for n in [1, 31, 33, 1000, 4096] {
        let text = "kernel k(x: i32[n]) -> y: i32[n] { forall i in n { print(); y[i] = x[i] + 1 } }\n";
        let lines: String = (0..n).map(|i| format!("t.krn:1:52: for i = {i}\n")).collect();
        assert_eq!(told(text, &[n]), lines);
    }
}

#[test]
fn structs_and_all_types_are_told() {
    let text = "\
struct Inner { a: i8, v: f16 }
struct Outer { on: bool, inner: Inner, d: f64 }
kernel k(x: i32[n]) -> y: i32[n] {
    forall i in n {
        let o = Outer { on: i == 0, inner: Inner { a: -1, v: 1.5 }, d: 0.1 }
        print(o, o.inner.v, (0 - 1) as u64, 3000000000u32, 1.0 / 3.0)
        y[i] = x[i]
    }
}
";
    let line = "t.krn:6:9: for i = 0: o = { on: true, inner.a: -1, inner.v: 1.5, d: 0.1 }, o.inner.v = 1.5, \
                (0 - 1) as u64 = 18446744073709551615, 3000000000u32 = 3000000000, 1.0 / 3.0 = 0.33333334\n";
    assert_eq!(told(text, &[1]), line);
}

#[test]
fn at_kernel_level_a_print_is_a_launch() {
    let text = "\
kernel k(x: i32[n]) -> y: i32[n] {
    let s = sum(i: x[i])
    print(s)
    for t in 0..2 {
        y[i] = s
        print()
    }
}
";
    assert_eq!(told(text, &[4]), "t.krn:3:5: s = 6\nt.krn:6:9: for t = 0\nt.krn:6:9: for t = 1\n");
}

#[test]
fn what_did_not_fit_is_counted() {
    let text = "kernel k(x: i32[n]) -> y: i32[n] { forall i in n { print(x[i]); y[i] = x[i] } }\n";
    let told = told(text, &[6000]);
    assert_eq!(told.lines().count(), 4097);
    assert_eq!(told.lines().last(), Some("t.krn: kernel `k`: … and 1,904 more"));
}

#[test]
fn launches_are_told_in_their_order_and_once() {
    let text = "kernel k(x: inout i32[n]) { forall i in n { print(x[i]); x[i] += 1 } }\n";
    let (device, receiver) = watched();
    let module = ModuleOptions::new().prints(true).from_source(&device, "t.krn", text).expect("good");
    let kernel = module.kernel("k").expect("there");
    let x = Array::<i32, 1>::zeros(&device, [2]).expect("small");
    for _ in 0..2 {
        kernel.launch(&[("x", Argument::Array(x.dynamic()))]).expect("launched");
    }
    device.synchronize().expect("done");
    let values = |prints: &Prints| prints.lines.iter().map(|line| line.to_string()).collect::<Vec<_>>();
    let line = |i: u64, value: u64| format!("1:45: for i = {i}: x[i] = {value}");
    let all: Vec<Prints> = receiver.try_iter().collect();
    assert_eq!(
        all.iter().flat_map(values).collect::<Vec<_>>(),
        [line(0, 0), line(1, 0), line(0, 1), line(1, 1)]
    );
    device.synchronize().expect("done");
    assert!(receiver.try_recv().is_err(), "it is told once");
    // A captured graph prints when it runs.
    let stream = device.stream().expect("opens");
    kernel.prepare(&[("n", 2.into())]).expect("good");
    let graph = stream
        .capture(|captured| kernel.launch_on(captured, &[("x", Argument::Array(x.dynamic()))]).map(drop))
        .expect("captured");
    stream.synchronize().expect("done");
    assert!(receiver.try_recv().is_err(), "nothing ran");
    for _ in 0..2 {
        graph.launch(&stream).expect("launched");
    }
    stream.synchronize().expect("done");
    let all: Vec<Prints> = receiver.try_iter().collect();
    assert_eq!(
        all.iter().flat_map(values).collect::<Vec<_>>(),
        [line(0, 2), line(1, 2), line(0, 3), line(1, 3)]
    );
}

#[test]
fn typed_kernels_print_where_the_macro_was_asked_for_it() {
    let (device, receiver) = watched();
    let mut x = Array::from_slice(&device, [2], &[1.0f32, 3.0]).expect("small");
    silent::Kernels::load(&device).and_then(|kernels| kernels.halve(&mut x)).expect("launched");
    device.synchronize().expect("done");
    assert!(receiver.try_recv().is_err(), "nobody asked");
    let kernels = telling::Kernels::load(&device).expect("it loads");
    kernels.halve(&mut x).expect("launched");
    kernels.stream().synchronize().expect("done");
    let told = receiver.try_recv().expect("it has printed");
    let file = "tests/prints.krn";
    assert_eq!(
        told.to_string(),
        format!("{file}:5:9: for i = 0: x[i] = 0.5\n{file}:5:9: for i = 1: x[i] = 1.5")
    );
    // What is compiled when its sizes come prints as well; reading an array tells it.
    let mut x = Array::from_slice(&device, [100_003], &vec![4.0f32; 100_003]).expect("small");
    kernels.halve(&mut x).expect("launched");
    assert_eq!(x.to_vec().expect("there")[100_002], 2.0);
    let told = receiver.try_recv().expect("it has printed");
    assert_eq!((told.kernel.as_str(), told.lines.len(), told.left_out), ("halve", 4096, 100_003 - 4096));
}

#[test]
fn turns_of_a_captured_loop_are_told_in_their_order() {
    let text = "\
kernel k(x: inout i32[n]) {
    while max(i: x[i]) < 12 {
        forall i in n { print(x[i]); x[i] += 5 }
    }
}
";
    let (device, receiver) = watched();
    let module = ModuleOptions::new().prints(true).from_source(&device, "t.krn", text).expect("good");
    let kernel = module.kernel("k").expect("there");
    let x = Array::<i32, 1>::zeros(&device, [2]).expect("small");
    kernel.prepare(&[("n", 2.into())]).expect("good");
    let stream = device.stream().expect("opens");
    let graph = stream
        .capture(|captured| kernel.launch_on(captured, &[("x", Argument::Array(x.dynamic()))]).map(drop))
        .expect("captured");
    graph.launch(&stream).and_then(|()| stream.synchronize()).expect("it runs");
    let told: Vec<String> = receiver.try_iter().map(|prints| prints.to_string()).collect();
    let line = |i: u64, value: u64| format!("t.krn:3:25: for i = {i}: x[i] = {value}");
    let wanted = [line(0, 0), line(1, 0), line(0, 5), line(1, 5), line(0, 10), line(1, 10)];
    assert_eq!(told.join("\n"), wanted.join("\n"));
}

#[test]
fn what_a_failed_run_has_printed_is_told() {
    let text = "kernel k(x: i32[n]) -> y: i32[n] { forall i in n { print(x[x[i] + 1]); y[i] = x[i] } }\n";
    let (device, receiver) = watched();
    let module = device.load(&printing(text, &[])).expect("it loads");
    let failed = module.kernel("k").and_then(|kernel| kernel.run(&[("x", &iota(&[2]))]));
    let Err(Error::Bounds(failure)) = failed else { panic!("{failed:?}") };
    assert_eq!((failure.array.as_str(), failure.index), ("x", 2));
    let told = receiver.try_recv().expect("it has printed").to_string();
    assert!(told.starts_with("t.krn:1:52: for i = 0: x[x[i] + 1] = 1\nt.krn:1:52: for i = 1"), "{told}");
}

#[test]
fn code_without_prints_is_that_of_a_kernel_without_them() {
    let with = "\
kernel k(x: i32[n], at: i64[n]) -> y: i32[n] {
    forall i in n {
        print(x[at[i]], at[i])
        y[i] = x[at[i]]
        assert y[i] > 0
    }
    print()
    forall i in n { print(i) }
    y[i] += 1
}
";
    let without = with
        .replace("print(x[at[i]], at[i])", "                      ")
        .replace("print()", "       ")
        .replace("forall i in n { print(i) }", "                          ");
    let module = |text: &str, prints| {
        let options = CompileOptions { prints, ..CompileOptions::for_target("sm_90") };
        compile(&SourceFile::new("t.krn", text), &options).expect("it compiles").compiled
    };
    assert_eq!(module(with, false).ptx, module(&without, false).ptx);
    assert_eq!(module(with, false).manifest, module(&without, false).manifest);
    assert_ne!(module(with, true).ptx, module(with, false).ptx);
}
