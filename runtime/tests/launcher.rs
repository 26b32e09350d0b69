//! Launches by position: plans are made once for each type, shape and decisive value, and never used for others.

use crate::support::compiled;
use krn_runtime::{Array, Device, Error, Launcher, Layout, Operand, Selection, Stream};
use std::sync::Arc;

const TEXT: &str = "
// y = alpha x + y, in place.
kernel axpy(alpha: f32, x: f32[n], y: inout f32[n]) { y[i] += alpha * x[i] }
// Every k-th element: how many depends on a value.
kernel every(x: f32[n], k: i64) -> y: f32[n / k] where k > 0 { y[i] = x[i * k] }
// A product, whose variants depend on the shape.
kernel product(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }
// Checked on the device.
kernel gather(x: f32[n], at: i32[m]) -> y: f32[m] { y[i] = x[at[i]] }
// Bound by an extent that is more than the dimension.
kernel pairs(x: f32[2 * h + 1]) -> y: f32[h] { y[i] = x[2 * i] + x[2 * i + 1] }
";

fn device() -> Device {
    Device::open_as(Selection::Emulator).expect("always there")
}

fn launcher(device: &Device, kernel: &str) -> (Launcher, Stream) {
    let module = Arc::new(device.load(&compiled(TEXT, &[]).compiled).expect("it loads"));
    (Launcher::new(&module, kernel).expect("it is there"), device.stream().expect("a stream"))
}

fn ramp(device: &Device, count: usize) -> Array<f32, 1> {
    let values: Vec<f32> = (0..count).map(|index| index as f32).collect();
    Array::from_slice(device, [count], &values).expect("small")
}

#[test]
fn values_and_arrays_of_one_shape_share_a_plan_and_keep_their_own() {
    let device = device();
    let (axpy, stream) = launcher(&device, "axpy");
    // More than are kept, and each again.
    for count in [5, 64, 5, 1000, 64].into_iter().chain((1..40).map(|round| 100 + round % 20)) {
        let x = ramp(&device, count);
        let y = Array::<f32, 1>::zeros(&device, [count]).expect("small");
        for alpha in [1.0f32, 2.0, -0.5] {
            let operands = [Operand::value(&alpha), Operand::Array(x.dynamic()), Operand::Array(y.dynamic())];
            assert!(axpy.launch(&stream, &operands).expect("it runs").is_empty());
        }
        let wanted: Vec<f32> = (0..count).map(|index| 2.5 * index as f32).collect();
        assert_eq!(y.to_vec().expect("its memory"), wanted);
    }
}

#[test]
fn a_value_that_decides_a_shape_makes_a_plan_of_its_own() {
    let device = device();
    let (every, stream) = launcher(&device, "every");
    let x = ramp(&device, 60);
    for k in [1i64, 7, 3, 7, 60] {
        let operands = [Operand::Array(x.dynamic()), Operand::value(&k), Operand::Absent];
        let mut results = every.launch(&stream, &operands).expect("it runs");
        let y = Array::<f32, 1>::from_dynamic(results.remove(0)).expect("its type");
        let wanted: Vec<f32> = (0..60 / k).map(|index| (index * k) as f32).collect();
        assert_eq!(y.to_vec().expect("its memory"), wanted);
    }
    let operands = [Operand::Array(x.dynamic()), Operand::value(&0i64), Operand::Absent];
    let error = every.launch(&stream, &operands).expect_err("a fact does not hold");
    assert!(error.to_string().contains("`where k > 0` does not hold (k = 0)"), "{error}");
}

