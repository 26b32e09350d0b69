//! Arrays: the kernel's arguments and temporaries in global memory, tiles and local arrays in the block's.

use super::program::Program;
use super::values::{self, Shown};
use krn_compiler::data::{ElementType, Layout, LeafPlaces};
use krn_compiler::manifest::{ArgumentKind, BufferManifest};
use krn_compiler::ptx::{Space, Symbol, Tile};
use krn_runtime::emulator::debug::Moment;

/// Where an array's bytes are.
enum Memory {
    /// The address of each allocation: one, or one a leaf.
    Global(Vec<Option<u64>>),
    Shared(u64),
    Local(u64),
}

/// An array that can be looked at.
pub struct Array {
    pub name: String,
    pub element: ElementType,
    pub extents: Vec<u64>,
    layout: Layout,
    memory: Memory,
}

impl Array {
    pub fn len(&self) -> u64 {
        self.extents.iter().fold(1, |product, extent| product.saturating_mul(*extent))
    }

    /// `f32[4, 8]`.
    pub fn ty(&self) -> String {
        if self.extents.is_empty() {
            return self.element.name.clone();
        }
        let extents: Vec<String> = self.extents.iter().map(u64::to_string).collect();
        format!("{}[{}]", self.element.name, extents.join(", "))
    }

    /// The subscripts of an element, by its number.
    pub fn subscripts(&self, mut number: u64) -> Vec<u64> {
        let mut found: Vec<u64> = Vec::with_capacity(self.extents.len());
        for extent in self.extents.iter().rev() {
            found.push(number % extent.max(&1));
            number /= extent.max(&1);
        }
        found.reverse();
        found
    }

    /// The number of an element, by its subscripts.
    ///
    /// # Errors
    /// There is no such element.
    pub fn number(&self, subscripts: &[i128]) -> Result<u64, String> {
        if subscripts.len() != self.extents.len() {
            let (axes, given) = (self.extents.len(), subscripts.len());
            return Err(format!("`{}` has {axes} axes, and {given} subscripts are given", self.name));
        }
        let mut number = 0;
        for (subscript, extent) in subscripts.iter().zip(&self.extents) {
            let inside = u64::try_from(*subscript).ok().filter(|subscript| subscript < extent);
            let inside = inside.ok_or_else(|| {
                format!("`{}` has the extent {extent}, and no element {subscript}", self.name)
            })?;
            number = number * extent + inside;
        }
        Ok(number)
    }

    /// An element, as a lane sees it.
    ///
    /// # Errors
    /// Why nothing is known of it.
    pub fn element(&self, moment: &Moment<'_>, number: u64, lane: usize) -> Result<Shown, String> {
        let mut bytes = vec![0; self.element.size as usize];
        for (at, leaf) in self.element.leaves.iter().enumerate() {
            let (size, places) = (leaf.scalar.size(), LeafPlaces::new(&self.element, self.layout, at));
            let first = places.of_element(number as i64) as u64;
            for (start, within) in leaf.offsets().into_iter().zip(places.within_element()) {
                let found = self.read(moment, places.allocation, first + within, size, lane)?;
                bytes[start as usize..(start + size) as usize].copy_from_slice(&found);
            }
        }
        Ok(values::element(&self.element, &bytes))
    }

    fn read(
        &self,
        moment: &Moment<'_>,
        allocation: usize,
        offset: u64,
        size: u64,
        lane: usize,
    ) -> Result<Vec<u8>, String> {
        let outside = || "it does not lie in memory".to_string();
        let unwritten = || "nobody has written it yet".to_string();
        match &self.memory {
            Memory::Global(addresses) => {
                let address = addresses.get(allocation).copied().flatten();
                let address = address.ok_or("this launch does not have it")? + offset;
                if !moment.is_written(address, size) {
                    return Err(unwritten());
                }
                moment.memory(address, size as usize).ok_or_else(outside)
            }
            Memory::Shared(start) => {
                if moment.is_shared_written(start + offset, size) == Some(false) {
                    return Err(unwritten());
                }
                moment.shared(start + offset, size as usize).ok_or_else(outside)
            }
            Memory::Local(start) => moment.local(lane, start + offset, size as usize).ok_or_else(outside),
        }
    }

    /// The array in a line: its first elements.
    pub fn preview(&self, moment: &Moment<'_>, lane: usize) -> String {
        const SHOWN: u64 = 4;
        let count = self.len();
        let element = |at| self.element(moment, at, lane).map_or("?".to_string(), |value| value.to_string());
        let mut elements: Vec<String> = (0..count.min(SHOWN)).map(element).collect();
        if count > SHOWN {
            elements.push("…".to_string());
        }
        format!("{} = {}", self.ty(), elements.join(", "))
    }
}

/// The arrays in global memory that the launch has.
pub fn global(program: &Program, moment: &Moment<'_>) -> Vec<Array> {
    let Some(manifest) = program.manifest() else { return Vec::new() };
    let of_argument = |argument: &'_ krn_compiler::manifest::ArgumentManifest| match &argument.kind {
        ArgumentKind::Array { buffer, .. } => Some(buffer.clone()),
        ArgumentKind::Value { .. } => None,
    };
    let mut buffers: Vec<BufferManifest> = manifest.arguments.iter().filter_map(of_argument).collect();
    for scratch in manifest.variants.iter().flat_map(|variant| &variant.scratch) {
        if !buffers.iter().any(|known| known.name == scratch.name) {
            buffers.push(scratch.clone());
        }
    }
    let address = |name: &str| -> Option<u64> {
        let letter = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let name: String = name.chars().map(letter).collect();
        let bytes: [u8; 8] = moment.launch.argument(&format!("p_{name}"))?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let array = |buffer: BufferManifest| {
        let extent = |extent: &krn_compiler::manifest::Expr| {
            extent.evaluate_int(&program.symbols).and_then(|extent| u64::try_from(extent).ok())
        };
        let extents = buffer.extents.iter().map(extent).collect::<Option<Vec<u64>>>()?;
        let addresses: Vec<Option<u64>> = match buffer.layout {
            Layout::Soa => {
                let leaves = buffer.element.leaves.iter();
                leaves
                    .map(|leaf| address(&format!("{}_{}", buffer.name, leaf.path.replace('.', "_"))))
                    .collect()
            }
            _ => vec![address(&buffer.name)],
        };
        addresses.iter().any(Option::is_some).then_some(Array {
            name: buffer.name,
            element: buffer.element,
            extents,
            layout: buffer.layout,
            memory: Memory::Global(addresses),
        })
    };
    buffers.into_iter().filter_map(array).collect()
}

/// The arrays in the memory of the block and of its threads.
pub fn tiles(moment: &Moment<'_>) -> Vec<Array> {
    let entry = moment.launch.entry();
    let array = |tile: &Tile| {
        let start = moment.variable(tile.variable)? + tile.offset;
        let local = matches!(tile.variable, Symbol::Entry(it) if entry.variables[it].space == Space::Local);
        Some(Array {
            name: tile.name.clone(),
            element: tile.element.clone(),
            extents: tile.extents.clone(),
            layout: tile.layout,
            memory: if local { Memory::Local(start) } else { Memory::Shared(start) },
        })
    };
    entry.tiles.iter().filter_map(array).collect()
}
