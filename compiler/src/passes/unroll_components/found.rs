//! Which launches have components that an iteration could do at once, and which of them have to do with each other.

use crate::analysis::Affine;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::Expr;
use crate::passes::jam::{few, fills};
use crate::passes::straight::{code_of, is_straight};
use std::collections::BTreeMap;

/// Components of a vector, at most: each is a copy of the code.
const MOST: i64 = 4;
/// Instructions of all components, at most.
const MOST_CODE: usize = 512;

/// A launch whose iterations could do all components.
pub struct Found {
    pub launch: Launch,
    pub forall: Inst,
    /// The place of the axis of components, and how many there are; none where iterations have all of them already.
    pub axis: Option<(usize, i64)>,
    has_reductions: bool,
    arrays: BTreeMap<Buffer, Array>,
    /// Code tells components apart that read of the same array.
    pub is_apart: bool,
}

/// How a launch accesses an array.
#[derive(Default)]
struct Array {
    /// The bounds of the axis whose index each subscript is; `None` for one that chooses a component.
    shape: Option<Vec<Option<(Expr, Expr)>>>,
    /// Some access is at the element of another iteration, or of another shape.
    strays: bool,
    stores: bool,
    /// Some load is of another component than the iteration's own.
    crosses: bool,
}

impl Found {
    /// The ways to see components in a launch: one for each axis that may be theirs, and one without.
    pub fn all(kernel: &Kernel, launch: Launch) -> Vec<Self> {
        if kernel.launches[launch].phase != Phase::Abstract {
            return Vec::new();
        }
        let Some(forall) = kernel.only_loop(launch) else { return Vec::new() };
        let count = kernel.insts[forall].payload.axes().len();
        (0..count).map(Some).chain([None]).filter_map(|at| Self::of(kernel, launch, forall, at)).collect()
    }

    fn of(kernel: &Kernel, launch: Launch, forall: Inst, at: Option<usize>) -> Option<Self> {
        let body = kernel.insts[forall].regions[0];
        let axis = match at {
            Some(at) => Some((at, few(kernel, forall, at, MOST)?)),
            None => None,
        };
        let params = &kernel.blocks[body].params;
        let own = at.map(|at| params[at]);
        let others: Vec<Value> = params.iter().copied().filter(|param| Some(*param) != own).collect();
        let (code, indices) = straight(kernel, body)?;
        let copies = axis.map_or(1, |(_, count)| count as usize);
        if others.is_empty() || code * copies > MOST_CODE {
            return None;
        }
        let mut seen = Seen { kernel, affine: Affine::new(kernel), forall, own, others, indices };
        let arrays = seen.arrays(body)?;
        let is_apart = own.is_some_and(|own| seen.tells_apart(body, own) && seen.reads_alike(body, own));
        let has_reductions = !seen.indices.is_empty();
        Some(Self { launch, forall, axis, has_reductions, arrays, is_apart })
    }

    /// Whether so many iterations are left at least.
    pub fn fills(&self, kernel: &mut Kernel, least: i64) -> bool {
        fills(kernel, self.launch, (self.forall, self.axis.map(|(at, _)| at)), least, &[])
    }

    /// Whether there is something to unroll.
    pub fn has_work(&self) -> bool {
        self.axis.is_some() || self.has_reductions
    }

    /// Whether the other launch reads components that this one stores, and not its own.
    pub fn meets(&self, other: &Self) -> bool {
        self.common(other).any(|(own, theirs)| own.stores && theirs.crosses)
    }

    /// Whether both access an array by elements, and one of them stores.
    pub fn shares(&self, other: &Self) -> bool {
        self.common(other).any(|(own, theirs)| own.stores || theirs.stores)
    }

    /// The arrays that both access at elements of an iteration's own, by components.
    fn common<'f>(&'f self, other: &'f Self) -> impl Iterator<Item = (&'f Array, &'f Array)> {
        let both = self.arrays.iter().filter_map(|(buffer, own)| Some((own, other.arrays.get(buffer)?)));
        let is_other = self.launch != other.launch;
        both.filter(move |(own, theirs)| {
            let has_components = own.shape.as_ref().is_some_and(|shape| shape.contains(&None));
            is_other && has_components && own.shape == theirs.shape && !own.strays && !theirs.strays
        })
    }
}

/// How many terms a reduction over components has.
pub fn terms(kernel: &Kernel, inst: Inst) -> Option<i64> {
    let is_one = kernel.insts[inst].payload.axes().len() == 1;
    is_one.then(|| few(kernel, inst, 0, MOST)).flatten()
}

