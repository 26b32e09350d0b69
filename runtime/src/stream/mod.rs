//! Streams and events.

pub(crate) mod capture;
pub(crate) mod graph;
mod prints;
pub(crate) mod record;

use crate::backend::{RawStream, RecordedEvent, StreamNumber};
use crate::device::{Device, same_device};
use crate::error::{Error, Result};
use crate::stream::capture::Capture;
use crate::stream::record::ErrorRecord;
use krn_compiler::manifest::Manifest;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// A queue of work on a device, beside its default stream and all others. Cheap to clone: a clone is the same queue.
///
/// Work on one stream runs in order; work on two streams runs at the same time where it can. What uses the same array
/// stays in order all the same: a kernel that reads what another stream writes waits, on the device, until that is
/// done. Nothing has to be said for it, and nothing is waited for where one stream alone uses an array.
///
/// The order is kept array by array: a [`view`](crate::Array::view) counts as all of its array; parts from
/// [`chunks_mut`](crate::Array::chunks_mut) and [`split_at_mut`](crate::Array::split_at_mut) are on their own. The emulator has the same meaning with
/// other times: there, every call does its work before it returns.
///
/// ```
/// use krn_compiler::{CompileOptions, compile, source::SourceFile};
/// use krn_runtime::{Argument, Array, Device, Selection};
///
/// let text = "kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }";
/// let compiled = compile(&SourceFile::new("double.krn", text), &CompileOptions::default()).unwrap().compiled;
/// let device = Device::open_as(Selection::Emulator)?;
/// let module = device.load(&compiled)?;
/// let double = module.kernel("double")?;
///
/// let x = Array::from_slice(&device, [3], &[1.0f32, 2.0, 3.0])?;
/// let mut y = Array::<f32, 1>::zeros(&device, [3])?;
/// let (first, second) = (device.stream()?, device.stream()?);
/// double.launch_on(&first, &[("x", Argument::Array(x.dynamic())), ("y", Argument::Array(y.dynamic()))])?;
/// // On another stream, but it reads `y`: it comes after.
/// let mut results = double.launch_on(&second, &[("x", Argument::Array(y.dynamic()))])?;
/// second.synchronize()?;
/// let (_, z) = results.remove(0);
/// assert_eq!(Array::<f32, 1>::from_dynamic(z)?.to_vec()?, [4.0, 8.0, 12.0]);
/// # Ok::<(), krn_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

struct Inner {
    device: Device,
    number: StreamNumber,
    /// Where kernels that were launched here report failures: kept while they may; the device looks at them.
    records: Mutex<Vec<Arc<ErrorRecord>>>,
    /// Whether the stream is somebody else's.
    borrowed: bool,
    /// Of a stream that only captures: what it was given. It has the default stream's number, and queues nothing.
    capture: Option<Mutex<Capture>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.capture.is_some() {
            return;
        }
        if self.borrowed {
            let backend = &self.device.backend;
            // Where it fails the device has failed, and every later call says so.
            let _ = self.device.shared.order.alone(|| backend.return_stream(self.number));
        }
        // The next stream of this number goes on behind what is still queued.
        self.device.shared.order.give_number_back(self.number);
    }
}

impl Device {
    /// A new stream, beside the default stream and all others.
    ///
    /// # Errors
    /// [`Error::Stream`](crate::Error::Stream) where the device has 63 already; a failed driver call.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }
}

