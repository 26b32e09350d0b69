//! Host arrays (C layout) to device images and back: one image an allocation.

use krn_compiler::data::{ElementType, HostArray, Leaf, LeafPlaces};
use krn_compiler::manifest::Layout;
use std::ops::Range;

/// Allocations are whole words: combining into 8- and 16-bit elements works on the word around them.
pub const WORD: u64 = 4;

/// Bytes of each allocation that an array of so many elements takes; `None` where a size overflows.
pub fn allocation_sizes(element: &ElementType, layout: Layout, count: u64) -> Option<Vec<u64>> {
    match layout {
        Layout::Aos => Some(vec![count.checked_mul(element.size)?]),
        Layout::Soa => {
            element.leaves.iter().map(|leaf| count.checked_mul(leaf.count() * leaf.scalar.size())).collect()
        }
        Layout::Aosoa(width) => {
            let groups = count.div_ceil(u64::from(width));
            Some(vec![groups.checked_mul(group_bytes(element, width))?])
        }
    }
}

/// For each allocation, the bytes from the first to the last that no scalar covers: padding of structs, the unused
/// places of the last group, and what is missing to whole words. `None` where a size overflows.
pub fn uncovered(element: &ElementType, layout: Layout, count: u64) -> Option<Vec<Range<u64>>> {
    let sizes = allocation_sizes(element, layout, count)?;
    let starts = sizes.iter().map(|size| match layout {
        Layout::Aos if group_bytes(element, 1) < element.size => 0,
        Layout::Aosoa(width) if !count.is_multiple_of(u64::from(width)) => size - group_bytes(element, width),
        _ => *size,
    });
    starts.zip(&sizes).map(|(start, size)| Some(start..size.checked_next_multiple_of(WORD)?)).collect()
}

/// The device images of a host array.
pub fn to_device(array: &HostArray, layout: Layout) -> Vec<Vec<u8>> {
    images(&array.element, &array.bytes, layout)
}

/// The device images of elements in their C layout.
pub fn images(element: &ElementType, bytes: &[u8], layout: Layout) -> Vec<Vec<u8>> {
    if layout == Layout::Aos {
        return vec![bytes.to_vec()];
    }
    let count = bytes.len() as u64 / element.size.max(1);
    let Some(sizes) = allocation_sizes(element, layout, count) else { return Vec::new() };
    let mut images: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size as usize]).collect();
    visit(element, layout, count, |host, (image, device), size| {
        images[image][device..device + size].copy_from_slice(&bytes[host..host + size]);
    });
    images
}

/// Fills elements in their C layout from their device images.
pub fn elements(element: &ElementType, bytes: &mut [u8], layout: Layout, images: &[Vec<u8>]) {
    if layout == Layout::Aos {
        bytes.copy_from_slice(&images[0]);
        return;
    }
    let count = bytes.len() as u64 / element.size.max(1);
    visit(element, layout, count, |host, (image, device), size| {
        bytes[host..host + size].copy_from_slice(&images[image][device..device + size]);
    });
}

/// Calls back for every scalar: its offset in the host's bytes, its image and offset there, its size.
fn visit(
    element: &ElementType,
    layout: Layout,
    count: u64,
    mut each: impl FnMut(usize, (usize, usize), usize),
) {
    for (number, leaf) in element.leaves.iter().enumerate() {
        let (places, offsets) = (LeafPlaces::new(element, layout, number), leaf.offsets());
        let within = places.within_element();
        for index in 0..count {
            let device = places.of_element(index as i64) as u64;
            for (offset, sub) in offsets.iter().zip(&within) {
                let host = index * element.size + offset;
                each(host as usize, (places.allocation, (device + sub) as usize), places.scalar as usize);
            }
        }
    }
}

fn leaf_bytes(leaf: &Leaf, width: u64) -> u64 {
    width * leaf.count() * leaf.scalar.size()
}

fn group_bytes(element: &ElementType, width: u32) -> u64 {
    element.leaves.iter().map(|leaf| leaf_bytes(leaf, u64::from(width))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use krn_compiler::data::Scalar;

    /// `struct { a: u8, b: f32[2] }`
    fn element() -> ElementType {
        let leaf = |path: &str, scalar, offset, extents: Vec<u64>, strides: Vec<u64>| Leaf {
            path: path.into(),
            scalar,
            offset,
            extents,
            strides,
        };
        ElementType {
            name: "S".into(),
            leaves: vec![
                leaf("a", Scalar::U8, 0, vec![], vec![]),
                leaf("b", Scalar::F32, 4, vec![2], vec![4]),
            ],
            size: 12,
            align: 4,
        }
    }

    fn sample(count: u64) -> HostArray {
        let mut array = HostArray::zeros(element(), vec![count]).expect("small");
        for index in 0..count as usize {
            array.bytes[index * 12] = index as u8;
            for word in 0..2 {
                let at = index * 12 + 4 + word * 4;
                array.bytes[at..at + 4].copy_from_slice(&((index * 10 + word) as f32).to_le_bytes());
            }
        }
        array
    }

    #[test]
    fn every_layout_comes_back_as_it_went() {
        for layout in [Layout::Aos, Layout::Soa, Layout::Aosoa(8), Layout::Aosoa(32)] {
            for count in [0, 1, 7, 8, 9, 65] {
                let array = sample(count);
                let images = to_device(&array, layout);
                let mut back = HostArray::zeros(element(), vec![count]).expect("small");
                elements(&element(), &mut back.bytes, layout, &images);
                assert_eq!(back, array, "{layout:?} {count}");
            }
        }
    }

    #[test]
    fn every_byte_is_covered_by_a_scalar_or_known_not_to_be() {
        let narrow = ElementType::scalar(Scalar::U8);
        for element in [element(), narrow] {
            for layout in [Layout::Aos, Layout::Soa, Layout::Aosoa(8), Layout::Aosoa(32)] {
                for count in [0, 1, 7, 8, 9, 65] {
                    let sizes = allocation_sizes(&element, layout, count).expect("small");
                    let mut known: Vec<Vec<bool>> =
                        sizes.iter().map(|size| vec![false; size.next_multiple_of(WORD) as usize]).collect();
                    visit(&element, layout, count, |_, (image, device), size| {
                        known[image][device..device + size].fill(true);
                    });
                    let uncovered = uncovered(&element, layout, count).expect("small");
                    for (known, range) in known.iter_mut().zip(uncovered) {
                        known[range.start as usize..range.end as usize].fill(true);
                    }
                    assert!(known.iter().flatten().all(|known| *known), "{layout:?} {count}");
                }
            }
        }
        let dense = ElementType::scalar(Scalar::F32);
        let uncovered = uncovered(&dense, Layout::Aos, 1000).expect("small");
        assert!(uncovered.len() == 1 && uncovered[0].is_empty(), "{uncovered:?}");
    }

    #[test]
    fn structure_of_arrays_puts_each_leaf_in_its_own_dense_image() {
        let images = to_device(&sample(3), Layout::Soa);
        assert_eq!(images[0], [0, 1, 2]);
        let floats: Vec<f32> =
            images[1].chunks(4).map(|word| f32::from_le_bytes(word.try_into().expect("4 bytes"))).collect();
        assert_eq!(floats, [0.0, 1.0, 10.0, 11.0, 20.0, 21.0]);
    }
}
