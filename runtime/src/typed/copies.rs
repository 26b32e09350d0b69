//! Copies that run while the host goes on, and copies between arrays.

use super::array::{Array, check_length};
use super::pinned::Pinned;
use super::view::ViewMut;
use crate::backend::StreamNumber;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::stream::{Event, Stream, same_device};
use krn_compiler::manifest::Layout;

/// A copy on its way, with the buffer that it uses. The buffer comes back from [`wait`](Self::wait): nobody can use
/// it before. Dropping the copy waits for it, too.
///
/// ```
/// use krn_runtime::{Array, Device, Pinned, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let stream = device.stream()?;
/// let mut array = Array::<u32, 1>::zeros(&device, [4])?;
/// let sent = array.write_async(Pinned::from_slice(&device, &[1, 2, 3, 4])?, &stream)?;
/// // … other work of the host …
/// let buffer = sent.wait()?;
/// let received = array.read_async(buffer, &stream)?;
/// assert_eq!(received.wait()?[..], [1, 2, 3, 4]);
/// # Ok::<(), krn_runtime::Error>(())
/// ```
///
/// The buffer belongs to the copy until then:
///
/// ```compile_fail
/// use krn_runtime::{Array, Device, Pinned, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let stream = device.stream()?;
/// let array = Array::<u32, 1>::zeros(&device, [4])?;
/// let buffer = Pinned::zeros(&device, 4)?;
/// let received = array.read_async(buffer, &stream)?;
/// assert_eq!(buffer[0], 0); // `buffer` was moved
/// # Ok::<(), krn_runtime::Error>(())
/// ```
#[must_use = "dropping it waits for the copy"]
pub struct Pending<B> {
    /// There until `wait` takes it.
    buffer: Option<B>,
    event: Event,
    stream: Stream,
    /// That what came is what the type says.
    check: fn(&B) -> Result<()>,
}

impl<B> Pending<B> {
    /// Waits for the copy and gives the buffer back.
    ///
    /// # Errors
    /// What a kernel did wrong that was launched on the stream before; [`Error::InvalidBool`]. The buffer is freed then.
    pub fn wait(mut self) -> Result<B> {
        self.event.synchronize()?;
        self.stream.check_records()?;
        match self.buffer.take() {
            Some(buffer) => (self.check)(&buffer).map(|()| buffer),
            None => Err(Error::Stream("the copy was waited for before".to_string())),
        }
    }

    /// Whether [`wait`](Self::wait) would not have to wait.
    ///
    /// # Errors
    /// What a kernel did wrong that was launched on the stream before.
    pub fn is_done(&self) -> Result<bool> {
        self.event.is_done()
    }
}

impl<B> Drop for Pending<B> {
    fn drop(&mut self) {
        // Where the device has failed it does not copy any more. A buffer that was taken is waited for.
        if self.buffer.is_some() {
            let _ = self.event.synchronize();
        }
    }
}

impl<T: Element, const RANK: usize> Array<T, RANK> {
    /// What both directions ask for; the stream's number.
    fn check_copy(&self, buffer: &Pinned<T>, stream: &Stream) -> Result<StreamNumber> {
        check_length(&self.shape(), buffer.len())?;
        same_device("the stream", stream.device(), "the array", self.dynamic().device())?;
        if self.layout() != Layout::Aos {
            return Err(Error::Stream(
                "an array whose structs do not lie as the host has them cannot be copied while the host goes on: \
                 use `write` or `to_vec`"
                    .to_string(),
            ));
        }
        stream.live("no copy can be queued")
    }

    pub(super) fn send(&self, mut buffer: Pinned<T>, stream: &Stream) -> Result<Pending<Pinned<T>>> {
        let number = self.check_copy(&buffer, stream)?;
        buffer.clear_padding();
        let (from, size) = buffer.raw();
        // SAFETY: the buffer lives until the copy is done, for `Pending` owns it and waits; on an error below it is
        // waited for here.
        let queued = self
            .dynamic()
            .queue_copy(number, true, |backend, to| unsafe { backend.copy_in_async(number, to, from, size) });
        pending(queued, buffer, stream, |_| Ok(()))
    }

    /// Queues a copy of the buffer over all elements, and returns. What uses the array later comes after it.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::WrongDevice`]; [`Error::Stream`] in another layout than [`Layout::Aos`];
    /// [`Error::HostAccess`]; a failed driver call. The buffer is freed then.
    pub fn write_async(&mut self, buffer: Pinned<T>, stream: &Stream) -> Result<Pending<Pinned<T>>> {
        self.send(buffer, stream)
    }

