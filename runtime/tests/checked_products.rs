//! Products whose rows an array of indices says: bad ones are told as anywhere else, though tiles share what is checked.

use crate::support::compiled;
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_runtime::{Device, Error, Selection};

const TEXT: &str = "
kernel gathered(a: f32[m, k], at: i32[k], x: f32[rows, n]) -> y: f32[m, n] { y[i, j] = sum(p: a[i, p] * x[at[p], j]) }
";

fn array(scalar: Scalar, shape: &[u64], bytes: Vec<u8>) -> HostArray {
    HostArray { element: ElementType::scalar(scalar), shape: shape.to_vec(), bytes }
}

fn ones(shape: &[u64]) -> HostArray {
    let count = shape.iter().product::<u64>();
    array(Scalar::F32, shape, (0..count).flat_map(|_| 1f32.to_le_bytes()).collect())
}

/// What the emulator says for so many columns, where one of the indices is this.
fn run(n: u64, index: i32) -> Result<HostArray, Error> {
    let device = Device::open_as(Selection::Emulator).expect("always there");
    let module = device.load(&compiled(TEXT, &[]).compiled).expect("it loads");
    let at = (0..64).flat_map(|p: i32| if p == 17 { index } else { p % 5 }.to_le_bytes()).collect();
    let (a, at, x) = (ones(&[48, 64]), array(Scalar::I32, &[64], at), ones(&[5, n]));
    let mut outputs = module.kernel("gathered")?.run(&[("a", &a), ("at", &at), ("x", &x)])?;
    Ok(outputs.arrays.remove(0).1)
}

#[test]
fn a_bad_index_is_told() {
    for index in [-1, 5, i32::MAX] {
        let said = run(40, index).expect_err("it is outside").to_string();
        assert!(said.contains(&format!("index {index} is outside axis 0 of `x`")), "{said}");
    }
    let y = run(40, 4).expect("all are inside");
    assert!(y.bytes.chunks(4).all(|value| value == 64f32.to_le_bytes()));
}

#[test]
fn where_nothing_is_read_nothing_is_checked() {
    assert!(run(0, 100).is_ok(), "no column reads the row");
}
