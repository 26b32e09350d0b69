//! Arrays in device memory.

use crate::backend::DevicePtr;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout;
use krn_compiler::data::{ElementType, HostArray};
use krn_compiler::manifest::Layout;

/// An array in device memory, freed when it is dropped.
pub struct DeviceArray {
    device: Device,
    element: ElementType,
    shape: Vec<u64>,
    layout: Layout,
    /// One a leaf for a structure of arrays, else one; with its size in bytes.
    allocations: Vec<(DevicePtr, u64)>,
}

impl DeviceArray {
    /// Uninitialised. `what` names it in messages.
    pub(crate) fn allocate(
        device: &Device,
        what: &str,
        element: ElementType,
        shape: Vec<u64>,
        layout: Layout,
    ) -> Result<Self> {
        let count = shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent));
        let sizes = count.and_then(|count| layout::allocation_sizes(&element, layout, count));
        let Some(sizes) = sizes else {
            return Err(Error::OutOfMemory { what: what.to_string(), asked: u64::MAX, free: None });
        };
        let mut array = Self {
            device: device.clone(),
            element,
            shape,
            layout,
            allocations: Vec::with_capacity(sizes.len()),
        };
        for size in sizes {
            // Whole words: combining into 8- and 16-bit elements works on the word around them.
            let pointer = device.backend.allocate(size.next_multiple_of(4), what)?;
            array.allocations.push((pointer, size));
        }
        Ok(array)
    }

    pub(crate) fn upload(device: &Device, host: &HostArray, layout: Layout) -> Result<Self> {
        let (element, shape) = (host.element.clone(), host.shape.clone());
        let array = Self::allocate(device, "array", element, shape, layout)?;
        array.write(host)?;
        Ok(array)
    }

    /// Filled with the tile's elements, over and over.
    pub(crate) fn repeat(device: &Device, tile: &HostArray, shape: Vec<u64>, layout: Layout) -> Result<Self> {
        let array = Self::allocate(device, "array", tile.element.clone(), shape, layout)?;
        let count: u64 = array.shape.iter().product();
        if let Layout::Aosoa(width) = layout
            && tile.len() < count
            && !tile.len().is_multiple_of(u64::from(width))
        {
            return Err(Error::Argument {
                kernel: "copy".to_string(),
                message: format!("{} elements are no whole groups of {width}", tile.len()),
            });
        }
        let images = layout::to_device(tile, layout);
        for ((pointer, size), image) in array.allocations.iter().zip(&images) {
            if image.is_empty() && *size > 0 {
                return Err(Error::Argument {
                    kernel: "copy".to_string(),
                    message: "an array cannot be filled with copies of an empty one".to_string(),
                });
            }
            let mut done = (image.len() as u64).min(*size);
            device.backend.copy_in(*pointer, &image[..done as usize])?;
            while done < *size {
                let more = done.min(size - done);
                device.backend.copy(pointer + done, *pointer, more)?;
                done += more;
            }
        }
        Ok(array)
    }

    pub fn element(&self) -> &ElementType {
        &self.element
    }

    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Device addresses: one a leaf for a structure of arrays, else one.
    pub fn pointers(&self) -> impl Iterator<Item = DevicePtr> + '_ {
        self.allocations.iter().map(|(pointer, _)| *pointer)
    }

    /// Bytes in device memory.
    pub fn bytes(&self) -> u64 {
        self.allocations.iter().map(|(_, size)| size).sum()
    }

    /// Copies a host array of the same element type and shape over this one.
    ///
    /// # Errors
    /// [`Error::Argument`] where type or shape differ.
    pub fn write(&self, host: &HostArray) -> Result<()> {
        if host.shape != self.shape || host.element.leaves != self.element.leaves {
            return Err(Error::Argument {
                kernel: "copy".to_string(),
                message: format!(
                    "an array of `{}` {:?} cannot be copied into one of `{}` {:?}",
                    host.element.name, host.shape, self.element.name, self.shape
                ),
            });
        }
        if self.layout == Layout::Aos {
            return self.device.backend.copy_in(self.allocations[0].0, &host.bytes);
        }
        let images = layout::to_device(host, self.layout);
        for ((pointer, _), image) in self.allocations.iter().zip(&images) {
            self.device.backend.copy_in(*pointer, image)?;
        }
        Ok(())
    }

    /// Sets every byte.
    ///
    /// # Errors
    /// A failed driver call.
    pub fn fill(&self, byte: u8) -> Result<()> {
        self.allocations
            .iter()
            .try_for_each(|(pointer, size)| self.device.backend.fill(*pointer, byte, *size))
    }

    /// Copies the array to the host, waiting for all work that was launched before.
    ///
    /// # Errors
    /// A failed copy, or an earlier kernel's failure.
    pub fn download(&self) -> Result<HostArray> {
        let host = HostArray::zeros(self.element.clone(), self.shape.clone());
        let Some(mut host) = host else {
            return Err(Error::OutOfMemory {
                what: "host array".to_string(),
                asked: self.bytes(),
                free: None,
            });
        };
        if self.layout == Layout::Aos {
            self.device.backend.copy_out(self.allocations[0].0, &mut host.bytes)?;
            return Ok(host);
        }
        let mut images = Vec::with_capacity(self.allocations.len());
        for (pointer, size) in &self.allocations {
            let mut image = vec![0; *size as usize];
            self.device.backend.copy_out(*pointer, &mut image)?;
            images.push(image);
        }
        layout::from_device(&mut host, self.layout, &images);
        Ok(host)
    }
}

impl Drop for DeviceArray {
    fn drop(&mut self) {
        for (pointer, _) in &self.allocations {
            self.device.backend.free(*pointer);
        }
    }
}
