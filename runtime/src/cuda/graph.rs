//! Graphs of kernel launches.

use super::context::Context;
use super::current::CurrentContext;
use super::errors::elsewhere;
use super::in_flight::stream_name;
use super::module::CudaModule;
use crate::backend::{GraphNode, LoadedGraph, StreamNumber};
use crate::error::Result;
use cudarc::driver::{result, sys};
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// A graph that the driver has made ready to launch.
pub(super) struct CudaGraph {
    executable: sys::CUgraphExec,
    context: Arc<Context>,
}

// SAFETY: a graph's handle may be used from any thread whose current context is the graph's.
unsafe impl Send for CudaGraph {}
// SAFETY: launches are queued under the device's lock; the handle is never changed.
unsafe impl Sync for CudaGraph {}

/// Destroyed when it is dropped.
struct Template(sys::CUgraph);

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: made once in `load`, not used after. An error here has nobody to go to.
        let _ = unsafe { result::graph::destroy(self.0) };
    }
}

impl CudaGraph {
    /// In the context, which is current.
    pub fn load(context: &Arc<Context>, nodes: &[GraphNode]) -> Result<Self> {
        let mut graph: sys::CUgraph = std::ptr::null_mut();
        // SAFETY: the handle is written where the driver is told.
        unsafe { sys::cuGraphCreate(&mut graph, 0) }.result().map_err(context.failed("cuGraphCreate"))?;
        let graph = Template(graph);
        let mut made: Vec<sys::CUgraphNode> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<sys::CUgraphNode> = node.after.iter().map(|at| made[*at]).collect();
            made.push(add(context, graph.0, node, &after)?);
        }
        let mut executable: sys::CUgraphExec = std::ptr::null_mut();
        // SAFETY: the graph is whole.
        unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph.0, 0) }
            .result()
            .map_err(context.failed(format!("cuGraphInstantiate of {} launches", nodes.len())))?;
        Ok(Self { executable, context: Arc::clone(context) })
    }

    /// In the current context: the launches that it was made of, on a stream.
    pub fn launch(&self, queue: sys::CUstream, stream: StreamNumber, nodes: &[GraphNode]) -> Result<()> {
        // SAFETY: the graph is alive, and so is all memory that its launches use.
        let launched = unsafe { result::graph::launch(self.executable, queue) };
        launched.map_err(|error| {
            let call = format!("cuGraphLaunch of {} launches on {}", nodes.len(), stream_name(stream));
            self.context.failed(call)(error)
        })?;
        nodes.iter().for_each(|node| self.context.launched(stream, &node.launch));
        Ok(())
    }
}

fn add(
    context: &Context,
    graph: sys::CUgraph,
    node: &GraphNode,
    after: &[sys::CUgraphNode],
) -> Result<sys::CUgraphNode> {
    let module = node.module.as_any().downcast_ref::<CudaModule>();
    let module = module.ok_or_else(|| elsewhere("cuGraphAddKernelNode", "the module was loaded"))?;
    let GraphNode { launch, .. } = node;
    let function = module.function(launch)?;
    let mut params: Vec<*mut c_void> =
        node.params.iter().map(|param| param.bytes().as_ptr().cast::<c_void>().cast_mut()).collect();
    let described = sys::CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: launch.grid[0],
        gridDimY: launch.grid[1],
        gridDimZ: launch.grid[2],
        blockDimX: launch.block[0],
        blockDimY: launch.block[1],
        blockDimZ: launch.block[2],
        sharedMemBytes: launch.shared_bytes,
        kernelParams: params.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    };
    let mut made: sys::CUgraphNode = std::ptr::null_mut();
    // SAFETY: the parameters are those of the entry, in order and in size; the driver copies them before it returns.
    unsafe { sys::cuGraphAddKernelNode_v2(&mut made, graph, after.as_ptr(), after.len(), &described) }
        .result()
        .map_err(|error| context.failed(format!("cuGraphAddKernelNode of {launch}"))(error))?;
    Ok(made)
}

impl LoadedGraph for CudaGraph {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        if self.context.enter().is_ok() {
            // SAFETY: made once in `load`, not used after; a launch that still runs goes on to its end. An error here
            // has nobody to go to.
            let _ = unsafe { result::graph::exec_destroy(self.executable) };
        }
    }
}
