//! How much a body computes: what is left of it once equal values are computed once, and subscripts have become addresses.

use crate::analysis::{Affine, Polynomial};
use crate::data::Scalar;
use crate::ir::entities::{Block, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// How many different instructions a block and its regions have. Literals, sums of indices, and what of a branch says where it
/// ends count for nothing.
pub fn distinct(kernel: &Kernel, block: Block) -> usize {
    let mut numbers = Numbers {
        kernel,
        affine: Affine::new(kernel),
        last: 0,
        of: FxHashMap::default(),
        forms: FxHashMap::default(),
        literals: FxHashMap::default(),
        known: FxHashMap::default(),
    };
    numbers.block(block);
    numbers.known.len()
}

/// What an instruction computes: equal ones have equal values.
type Key = (Opcode, Payload, Vec<u32>);

/// Numbers of values, of which equal ones have the same.
struct Numbers<'k> {
    kernel: &'k Kernel,
    affine: Affine<'k>,
    /// The last number that was given.
    last: u32,
    of: FxHashMap<Value, u32>,
    forms: FxHashMap<Rc<Polynomial>, u32>,
    literals: FxHashMap<Payload, u32>,
    /// The results of each instruction.
    known: FxHashMap<Key, Vec<u32>>,
}

impl Numbers<'_> {
    fn value(&mut self, value: Value) -> u32 {
        if let Some(number) = self.of.get(&value) {
            return *number;
        }
        self.last += 1;
        let fresh = self.last;
        let number = match self.kernel.value_type(value) {
            Scalar::I64 => *self.forms.entry(self.affine.form(value)).or_insert(fresh),
            _ => fresh,
        };
        self.of.insert(value, number);
        number
    }

    fn block(&mut self, block: Block) {
        for inst in &self.kernel.blocks[block].insts {
            let data = &self.kernel.insts[*inst];
            data.regions.iter().for_each(|region| self.block(*region));
            let is_index = data.results.first().is_some_and(|of| self.kernel.value_type(*of) == Scalar::I64);
            let of_index = [Opcode::Const, Opcode::Symbol, Opcode::Add, Opcode::Sub, Opcode::Mul];
            if data.opcode == Opcode::Yield || (is_index && of_index.contains(&data.opcode)) {
                continue;
            }
            if data.opcode == Opcode::Const {
                self.last += 1;
                let number = *self.literals.entry(data.payload.clone()).or_insert(self.last);
                self.of.insert(data.results[0], number);
                continue;
            }
            let yields = data.regions.iter().flat_map(|region| self.kernel.yields(*region));
            let operands: Vec<Value> = data.arguments.iter().chain(yields).copied().collect();
            let operands = operands.into_iter().map(|value| self.value(value)).collect();
            let key = (data.opcode, data.payload.clone(), operands);
            match self.known.get(&key) {
                Some(numbers) => self.of.extend(data.results.iter().copied().zip(numbers.iter().copied())),
                None => {
                    let numbers = data.results.iter().map(|result| self.value(*result)).collect();
                    self.known.insert(key, numbers);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::distinct;
    use crate::ir::text::parse_module;

    #[test]
    fn equal_values_and_sums_of_indices_count_once_or_not_at_all() {
        let text = r#"kernel "k" {
    symbol sym0 "n" i64 dim 0 0
    buffer buf0 "x" f32 [sym0] argument 0 in, aos
    buffer buf1 "y" f32 [sym0] argument 1 out, aos
    argument buf0
    argument buf1
    launch launch0 "k" abstract {
        v0: i64 = const 0
        v1: i64 = symbol sym0
        forall axis0 "i" = v0..v1 (v2 "i": i64) {
            v3: i64 = const 1
            v4: i64 = add v2, v3
            v5: bool = lt v4, v1
            v6: i64 = add v3, v2
            v7: bool = lt v6, v1
            v8: f32 = if v5 {
                v9: f32 = load buf0[v4]
                yield v9
            } else {
                v10: f32 = const 0.0
                yield v10
            }
            v11: f32 = if v7 {
                v12: f32 = load buf0[v6]
                yield v12
            } else {
                v13: f32 = const 0.0
                yield v13
            }
            v14: f32 = add v8, v11
            store buf1[v2], v14
            yield
        }
    }
    plan { launch0 }
}"#;
        let module = parse_module(text).unwrap_or_else(|error| panic!("{error}"));
        let kernel = &module.kernels[0];
        let body = kernel.launches.values().next().expect("one launch").body;
        let forall = *kernel.blocks[body].insts.last().expect("a loop");
        // A comparison, a load, a branch, a sum, a store.
        assert_eq!(distinct(kernel, kernel.insts[forall].regions[0]), 5);
    }
}