impl Stream {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let stream = Self::with_number(device, device.shared.order.take_number()?, false);
        device.backend.open_stream(stream.number())?;
        Ok(stream)
    }

    fn with_number(device: &Device, number: StreamNumber, borrowed: bool) -> Self {
        let (device, records) = (device.clone(), Mutex::default());
        Self { inner: Arc::new(Inner { device, number, records, borrowed, capture: None }) }
    }

    /// The stream for kernels for which none was chosen: all of a device share one, open while somebody holds it.
    pub(crate) fn for_launches(device: &Device) -> Result<Self> {
        let open = || Ok(Self::new(device)?.inner);
        Ok(Self { inner: device.shared.launch_stream(open)? })
    }

    /// The device's default stream.
    pub(crate) fn default_of(device: &Device) -> Self {
        Self::with_number(device, 0, false)
    }

    /// The stream of another library, to queue launches and copies on: they come behind what is queued on it, and what
    /// is queued on it after them comes behind them. Null is the device's default stream; the emulator has no other.
    ///
    /// Krn knows nothing of what others queue. It keeps arrays in order as far as its own work goes, as on any stream;
    /// [`foreign`](Self::foreign) tells it of arrays that another library works on.
    ///
    /// ```
    /// use krn_runtime::{Device, Selection, Stream};
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// // SAFETY: the default stream is always there.
    /// let stream = unsafe { Stream::from_raw(&device, std::ptr::null_mut())? };
    /// stream.synchronize()?;
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Safety
    /// `raw` is null or the handle (`CUstream`, `cudaStream_t`) of a stream that is open, and not being captured into a
    /// graph by others, until this stream and all its clones are dropped.
    ///
    /// # Errors
    /// [`Error::Stream`] for the handle of the calling thread's own default stream, and on the emulator for any but null;
    /// [`Error::WrongDevice`] where the stream is not of the device's primary context (that of the CUDA runtime API);
    /// as for [`Device::stream`].
    pub unsafe fn from_raw(device: &Device, raw: RawStream) -> Result<Self> {
        /// As the driver names the default stream where it is not null.
        const LEGACY: usize = 1;
        if raw.is_null() || raw.addr() == LEGACY {
            return Ok(Self::default_of(device));
        }
        // Of our own first: it is what the number stands for before and after.
        let mut stream = Self::new(device)?;
        let (order, number) = (&device.shared.order, stream.number());
        // SAFETY: the caller's promise; given back when the last clone is dropped.
        order.alone(|| unsafe { device.backend.borrow_stream(number, raw) })?;
        if let Some(inner) = Arc::get_mut(&mut stream.inner) {
            inner.borrowed = true;
        }
        Ok(stream)
    }

    /// The stream's handle (`CUstream`, `cudaStream_t`) for other libraries, which must not destroy it. It is open until
    /// the last clone of this stream is dropped; null for the default stream. What others queue on it Krn does not see:
    /// see [`foreign`](Self::foreign).
    ///
    /// # Errors
    /// [`Error::Stream`] on the emulator, whose streams are none of the driver's, and while the stream is captured.
    pub fn raw(&self) -> Result<RawStream> {
        let number = self.live("there is no handle")?;
        self.inner.device.backend.raw_stream(number)
    }

    /// A stream that keeps the launches that it is given.
    pub(crate) fn capturing(device: &Device) -> Self {
        let capture = Some(Mutex::default());
        let (device, records) = (device.clone(), Mutex::default());
        Self { inner: Arc::new(Inner { device, number: 0, records, borrowed: false, capture }) }
    }

    /// What it was given, if it only captures.
    pub(crate) fn captured(&self) -> Option<MutexGuard<'_, Capture>> {
        // Launches are added in one step: a panic elsewhere leaves it whole.
        self.inner.capture.as_ref().map(|capture| capture.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn take_capture(&self) -> Capture {
        self.captured().map(|mut capture| std::mem::take(&mut *capture)).unwrap_or_default()
    }

    /// Its number, for what cannot be captured.
    pub(crate) fn live(&self, refusal: &str) -> Result<StreamNumber> {
        if self.inner.capture.is_some() {
            return Err(Error::Stream(format!("{refusal} on a stream that is being captured")));
        }
        Ok(self.inner.number)
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Whether it only captures.
    pub(crate) fn is_captured(&self) -> bool {
        self.inner.capture.is_some()
    }

    pub(crate) fn number(&self) -> StreamNumber {
        self.inner.number
    }

    /// Waits for everything queued on this stream.
    ///
    /// # Errors
    /// What a kernel did wrong that was launched on it: [`Error::Bounds`] or [`Error::Assertion`] once for each kernel that
    /// failed; [`Error::DeviceLost`] where the device itself caught an access, and from every later call then.
    pub fn synchronize(&self) -> Result<()> {
        let number = self.live("nothing can be waited for")?;
        self.inner.device.backend.synchronize_stream(number)?;
        self.check_records()
    }

    /// The first failure that a kernel left word of.
    pub(crate) fn check_records(&self) -> Result<()> {
        self.inner.device.shared.check_records(1 << self.number())
    }

    /// The record of a kernel's launches on this stream.
    pub(crate) fn record_of(&self, manifest: &Arc<Manifest>, kernel: usize) -> Result<Arc<ErrorRecord>> {
        // A panic elsewhere leaves the list whole: records are added in one step.
        let mut records = self.inner.records.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = records.iter().find(|record| record.is_of(manifest, kernel)) {
            return Ok(Arc::clone(record));
        }
        let record = Arc::new(ErrorRecord::new(&self.inner.device, manifest, kernel, self.number())?);
        self.watch_on_device(&record);
        records.push(Arc::clone(&record));
        Ok(record)
    }

    /// Has [`synchronize`](Self::synchronize) look at a record as well.
    pub(crate) fn watch(&self, record: &Arc<ErrorRecord>) {
        let mut records = self.inner.records.lock().unwrap_or_else(PoisonError::into_inner);
        if !records.iter().any(|known| Arc::ptr_eq(known, record)) {
            self.watch_on_device(record);
            records.push(Arc::clone(record));
        }
    }

    fn watch_on_device(&self, record: &Arc<ErrorRecord>) {
        let record: Weak<ErrorRecord> = Arc::downgrade(record);
        self.inner.device.shared.watch(self.number(), record);
    }

    /// Marks where the queue is now.
    ///
    /// # Errors
    /// A failed driver call.
    pub fn record(&self) -> Result<Event> {
        let number = self.live("no event can be recorded")?;
        let event = self.inner.device.backend.record(number)?;
        Ok(Event { event, device: self.inner.device.clone() })
    }

    /// What is queued from now on waits, on the device, for the event. For arrays this is not needed; it is for what
    /// the runtime cannot see.
    ///
    /// # Errors
    /// [`Error::WrongDevice`]; a failed driver call.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        same_device("the event", &event.device, "the stream", &self.inner.device)?;
        event.event.hold(self.live("no event can be waited for")?)
    }
}

