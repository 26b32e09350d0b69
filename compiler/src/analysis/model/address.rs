//! Where the lanes of an access go, in bytes from the start of the allocation.

use super::lanes::{LANES, Lanes};
use crate::ir::entities::Buffer;
use crate::ir::kernel::{BufferData, Kernel};
use crate::manifest::{Layout, Value};

/// The extents of a buffer at the model's sizes; `None` where one cannot be computed.
pub(super) fn extents(buffer: &BufferData, sizes: &[Value]) -> Option<Vec<i64>> {
    let extent = |extent: &crate::manifest::Expr| i64::try_from(extent.evaluate_int(sizes)?).ok();
    buffer.extents.iter().map(extent).collect()
}

/// Byte offsets of the lanes within the allocation of a leaf, as `ptx/select` computes them; subscripts are one an axis
/// of the buffer, then one an axis of the leaf.
pub(super) fn offsets(
    kernel: &Kernel,
    buffer: Buffer,
    leaf: u32,
    subscripts: &[Lanes],
    sizes: &[Value],
) -> Option<[i64; LANES]> {
    let data = &kernel.buffers[buffer];
    let leaf_data = &data.element.leaves[leaf as usize];
    let extents = extents(data, sizes)?;
    let rank = extents.len();
    let (scalar, count) = (leaf_data.scalar.size() as i64, leaf_data.count() as i64);
    let (mut element, mut sub, mut strided) = ([0i64; LANES], [0i64; LANES], [0i64; LANES]);
    for (at, lanes) in subscripts.iter().enumerate() {
        let values = lanes.all()?;
        for lane in 0..LANES {
            if at < rank {
                element[lane] = element[lane].wrapping_mul(extents[at]).wrapping_add(values[lane]);
            } else {
                let inner = at - rank;
                sub[lane] =
                    sub[lane].wrapping_mul(leaf_data.extents[inner] as i64).wrapping_add(values[lane]);
                let stride = leaf_data.strides[inner] as i64;
                strided[lane] = strided[lane].wrapping_add(values[lane].wrapping_mul(stride));
            }
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
