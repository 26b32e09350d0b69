//! Graphs of kernel launches, some of which the device repeats.

use super::context::Context;
use super::current::CurrentContext;
use super::errors::elsewhere;
use super::graph_kernels::GraphKernels;
use super::module::CudaModule;
use crate::backend::{GraphLaunch, GraphNode, GraphSequence, GraphWork, LoadedGraph, LoopCondition};
use crate::error::Result;
use crate::sequence::Todo;
use cudarc::driver::result::DriverError;
use cudarc::driver::{result, sys};
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// A graph that the driver has made ready to launch.
pub(super) struct CudaGraph {
    executable: sys::CUgraphExec,
    // Before the context, in which their code is.
    _kernels: Arc<GraphKernels>,
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
    pub fn load(context: &Arc<Context>, kernels: &Arc<GraphKernels>, nodes: &[GraphNode]) -> Result<Self> {
        let mut graph: sys::CUgraph = std::ptr::null_mut();
        // SAFETY: the handle is written where the driver is told.
        unsafe { sys::cuGraphCreate(&mut graph, 0) }.result().map_err(context.failed("cuGraphCreate"))?;
        let graph = Template(graph);
        let builder = Builder { context, kernels };
        let mut made: Vec<sys::CUgraphNode> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<sys::CUgraphNode> = node.after.iter().map(|at| made[*at]).collect();
            made.push(builder.add(graph.0, &node.todo, &after)?);
        }
        let mut executable: sys::CUgraphExec = std::ptr::null_mut();
        // SAFETY: the graph is whole.
        unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph.0, 0) }
            .result()
            .map_err(context.failed(format!("cuGraphInstantiate of {} parts", nodes.len())))?;
        Ok(Self { executable, context: Arc::clone(context), _kernels: Arc::clone(kernels) })
    }

    /// In the current context: all its work, on a stream.
    pub fn launch(&self, queue: sys::CUstream) -> Result<()> {
        // SAFETY: the graph is alive, and so is all memory that its launches use.
        let launched = unsafe { result::graph::launch(self.executable, queue) };
        launched.map_err(self.context.failed("cuGraphLaunch"))
    }
}

/// Adds work to the graph into which a stream of somebody else's is being captured, behind what the stream has captured. In
/// the context, which is current.
///
/// # Safety
/// The stream is open, and being captured.
pub(super) unsafe fn extend_capture(
    context: &Arc<Context>,
    kernels: &Arc<GraphKernels>,
    stream: sys::CUstream,
    sequence: &GraphSequence,
) -> Result<()> {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut number, mut graph) = (0, std::ptr::null_mut());
    let (mut after, mut count) = (std::ptr::null(), 0);
    // SAFETY: the caller's promise; all is written where the driver is told.
    unsafe {
        sys::cuStreamGetCaptureInfo_v2(stream, &mut status, &mut number, &mut graph, &mut after, &mut count)
    }
    .result()
    .map_err(context.failed("cuStreamGetCaptureInfo"))?;
    let after = match after.is_null() {
        true => Vec::new(),
        // SAFETY: so many lie there until the stream captures something else.
        false => unsafe { std::slice::from_raw_parts(after, count) }.to_vec(),
    };
    let mut last = Builder { context, kernels }.add_all(graph, sequence, after)?;
    let only = sys::CUstreamUpdateCaptureDependencies_flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES;
    // SAFETY: the caller's promise; the nodes are of the graph that it captures into.
    unsafe { sys::cuStreamUpdateCaptureDependencies(stream, last.as_mut_ptr(), last.len(), only as u32) }
        .result()
        .map_err(context.failed("cuStreamUpdateCaptureDependencies"))
}

/// What adds nodes to graphs of the context, which is current.
struct Builder<'b> {
    context: &'b Arc<Context>,
    kernels: &'b Arc<GraphKernels>,
}

