//! Where neighbouring lanes go in memory whose addresses do not move evenly: a subscript `i / 3` or `i % 8`, lane by lane.

use super::affine::Affine;
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::evaluate;
use crate::ir::kernel::{Definition, Kernel, Payload};
use crate::ir::op::Constant;
use rustc_hash::FxHashMap;

/// A size that nobody knows.
const LARGE: i128 = 1 << 20;
/// A subscript is made of so many operations at most.
const MOST: usize = 64;

/// The sectors of 32 bytes that `lanes` neighbours along an index touch; `None` where memory or control flow decides about an
/// address. Other indices are 0, and sizes large.
pub fn sectors_of_lanes(affine: &Affine<'_>, access: Inst, index: Value, lanes: u32) -> Option<u64> {
    let kernel = affine.kernel;
    let scales = affine.scales(access)?;
    let subscripts = kernel.subscripts(&kernel.insts[access]);
    let mut sectors: Vec<i128> = Vec::new();
    for lane in 0..lanes {
        let mut known = FxHashMap::default();
        known.insert(index, Constant::Int(Scalar::I64, lane.into()));
        let mut place = 0i128;
        for (subscript, scale) in subscripts.iter().zip(&scales) {
            let Constant::Int(_, at) = value_of(kernel, *subscript, &mut known)? else { return None };
            let bytes = scale.as_ref().and_then(|scale| scale.as_wrapped()).map_or(LARGE, i128::from);
            place += at * bytes;
        }
        sectors.push(place.div_euclid(32));
    }
    sectors.sort_unstable();
    sectors.dedup();
    u64::try_from(sectors.len()).ok()
}

fn value_of(kernel: &Kernel, value: Value, known: &mut FxHashMap<Value, Constant>) -> Option<Constant> {
    if let Some(constant) = known.get(&value) {
        return Some(*constant);
    }
    if known.len() > MOST {
        return None;
    }
    let scalar = kernel.value_type(value);
    let number =
        |number: i128| (scalar.is_integer() && scalar.size() >= 4).then_some(Constant::Int(scalar, number));
    let constant = match kernel.values[value].definition {
        Definition::Param(..) => number(0),
        Definition::Result(inst, _) => {
            let data = &kernel.insts[inst];
            match data.payload {
                Payload::Symbol(_) => number(LARGE),
                _ => {
                    let operands: Option<Vec<Constant>> =
                        data.arguments.iter().map(|value| value_of(kernel, *value, known)).collect();
                    evaluate(data.opcode, &data.payload, &operands?)
                }
            }
        }
    }?;
    known.insert(value, constant);
    Some(constant)
}
