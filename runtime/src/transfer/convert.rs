//! Arrays of structs from one layout to another, on the device: kernels that Krn compiles itself.
//!
//! Each leaf of the struct (a scalar, or a fixed array of scalars) is a kernel that copies it for all elements. To it, both
//! allocations are tables of words as wide as the scalar: a row is an element or, where the layout has groups, a group.

use crate::device::Device;
use crate::error::Result;
use crate::launch::argument::{Argument, scalar};
use crate::launch::module::Module;
use crate::launch::module_options::ModuleOptions;
use crate::memory::array::DeviceArray;
use crate::stream::Stream;
use krn_compiler::data::{ElementType, LeafPlaces, Scalar};
use krn_compiler::manifest::Layout;
use std::fmt::Write;

/// From so many bytes on the device converts faster than the host, although kernels have to be compiled and loaded
/// before. Measured on an H200: the host converts 0.1 to 0.5 GB in a second, and compiling and loading takes 70 ms.
const WORTH_COMPILING: u64 = 16 << 20;

/// The module of this text, if the device has it.
fn find(device: &Device, text: &str) -> Option<Module> {
    let code = device.shared.builtins.find(text)?.downcast().ok()?;
    Some(Module::of_code(device, code))
}

fn load(device: &Device, text: &str) -> Result<Module> {
    if let Some(module) = find(device, text) {
        return Ok(module);
    }
    let module = ModuleOptions::new().unchecked(true).from_source(device, "layouts.krn", text)?;
    device.shared.builtins.keep(text, module.code.clone());
    Ok(module)
}

/// The kernels that convert so many bytes of such elements, where they are faster than the host. The emulator's memory is
/// the host's.
pub(crate) fn faster(
    device: &Device,
    element: &ElementType,
    (from, to): (Layout, Layout),
    bytes: u64,
) -> Option<Conversion> {
    if device.is_emulator() || from == to {
        return None;
    }
    let text = text(element, from, to)?;
    let is_worth = bytes >= WORTH_COMPILING || find(device, &text).is_some();
    is_worth.then_some(Conversion { text })
}

/// The kernels of a conversion from one layout to another.
pub(crate) struct Conversion {
    text: String,
}

impl Conversion {
    /// Queues it on the default stream: all elements, to an array of the same type and shape.
    pub fn queue(&self, from: &DeviceArray, to: &DeviceArray) -> Result<()> {
        let count: u64 = from.shape().iter().product();
        if count == 0 {
            return Ok(());
        }
        let device = from.device();
        let module = load(device, &self.text)?;
        let stream = Stream::default_of(device);
        let extent = scalar(Scalar::I64, &(count as i64).to_le_bytes());
        for number in 0..from.element().leaves.len() {
            let words = |array: &DeviceArray| {
                let table = Table::of(array.element(), array.layout(), number);
                array.as_words(table.allocation, table.width, [count.div_ceil(table.group), table.columns])
            };
            let (source, target) = (words(from), words(to));
            let arguments = [
                ("from", Argument::Array(&source)),
                ("to", Argument::Array(&target)),
                ("count", Argument::Value(&extent)),
            ];
            module.kernel(&format!("leaf{number}"))?.launch_on(&stream, &arguments)?;
        }
        Ok(())
    }
}

/// Where a leaf lies in an allocation, in words as wide as its scalar.
struct Table {
    allocation: usize,
    /// Bytes of a word.
    width: u64,
    /// Words in a row.
    columns: u64,
    /// The leaf's first word in a row.
    first: u64,
    /// Words from one element of a group to the next.
    step: u64,
    /// Words from one to the next along each axis of the leaf.
    strides: Vec<u64>,
    /// Elements in a row.
    group: u64,
}

impl Table {
    fn of(element: &ElementType, layout: Layout, number: usize) -> Self {
        let places = LeafPlaces::new(element, layout, number);
        let (width, (group, row)) = (places.scalar, places.group.unwrap_or((1, places.element)));
        Self {
            allocation: places.allocation,
            width,
            columns: row / width,
            first: places.start / width,
            step: if places.group.is_some() { places.element / width } else { 0 },
            strides: places.axes.iter().map(|stride| stride / width).collect(),
            group,
        }
    }

    /// `i / 8, 2 + i % 8 * 2 + s0`
    fn subscripts(&self) -> String {
        let (row, mut column) = match self.group {
            1 => ("i".to_string(), self.first.to_string()),
            group => (format!("i / {group}"), format!("{} + (i % {group}) * {}", self.first, self.step)),
        };
        for (axis, stride) in self.strides.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(column, " + s{axis} * {stride}");
        }
        format!("{row}, {column}")
    }
}

