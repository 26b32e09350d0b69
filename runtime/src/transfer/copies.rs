//! Copies between arrays of the host and arrays on a device. Structs change their layout on the way: on the device, where
//! that is faster.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::array::DeviceArray;
use crate::memory::layout;
use crate::memory::strided::{self, Image};
use crate::transfer::convert::{self, Conversion};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::Layout;

impl Device {
    /// Copies an array to the device, in the layout that a kernel's argument wants
    /// ([`Kernel::layout`](crate::Kernel::layout); [`Layout::Aos`] for scalar elements).
    ///
    /// # Errors
    /// Out of memory, or a failed copy.
    pub fn upload(&self, array: &HostArray, layout: Layout) -> Result<DeviceArray> {
        let (element, shape) = (array.element.clone(), array.shape.clone());
        let on_device = DeviceArray::allocate(self, "array", element, shape, layout)?;
        on_device.write(array)?;
        Ok(on_device)
    }

    /// A new array filled with the elements of `tile`, in order, over and over: a large array of data in little time,
    /// for the copies are made on the device. Where the layout has groups of `w` elements, the tile has a multiple of
    /// `w` elements, or at least as many as the array.
    ///
    /// # Errors
    /// Out of memory, or a failed copy; [`Error::Argument`](crate::Error::Argument) where the tile is empty and the
    /// array is not, or holds no whole groups.
    pub fn repeat(&self, tile: &HostArray, shape: Vec<u64>, layout: Layout) -> Result<DeviceArray> {
        let array = DeviceArray::allocate(self, "array", tile.element.clone(), shape, layout)?;
        let count: u64 = array.shape().iter().product();
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
        for ((pointer, size), image) in array.allocations().iter().zip(&images) {
            if image.is_empty() && *size > 0 {
                return Err(Error::Argument {
                    kernel: "copy".to_string(),
                    message: "an array cannot be filled with copies of an empty one".to_string(),
                });
            }
            array.run(true, |backend| {
                let mut done = (image.len() as u64).min(*size);
                backend.copy_in(*pointer, &image[..done as usize])?;
                while done < *size {
                    let more = done.min(size - done);
                    backend.copy(0, pointer + done, *pointer, more)?;
                    done += more;
                }
                Ok(())
            })?;
        }
        Ok(array)
    }
}

impl DeviceArray {
    /// Copies a host array of the same element type and shape over this one.
    ///
    /// # Errors
    /// [`Error::Argument`] where type or shape differ.
    pub fn write(&self, host: &HostArray) -> Result<()> {
        if host.shape != self.shape() || host.element.leaves != self.element().leaves {
            return Err(Error::Argument {
                kernel: "copy".to_string(),
                message: format!(
                    "an array of `{}` {:?} cannot be copied into one of `{}` {:?}",
                    host.element.name,
                    host.shape,
                    self.element().name,
                    self.shape()
                ),
            });
        }
        self.write_image(&Image::Dense(&host.bytes))
    }

    /// Copies all elements from the host's, as many as there are.
    pub(crate) fn write_image(&self, image: &Image<'_>) -> Result<()> {
        if self.layout() == Layout::Aos {
            let start = self.allocations()[0].0;
            return self
                .run(true, |backend| image.pieces(|offset, bytes| backend.copy_in(start + offset, bytes)));
        }
        if let Some((structs, conversion)) = self.staged(true) {
            structs.write_image(image)?;
            return conversion.queue(&structs, self);
        }
        let images = layout::images(self.element(), &image.whole(), self.layout());
        self.run(true, |backend| {
            let mut pieces = self.allocations().iter().zip(&images);
            pieces.try_for_each(|((pointer, _), image)| backend.copy_in(*pointer, image))
        })
    }

    /// An array like this one with structs one after the other, to convert to or from it on the device: where that is
    /// faster than by the host, and there is room for it.
    fn staged(&self, to_device: bool) -> Option<(Self, Conversion)> {
        let layouts = (Layout::Aos, self.layout());
        let layouts = if to_device { layouts } else { (layouts.1, layouts.0) };
        let conversion = convert::faster(self.device(), self.element(), layouts, self.bytes())?;
        let (element, shape) = (self.element().clone(), self.shape().to_vec());
        let array = Self::allocate(self.device(), "structs to convert", element, shape, Layout::Aos);
        Some((array.ok()?, conversion))
    }

    /// Copies all elements into an array of the same type and shape, in whatever layouts the two are.
    pub(crate) fn convert_into(&self, to: &DeviceArray) -> Result<()> {
        if self.layout() == to.layout() {
            return to.copy_from(self);
        }
        self.check_writers()?;
        match convert::faster(self.device(), self.element(), (self.layout(), to.layout()), self.bytes()) {
            Some(conversion) => conversion.queue(self, to),
            None => to.write_image(&Image::Dense(&self.download()?.bytes)),
        }
    }

    /// Copies the array to the host, waiting for all work that was launched before.
    ///
    /// # Errors
    /// A failed copy, or an earlier kernel's failure.
    pub fn download(&self) -> Result<HostArray> {
        let host = HostArray::zeros(self.element().clone(), self.shape().to_vec());
        let Some(mut host) = host else {
            return Err(Error::OutOfMemory {
                what: "host array".to_string(),
                asked: self.bytes(),
                free: None,
            });
        };
        self.read_bytes(&mut host.bytes)?;
        Ok(host)
    }

    /// Copies all elements to the host, and calls back for one piece of them after the other, with its offset in bytes: as
    /// [`read_bytes`](Self::read_bytes), with less memory.
    pub(crate) fn read_pieces(&self, mut each: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        if self.layout() != Layout::Aos {
            let mut bytes = vec![0; (self.element().size * self.shape().iter().product::<u64>()) as usize];
            self.read_bytes(&mut bytes)?;
            return each(0, &bytes);
        }
        self.check_writers()?;
        let (start, size) = self.allocations()[0];
        let element = self.element().size.max(1) as usize;
        let step = (strided::PIECE / element).max(1) * element;
        let mut piece = vec![0; step.min(size as usize)];
        self.run(false, |backend| {
            for offset in (0..size as usize).step_by(step) {
                let piece = &mut piece[..step.min(size as usize - offset)];
                backend.copy_out(0, start + offset as u64, piece)?;
                each(offset, piece)?;
            }
            Ok(())
        })
    }

    /// Copies all elements to where their bytes in the C layout belong; padding is left as it is where the layout has
    /// none.
    pub(crate) fn read_bytes(&self, bytes: &mut [u8]) -> Result<()> {
        self.check_writers()?;
        if self.layout() == Layout::Aos {
            return self.run(false, |backend| backend.copy_out(0, self.allocations()[0].0, bytes));
        }
        if let Some((structs, conversion)) = self.staged(false) {
            conversion.queue(self, &structs)?;
            return structs.read_bytes(bytes);
        }
        let mut images: Vec<Vec<u8>> =
            self.allocations().iter().map(|(_, size)| vec![0; *size as usize]).collect();
        self.run(false, |backend| {
            let mut pieces = self.allocations().iter().zip(&mut images);
            pieces.try_for_each(|((pointer, _), image)| backend.copy_out(0, *pointer, image))
        })?;
        layout::elements(self.element(), bytes, self.layout(), &images);
        Ok(())
    }
}
