//! Graphs: sequences of launches, worked out once and launched as a whole.

use crate::backend::{GraphNode, GraphWork, LoadedGraph};
use crate::device::{Device, same_device};
use crate::error::Result;
use crate::memory::storage::Storage;
use crate::stream::Stream;
use crate::stream::capture::Capture;
use crate::stream::record::ErrorRecord;
use std::sync::Arc;

/// A sequence of launches, captured with [`Stream::capture`], that one call launches again and again: the host works
/// out their arguments once, and the device gets them in one piece.
///
/// It keeps all memory that its launches use, and their module's code, also where the arrays themselves were dropped.
/// Each launch of it reads and writes the same arrays. Launches that share no array which one of them writes may run
/// at the same time, as on several streams.
pub struct Graph {
    // Before the device, which has to outlive it.
    loaded: Box<dyn LoadedGraph>,
    nodes: Vec<GraphNode>,
    /// All memory that it uses, once each, and whether it writes it.
    uses: Vec<(Arc<Storage>, bool)>,
    records: Vec<Arc<ErrorRecord>>,
    device: Device,
}

impl Stream {
    /// Captures the kernels that `launches` launches on the stream that it is given: nothing runs, and all of them
    /// become one [`Graph`].
    ///
    /// Results and scratch memory are allocated once, here. Nothing is compiled and no code loaded: a kernel that was not
    /// launched for such sizes before has to be prepared ([`Kernel::prepare`](crate::Kernel::prepare)). What is no launch cannot be captured: to wait, to copy or
    /// to record an event on the stream that is being captured is an error. What `launches` does on other streams is
    /// done as always.
    ///
    /// ```
    /// use krn_compiler::{CompileOptions, compile, source::SourceFile};
    /// use krn_runtime::{Argument, Array, Device, Selection};
    ///
    /// let text = "kernel next(x: inout i32[n]) { x[i] = 2 * x[i] + 1 }";
    /// let compiled = compile(&SourceFile::new("next.krn", text), &CompileOptions::default()).unwrap().compiled;
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let module = device.load(&compiled)?;
    /// let next = module.kernel("next")?;
    /// let x = Array::<i32, 1>::zeros(&device, [5])?;
    ///
    /// let stream = device.stream()?;
    /// next.prepare(&[("n", 5.into())])?;
    /// let graph = stream.capture(|captured| {
    ///     for _ in 0..3 {
    ///         next.launch_on(captured, &[("x", Argument::Array(x.dynamic()))])?;
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!((graph.len(), x.to_vec()?), (3, vec![0; 5]));
    /// graph.launch(&stream)?;
    /// graph.launch(&stream)?;
    /// assert_eq!(x.to_vec()?, [63; 5]);
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `launches` says, [`Error::NotPrepared`](crate::Error::NotPrepared) among other things; a failed driver call.
    pub fn capture(&self, launches: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        let captured = Stream::capturing(self.device());
        launches(&captured)?;
        Graph::of(captured.take_capture(), self.device())
    }
}

impl Graph {
    fn of(capture: Capture, device: &Device) -> Result<Self> {
        let Capture { nodes, calls, records } = capture;
        let mut uses: Vec<(Arc<Storage>, bool)> = Vec::new();
        for (storage, write) in calls.into_iter().flat_map(|call| call.uses) {
            match uses.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &storage)) {
                Some((_, written)) => *written |= write,
                None => uses.push((storage, write)),
            }
        }
        let loaded = device.backend.load_graph(&nodes)?;
        Ok(Self { loaded, nodes, uses, records, device: device.clone() })
    }

    /// Queues all launches on a stream, behind earlier work on what they use, and returns.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice); [`Error::HostAccess`](crate::Error::HostAccess);
    /// [`Error::Stream`](crate::Error::Stream) on a stream that is being captured; a failed
    /// driver call. What a kernel does wrong is said by [`Stream::synchronize`].
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        same_device("the stream", stream.device(), "the graph", &self.device)?;
        let number = stream.live("a graph cannot be launched")?;
        for record in &self.records {
            record.mark_used();
            stream.watch(record);
        }
        let backend = self.device.backend.as_ref();
        let uses = self.uses.iter().map(|(storage, write)| (&storage.usage, *write));
        self.device.shared.order.enqueue(backend, number, "graph", uses, || {
            backend.launch_graph(self.loaded.as_ref(), &self.nodes, (number, None))
        })
    }

    /// Launches on the device, in one launch of the graph. Those that a `while` repeats count once.
    pub fn len(&self) -> usize {
        let mut launches = 0;
        for node in &self.nodes {
            node.todo.each(&mut |work| launches += usize::from(matches!(work, GraphWork::Launch(_))));
        }
        launches
    }

    /// Whether nothing was captured.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Selection;
    use crate::error::Error;
    use crate::launch::argument::Argument;
    use crate::launch::module::Module;
    use crate::typed::{Array, Pinned};

    const KERNELS: &str = "
