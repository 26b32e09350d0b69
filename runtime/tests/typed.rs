//! Kernels as functions: what `kernels!` writes, run on the emulator.

use krn_runtime::{Array, ArrayOptions, Device, Error, Layout, Selection, Stream, bf16, f16, kernels};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

kernels!("typed.krn");
kernels!("typed.krn", name = small, sizes = { k: 4 }, targets = ["sm_90"], structs = { Body: own::Planet });

mod own {
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq, krn_runtime::KrnStruct)]
    pub struct Planet {
        pub x: f32,
        pub y: f32,
        pub mass: f32,
    }
}

use typed::{Body, Inner, Kernels, Outer};

type Result = std::result::Result<(), Error>;

fn device() -> Device {
    Device::open_as(Selection::Emulator).expect("always there")
}

fn floats(device: &Device, values: &[f32]) -> Array<f32, 1> {
    Array::from_slice(device, [values.len()], values).expect("small")
}

#[test]
fn code_can_be_there_before_the_first_launch() -> Result {
    let device = device();
    let waited = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&waited);
    device.watch_variants(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let kernels = Kernels::load(&device)?;
    assert_eq!(waited.load(Ordering::Relaxed), 0);
    kernels.prepare("matmul", &[("m", 2.into()), ("k", 3.into()), ("n", 1.into())])?;
    assert_eq!(waited.load(Ordering::Relaxed), 1);
    let (a, b) = (Array::<f32, 2>::zeros(&device, [2, 3])?, Array::<f32, 2>::zeros(&device, [3, 1])?);
    kernels.matmul(&a, &b)?;
    assert_eq!(waited.load(Ordering::Relaxed), 1, "nobody waits again");
    assert!(matches!(kernels.prepare("no_such", &[]), Err(Error::UnknownKernel { .. })));
    Ok(())
}