impl Builder<'_> {
    /// All of it, one behind the other; what comes next has to come behind the nodes that this gives.
    fn add_all(
        &self,
        graph: sys::CUgraph,
        sequence: &GraphSequence,
        mut after: Vec<sys::CUgraphNode>,
    ) -> Result<Vec<sys::CUgraphNode>> {
        for todo in &sequence.0 {
            after = vec![self.add(graph, todo, &after)?];
        }
        Ok(after)
    }

    fn add(
        &self,
        graph: sys::CUgraph,
        todo: &Todo<GraphWork, LoopCondition>,
        after: &[sys::CUgraphNode],
    ) -> Result<sys::CUgraphNode> {
        match todo {
            Todo::Launch(GraphWork::Launch(one)) => self.add_launch(graph, one, after),
            Todo::Launch(GraphWork::Round(place)) => {
                self.add_own(graph, self.kernels.count_round()?, &[*place], after)
            }
            Todo::While { condition, test, body } => self.add_loop(graph, (*condition, test, body), after),
        }
    }

    /// The test, what tells the loop of it, and the loop: the body, the test and what tells of it once more.
    fn add_loop(
        &self,
        graph: sys::CUgraph,
        (condition, test, body): (LoopCondition, &GraphSequence, &GraphSequence),
        after: &[sys::CUgraphNode],
    ) -> Result<sys::CUgraphNode> {
        let (mut handle, context) = (0, self.context.handle());
        // SAFETY: the graph is being made; the handle is written where the driver is told.
        unsafe { sys::cuGraphConditionalHandleCreate(&mut handle, graph, context, 0, 0) }
            .result()
            .map_err(self.context.failed("cuGraphConditionalHandleCreate"))?;
        let tell = |graph, after: &[sys::CUgraphNode]| {
            let params = [handle, condition.holds, condition.record.unwrap_or(0)];
            self.add_own(graph, self.kernels.set_condition()?, &params, after)
        };
        let tested = self.add_all(graph, test, after.to_vec())?;
        let told = tell(graph, &tested)?;
        // SAFETY: all zeros are a value of the type, whose parts are numbers and addresses.
        let mut params: sys::CUgraphNodeParams = unsafe { std::mem::zeroed() };
        params.type_ = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL;
        params.__bindgen_anon_1.conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
            size: 1,
            phGraph_out: std::ptr::null_mut(),
            ctx: context,
        };
        let mut made: sys::CUgraphNode = std::ptr::null_mut();
        // SAFETY: the node in front is of the graph; the driver copies the parameters.
        unsafe { sys::cuGraphAddNode_v2(&mut made, graph, &told, std::ptr::null(), 1, &mut params) }
            .result()
            .map_err(self.context.failed("cuGraphAddNode of a loop"))?;
        // SAFETY: the driver has said there which graph, of those it was asked for, is the loop's body.
        let inner = unsafe { *params.__bindgen_anon_1.conditional.phGraph_out };
        let turned = self.add_all(inner, body, Vec::new())?;
        let tested = self.add_all(inner, test, turned)?;
        tell(inner, &tested)?;
        Ok(made)
    }

    /// A kernel of one thread.
    fn add_own(
        &self,
        graph: sys::CUgraph,
        function: sys::CUfunction,
        params: &[u64],
        after: &[sys::CUgraphNode],
    ) -> Result<sys::CUgraphNode> {
        let params = params.iter().map(|param| std::ptr::from_ref(param).cast::<c_void>().cast_mut());
        self.add_kernel(graph, function, ([1; 3], [1; 3], 0), &mut params.collect::<Vec<_>>(), after)
            .map_err(self.context.failed("cuGraphAddKernelNode"))
    }

    fn add_launch(
        &self,
        graph: sys::CUgraph,
        one: &GraphLaunch,
        after: &[sys::CUgraphNode],
    ) -> Result<sys::CUgraphNode> {
        let module = one.module.as_any().downcast_ref::<CudaModule>();
        let module = module.ok_or_else(|| elsewhere("cuGraphAddKernelNode", "the module was loaded"))?;
        let launch = &one.launch;
        let function = module.function(launch)?;
        let mut params: Vec<*mut c_void> =
            one.params.iter().map(|param| param.bytes().as_ptr().cast::<c_void>().cast_mut()).collect();
        let size = (launch.grid, launch.block, launch.shared_bytes);
        self.add_kernel(graph, function, size, &mut params, after)
            .map_err(|error| self.context.failed(format!("cuGraphAddKernelNode of {launch}"))(error))
    }

    fn add_kernel(
        &self,
        graph: sys::CUgraph,
        function: sys::CUfunction,
        (grid, block, shared_bytes): ([u32; 3], [u32; 3], u32),
        params: &mut [*mut c_void],
        after: &[sys::CUgraphNode],
    ) -> std::result::Result<sys::CUgraphNode, DriverError> {
        let described = sys::CUDA_KERNEL_NODE_PARAMS {
            func: function,
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: block[0],
            blockDimY: block[1],
            blockDimZ: block[2],
            sharedMemBytes: shared_bytes,
            kernelParams: params.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        };
        let mut made: sys::CUgraphNode = std::ptr::null_mut();
        // SAFETY: the parameters are those of the entry, in order and in size; the driver copies them before it returns.
        unsafe { sys::cuGraphAddKernelNode_v2(&mut made, graph, after.as_ptr(), after.len(), &described) }
            .result()?;
        Ok(made)
    }
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