/// A mark in a stream's queue, with the time at which the device came to it.
///
/// ```
/// use krn_runtime::{Device, Selection};
///
/// let stream = Device::open_as(Selection::Emulator)?.stream()?;
/// let start = stream.record()?;
/// // … launches …
/// let end = stream.record()?;
/// println!("{:?}", end.elapsed_since(&start)?);
/// # Ok::<(), krn_runtime::Error>(())
/// ```
pub struct Event {
    // Before the device, which has to outlive it.
    event: Box<dyn RecordedEvent>,
    device: Device,
}

impl Event {
    /// Waits until the stream has come to it.
    ///
    /// # Errors
    /// A kernel before it did what the device does not allow.
    pub fn synchronize(&self) -> Result<()> {
        self.event.wait()
    }

    /// Whether the stream has come to it.
    ///
    /// # Errors
    /// As for [`synchronize`](Self::synchronize).
    pub fn is_done(&self) -> Result<bool> {
        self.event.is_done()
    }

    /// The device's time from the other mark to this one, to about half a microsecond. Waits for both.
    ///
    /// # Errors
    /// [`Error::WrongDevice`]; [`Error::Stream`] where the other one is the later; as for
    /// [`synchronize`](Self::synchronize).
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        same_device("the earlier event", &earlier.device, "this event", &self.device)?;
        let elapsed = self.event.since(earlier.event.as_ref())?;
        elapsed.ok_or_else(|| Error::Stream("the earlier of two events came later".to_string()))
    }
}
