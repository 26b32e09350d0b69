//! Where the lanes of an access go, in bytes from the start of the allocation.

use super::lanes::{LANES, Lanes};
use crate::data::LeafPlaces;
use crate::ir::kernel::BufferData;
use crate::manifest::Value;

/// The extents of a buffer at the model's sizes; `None` where one cannot be computed.
pub(super) fn extents(buffer: &BufferData, sizes: &[Value]) -> Option<Vec<i64>> {
    let extent = |extent: &crate::manifest::Expr| i64::try_from(extent.evaluate_int(sizes)?).ok();
    buffer.extents.iter().map(extent).collect()
}

/// Byte offsets of the lanes within the allocation of a leaf; subscripts are one an axis
/// of the buffer, then one an axis of the leaf. `None` where one is unknown.
pub(super) fn offsets<'l>(
    data: &BufferData,
    leaf: u32,
    subscripts: impl Iterator<Item = &'l Lanes>,
    extents: &[i64],
) -> Option<[i64; LANES]> {
    let places = LeafPlaces::new(&data.element, data.layout, leaf as usize);
    let rank = extents.len();
    let (mut element, mut within) = ([0i64; LANES], [0i64; LANES]);
    for (at, lanes) in subscripts.enumerate() {
        if at < rank {
            add_scaled(&mut element, extents[at], lanes, 1)?;
        } else {
            add_scaled(&mut within, 1, lanes, places.axes[at - rank] as i64)?;
        }
    }
    let place = |lane: usize| places.of_element(element[lane]).wrapping_add(within[lane]);
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
