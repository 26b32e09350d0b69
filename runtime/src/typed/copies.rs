//! Copies that run while the host goes on, and copies between arrays.

use super::array::{Array, check_length};
use super::pinned::Pinned;
use super::view::ViewMut;
use crate::backend::StreamNumber;
use crate::device::same_device;
use crate::error::{Error, Result};
use crate::memory::element::Element;
use crate::stream::{Event, Stream};
use krn_compiler::manifest::Layout;
use std::fmt;

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
    // Before the buffer, which it waits for when both are dropped.
    flight: Flight,
    buffer: B,
    /// That what came is what the type says; where it is not, the buffer is set to zero.
    settle: fn(&mut B) -> Result<()>,
}

/// What a copy is waited for by; dropping it waits.
struct Flight {
    event: Event,
    stream: Stream,
    landed: bool,
}

impl Flight {
    fn wait(&mut self) -> Result<()> {
        self.landed = true;
        if let Err(error) = self.event.synchronize() {
            // Nobody may see the buffer before the copy is done. Where the device has failed it does not copy any more.
            let _ = self.stream.device().backend.synchronize_stream(self.stream.number());
            return Err(error);
        }
        self.stream.check_records()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Where the device has failed it does not copy any more.
        if !self.landed {
            let _ = self.event.synchronize();
        }
    }
}

impl<B> Pending<B> {
    /// Waits for the copy and gives the buffer back.
    ///
    /// # Errors
    /// What a kernel did wrong that was launched on the stream before; [`Error::InvalidBool`], and the buffer is zero then.
    pub fn wait(self) -> std::result::Result<B, CopyError<B>> {
        let Self { mut flight, mut buffer, settle } = self;
        let waited = flight.wait();
        let settled = settle(&mut buffer);
        match waited.and(settled) {
            Ok(()) => Ok(buffer),
            Err(error) => Err(CopyError { error: Box::new(error), buffer }),
        }
    }

    /// Whether [`wait`](Self::wait) would not have to wait.
    ///
    /// # Errors
    /// What a kernel did wrong that was launched on the stream before.
    pub fn is_done(&self) -> Result<bool> {
        self.flight.event.is_done()
    }
}

/// A copy that was refused, or failed, and the buffer that it was given: it can be used again.
///
/// `?` makes an [`Error`] of it, and frees the buffer.
///
/// ```
/// use krn_runtime::{Array, Device, Pinned, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let stream = device.stream()?;
/// let (mut short, mut long) = (Array::<u32, 1>::zeros(&device, [2])?, Array::<u32, 1>::zeros(&device, [4])?);
/// let buffer = Pinned::from_slice(&device, &[1, 2, 3, 4])?;
/// // Four values into two elements.
/// let refused = short.write_async(buffer, &stream).map(|_| ()).unwrap_err();
/// println!("{refused}");
/// long.write_async(refused.buffer, &stream)?.wait()?;
/// assert_eq!(long.to_vec()?, [1, 2, 3, 4]);
/// # Ok::<(), krn_runtime::Error>(())
/// ```
pub struct CopyError<B> {
    /// What was wrong.
    pub error: Box<Error>,
    /// The buffer. After a copy to the host that failed, its values are anything.
    pub buffer: B,
}

impl<B> fmt::Display for CopyError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<B> fmt::Debug for CopyError<B> {
    /// Without the buffer, which may be long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyError").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<B> std::error::Error for CopyError<B> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl<B> From<CopyError<B>> for Error {
    fn from(refused: CopyError<B>) -> Self {
        *refused.error
    }
}