#[test]
fn shapes_are_checked_whatever_plans_there_are() {
    let device = device();
    let (product, stream) = launcher(&device, "product");
    let matrix = |rows: usize, columns: usize| {
        let values: Vec<f32> = (0..rows * columns).map(|index| (index % 7) as f32).collect();
        Array::from_slice(&device, [rows, columns], &values).expect("small")
    };
    for (m, k, n) in [(3, 4, 5), (70, 33, 65), (3, 4, 5), (4, 3, 5)] {
        let (a, b) = (matrix(m, k), matrix(k, n));
        let operands = [Operand::Array(a.dynamic()), Operand::Array(b.dynamic()), Operand::Absent];
        let mut results = product.launch(&stream, &operands).expect("it runs");
        let c = Array::<f32, 2>::from_dynamic(results.remove(0)).expect("its type");
        let (a, b, c) = (a.to_vec().expect("a"), b.to_vec().expect("b"), c.to_vec().expect("c"));
        for i in 0..m {
            for j in 0..n {
                let wanted: f32 = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
                assert_eq!(c[i * n + j], wanted, "{i} {j}");
            }
        }
    }
    let (a, b) = (matrix(3, 4), matrix(3, 5));
    let operands = [Operand::Array(a.dynamic()), Operand::Array(b.dynamic()), Operand::Absent];
    assert!(matches!(product.launch(&stream, &operands), Err(Error::Extent { .. })));
    // The right number of elements, but of another type.
    let a = Array::<i32, 2>::zeros(&device, [3, 4]).expect("small");
    let b = matrix(4, 5);
    let operands = [Operand::Array(a.dynamic()), Operand::Array(b.dynamic()), Operand::Absent];
    let error = product.launch(&stream, &operands).expect_err("another type");
    assert!(error.to_string().contains("`a` has elements of type `f32`, but `i32` was given"), "{error}");
}

