//! What the loop of a launch looks like to the forms that can stage it: its axes, what its accesses depend on, and
//! which of them lie side by side in memory.

use crate::analysis::{Affine, Atom, Polynomial, Stride, polynomial_of, sectors_per_request};
use crate::data::{LeafPlaces, Scalar};
use crate::ir::entities::{Block, Inst, Launch, Symbol, Value};
use crate::ir::kernel::{BufferKind, Definition, Factor, Kernel, Payload};
use crate::ir::op::{Combiner, Effect, Opcode};
use crate::ir::placement::Spread;
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::{EntityRef, EntitySet};

/// An axis whose bounds the host can compute.
#[derive(Clone, Debug)]
pub struct LoopAxis {
    /// As the source calls it.
    pub name: String,
    /// The index in the loop's body.
    pub index: Value,
    pub low: Expr,
    pub extent: Expr,
}

impl LoopAxis {
    /// What the index stays below.
    pub fn high(&self) -> Expr {
        match &self.low {
            Expr::Int(0) => self.extent.clone(),
            low => Expr::binary(BinaryOp::Add, low.clone(), self.extent.clone()),
        }
    }

    /// How the axis lies on the machine in a launch.
    pub fn spread(&self, launch: &str, factors: Vec<Factor>) -> Spread {
        let extent = Some(self.extent.clone());
        Spread { launch: launch.to_string(), axis: self.name.clone(), extent, factors }
    }

    /// The axes of a loop; `None` where the host cannot compute a bound.
    pub fn of(kernel: &Kernel, inst: Inst) -> Option<Vec<Self>> {
        let (Payload::Loop { axes } | Payload::Reduce { axes, .. }) = &kernel.insts[inst].payload else {
            return None;
        };
        let body = kernel.insts[inst].regions[0];
        let bounds = kernel.loop_bounds(inst);
        (0..axes.len())
            .map(|at| {
                let (low, high) = (kernel.symbolic(bounds[at].0)?, kernel.symbolic(bounds[at].1)?);
                let extent = match (&low, &high) {
                    (Expr::Int(low), Expr::Int(high)) => Expr::Int(high.checked_sub(*low)?),
                    (Expr::Int(0), _) => high,
                    _ => Expr::binary(BinaryOp::Sub, high, low.clone()),
                };
                let name = kernel.axes[axes[at]].name.clone();
                Some(Self { name, index: kernel.blocks[body].params[at], low, extent })
            })
            .collect()
    }
}

/// Where the loop that is spread over the machine stands in a launch.
pub fn spread_loop(kernel: &Kernel, launch: Launch) -> Option<usize> {
    let is_spread = |inst: &Inst| match &kernel.insts[*inst].payload {
        Payload::Loop { axes } => {
            axes.iter().any(|axis| kernel.axes[*axis].factors.iter().any(|factor| factor.level.is_parallel()))
        }
        _ => false,
    };
    kernel.blocks[kernel.launches[launch].body].insts.iter().position(is_spread)
}

/// The one loop of a launch that is spread over the machine, if nothing in it stands against barriers.
pub struct Pattern<'k> {
    pub kernel: &'k Kernel,
    /// Where the loop stands in the launch's root block.
    pub position: usize,
    pub forall: Inst,
    pub body: Block,
    pub axes: Vec<LoopAxis>,
    /// At the top of the body.
    pub reduce: Option<ReducePattern>,
    affine: Affine<'k>,
}

pub struct ReducePattern {
    pub inst: Inst,
    pub body: Block,
    pub axis: LoopAxis,
    /// Of each value that it combines; all by one operation.
    pub combiners: Vec<Combiner>,
}

/// What a request costs, in sectors, where neighbouring lanes have nothing to do with each other.
pub const SCATTERED: u32 = 32;