/// How many instructions a block has once its reductions are straight code, and their indices.
fn straight(kernel: &Kernel, block: Block) -> Option<(usize, Vec<Value>)> {
    let may = [Effect::Read, Effect::Record, Effect::Write];
    let (mut code, mut indices) = (0, Vec::new());
    for inst in &kernel.blocks[block].insts {
        let data = &kernel.insts[*inst];
        if data.opcode == Opcode::Reduce {
            let each = code_of(kernel, data.regions[0], &may[..2])?;
            code += each * terms(kernel, *inst)? as usize;
            indices.extend(&kernel.blocks[data.regions[0]].params);
        } else if is_straight(data.opcode, &may) {
            let inside = data.regions.iter().map(|region| code_of(kernel, *region, &may));
            code += 1 + inside.sum::<Option<usize>>()?;
        } else {
            return None;
        }
    }
    Some((code, indices))
}

/// A launch that is looked at.
struct Seen<'k> {
    kernel: &'k Kernel,
    affine: Affine<'k>,
    forall: Inst,
    /// The index of the component.
    own: Option<Value>,
    /// Those of the other axes.
    others: Vec<Value>,
    /// Those of the reductions.
    indices: Vec<Value>,
}

impl Seen<'_> {
    /// How each array is accessed; `None` where components lie side by side.
    fn arrays(&mut self, body: Block) -> Option<BTreeMap<Buffer, Array>> {
        let kernel = self.kernel;
        let mut arrays: BTreeMap<Buffer, Array> = BTreeMap::new();
        let mut is_apart = true;
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let Payload::Access { buffer, .. } = data.payload else { return };
            if !matches!(kernel.buffers[buffer].kind, BufferKind::Argument { .. } | BufferKind::Scratch) {
                return;
            }
            let subscripts = kernel.subscripts(data);
            is_apart &= !self.lies_along(subscripts);
            let array = arrays.entry(buffer).or_default();
            array.stores |= data.opcode == Opcode::Store;
            let Some(shape) = self.shape(subscripts) else {
                array.strays = true;
                return;
            };
            let mut chosen = subscripts.iter().zip(&shape).filter(|(_, bounds)| bounds.is_none());
            array.crosses |= data.opcode == Opcode::Load && chosen.any(|(value, _)| Some(*value) != self.own);
            array.strays |= array.shape.as_ref().is_some_and(|known| *known != shape);
            array.shape.get_or_insert(shape);
        });
        is_apart.then_some(arrays)
    }

    /// Whether an array's last subscript moves with a component, and another iteration has other elements.
    fn lies_along(&mut self, subscripts: &[Value]) -> bool {
        let Self { affine, own, others, indices, .. } = self;
        let Some(last) = subscripts.last() else { return false };
        own.iter().chain(&*indices).any(|index| affine.depends(*last, *index))
            && others.iter().any(|index| affine.any_depends(subscripts, *index))
    }

    /// Which axis each subscript is the index of; `None` where an element is not an iteration's own.
    fn shape(&mut self, subscripts: &[Value]) -> Option<Vec<Option<(Expr, Expr)>>> {
        let kernel = self.kernel;
        let bounds = kernel.loop_bounds(self.forall);
        let params = &kernel.blocks[kernel.insts[self.forall].regions[0]].params;
        let mut shape = Vec::new();
        for value in subscripts {
            if self.others.contains(value) {
                let (low, high) = bounds[params.iter().position(|param| param == value)?];
                shape.push(Some((kernel.symbolic(low)?, kernel.symbolic(high)?)));
            } else if self.others.iter().any(|index| self.affine.depends(*value, *index)) {
                return None;
            } else {
                shape.push(None);
            }
        }
        self.others.iter().all(|index| subscripts.contains(index)).then_some(shape)
    }

    /// Whether something is asked of the component alone: comparisons, remainders, elements of constant arrays.
    fn tells_apart(&mut self, body: Block, own: Value) -> bool {
        let kernel = self.kernel;
        let mut is_asked = false;
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let asks = match (data.opcode, &data.payload) {
                (Opcode::Eq | Opcode::Ne | Opcode::Lt | Opcode::Le | Opcode::Gt | Opcode::Ge, _) => true,
                (Opcode::Rem | Opcode::And, _) => true,
                (Opcode::Load, Payload::Access { buffer, .. }) => {
                    matches!(kernel.buffers[*buffer].kind, BufferKind::Constant(_))
                }
                _ => false,
            };
            is_asked |= asks
                && self.affine.any_depends(&data.arguments, own)
                && !self.others.iter().any(|index| self.affine.any_depends(&data.arguments, *index));
        });
        is_asked
    }

    /// Whether components read of the same array: directly in the body, or in several places, and none its own part.
    fn reads_alike(&mut self, body: Block, own: Value) -> bool {
        let kernel = self.kernel;
        let mut found: BTreeMap<Buffer, usize> = BTreeMap::new();
        kernel.walk(body, &mut |block, inst| {
            let data = &kernel.insts[inst];
            let (Opcode::Load, Payload::Access { buffer, .. }) = (data.opcode, &data.payload) else { return };
            let moves = self.others.iter().all(|index| self.affine.any_depends(&data.arguments, *index));
            if moves && !data.arguments.contains(&own) {
                *found.entry(*buffer).or_default() += if block == body { 2 } else { 1 };
            }
        });
        found.values().any(|places| *places >= 2)
    }
}
