//! Structs from one layout to another: what comes out is what went in. With `KRN_DEVICE=cuda` the arrays are large enough
//! for the device to convert them, and the times are printed; the emulator leaves it to the host.

use crate::support::device;
use krn_runtime::{Array, ArrayOptions, Device, KrnStruct, Layout};
use std::time::Instant;

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, KrnStruct)]
struct Particle {
    position: [f32; 3],
    charge: f64,
    kind: u8,
    spin: i16,
}

fn particle(number: usize) -> Particle {
    let x = number as f32;
    Particle {
        position: [x, 0.5 * x, -x],
        charge: 3.0 * f64::from(x),
        kind: number as u8,
        spin: (number as i16).wrapping_neg(),
    }
}

const LAYOUTS: [Layout; 4] = [Layout::Soa, Layout::Aosoa(32), Layout::Aosoa(8), Layout::Aos];

/// Through all layouts, each written from the host and read back, too.
fn go_round(device: &Device, n: usize) {
    let particles: Vec<Particle> = (0..n).map(particle).collect();
    let mut array = Array::from_slice(device, [n], &particles).expect("small");
    let bytes = (n * size_of::<Particle>()) as f64;
    let timed = |what: &str, work: &mut dyn FnMut()| {
        device.synchronize().expect("nothing fails");
        let start = Instant::now();
        work();
        device.synchronize().expect("nothing fails");
        println!("{n} structs, {what}: {:.2} GB/s", bytes / start.elapsed().as_secs_f64() / 1e9);
    };
    for layout in LAYOUTS.into_iter().chain(LAYOUTS) {
        let before = array.layout();
        timed(&format!("{before:?} to {layout:?}"), &mut || {
            array = array.to_layout(layout).expect("it is converted");
        });
        assert_eq!(array.layout(), layout);
        let mut back = Vec::new();
        timed(&format!("{layout:?} to the host"), &mut || back = array.to_vec().expect("there"));
        assert!(back == particles, "{before:?} to {layout:?}");
        timed(&format!("the host to {layout:?}"), &mut || {
            array = ArrayOptions::new().layout(layout).from_slice(device, [n], &particles).expect("small");
        });
        assert!(array.to_vec().expect("there") == particles, "from the host to {layout:?}");
    }
}

#[test]
fn structs_go_through_all_layouts() {
    let device = device();
    // Small ones first: they go by way of the host.
    go_round(&device, 1001);
    if !device.is_emulator() {
        go_round(&device, 1_000_003);
        go_round(&device, 8_000_009);
        go_round(&device, 1_000_003);
    }
}