impl<'k> Pattern<'k> {
    pub fn find(kernel: &'k Kernel, launch: Launch) -> Option<Self> {
        let position = spread_loop(kernel, launch)?;
        let forall = kernel.blocks[kernel.launches[launch].body].insts[position];
        let body = kernel.insts[forall].regions[0];
        let axes = LoopAxis::of(kernel, forall)?;
        let mut reduces = Vec::new();
        let mut fits = true;
        kernel.walk(body, &mut |block, inst| {
            let data = &kernel.insts[inst];
            match data.opcode {
                Opcode::Reduce if block == body => reduces.push(inst),
                Opcode::If => {}
                Opcode::Load | Opcode::Store => {
                    if let Payload::Access { buffer, .. } = data.payload {
                        fits &= kernel.buffers[buffer].kind != BufferKind::Private;
                    }
                }
                Opcode::Yield => {}
                opcode => fits &= opcode.info().effect == Effect::Pure,
            }
        });
        if !fits || reduces.len() > 1 {
            return None;
        }
        let reduce = match reduces.first() {
            Some(inst) => Some(ReducePattern::of(kernel, *inst)?),
            None => None,
        };
        Some(Self { kernel, position, forall, body, axes, reduce, affine: Affine::new(kernel) })
    }

    /// Whether the schedule says how large the tiles of a block or thread are.
    pub fn is_shaped(&self) -> bool {
        let schedule = &self.kernel.schedule;
        // Elements of a thread are those of a loop: of what is summed up `per_thread` says nothing.
        let reduced = self.reduce.as_ref().map(|reduce| &reduce.axis);
        self.axes.iter().any(|axis| schedule.per_thread(&axis.name).is_some())
            || self.axes.iter().chain(reduced).any(|axis| schedule.tile(&axis.name).is_some())
    }

    /// Whether the schedule says where the warps go, and of no array that it is staged: the plain loop carries that out.
    pub fn has_warps(&self) -> bool {
        let schedule = &self.kernel.schedule;
        !schedule.stages() && self.axes.iter().any(|axis| schedule.warps(&axis.name).is_some())
    }

    /// The index of the axis at a position.
    pub fn index(&self, axis: usize) -> Value {
        self.axes[axis].index
    }

    /// Whether some instruction of the loop writes the buffer of a load.
    pub fn is_written(&self, load: Inst) -> bool {
        let Payload::Access { buffer: read, .. } = self.kernel.insts[load].payload else { return true };
        let mut written = false;
        self.kernel.walk(self.body, &mut |_, inst| {
            let data = &self.kernel.insts[inst];
            if let Payload::Access { buffer, .. } = data.payload {
                written |= buffer == read && data.opcode == Opcode::Store;
            }
        });
        written
    }

    /// Every store of the body, wherever it stands.
    pub fn stores(&self) -> Vec<Inst> {
        let mut stores = Vec::new();
        self.kernel.walk(self.body, &mut |_, inst| {
            if self.kernel.insts[inst].opcode == Opcode::Store {
                stores.push(inst);
            }
        });
        stores
    }