kernel next(x: inout i32[n]) { x[i] = x[i] + 1 }
kernel total(x: i32[n]) -> s: i32 { s = sum(i: x[i]) }
kernel pick(x: i32[n], at: i32[m]) -> y: i32[m] { y[i] = x[at[i]] }
";

    fn open() -> (Device, Module) {
        let source = krn_compiler::source::SourceFile::new("graph.krn", KERNELS);
        let compiled = krn_compiler::compile(&source, &krn_compiler::CompileOptions::default());
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let module = device.load(&compiled.expect("compiles").compiled).expect("loads");
        (device, module)
    }

    fn array<const RANK: usize>(array: &Array<i32, RANK>) -> Argument<'_> {
        Argument::Array(array.dynamic())
    }

    #[test]
    fn launches_wait_for_those_whose_arrays_they_share() {
        let (device, module) = open();
        let (next, total) = (module.kernel("next").expect("there"), module.kernel("total").expect("there"));
        let stream = device.stream().expect("opens");
        let x = Array::<i32, 1>::zeros(&device, [1000]).expect("small");
        let y = Array::<i32, 1>::zeros(&device, [1000]).expect("small");
        let mut sum = None;
        for kernel in [next, total] {
            kernel.prepare(&[("n", 1000.into())]).expect("its code is good");
        }
        let graph = stream.capture(|captured| {
            next.launch_on(captured, &[("x", array(&x))])?;
            next.launch_on(captured, &[("x", array(&y))])?;
            sum = total.launch_on(captured, &[("x", array(&x))])?.pop();
            Ok(())
        });
        let graph = graph.expect("captured");
        let after: Vec<&[usize]> = graph.nodes.iter().map(|node| node.after.as_slice()).collect();
        assert_eq!(after[..3], [&[][..], &[], &[0]], "the second has arrays of its own");
        assert!(after[3..].iter().enumerate().all(|(at, after)| *after == [at + 2]), "{after:?}");
        // The graph keeps the memory that it needs.
        drop(x);
        graph.launch(&stream).and_then(|()| graph.launch(&stream)).expect("queued");
        let (_, sum) = sum.expect("one result");
        let sum = Array::<i32, 0>::from_dynamic(sum).expect("i32");
        assert_eq!(sum.to_vec().expect("there"), [2000]);
        assert_eq!(y.to_vec().expect("there"), [2; 1000]);
    }

    #[test]
    fn what_is_no_launch_cannot_be_captured() {
        let (device, _module) = open();
        let stream = device.stream().expect("opens");
        let mut x = Array::<i32, 1>::zeros(&device, [4]).expect("small");
        let refused = |attempt: &mut dyn FnMut(&Stream) -> Result<()>| {
            let captured = stream.capture(|captured| attempt(captured));
            assert!(matches!(captured, Err(Error::Stream(_))));
        };
        refused(&mut |captured| captured.synchronize());
        refused(&mut |captured| captured.record().map(|_| ()));
        let event = stream.record().expect("recorded");
        refused(&mut |captured| captured.wait_for(&event));
        refused(&mut |captured| Ok(x.write_async(Pinned::zeros(&device, 4)?, captured).map(|_| ())?));
        refused(&mut |captured| Ok(x.read_async(Pinned::zeros(&device, 4)?, captured).map(|_| ())?));
        let empty = stream.capture(|_| Ok(())).expect("captured");
        refused(&mut |captured| empty.launch(captured));
        empty.launch(&stream).expect("nothing to do");
        assert!(empty.is_empty());
    }

    #[test]
    fn failures_in_graphs_are_told() {
        let (device, module) = open();
        let pick = module.kernel("pick").expect("there");
        let stream = device.stream().expect("opens");
        let x = Array::from_slice(&device, [2], &[5, 6]).expect("small");
        let mut at = Array::from_slice(&device, [1], &[1]).expect("small");
        let bound = pick.bind(&[("x", array(&x)), ("at", array(&at))]).expect("fits");
        let graph = stream.capture(|captured| bound.launch_on(captured)).expect("captured");
        drop(bound);
        graph.launch(&stream).and_then(|()| stream.synchronize()).expect("in bounds");
        at.write(&[7]).expect("fits");
        graph.launch(&stream).expect("queued");
        assert!(matches!(stream.synchronize(), Err(Error::Bounds(_))));
        stream.synchronize().expect("it was told once");
    }
}