/// The kernels' text; `None` where a leaf does not start at a multiple of its own size, as no struct of C's does.
fn text(element: &ElementType, from: Layout, to: Layout) -> Option<String> {
    let mut text = String::new();
    for (number, leaf) in element.leaves.iter().enumerate() {
        let width = leaf.scalar.size();
        let starts = leaf.strides.iter().chain([&leaf.offset, &element.size]);
        if starts.clone().any(|start| !start.is_multiple_of(width)) {
            return None;
        }
        let [source, target] = [from, to].map(|layout| Table::of(element, layout, number));
        let axes: String =
            leaf.extents.iter().enumerate().map(|(axis, extent)| format!(", s{axis} in {extent}")).collect();
        let bits = 8 * width;
        let (columns, subscripts) = (source.columns, source.subscripts());
        let _ = write!(
            text,
            "kernel leaf{number}(from: u{bits}[rows, {columns}], to: inout u{bits}[groups, {}], count: i64) {{\n    \
             forall i in count{axes} {{ to[{}] = from[{subscripts}] }}\n}}\n",
            target.columns,
            target.subscripts(),
        );
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Selection;
    use crate::memory::element::Element;
    use krn_compiler::data::HostArray;

    #[repr(C)]
    #[derive(Clone, Copy, krn_macros::KrnStruct)]
    struct Inner {
        tag: u8,
        weights: [[f32; 2]; 3],
    }

    #[repr(C)]
    #[derive(Clone, Copy, krn_macros::KrnStruct)]
    struct Outer {
        flag: bool,
        parts: [Inner; 2],
        scale: f64,
        m: [crate::f16; 3],
    }

    #[repr(C)]
    #[derive(Clone, Copy, krn_macros::KrnStruct)]
    struct Pair {
        x: i16,
        y: u64,
    }

    const LAYOUTS: [Layout; 4] = [Layout::Aos, Layout::Soa, Layout::Aosoa(8), Layout::Aosoa(32)];

    /// Its padding is zero, as it comes back from a device.
    fn counted(element: &ElementType, shape: &[u64]) -> HostArray {
        let mut array = HostArray::zeros(element.clone(), shape.to_vec()).expect("small");
        let mut next = 0u64;
        for start in (0..array.bytes.len()).step_by(element.size as usize) {
            for leaf in &element.leaves {
                for offset in leaf.offsets() {
                    next = next.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let (at, size) = (start + offset as usize, leaf.scalar.size() as usize);
                    array.bytes[at..at + size].copy_from_slice(&next.to_be_bytes()[..size]);
                }
            }
        }
        array
    }

    /// By kernels and by the host alike, there and back.
    fn convert_all<T: Element>(from: Layout, to: Layout, shapes: &[&[u64]]) {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let element = T::element_type();
        let conversion = Conversion { text: text(&element, from, to).expect("as C lays structs out") };
        for shape in shapes {
            let host = counted(&element, shape);
            let source = device.upload(&host, from).expect("small");
            let target =
                device.upload(&HostArray::zeros(element.clone(), shape.to_vec()).expect("small"), to);
            let target = target.expect("small");
            conversion.queue(&source, &target).expect("it runs");
            assert_eq!(target.download().expect("there"), host, "{from:?} to {to:?}, {shape:?}");
            let images = |array: &DeviceArray| -> Vec<Vec<u8>> {
                let image = |(pointer, size): (u64, u64)| {
                    let mut bytes = vec![0; size as usize];
                    device.backend.copy_out(0, pointer, &mut bytes).expect("its own memory");
                    bytes
                };
                array.allocations().iter().copied().map(image).collect()
            };
            let by_host = device.upload(&host, to).expect("small");
            assert!(images(&target) == images(&by_host), "{from:?} to {to:?}, {shape:?}: another image");
        }
    }

    #[test]
    fn kernels_convert_as_the_host_does() {
        for from in LAYOUTS {
            for to in LAYOUTS.into_iter().filter(|to| *to != from) {
                convert_all::<Pair>(from, to, &[&[], &[0], &[1], &[7], &[8], &[9], &[13, 5], &[1000]]);
            }
        }
        for (from, to) in [(LAYOUTS[0], LAYOUTS[1]), (LAYOUTS[1], LAYOUTS[0])] {
            convert_all::<Outer>(from, to, &[&[1], &[33], &[3, 43]]);
        }
        convert_all::<Outer>(LAYOUTS[0], LAYOUTS[2], &[&[1], &[33]]);
        convert_all::<Outer>(LAYOUTS[3], LAYOUTS[0], &[&[1], &[33]]);
    }

    #[test]
    fn the_emulator_leaves_it_to_the_host() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let layouts = (Layout::Aos, Layout::Soa);
        assert!(faster(&device, &Pair::element_type(), layouts, u64::MAX).is_none());
    }
}