    /// The loop indices that the values are computed from; `None` where memory or control comes in.
    pub fn depends(&self, values: &[Value]) -> Option<EntitySet<Value>> {
        let (mut found, mut seen) = (EntitySet::new(), EntitySet::new());
        let mut open = values.to_vec();
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.kernel.values[value].definition {
                Definition::Param(..) => {
                    found.insert(value);
                }
                Definition::Result(inst, _) => {
                    let data = &self.kernel.insts[inst];
                    if data.opcode.info().effect != Effect::Pure {
                        return None;
                    }
                    open.extend(&data.arguments);
                }
            }
        }
        Some(found)
    }

    /// How the address of an access moves with an index.
    pub fn stride(&mut self, access: Inst, index: Value) -> Stride {
        self.affine.stride(access, index)
    }

    /// Whether the address of an access is a sum of parts, none of which moves with more than one of the indices.
    pub fn is_separable(&mut self, access: Inst, indices: [Value; 2]) -> bool {
        self.affine.is_separable(access, indices)
    }

    /// Sectors of a request with the lanes along an index.
    pub fn cost(&mut self, access: Inst, index: Value) -> u32 {
        match self.affine.usual_stride(access, index) {
            Stride::Bytes(0) => SCATTERED,
            Stride::Bytes(stride) => {
                // Each run of neighbours begins in a sector of its own.
                let run = self
                    .affine
                    .usual_run(access, index)
                    .map_or(SCATTERED, |run| run.clamp(1, SCATTERED.into()) as u32);
                sectors_per_request(stride, self.width(access), 32, 0).max(SCATTERED.div_ceil(run))
            }
            _ => SCATTERED,
        }
    }

    /// The scalar in memory that a load or store touches.
    pub fn scalar(&self, access: Inst) -> Scalar {
        match self.kernel.insts[access].payload {
            Payload::Access { buffer, leaf } => {
                self.kernel.buffers[buffer].element.leaves[leaf as usize].scalar
            }
            _ => Scalar::Bool,
        }
    }

    /// Its bytes.
    pub fn width(&self, access: Inst) -> u64 {
        self.scalar(access).size()
    }

    /// The name of the array that a load or store is of.
    pub fn array(&self, access: Inst) -> Option<String> {
        let Payload::Access { buffer, .. } = self.kernel.insts[access].payload else { return None };
        Some(self.kernel.buffers[buffer].name.clone())
    }

    /// What must hold for neighbours along `axis`, from a multiple of `lanes` past its low end on, to be a vector of
    /// that many scalars at an aligned address. `None` where they are none, whatever the sizes.
    pub fn vector_condition(&mut self, access: Inst, axis: &LoopAxis, lanes: u64) -> Option<Vec<Expr>> {
        let kernel = self.kernel;
        let Payload::Access { buffer, leaf } = kernel.insts[access].payload else { return None };
        let data = &kernel.buffers[buffer];
        let dense = LeafPlaces::new(&data.element, data.layout, leaf as usize).is_dense();
        let leaf = &data.element.leaves[leaf as usize];
        let size = leaf.scalar.size();
        let argument = matches!(data.kind, BufferKind::Argument { .. } | BufferKind::Scratch);
        // There is no vector of bools.
        if !dense
            || !argument
            || leaf.scalar == Scalar::Bool
            || !leaf.extents.is_empty()
            || self.stride(access, axis.index) != Stride::Bytes(size as i64)
        {
            return None;
        }
        let mut position = Polynomial::default();
        for (index, extent) in kernel.insts[access].arguments.iter().zip(&data.extents) {
            position = position.multiply(&polynomial_of(extent)?)?.add(&self.affine.form(*index))?;
        }
        // The axis runs from its low end in steps that are whole vectors.
        let rest = position.subtract(&Polynomial::atom(Atom::Value(axis.index)))?;
        let mut symbols = Vec::new();
        for part in [rest, polynomial_of(&axis.low)?, polynomial_of(&axis.extent)?] {
            multiple_of(&part, lanes, &mut symbols)?;
        }
        let multiple = |symbol: Symbol| {
            let rest = Expr::binary(BinaryOp::Rem, Expr::Symbol(symbol.index()), Expr::Int(lanes as i64));
            Expr::binary(BinaryOp::Equal, rest, Expr::Int(0))
        };
        Some(symbols.into_iter().map(multiple).collect())
    }
}

/// Adds the symbols that have to be multiples for every term to be one.
fn multiple_of(polynomial: &Polynomial, lanes: u64, symbols: &mut Vec<Symbol>) -> Option<()> {
    for (monomial, coefficient) in polynomial.terms().iter().rev() {
        if coefficient % i128::from(lanes) == 0 {
            continue;
        }
        let named = |atom: &Atom| if let Atom::Symbol(symbol) = atom { Some(*symbol) } else { None };
        let mut candidates = monomial.atoms().iter().filter_map(named);
        if candidates.clone().any(|symbol| symbols.contains(&symbol)) {
            continue;
        }
        symbols.push(candidates.next()?);
    }
    Some(())
}

impl ReducePattern {
    fn of(kernel: &Kernel, inst: Inst) -> Option<Self> {
        let body = kernel.insts[inst].regions[0];
        let Payload::Reduce { combiners, .. } = &kernel.insts[inst].payload else { return None };
        let [axis] = <[LoopAxis; 1]>::try_from(LoopAxis::of(kernel, inst)?).ok()?;
        let simple = combiners.iter().all(|combiner| combiner.opcode().is_some());
        simple.then(|| Self { inst, body, axis, combiners: combiners.to_vec() })
    }
}
