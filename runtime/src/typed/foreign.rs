//! Work of other libraries on arrays of ours.

use super::argument::Writable;
use super::array::Array;
use crate::device::same_device;
use crate::error::Result;
use crate::memory::element::Element;
use crate::memory::storage::Storage;
use crate::stream::Stream;
use std::marker::PhantomData;
use std::sync::Arc;

/// Work that another library is about to queue on a stream, and the arrays that it uses: [`Stream::foreign`].
pub struct Foreign<'a> {
    stream: Stream,
    /// With whether they are written.
    uses: Vec<(Arc<Storage>, bool)>,
    wrong_device: Result<()>,
    arrays: PhantomData<&'a mut ()>,
}

impl Stream {
    /// Has another library (cuBLAS, code of your own) work on arrays, by their addresses and this stream's
    /// [handle](Self::raw), in order with all other work on them: the stream waits for what other streams do to them,
    /// and other streams wait for what is queued here. Say which arrays it reads and writes, then queue it:
    ///
    /// ```
    /// # use krn_runtime::{Array, Device, Selection};
    /// # let device = Device::open_as(Selection::Emulator)?;
    /// # let stream = device.stream()?;
    /// # fn their_scale(_from: u64, _to: u64) {}
    /// let a = Array::<f32, 1>::zeros(&device, [1000])?;
    /// let mut b = Array::<f32, 1>::zeros(&device, [1000])?;
    /// let (from, to) = (a.pointers().next().unwrap(), b.pointers().next().unwrap());
    /// stream.foreign().reads(&a).writes(&mut b).queue(|| {
    ///     // Their functions, given `stream.raw()?` before.
    ///     their_scale(from, to);
    /// })?;
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    pub fn foreign(&self) -> Foreign<'_> {
        Foreign { stream: self.clone(), uses: Vec::new(), wrong_device: Ok(()), arrays: PhantomData }
    }
}

impl<'a> Foreign<'a> {
    /// The work reads this array.
    pub fn reads<T: Element, const RANK: usize>(self, array: &'a Array<T, RANK>) -> Self {
        self.uses(array.dynamic(), false)
    }

    /// The work writes this array, and may read it.
    pub fn writes<T: Element, const RANK: usize>(self, array: impl Writable<T, RANK> + 'a) -> Self {
        self.uses(array.dynamic(), true)
    }

    fn uses(mut self, array: &crate::memory::array::DeviceArray, write: bool) -> Self {
        let (here, there) = (self.stream.device(), array.device());
        self.wrong_device =
            self.wrong_device.and_then(|()| same_device("an array", there, "the stream", here));
        self.uses.push((Arc::clone(array.storage()), write));
        self
    }

    /// Calls `work`, which queues something on the stream, or does it. Other threads that come to these arrays meanwhile
    /// wait until it returns.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice); [`Error::HostAccess`](crate::Error::HostAccess) where the host has
    /// a slice of an array; [`Error::Stream`](crate::Error::Stream) while the stream is captured; a failed driver call.
    /// Nothing was called then.
    pub fn queue<R>(self, work: impl FnOnce() -> R) -> Result<R> {
        self.wrong_device?;
        let number = self.stream.live("nothing of other libraries can be queued")?;
        let device = self.stream.device();
        let uses = self.uses.iter().map(|(storage, write)| (&storage.usage, *write));
        let backend = device.backend.as_ref();
        device.shared.order.run(backend, number, "another library", uses, || Ok(work()))
    }
}