/// A copy on its way, or what was wrong and the buffer.
type Copied<T> = std::result::Result<Pending<Pinned<T>>, CopyError<Pinned<T>>>;

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

    pub(super) fn send(&self, mut buffer: Pinned<T>, stream: &Stream) -> Copied<T> {
        let number = match self.check_copy(&buffer, stream) {
            Ok(number) => number,
            Err(error) => return Err(CopyError { error: Box::new(error), buffer }),
        };
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
    /// [`Error::HostAccess`]; a failed driver call. The buffer comes back with the error.
    pub fn write_async(
        &mut self,
        buffer: Pinned<T>,
        stream: &Stream,
    ) -> std::result::Result<Pending<Pinned<T>>, CopyError<Pinned<T>>> {
        self.send(buffer, stream)
    }

    /// Queues a copy of all elements to the buffer, behind the work that writes them, and returns.
    ///
    /// # Errors
    /// As for [`write_async`](Self::write_async).
    pub fn read_async(
        &self,
        mut buffer: Pinned<T>,
        stream: &Stream,
    ) -> std::result::Result<Pending<Pinned<T>>, CopyError<Pinned<T>>> {
        let number = match self.check_copy(&buffer, stream) {
            Ok(number) => number,
            Err(error) => return Err(CopyError { error: Box::new(error), buffer }),
        };
        let (to, size) = buffer.raw();
        // SAFETY: as for `send`.
        let queued = self.dynamic().queue_copy(number, false, |backend, from| unsafe {
            backend.copy_out_async(number, to, from, size)
        });
        pending(queued, buffer, stream, Pinned::settle)
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

/// What was queued with a buffer, or the buffer behind it.
fn pending<T: Element>(
    queued: Result<()>,
    mut buffer: Pinned<T>,
    stream: &Stream,
    settle: fn(&mut Pinned<T>) -> Result<()>,
) -> Copied<T> {
    match queued.and_then(|()| stream.record()) {
        Ok(event) => {
            let flight = Flight { event, stream: stream.clone(), landed: false };
            Ok(Pending { flight, buffer, settle })
        }
        Err(error) => {
            // The copy may have been queued before what failed.
            let _ = stream.device().backend.synchronize_stream(stream.number());
            // What came is not said; that it makes values is seen to.
            let _ = settle(&mut buffer);
            Err(CopyError { error: Box::new(error), buffer })
        }
    }
}

impl<T: Element, const RANK: usize> ViewMut<'_, T, RANK> {
    /// Queues a copy of the buffer over the part: see [`Array::write_async`].
    ///
    /// # Errors
    /// As there.
    pub fn write_async(
        &mut self,
        buffer: Pinned<T>,
        stream: &Stream,
    ) -> std::result::Result<Pending<Pinned<T>>, CopyError<Pinned<T>>> {
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
        let refused = received.expect_err("no `bool` is 2");
        assert!(matches!(*refused.error, Error::InvalidBool { .. }));
        // What comes back are values of the type.
        assert_eq!(refused.buffer[..], [false; 16]);
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
        let sent = array.view_mut(8..12).expect("inside").write_async(buffer, &stream);
        let buffer = sent.and_then(Pending::wait).expect("good");
        assert_eq!(array.to_vec().expect("there")[7..13], [0, 1, 2, 3, 4, 0]);
        let received = array.view(4..8).expect("inside").read_async(buffer, &stream);
        let mut buffer = received.and_then(Pending::wait).expect("good");
        assert_eq!(buffer[..], [0; 4]);
        // One buffer comes back from all that is refused.
        buffer.copy_from_slice(&[5, 6, 7, 8]);
        let refused = array.read_async(buffer, &stream).map(|_| ()).expect_err("too short");
        assert!(matches!(*refused.error, Error::Length { .. }));
        let refused = array.write_async(refused.buffer, &stream).map(|_| ()).expect_err("too short");
        assert!(matches!(Error::from(refused), Error::Length { .. }));
        let buffer = Pinned::from_slice(&device, &[5, 6, 7, 8]).expect("small");
        let other = Device::open_as(Selection::Emulator).expect("always there").stream().expect("opens");
        let refused = array.view(4..8).expect("inside").read_async(buffer, &other).map(|_| ());
        let refused = refused.expect_err("elsewhere");
        assert!(matches!(*refused.error, Error::WrongDevice { .. }));
        let apart: Array<u32, 1> =
            ArrayOptions::new().layout(Layout::Soa).zeros(&device, [4]).expect("small");
        let refused = apart.read_async(refused.buffer, &stream).map(|_| ()).expect_err("in another layout");
        assert!(matches!(*refused.error, Error::Stream(_)));
        assert_eq!(refused.buffer[..], [5, 6, 7, 8]);
        assert!(matches!(array.copy_from(&apart), Err(Error::Argument { .. })));
    }
}
