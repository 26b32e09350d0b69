//! The C layout of a type as a tree: byte offsets, and *slots* (the scalars of an element numbered in memory
//! order), which is how bounds are kept beside the bytes.

use crate::check::typed::{Program, Type};
use crate::data::{ElementType, Scalar};

#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// Bytes, a multiple of `align`.
    pub size: usize,
    pub align: usize,
    /// How many scalars.
    pub slots: usize,
    pub kind: LayoutKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum LayoutKind {
    Scalar(Scalar),
    Struct(Vec<FieldLayout>),
    Array { count: u64, element: Box<Layout> },
}

#[derive(Clone, PartialEq, Debug)]
pub struct FieldLayout {
    pub offset: usize,
    pub slot: usize,
    pub layout: Layout,
}

impl Layout {
    /// Natural alignment, fields in declaration order.
    pub fn of(program: &Program, ty: &Type) -> Layout {
        match ty {
            Type::Scalar(scalar) => Layout {
                size: scalar.size() as usize,
                align: scalar.size() as usize,
                slots: 1,
                kind: LayoutKind::Scalar(*scalar),
            },
            Type::Array(element, count) => {
                let element = Layout::of(program, element);
                let times = usize::try_from(*count).unwrap_or(usize::MAX);
                Layout {
                    size: element.size.saturating_mul(times),
                    align: element.align,
                    slots: element.slots.saturating_mul(times),
                    kind: LayoutKind::Array { count: *count, element: Box::new(element) },
                }
            }
            Type::Struct(id) => {
                let (mut offset, mut slot, mut align) = (0usize, 0usize, 1usize);
                let mut fields = Vec::new();
                for field in &program.structs[*id].fields {
                    let layout = Layout::of(program, &field.ty);
                    offset = offset.next_multiple_of(layout.align);
                    align = align.max(layout.align);
                    let (size, slots) = (layout.size, layout.slots);
                    fields.push(FieldLayout { offset, slot, layout });
                    offset = offset.saturating_add(size);
                    slot = slot.saturating_add(slots);
                }
                Layout {
                    size: offset.next_multiple_of(align),
                    align,
                    slots: slot,
                    kind: LayoutKind::Struct(fields),
                }
            }
        }
    }
}

/// One slot of an element, told from its leaves alone.
#[derive(Clone, PartialEq, Debug)]
pub struct Slot {
    pub offset: usize,
    pub scalar: Scalar,
    /// `pos.x`, `taps[2]`; empty for a scalar element. Of a leaf below several fixed arrays all subscripts
    /// stand at the end.
    pub path: String,
}

/// An element's slots in memory order.
pub fn slots(element: &ElementType) -> Vec<Slot> {
    let mut slots = Vec::new();
    for leaf in &element.leaves {
        for position in 0..leaf.count() {
            let mut rest = position;
            let mut subscripts = Vec::new();
            for extent in leaf.extents.iter().rev() {
                subscripts.push(rest % extent);
                rest /= extent;
            }
            let mut path = leaf.path.clone();
            for subscript in subscripts.iter().rev() {
                path.push_str(&format!("[{subscript}]"));
            }
            slots.push(Slot { offset: leaf.offset_of(position) as usize, scalar: leaf.scalar, path });
        }
    }
    slots.sort_by_key(|slot| slot.offset);
    slots
}