    /// Queues a copy of all elements to the buffer, behind the work that writes them, and returns.
    ///
    /// # Errors
    /// As for [`write_async`](Self::write_async).
    pub fn read_async(&self, mut buffer: Pinned<T>, stream: &Stream) -> Result<Pending<Pinned<T>>> {
        let number = self.check_copy(&buffer, stream)?;
        let (to, size) = buffer.raw();
        // SAFETY: as for `send`.
        let queued = self.dynamic().queue_copy(number, false, |backend, from| unsafe {
            backend.copy_out_async(number, to, from, size)
        });
        pending(queued, buffer, stream, Pinned::check_bools)
    }

    /// Copies all elements of an array of the same shape, layout and type, on this device or on another one, in
    /// order with the work on both. On one device the copy is queued on the default stream; between devices it goes
    /// over their link, where they have one, else by way of the host, and is waited for.
    ///
    /// ```
    /// use krn_runtime::{Array, Device, Selection};
    ///
    /// let (here, there) = (Device::open_as(Selection::Emulator)?, Device::open_as(Selection::Emulator)?);
    /// let from = Array::from_slice(&there, [3], &[1u8, 2, 3])?;
    /// let mut to = Array::<u8, 1>::zeros(&here, [3])?;
    /// to.copy_from(&from)?;
    /// assert_eq!(to.to_vec()?, [1, 2, 3]);
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] where shape or layout differ; [`Error::HostAccess`]; a failed driver call.
    pub fn copy_from(&mut self, from: &Array<T, RANK>) -> Result<()> {
        self.dynamic().copy_from(from.dynamic())
    }
}

/// What was queued with a buffer, or the buffer freed behind it.
fn pending<T: Element>(
    queued: Result<()>,
    buffer: Pinned<T>,
    stream: &Stream,
    check: fn(&Pinned<T>) -> Result<()>,
) -> Result<Pending<Pinned<T>>> {
    let event = queued.and_then(|()| stream.record());
    match event {
        Ok(event) => Ok(Pending { buffer: Some(buffer), event, stream: stream.clone(), check }),
        Err(error) => {
            // The copy may have been queued before what failed.
            let _ = stream.device().backend.synchronize_stream(stream.number());
            Err(error)
        }
    }
}

impl<T: Element, const RANK: usize> ViewMut<'_, T, RANK> {
    /// Queues a copy of the buffer over the part: see [`Array::write_async`].
    ///
    /// # Errors
    /// As there.
    pub fn write_async(&mut self, buffer: Pinned<T>, stream: &Stream) -> Result<Pending<Pinned<T>>> {
        self.send(buffer, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, Selection};
    use crate::typed::ArrayOptions;

    #[test]
    fn copies_own_their_buffers_and_check_what_comes() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let stream = device.stream().expect("opens");
        let mut array = Array::<bool, 1>::zeros(&device, [16]).expect("small");
        let buffer = Pinned::from_slice(&device, &[true; 16]).expect("small");
        let sent = array.write_async(buffer, &stream).expect("queued");
        assert!(sent.is_done().expect("good"));
        let buffer = sent.wait().expect("good");
        assert_eq!(array.to_vec().expect("there"), [true; 16]);
        array.dynamic().fill(2).expect("its own memory");
        let received = array.read_async(buffer, &stream).expect("queued").wait();
        assert!(matches!(received, Err(Error::InvalidBool { .. })));
        let empty = Array::<f64, 1>::zeros(&device, [0]).expect("small");
        let received = empty.read_async(Pinned::zeros(&device, 0).expect("small"), &stream);
        assert!(received.expect("queued").wait().expect("good").is_empty());
    }

    #[test]
    fn parts_are_copied_too_and_what_cannot_be_is_refused() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let stream = device.stream().expect("opens");
        let mut array = Array::<u32, 1>::zeros(&device, [16]).expect("small");
        let buffer = Pinned::from_slice(&device, &[1, 2, 3, 4]).expect("small");
        let sent = array.view_mut(8..12).and_then(|mut part| part.write_async(buffer, &stream));
        let buffer = sent.and_then(Pending::wait).expect("good");
        assert_eq!(array.to_vec().expect("there")[7..13], [0, 1, 2, 3, 4, 0]);
        let received = array.view(4..8).and_then(|part| part.read_async(buffer, &stream));
        let buffer = received.and_then(Pending::wait).expect("good");
        assert_eq!(buffer[..], [0; 4]);
        assert!(matches!(array.read_async(buffer, &stream), Err(Error::Length { .. })));
        let other = Device::open_as(Selection::Emulator).expect("always there").stream().expect("opens");
        let buffer = Pinned::zeros(&device, 16).expect("small");
        assert!(matches!(array.read_async(buffer, &other), Err(Error::WrongDevice { .. })));
        let apart: Array<u32, 1> =
            ArrayOptions::new().layout(Layout::Soa).zeros(&device, [4]).expect("small");
        let buffer = Pinned::zeros(&device, 4).expect("small");
        assert!(matches!(apart.read_async(buffer, &stream), Err(Error::Stream(_))));
        assert!(matches!(array.copy_from(&apart), Err(Error::Argument { .. })));
    }
}
