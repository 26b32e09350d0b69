//! What tiles hold in the place of steps that the reduced axis does not have.
//!
//! The first chunk is as long as all others, so some of its steps may lie in front of the axis. Their places in shared
//! memory are filled with values of which the contribution leaves an identity as it is: zeros for a sum of products.

use super::super::pattern::Pattern;
use super::addends::Addend;
use super::found::Found;
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::evaluate;
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Constant, Opcode};
use rustc_hash::FxHashMap;

/// For the tiles that move with the rows, then with the columns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fill(pub [f64; 2]);

/// What is tried, the plainest first.
const VALUES: [f64; 3] = [0.0, f64::NEG_INFINITY, f64::INFINITY];

impl Fill {
    /// `None` where no such values are known: the contribution needs more than loads and literals, or is never neutral.
    pub fn new(pattern: &Pattern<'_>, found: &Found, combiners: &[Combiner]) -> Option<Self> {
        let pairs = VALUES.iter().flat_map(|rows| VALUES.iter().map(|columns| Self([*rows, *columns])));
        pairs.into_iter().find(|fill| fill.is_neutral(pattern.kernel, found, combiners) == Some(true))
    }

    /// What stands for a load of a side; integers have no infinities, but their smallest and largest values.
    pub fn constant(&self, side: usize, scalar: Scalar) -> Option<Constant> {
        let value = self.0[side];
        Some(match scalar {
            Scalar::F32 => Constant::F32((value as f32).to_bits()),
            Scalar::F64 => Constant::F64(value.to_bits()),
            _ if value == 0.0 && scalar.is_integer() => Constant::Int(scalar, 0),
            _ => return None,
        })
    }

    fn is_neutral(&self, kernel: &Kernel, found: &Found, combiners: &[Combiner]) -> Option<bool> {
        let mut known: FxHashMap<Value, Constant> = FxHashMap::default();
        for (side, sources) in found.loads.iter().enumerate() {
            for source in sources {
                let value = source.value(kernel);
                known.insert(value, self.constant(side, kernel.value_type(value))?);
            }
        }
        for inst in &found.steps {
            // Masks are of no interest, and follow from indices.
            if let Some(value) = Self::compute(kernel, *inst, &known) {
                known.insert(*kernel.insts[*inst].results.first()?, value);
            }
        }
        let is_left = |(addend, combiner): (&Addend, &Combiner)| {
            let identity = combiner.identity(kernel.value_type(addend.value))?;
            let given = known.get(&addend.value).copied().or_else(|| kernel.constant_of(addend.value))?;
            let opcode = if addend.is_negative { Opcode::Sub } else { combiner.opcode()? };
            Some(evaluate(opcode, &Payload::None, &[identity, given])? == identity)
        };
        let all = found.addends.iter().zip(combiners);
        let mut each = all
            .flat_map(|(addends, combiner)| addends.iter().map(move |addend| (addend, combiner)))
            .map(is_left);
        each.try_fold(true, |all, one| Some(all && one?))
    }

    fn compute(kernel: &Kernel, inst: Inst, known: &FxHashMap<Value, Constant>) -> Option<Constant> {
        let data = &kernel.insts[inst];
        let operands: Option<Vec<Constant>> = data
            .arguments
            .iter()
            .map(|value| known.get(value).copied().or_else(|| kernel.constant_of(*value)))
            .collect();
        evaluate(data.opcode, &data.payload, &operands?)
    }
}
