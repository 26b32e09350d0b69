//! `while` at kernel level: launches are repeated as long as the device says, by the host or in a graph, however they are
//! launched.

use crate::support::{self, compiled};
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_runtime::{Argument, Array, Device, Error, Launcher, Operand, Selection};
use std::sync::Arc;

const TEXT: &str = "
// Halves until all is small; how often depends on the data.
kernel halve(x: inout f32[n]) -> turns: i32 {
    var t = 0
    while max(i: x[i]) > 1.0 {
        x[i] = 0.5 * x[i]
        t += 1
    }
    turns = t
}
// `inside` counts the turns of the loop inside.
kernel nested(x: inout f32[n], y: inout f32[n]) -> inside: i32 {
    var t = 0
    while max(i: x[i]) > 1.0 {
        y[i] = 8.0
        while max(i: y[i]) > 1.0 {
            y[i] = 0.5 * y[i]
            t += 1
        }
        x[i] = 0.5 * x[i]
    }
    inside = t
}
kernel endless(x: inout f32[n]) { while n > 0 { x[i] = 0.5 * x[i] } }
kernel picked(x: inout f32[n], at: i64) { while x[at] > 1.0 || n > 0 { x[i] = 0.5 * x[i] } }
";

fn device() -> Device {
    Device::open_as(Selection::Emulator).expect("always there")
}

/// An argument by value.
fn place(at: i64) -> HostArray {
    HostArray { element: ElementType::scalar(Scalar::I64), shape: Vec::new(), bytes: at.to_le_bytes().into() }
}

fn filled(device: &Device, value: f32) -> Array<f32, 1> {
    Array::from_slice(device, [100], &[value; 100]).expect("small")
}

fn turns(mut results: Vec<krn_runtime::DeviceArray>) -> i32 {
    Array::<i32, 0>::from_dynamic(results.remove(0)).expect("its type").to_vec().expect("its memory")[0]
}

#[test]
fn each_launch_has_the_turns_that_its_data_wants() {
    let device = device();
    let module = Arc::new(device.load(&compiled(TEXT, &[]).compiled).expect("it loads"));
    let halve = Launcher::new(&module, "halve").expect("it is there");
    let stream = device.stream().expect("a stream");
    // The plan of the first launch serves the others.
    for (value, wanted) in [(4.0, 2), (0.5, 0), (1000.0, 10), (4.0, 2)] {
        let x = filled(&device, value);
        let operands = [Operand::Array(x.dynamic()), Operand::Absent];
        assert_eq!(turns(halve.launch(&stream, &operands).expect("it runs")), wanted, "{value}");
        let left = value / f32::from(1u16 << wanted);
        assert_eq!(x.to_vec().expect("its memory"), [left; 100]);
    }
    // By name; and bound to arguments, which each launch finds as the one before left them.
    let x = filled(&device, 8.0);
    let kernel = module.kernel("halve").expect("it is there");
    let arguments = [("x", Argument::Array(x.dynamic()))];
    let results = kernel.launch(&arguments).expect("it runs");
    assert_eq!(turns(results.into_iter().map(|(_, array)| array).collect()), 3);
    let bound = kernel.bind(&arguments).expect("they fit");
    bound.launch().expect("it runs");
    bound.finish().expect("nothing failed");
    let counted = |value: f32| {
        let x = filled(&device, value);
        let bound = kernel.bind(&[("x", Argument::Array(x.dynamic()))]).expect("they fit");
        bound.count().expect("it runs").expect("the emulator counts").len()
    };
    // Launches before and behind the loop and a test; then a body and a test each turn.
    assert_eq!(counted(4.0) - counted(0.5), counted(16.0) - counted(4.0));
    assert!(counted(4.0) > counted(0.5));
}

#[test]
fn what_never_ends_meets_the_device_s_limit() {
    let device = device();
    device.limit_turns(7);
    let module = device.load(&compiled(TEXT, &[]).compiled).expect("it loads");
    let x = filled(&device, 128.0);
    let error = module.kernel("endless").expect("there").launch(&[("x", Argument::Array(x.dynamic()))]);
    let error = error.expect_err("it never ends");
    assert!(matches!(&error, Error::Endless { kernel, turns: 7 } if kernel == "endless"), "{error}");
    assert!(error.to_string().contains("still goes on after 7 turns"), "{error}");
    assert_eq!(x.to_vec().expect("its memory"), [1.0; 100]);
    // Seven turns are none too many.
    let x = filled(&device, 128.0);
    module.kernel("halve").expect("there").launch(&[("x", Argument::Array(x.dynamic()))]).expect("it ends");
}