#[test]
fn a_multiple_and_a_constant_bind_a_dimension_and_nothing_else_fits() {
    let device = device();
    let (pairs, stream) = launcher(&device, "pairs");
    let call = |count: usize| {
        pairs.launch(&stream, &[Operand::Array(ramp(&device, count).dynamic()), Operand::Absent])
    };
    for half in [0, 1, 40] {
        let y =
            Array::<f32, 1>::from_dynamic(call(2 * half + 1).expect("it runs").remove(0)).expect("its type");
        let wanted: Vec<f32> = (0..half).map(|at| (4 * at + 1) as f32).collect();
        assert_eq!(y.to_vec().expect("y"), wanted);
    }
    for (given, text) in [
        (
            0,
            "axis 0 of `x` must have extent 1 (h = 0, from axis 0 of `x`), but an array with extent 0 was given",
        ),
        (
            6,
            "axis 0 of `x` must have extent 5 (h = 2, from axis 0 of `x`), but an array with extent 6 was given",
        ),
    ] {
        let error = call(given).expect_err("no size fits").to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let device = device();
    let (axpy, stream) = launcher(&device, "axpy");
    let (x, y) = (ramp(&device, 8), ramp(&device, 8));
    let message = |operands: &[Operand<'_>]| axpy.launch(&stream, operands).expect_err("refused").to_string();
    let error = message(&[Operand::value(&1.0f32)]);
    assert!(error.contains("takes 3 arguments and results, but 1 were given"), "{error}");
    let error = message(&[Operand::value(&1.0f64), Operand::Array(x.dynamic()), Operand::Array(y.dynamic())]);
    assert!(error.contains("`alpha` has 4 bytes, but 8 were given"), "{error}");
    let error = message(&[Operand::value(&1.0f32), Operand::value(&2.0f32), Operand::Array(y.dynamic())]);
    assert!(error.contains("`x` is an array and was not given as one"), "{error}");
    let error = message(&[Operand::value(&1.0f32), Operand::Absent, Operand::Array(y.dynamic())]);
    assert!(error.contains("argument `x` was not given"), "{error}");
    // Also where a plan for these shapes is known.
    let fine = [Operand::value(&1.0f32), Operand::Array(x.dynamic()), Operand::Array(y.dynamic())];
    axpy.launch(&stream, &fine).expect("it runs");
    let error = message(&[Operand::value(&1.0f32), Operand::Array(y.dynamic()), Operand::Array(y.dynamic())]);
    assert!(error.contains("`y` is written and is the same memory as `x`"), "{error}");
    let other = self::device();
    let far = ramp(&other, 8);
    let error = axpy
        .launch(
            &stream,
            &[Operand::value(&1.0f32), Operand::Array(far.dynamic()), Operand::Array(y.dynamic())],
        )
        .expect_err("another device");
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    assert_eq!(
        (axpy.layout(0), axpy.layout(2), axpy.writes(1), axpy.writes(2)),
        (Layout::Aos, Layout::Aos, false, true)
    );
}

#[test]
fn failures_on_the_device_are_told_once_and_launches_go_on() {
    let device = device();
    let (gather, stream) = launcher(&device, "gather");
    let x = ramp(&device, 10);
    let good = Array::from_slice(&device, [3], &[9i32, 0, 4]).expect("small");
    let bad = Array::from_slice(&device, [3], &[9i32, 10, 4]).expect("small");
    for round in 0..2 {
        let operands = |at: &'_ Array<i32, 1>| {
            let operands = [Operand::Array(x.dynamic()), Operand::Array(at.dynamic()), Operand::Absent];
            gather.launch(&stream, &operands)
        };
        operands(&bad).expect("it is queued");
        let error = stream.synchronize().expect_err("outside");
        assert!(
            matches!(&error, Error::Bounds(failure) if failure.index == 10 && failure.line == 9),
            "{round} {error}"
        );
        stream.synchronize().expect("told once");
        let mut results = operands(&good).expect("it runs");
        let y = Array::<f32, 1>::from_dynamic(results.remove(0)).expect("its type");
        assert_eq!(y.to_vec().expect("its memory"), [9.0, 0.0, 4.0]);
    }
}

#[test]
fn who_reads_a_result_hears_of_the_failure() {
    let device = device();
    let (gather, stream) = launcher(&device, "gather");
    let x = ramp(&device, 10);
    let bad = Array::from_slice(&device, [3], &[9i32, -1, 4]).expect("small");
    let y = Array::<f32, 1>::zeros(&device, [3]).expect("small");
    let operands = [Operand::Array(x.dynamic()), Operand::Array(bad.dynamic()), Operand::Array(y.dynamic())];
    gather.launch(&stream, &operands).expect("it is queued");
    let error =
        y.to_vec().expect_err("nobody waited for the stream, but the values are not what was asked for");
    assert!(matches!(&error, Error::Bounds(failure) if failure.index == -1), "{error}");
    assert!(x.to_vec().is_ok(), "nobody wrote it");
    gather.launch(&stream, &operands).expect("it is queued");
    let error = device.synchronize().expect_err("who waits for the device hears of it as well");
    assert!(matches!(error, Error::Bounds(_)), "{error}");
    device.synchronize().expect("told once");
}

#[test]
fn launches_are_captured() {
    let device = device();
    let (axpy, stream) = launcher(&device, "axpy");
    let x = ramp(&device, 8);
    let y = Array::<f32, 1>::zeros(&device, [8]).expect("small");
    let launch = |stream: &Stream| {
        let operands = [Operand::value(&2.0f32), Operand::Array(x.dynamic()), Operand::Array(y.dynamic())];
        axpy.launch(stream, &operands).map(|_| ())
    };
    launch(&stream).expect("it runs");
    let graph =
        stream.capture(|captured| launch(captured).and_then(|()| launch(captured))).expect("captured");
    let count = |y: &Array<f32, 1>| y.to_vec().expect("its memory")[1];
    assert_eq!(count(&y), 2.0, "nothing ran");
    graph.launch(&stream).expect("it runs");
    assert_eq!((graph.len(), count(&y)), (2, 6.0));
}

#[test]
fn threads_share_a_launcher() {
    let device = device();
    let (axpy, _) = launcher(&device, "axpy");
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (axpy, device) = (axpy.clone(), &device);
            scope.spawn(move || {
                let stream = device.stream().expect("a stream");
                for round in 1..20usize {
                    let count = thread * 7 + round;
                    let x = ramp(device, count);
                    let y = Array::<f32, 1>::zeros(device, [count]).expect("small");
                    let operands =
                        [Operand::value(&3.0f32), Operand::Array(x.dynamic()), Operand::Array(y.dynamic())];
                    axpy.launch(&stream, &operands).expect("it runs");
                    let wanted: Vec<f32> = (0..count).map(|index| 3.0 * index as f32).collect();
                    assert_eq!(y.to_vec().expect("its memory"), wanted);
                }
            });
        }
    });
}
