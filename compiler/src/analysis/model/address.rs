//! Where the lanes of an access go, in bytes from the start of the allocation.

use super::lanes::{LANES, Lanes};
use crate::ir::kernel::BufferData;
use crate::manifest::{Layout, Value};

/// The extents of a buffer at the model's sizes; `None` where one cannot be computed.
pub(super) fn extents(buffer: &BufferData, sizes: &[Value]) -> Option<Vec<i64>> {
    let extent = |extent: &crate::manifest::Expr| i64::try_from(extent.evaluate_int(sizes)?).ok();
    buffer.extents.iter().map(extent).collect()
}

/// Byte offsets of the lanes within the allocation of a leaf, as `ptx/select` computes them; subscripts are one an axis
/// of the buffer, then one an axis of the leaf. `None` where one is unknown.
pub(super) fn offsets<'l>(
    data: &BufferData,
    leaf: u32,
    subscripts: impl Iterator<Item = &'l Lanes>,
    extents: &[i64],
) -> Option<[i64; LANES]> {
    let leaf_data = &data.element.leaves[leaf as usize];
    let rank = extents.len();
    let (scalar, count) = (leaf_data.scalar.size() as i64, leaf_data.count() as i64);
    let (mut element, mut sub, mut strided) = ([0i64; LANES], [0i64; LANES], [0i64; LANES]);
    for (at, lanes) in subscripts.enumerate() {
        if at < rank {
            add_scaled(&mut element, extents[at], lanes, 1)?;
        } else {
            add_scaled(&mut sub, leaf_data.extents[at - rank] as i64, lanes, 1)?;
            add_scaled(&mut strided, 1, lanes, leaf_data.strides[at - rank] as i64)?;
        }
    }
    let place = |lane: usize| match data.layout {
        Layout::Aos => {
            element[lane].wrapping_mul(data.element.size as i64) + leaf_data.offset as i64 + strided[lane]
        }
        Layout::Soa => (element[lane].wrapping_mul(count) + sub[lane]).wrapping_mul(scalar),
        Layout::Aosoa(width) => {
            let width = i64::from(width);
            let bytes = |leaf: &crate::data::Leaf| width * (leaf.scalar.size() * leaf.count()) as i64;
            let group: i64 = data.element.leaves.iter().map(bytes).sum();
            let start: i64 = data.element.leaves[..leaf as usize].iter().map(bytes).sum();
            let (which, within) = (element[lane].div_euclid(width), element[lane].rem_euclid(width));
            which.wrapping_mul(group) + start + (within * count + sub[lane]) * scalar
        }
    };
    Some(std::array::from_fn(place))
}

/// `sum = sum * factor + lanes * stride`
fn add_scaled(sum: &mut [i64; LANES], factor: i64, lanes: &Lanes, stride: i64) -> Option<()> {
    let next = |sum: i64, value: i64| sum.wrapping_mul(factor).wrapping_add(value.wrapping_mul(stride));
    match lanes {
        Lanes::Unknown => return None,
        Lanes::Same(value) => sum.iter_mut().for_each(|sum| *sum = next(*sum, *value)),
        Lanes::Each(values) => {
            sum.iter_mut().zip(&**values).for_each(|(sum, value)| *sum = next(*sum, *value))
        }
    }
    Some(())
}
