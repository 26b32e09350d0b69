//! Where the scalars of an array of structs lie in device memory, under each layout: what selection computes addresses by,
//! analysis counts sectors by, and the host converts by.

use super::{ElementType, Layout, Leaf, strided_offsets};

/// Where the scalars of one leaf lie, in bytes. Of element `e`, and of the subscripts `s` of the leaf's fixed arrays:
///
/// `start + e * element + sum(s_i * axes_i)`, and where there are groups of `w` elements, which take `g` bytes:
/// `e / w * g + start + e % w * element + sum(s_i * axes_i)`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeafPlaces {
    /// Which of the array's allocations.
    pub allocation: usize,
    /// The first scalar.
    pub start: u64,
    /// From an element to the next one, in a group where there are any.
    pub element: u64,
    /// From a scalar to the next one along each axis of the leaf's fixed arrays, outermost first.
    pub axes: Vec<u64>,
    /// Elements of a group, a power of two, and the bytes that it takes.
    pub group: Option<(u64, u64)>,
    /// Of one scalar.
    pub scalar: u64,
    extents: Vec<u64>,
}

/// Bytes that `width` elements take, leaf after leaf.
fn leaf_after_leaf(leaves: &[Leaf], width: u64) -> u64 {
    leaves.iter().map(|leaf| width * leaf.count() * leaf.scalar.size()).sum()
}

impl LeafPlaces {
    /// Of a leaf by its number.
    pub fn new(element: &ElementType, layout: Layout, number: usize) -> Self {
        let leaf = &element.leaves[number];
        let (scalar, extents) = (leaf.scalar.size(), leaf.extents.clone());
        if layout == Layout::Aos {
            let (start, axes) = (leaf.offset, leaf.strides.clone());
            return Self { allocation: 0, start, element: element.size, axes, group: None, scalar, extents };
        }
        let within = |axis: usize| leaf.extents[axis + 1..].iter().product::<u64>() * scalar;
        let axes = (0..extents.len()).map(within).collect();
        let dense = leaf.count() * scalar;
        let (allocation, start, group) = match layout {
            Layout::Aosoa(width) => {
                let (width, leaves) = (u64::from(width), &element.leaves);
                let start = leaf_after_leaf(&leaves[..number], width);
                (0, start, Some((width, leaf_after_leaf(leaves, width))))
            }
            Layout::Aos | Layout::Soa => (number, 0, None),
        };
        Self { allocation, start, element: dense, axes, group, scalar, extents }
    }

    /// Whether the scalars of neighbouring elements are neighbours, from the first element to the last.
    pub fn is_dense(&self) -> bool {
        self.element == self.scalar && self.group.is_none()
    }

    /// Of an element its first scalar; it wraps around where the array has no such element.
    pub fn of_element(&self, element: i64) -> i64 {
        let steps = |count: i64| count.wrapping_mul(self.element as i64);
        let within = match self.group {
            None => steps(element),
            Some((width, bytes)) => {
                let width = width as i64;
                let group = element.div_euclid(width).wrapping_mul(bytes as i64);
                group.wrapping_add(steps(element.rem_euclid(width)))
            }
        };
        within.wrapping_add(self.start as i64)
    }

    /// The scalars of an element from its first one on, in row-major order of the fixed arrays.
    pub fn within_element(&self) -> Vec<u64> {
        strided_offsets(0, &self.extents, &self.axes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scalar;

    fn leaf(scalar: Scalar, offset: u64, extents: &[u64], strides: &[u64]) -> Leaf {
        Leaf { path: String::new(), scalar, offset, extents: extents.to_vec(), strides: strides.to_vec() }
    }

    /// `struct { a: i16, b: f64[2, 3], c: u8 }`
    fn element() -> ElementType {
        let leaves = vec![
            leaf(Scalar::I16, 0, &[], &[]),
            leaf(Scalar::F64, 8, &[2, 3], &[24, 8]),
            leaf(Scalar::U8, 56, &[], &[]),
        ];
        ElementType { name: "Element".into(), leaves, size: 64, align: 8 }
    }

    fn all(layout: Layout, number: usize, count: i64) -> Vec<i64> {
        let places = LeafPlaces::new(&element(), layout, number);
        let within = places.within_element();
        let starts = (0..count).map(|element| places.of_element(element));
        starts.flat_map(|start| within.iter().map(move |at| start + *at as i64)).collect()
    }

    #[test]
    fn places_are_those_of_the_layouts() {
        assert_eq!(all(Layout::Aos, 2, 3), [56, 120, 184]);
        assert_eq!(all(Layout::Aos, 1, 2)[5..8], [48, 72, 80]);
        assert_eq!(all(Layout::Soa, 1, 2)[5..8], [40, 48, 56]);
        // A group of eight: 16 bytes of `a`, 384 of `b`, 8 of `c`.
        assert_eq!(all(Layout::Aosoa(8), 0, 9)[7..], [14, 408]);
        assert_eq!(all(Layout::Aosoa(8), 1, 9)[46..50], [384, 392, 424, 432]);
        assert_eq!(all(Layout::Aosoa(8), 2, 9)[7..], [407, 808]);
    }

    #[test]
    fn no_two_scalars_overlap() {
        for layout in [Layout::Aos, Layout::Soa, Layout::Aosoa(8), Layout::Aosoa(32)] {
            let mut bytes = std::collections::HashSet::new();
            for number in 0..3 {
                let places = LeafPlaces::new(&element(), layout, number);
                for start in all(layout, number, 70) {
                    for byte in start..start + places.scalar as i64 {
                        assert!(
                            bytes.insert((places.allocation, byte)),
                            "{layout}, leaf {number}: byte {byte}"
                        );
                    }
                }
            }
        }
    }
}