#[test]
fn a_failed_check_ends_the_loop_and_is_reported() {
    let device = device();
    let module = device.load(&compiled(TEXT, &[]).compiled).expect("it loads");
    let x = filled(&device, 4.0);
    let at = place(100);
    let arguments = [("x", Argument::Array(x.dynamic())), ("at", Argument::Value(&at))];
    let error = module.kernel("picked").expect("there").launch(&arguments).expect_err("100 is outside");
    assert!(error.to_string().contains("index 100 is outside axis 0 of `x`"), "{error}");
    assert_eq!(x.to_vec().expect("its memory"), [4.0; 100], "it had a turn");
}

#[test]
fn a_captured_loop_has_the_turns_that_its_data_wants() {
    let device = support::device();
    let module = device.load(&compiled(TEXT, &[]).compiled).expect("it loads");
    let kernel = module.kernel("halve").expect("there");
    let mut x = filled(&device, 4.0);
    kernel.prepare(&[("n", 100.into())]).expect("it compiles");
    let stream = device.stream().expect("a stream");
    let mut made = Vec::new();
    let graph = stream.capture(|captured| {
        made = kernel.launch_on(captured, &[("x", Argument::Array(x.dynamic()))])?;
        Ok(())
    });
    let graph = graph.expect("captured");
    assert_eq!(x.to_vec().expect("its memory"), [4.0; 100], "nothing ran");
    let turned = Array::<i32, 0>::from_dynamic(made.remove(0).1).expect("its type");
    for (value, wanted) in [(4.0, 2), (0.5, 0), (1000.0, 10), (4.0, 2)] {
        x.write(&[value; 100]).expect("it fits");
        graph.launch(&stream).and_then(|()| stream.synchronize()).expect("it runs");
        assert_eq!(turned.to_vec().expect("its memory"), [wanted], "{value}");
        assert_eq!(x.to_vec().expect("its memory"), [value / f32::from(1u16 << wanted); 100]);
    }
}

#[test]
fn loops_within_loops_are_captured() {
    let device = support::device();
    let module = device.load(&compiled(TEXT, &[]).compiled).expect("it loads");
    let kernel = module.kernel("nested").expect("there");
    let (mut x, mut y) = (filled(&device, 0.0), filled(&device, 0.0));
    kernel.prepare(&[("n", 100.into())]).expect("it compiles");
    let stream = device.stream().expect("a stream");
    let mut made = Vec::new();
    let graph = stream.capture(|captured| {
        let arguments = [("x", Argument::Array(x.dynamic())), ("y", Argument::Array(y.dynamic()))];
        made = kernel.launch_on(captured, &arguments)?;
        Ok(())
    });
    let graph = graph.expect("captured");
    let inside = Array::<i32, 0>::from_dynamic(made.remove(0).1).expect("its type");
    for (value, turns) in [(8.0, 9), (1.0, 0), (2.0, 3)] {
        x.write(&[value; 100]).expect("it fits");
        y.write(&[5.0; 100]).expect("it fits");
        graph.launch(&stream).and_then(|()| stream.synchronize()).expect("it runs");
        assert_eq!(inside.to_vec().expect("its memory"), [turns], "{value}");
        assert_eq!(x.to_vec().expect("its memory"), [1.0; 100], "{value}");
        assert_eq!(y.to_vec().expect("its memory")[7], if turns > 0 { 1.0 } else { 5.0 }, "{value}");
    }
}

#[test]
fn a_failed_check_ends_a_captured_loop_and_is_reported() {
    let device = support::device();
    let module = device.load(&compiled(TEXT, &[]).compiled).expect("it loads");
    let kernel = module.kernel("picked").expect("there");
    let x = filled(&device, 4.0);
    let at = place(100);
    let arguments = [("x", Argument::Array(x.dynamic())), ("at", Argument::Value(&at))];
    let bound = kernel.bind(&arguments).expect("they fit");
    let stream = device.stream().expect("a stream");
    let graph = stream.capture(|captured| bound.launch_on(captured)).expect("captured");
    let ended = graph.launch(&stream).and_then(|()| stream.synchronize());
    let error = ended.expect_err("100 is outside").to_string();
    assert!(error.contains("index 100 is outside axis 0 of `x`"), "{error}");
    assert_eq!(x.to_vec().expect("its memory"), [4.0; 100], "it had a turn");
}
