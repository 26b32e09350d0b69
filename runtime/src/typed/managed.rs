//! Managed memory: where its pages are, and where they should be.

use super::array::Array;
use crate::device::same_device;
use crate::error::{Error, Result};
use crate::memory::element::Element;
use crate::memory_kind::{Advice, Memory, Place};
use crate::stream::Stream;

impl<T: Element, const RANK: usize> Array<T, RANK> {
    fn check_managed(&self, what: &str) -> Result<()> {
        match self.memory() {
            Memory::Managed => Ok(()),
            other => {
                Err(Error::WrongMemory { what: what.to_string(), wanted: Memory::Managed, given: other })
            }
        }
    }

    /// Queues the move of all pages to a place: one large copy instead of a fault for each page that is touched there
    /// first.
    ///
    /// ```
    /// use krn_runtime::{Array, Device, Memory, Place, Selection};
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let stream = device.stream()?;
    /// let mut array = Array::<f32, 1>::zeros_in(&device, Memory::Managed, [1000])?;
    /// array.host_mut()?.fill(1.0);
    /// array.prefetch(Place::Device, &stream)?;
    /// // … launches on `stream` …
    /// array.prefetch(Place::Host, &stream)?;
    /// assert_eq!(array.as_slice()?[999], 1.0);
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongMemory`] for an array in other memory; [`Error::WrongDevice`]; a failed driver call.
    pub fn prefetch(&self, to: Place, stream: &Stream) -> Result<()> {
        self.check_managed("prefetch")?;
        same_device("the stream", stream.device(), "the array", self.dynamic().device())?;
        let number = stream.live("no move of pages can be queued")?;
        let size = self.dynamic().bytes();
        self.dynamic()
            .queue_copy(number, false, |backend, pointer| backend.prefetch(number, pointer, size, to))
    }

    /// Tells the driver what is known of the array. At once: it is no work of a stream.
    ///
    /// # Errors
    /// [`Error::WrongMemory`] for an array in other memory; a failed driver call.
    pub fn advise(&self, advice: Advice) -> Result<()> {
        self.check_managed("advice")?;
        let array = self.dynamic();
        array.storage().mark_advised();
        let mut pieces = array.allocations().iter();
        pieces.try_for_each(|(pointer, size)| array.device().backend.advise(*pointer, *size, advice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, Selection};

    #[test]
    fn only_managed_memory_moves() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let stream = device.stream().expect("opens");
        let array = Array::<f32, 1>::zeros_in(&device, Memory::Managed, [10]).expect("small");
        let all = [
            Advice::ReadMostly,
            Advice::NotReadMostly,
            Advice::PreferDevice,
            Advice::PreferHost,
            Advice::NoPreference,
        ];
        all.into_iter().try_for_each(|advice| array.advise(advice)).expect("managed");
        array.prefetch(Place::Device, &stream).expect("managed");
        for memory in [Memory::Device, Memory::Mapped] {
            let array = Array::<f32, 1>::zeros_in(&device, memory, [10]).expect("small");
            assert!(matches!(array.prefetch(Place::Host, &stream), Err(Error::WrongMemory { .. })));
            let text = array.advise(Advice::ReadMostly).expect_err("it is not managed").to_string();
            assert_eq!(text, format!("advice needs managed memory, but the array lies in {memory}"));
        }
    }
}
