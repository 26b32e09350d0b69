//! Graphs of kernel launches.

use super::module::CudaModule;
use super::{driver_error, make_current};
use crate::backend::{GraphNode, LoadedGraph};
use crate::error::{Error, Result};
use cudarc::driver::{result, sys};
use std::any::Any;
use std::ffi::c_void;

/// A graph that the driver has made ready to launch.
pub(super) struct CudaGraph {
    executable: sys::CUgraphExec,
    context: sys::CUcontext,
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
    pub fn load(context: sys::CUcontext, nodes: &[GraphNode]) -> Result<Self> {
        let mut graph: sys::CUgraph = std::ptr::null_mut();
        // SAFETY: the handle is written where the driver is told.
        unsafe { sys::cuGraphCreate(&mut graph, 0) }.result().map_err(driver_error("cuGraphCreate"))?;
        let graph = Template(graph);
        let mut made: Vec<sys::CUgraphNode> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<sys::CUgraphNode> = node.after.iter().map(|at| made[*at]).collect();
            made.push(add(graph.0, node, &after)?);
        }
        let mut executable: sys::CUgraphExec = std::ptr::null_mut();
        // SAFETY: the graph is whole.
        unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph.0, 0) }.result().map_err(
            |error| driver_error(&format!("cuGraphInstantiate of {} launches", nodes.len()))(error),
        )?;
        Ok(Self { executable, context })
    }

    /// In the current context.
    pub fn launch(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the graph is alive, and so is all memory that its launches use.
        unsafe { result::graph::launch(self.executable, stream) }.map_err(driver_error("cuGraphLaunch"))
    }
}

fn add(graph: sys::CUgraph, node: &GraphNode, after: &[sys::CUgraphNode]) -> Result<sys::CUgraphNode> {
    let module = node.module.as_any().downcast_ref::<CudaModule>().ok_or_else(|| Error::Driver {
        call: "cuGraphAddKernelNode".to_string(),
        message: "the module was loaded on another device".to_string(),
    })?;
    let request = node.request(0);
    let function = module.function(&request)?;
    let mut params: Vec<*mut c_void> =
        node.params.iter().map(|param| param.bytes().as_ptr().cast::<c_void>().cast_mut()).collect();
    let described = sys::CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: node.grid[0],
        gridDimY: node.grid[1],
        gridDimZ: node.grid[2],
        blockDimX: node.block[0],
        blockDimY: node.block[1],
        blockDimZ: node.block[2],
        sharedMemBytes: node.shared_bytes,
        kernelParams: params.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    };
    let mut made: sys::CUgraphNode = std::ptr::null_mut();
    // SAFETY: the parameters are those of the entry, in order and in size; the driver copies them before it returns.
    unsafe { sys::cuGraphAddKernelNode_v2(&mut made, graph, after.as_ptr(), after.len(), &described) }
        .result()
        .map_err(|error| driver_error(&format!("cuGraphAddKernelNode of `{}`", node.entry))(error))?;
    Ok(made)
}

impl LoadedGraph for CudaGraph {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if make_current(self.context).is_ok() {
            // SAFETY: made once in `load`, not used after; a launch that still runs goes on to its end. An error here
            // has nobody to go to.
            let _ = unsafe { result::graph::exec_destroy(self.executable) };
        }
    }
}
