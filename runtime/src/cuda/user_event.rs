//! Events in the hands of a user.

use super::context::Context;
use super::event::{Event, Mark};
use super::streams::Streams;
use crate::backend::{RecordedEvent, StreamNumber};
use crate::error::Result;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// An event in the hands of a user.
pub(super) struct UserEvent {
    event: Event,
    mark: Mark,
    streams: Arc<Streams>,
}

// SAFETY: an event may be used from any thread; each call makes its context current first.
unsafe impl Send for UserEvent {}
// SAFETY: the driver's calls on events are thread-safe, and the handles are never changed.
unsafe impl Sync for UserEvent {}

impl UserEvent {
    /// Recorded on a stream, in the context, which is current.
    pub fn record(context: &Arc<Context>, streams: &Arc<Streams>, stream: StreamNumber) -> Result<Self> {
        let event = Event::new(context)?;
        let mark = event.record(stream, streams.get(stream)?)?;
        Ok(Self { event, mark, streams: Arc::clone(streams) })
    }

    fn enter(&self) -> Result<&Event> {
        self.event.enter().map(|()| &self.event)
    }
}

impl RecordedEvent for UserEvent {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn wait(&self) -> Result<()> {
        self.enter()?.wait(self.mark)
    }

    fn is_done(&self) -> Result<bool> {
        self.enter()?.is_done(self.mark)
    }

    fn since(&self, earlier: &dyn RecordedEvent) -> Result<Option<Duration>> {
        let Some(earlier) = earlier.as_any().downcast_ref::<UserEvent>() else { return Ok(None) };
        earlier.wait()?;
        self.wait()?;
        let milliseconds = self.enter()?.milliseconds_since(&earlier.event)?;
        Ok((milliseconds >= 0.0).then(|| Duration::from_secs_f64(f64::from(milliseconds) / 1e3)))
    }

    fn hold(&self, stream: StreamNumber) -> Result<()> {
        let queue = self.streams.get(stream)?;
        self.enter()?.hold(queue)
    }
}