#[test]
fn arguments_go_in_and_results_come_out() -> Result {
    let device = device();
    let kernels = Kernels::load(&device)?;
    let x = floats(&device, &[1.0, 2.0, 3.0, 4.0]);
    let mut y = floats(&device, &[10.0; 4]);
    let (z, total) = kernels.all_kinds(2.0, &x, &mut y)?;
    assert_eq!(z.to_vec()?, [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(y.to_vec()?, [12.0, 14.0, 16.0, 18.0]);
    assert_eq!((total.shape(), total.value()?), ([], 10.0));
    // Into arrays that are there, and into parts.
    let mut into = Array::<f32, 1>::zeros(&device, [8])?;
    let mut sum = Array::<f32, 0>::zeros(&device, [])?;
    let x = floats(&device, &[1.0; 8]);
    let (mut low, mut high) = into.split_at_mut(4)?;
    kernels.all_kinds_into(1.0, &x.view(4..8)?, &mut low, &mut high, &mut sum)?;
    // Rust keeps the whole out of reach until its parts are gone.
    drop((low, high));
    assert_eq!(into.to_vec()?, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(sum.value()?, 4.0);
    let a = Array::from_slice(&device, [2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let b = Array::from_slice(&device, [3, 1], &[1.0, 0.0, 2.0])?;
    assert_eq!(kernels.matmul(&a, &b)?.to_vec()?, [7.0, 16.0]);
    // Whatever refers to an array is read alike.
    let (mut a, b) = (a, Arc::new(b));
    assert_eq!(kernels.matmul(&mut a, &b)?.to_vec()?, [7.0, 16.0]);
    assert_eq!(kernels.matmul(&a.view_mut(0..2)?, &*b)?.to_vec()?, [7.0, 16.0]);
    let references = [&a];
    assert_eq!(kernels.matmul(references[0], &b)?.to_vec()?, [7.0, 16.0]);
    Ok(())
}

/// A device has 63 streams: kernels that are loaded do not use them up, and share one until they are given others.
#[test]
fn kernels_of_a_device_share_a_stream() {
    let device = device();
    let loaded: Vec<Kernels> = (0..70).map(|_| Kernels::load(&device).expect("it takes no stream")).collect();
    let others: Vec<Stream> = (0..62).map(|_| device.stream().expect("one is taken")).collect();
    assert!(device.stream().is_err());
    drop(others);
    drop(loaded);
    let streams: Vec<Stream> = (0..63).map(|_| device.stream().expect("given back")).collect();
    assert!(Kernels::load(&device).is_err());
    drop(streams);
}

#[test]
fn structs_are_those_of_the_file() -> Result {
    use krn_runtime::Element;
    assert!(Inner::has_padding() && Outer::has_padding() && !Body::has_padding());
    let kernels = Kernels::load(&device())?;
    let outer = |flag, scale| Outer {
        flag,
        parts: [Inner { tag: 1, weight: 2.0 }, Inner { tag: 3, weight: 4.0 }],
        scale,
        m: [f16::from_f32(0.5), f16::from_f32(0.25)],
    };
    let values = [outer(true, 2.0), outer(false, 3.0), outer(true, -1.0)];
    let body = kernels.upload(typed::weigh::BODY, [3], &values)?;
    let y = kernels.weigh(&body, Inner { tag: 9, weight: 7.0 })?;
    assert_eq!(y.to_vec()?, [8.5, 7.0, -4.25]);
    let x = kernels.upload(typed::copy_outer::X, [3], &values)?;
    assert_eq!(kernels.copy_outer(&x)?.to_vec()?, values);
    Ok(())
}

#[test]
fn arrays_are_made_as_each_kernel_wants_them() -> Result {
    let kernels = Kernels::load(&device())?;
    let bodies: Vec<Body> = (0..70).map(|i| Body { x: i as f32, y: 1.0, mass: i as f32 }).collect();
    let mut soa = kernels.upload(typed::fall_soa::BODY, [70], &bodies)?;
    let mut aosoa = kernels.upload(typed::fall_aosoa::BODY, [70], &bodies)?;
    assert_eq!((soa.layout(), aosoa.layout()), (Layout::Soa, Layout::Aosoa(32)));
    kernels.fall_soa(&mut soa, 0.5)?;
    kernels.fall_aosoa(&mut aosoa.view_mut(32..70)?, 0.5)?;
    let fallen = Body { x: 40.0, y: -19.0, mass: 40.0 };
    assert_eq!((soa.to_vec()?[40], aosoa.to_vec()?[40]), (fallen, fallen));
    assert_eq!(aosoa.to_vec()?[31], bodies[31]);
    assert_eq!(kernels.zeros(typed::fall_soa::BODY, [2])?.to_vec()?, [Body { x: 0.0, y: 0.0, mass: 0.0 }; 2]);
    Ok(())
}

#[test]
fn statics_are_read_and_set() -> Result {
    let device = device();
    let kernels = Kernels::load(&device)?;
    kernels.nothing(1)?;
    kernels.on(&device.stream()?).nothing(1)?;
    assert_eq!(kernels.calls()?, 2);
    kernels.set_calls(40)?;
    kernels.nothing(1)?;
    assert_eq!(kernels.calls()?, 41);
    assert_eq!(kernels.taps()?, [1.0, 2.0, 3.0]);
    kernels.set_taps(&[3.0, 0.0, 1.0])?;
    assert_eq!(kernels.filter(&floats(&device, &[1.0, 2.0]))?.to_vec()?, [4.0, 7.0]);
    assert!(matches!(kernels.set_taps(&[1.0]), Err(Error::Length { expected: 3, given: 1, .. })));
    let heavy = Body { x: 1.0, y: 2.0, mass: 3.0 };
    let bodies = kernels.upload(typed::keep_heaviest::BODY, [1], &[heavy])?;
    kernels.keep_heaviest(&bodies)?;
    assert_eq!(kernels.heaviest()?, heavy);
    Ok(())
}

#[test]
fn names_that_rust_has_for_itself() -> Result {
    let device = device();
    let kernels = Kernels::load(&device)?;
    let x = Array::from_slice(&device, [2], &[1, 2])?;
    assert_eq!(kernels.r#match(&x, 3)?.to_vec()?, [4, 5]);
    let x = Array::from_slice(&device, [2], &[1i64, 2])?;
    assert_eq!(kernels.load_(&x)?.value()?, 3);
    let x = Array::from_slice(&device, [2], &[1.5, 2.0].map(f16::from_f32))?;
    assert_eq!(kernels.halves(&x, bf16::from_f32(2.0))?.to_vec()?, [3.0, 4.0].map(bf16::from_f32));
    Ok(())
}

#[test]
fn a_file_can_be_compiled_twice() -> Result {
    let device = device();
    let kernels = small::Kernels::load(&device)?;
    assert_eq!(kernels.module().manifest().target, "sm_90");
    let array = |rows: usize, cols: usize| Array::<f32, 2>::zeros(&device, [rows, cols]);
    assert_eq!(kernels.matmul(&array(2, 4)?, &array(4, 3)?)?.shape(), [2, 3]);
    let error = kernels.matmul(&array(2, 5)?, &array(5, 3)?).map(|_| ()).expect_err("k is 4");
    assert!(error.to_string().contains("k"), "{error}");
    let planets = [own::Planet { x: 0.0, y: 1.0, mass: 1.0 }; 3];
    let mut body = kernels.upload(small::fall_soa::BODY, [3], &planets)?;
    kernels.fall_soa(&mut body, 1.0)?;
    assert_eq!(body.to_vec()?[0].y, 0.0);
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error_that_names_it() -> Result {
    let device = device();
    let kernels = Kernels::load(&device)?;
    let mut given = ArrayOptions::new().layout(Layout::Aos).zeros::<Body, 1>(&device, [2])?;
    let text = kernels.fall_soa(&mut given, 1.0).expect_err("another layout").to_string();
    let wanted =
        "kernel `fall_soa`: `body` must have the layout `soa`, but an array with the layout `aos` was given";
    assert!(text.starts_with(wanted), "{text}");
    kernels.fall_soa(&mut given.to_layout(Layout::Soa)?, 1.0)?;
    kernels.fall_aosoa(&mut given.to_layout(Layout::Aosoa(32))?, 1.0)?;
    let array = |rows: usize, cols: usize| Array::<f32, 2>::zeros(&device, [rows, cols]);
    let error = kernels.matmul(&array(8, 70)?, &array(64, 8)?).expect_err("70 is not 64");
    assert!(matches!(&error, Error::Extent { axis: 0, expected: 70, given: 64, .. }), "{error}");
    let text = "axis 0 of `b` must have extent 70 (k = 70, from axis 1 of `a`), but an array with extent 64 was given";
    assert!(error.to_string().contains(text), "{error}");
    let none = kernels.zeros(typed::keep_heaviest::BODY, [0])?;
    let text = kernels.keep_heaviest(&none).expect_err("no body").to_string();
    assert!(text.contains("`where n >= 1` does not hold (n = 0)"), "{text}");
    Ok(())
}

/// Its `Body` has the fields in another order.
mod turned {
    #[repr(C)]
    #[derive(Clone, Copy, krn_runtime::KrnStruct)]
    struct Body {
        y: f32,
        x: f32,
        mass: f32,
    }

    krn_runtime::kernels!("typed.krn", structs = { Body: Body }, targets = ["sm_90"]);
}

#[test]
fn structs_that_lie_otherwise_are_refused() {
    let text = turned::typed::Kernels::load(&device()).expect_err("`x` and `y` are exchanged").to_string();
    let needle =
        "the program's `Body` {y: f32 at 0, x: f32 at 4, mass: f32 at 8} of 12 bytes is no `Body` {x: f32";
    assert!(text.contains(needle), "{text}");
}
