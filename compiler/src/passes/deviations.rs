//! Sums of squared deviations from what is made of a sum over the same walk.

use crate::ir::clone::{ValueMap, mapped};
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{Definition, InstData, Kernel, Payload};
use crate::ir::op::{Combiner, Constant, Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

/// A sum of squared deviations.
pub struct Squares {
    /// Which result of the first reduction is the sum that its mean is made of.
    pub sum: usize,
    /// What is subtracted from the terms, in both factors.
    pub means: [Value; 2],
}

/// Of each result of the second reduction, which of the first one's sums it deviates from; `None` where one of them is
/// something else, or the reductions do not walk one range. `known` says what stands for values of the second one's launch
/// where that is another one, and `written` what the launches write.
pub fn squares(
    kernel: &Kernel,
    (first, second): (Inst, Inst),
    known: &ValueMap,
    written: &EntitySet<Buffer>,
) -> Option<Vec<Squares>> {
    let (Payload::Reduce { combiners: of_first, .. }, Payload::Reduce { combiners: of_second, .. }) =
        (&kernel.insts[first].payload, &kernel.insts[second].payload)
    else {
        return None;
    };
    let adds = |combiner: &Combiner| *combiner == Combiner::Add;
    if !of_second.iter().all(adds) || !of_first.iter().any(adds) || !have_one_range(kernel, first, second) {
        return None;
    }
    let regions = [first, second].map(|inst| kernel.insts[inst].regions[0]);
    let [own, of_others] = regions.map(|region| &kernel.blocks[region].params);
    let mut stand = known.clone();
    stand.extend(of_others.iter().copied().zip(own.iter().copied()));
    let mut terms = Terms { kernel, first, of_first, stand, written, equal: FxHashMap::default() };
    let yields = kernel.yields(regions[1]);
    yields.iter().map(|value| terms.squares(*value)).collect()
}

/// Whether two reductions have the same axes with the same bounds, which the host knows.
fn have_one_range(kernel: &Kernel, first: Inst, second: Inst) -> bool {
    let [before, after] = [first, second].map(|inst| kernel.loop_bounds(inst));
    let same = |left: Value, right: Value| {
        kernel.symbolic(left).is_some_and(|left| kernel.symbolic(right) == Some(left))
    };
    before.len() == after.len()
        && before.iter().zip(&after).all(|(left, right)| same(left.0, right.0) && same(left.1, right.1))
}

struct Terms<'k> {
    kernel: &'k Kernel,
    first: Inst,
    of_first: &'k [Combiner],
    /// What stands for a value of the second reduction or of its launch.
    stand: ValueMap,
    written: &'k EntitySet<Buffer>,
    equal: FxHashMap<(Value, Value), bool>,
}

impl Terms<'_> {
    /// The square of a deviation.
    fn squares(&mut self, value: Value) -> Option<Squares> {
        let kernel = self.kernel;
        let data = kernel.definition_data(value).filter(|data| data.opcode == Opcode::Mul)?;
        let factors = [data.arguments[0], data.arguments[1]];
        // Both the term without the mean, or both the mean without the term.
        [[0, 1], [1, 0]].into_iter().find_map(|[term, mean]| {
            let mut found: Option<Squares> = None;
            for (at, factor) in factors.into_iter().enumerate() {
                let data = kernel.definition_data(factor).filter(|data| data.opcode == Opcode::Sub)?;
                let from = mapped(&self.stand, data.arguments[mean]);
                let sum = self.sum_of(from)?;
                let own = kernel.yields(kernel.insts[self.first].regions[0])[sum];
                if !self.are_equal(data.arguments[term], own) {
                    return None;
                }
                let known = found.get_or_insert(Squares { sum, means: [from; 2] });
                if known.sum != sum {
                    return None;
                }
                known.means[at] = from;
            }
            found
        })
    }

    /// Which sum of the first reduction a mean is made of: by divisions by what is positive, products with it, and
    /// conversions of floats. Of these an infinity stays one of its sign, or becomes a NaN, and a NaN stays one.
    fn sum_of(&self, mean: Value) -> Option<usize> {
        let kernel = self.kernel;
        let mean = mapped(&self.stand, mean);
        if let Definition::Result(inst, at) = kernel.values[mean].definition
            && inst == self.first
        {
            let at = usize::from(at);
            let starts = self.of_first.iter().scan(0, |start, combiner| {
                let own = *start;
                *start += combiner.width();
                Some((own, combiner))
            });
            let mut sums = starts.filter(|(_, combiner)| **combiner == Combiner::Add);
            let is_float = kernel.value_type(mean).is_float();
            return (is_float && sums.any(|(start, _)| start == at)).then_some(at);
        }
        let data = kernel.definition_data(mean)?;
        match (data.opcode, &data.arguments[..]) {
            (Opcode::Cast, [value]) if kernel.value_type(mean).is_float() => {
                kernel.value_type(*value).is_float().then(|| self.sum_of(*value)).flatten()
            }
            (Opcode::Div, [value, by]) if is_positive(kernel, *by) => self.sum_of(*value),
            (Opcode::Mul, [value, by]) if is_positive(kernel, *by) => self.sum_of(*value),
            (Opcode::Mul, [by, value]) if is_positive(kernel, *by) => self.sum_of(*value),
            _ => None,
        }
    }

    /// Whether a value of the second reduction is what one of the first is, in the same iteration.
    fn are_equal(&mut self, second: Value, first: Value) -> bool {
        let second = mapped(&self.stand, second);
        if second == first {
            return true;
        }
        if let Some(known) = self.equal.get(&(second, first)) {
            return *known;
        }
        let kernel = self.kernel;
        let (Some(of_second), Some(of_first)) =
            (kernel.definition_data(second), kernel.definition_data(first))
        else {
            return false;
        };
        let equal = of_second.opcode == of_first.opcode
            && of_second.payload == of_first.payload
            && of_second.arguments.len() == of_first.arguments.len()
            && of_second.results.len() == 1
            && self.is_plain(of_second)
            && of_second
                .arguments
                .iter()
                .zip(&of_first.arguments)
                .all(|pair| self.are_equal(*pair.0, *pair.1));
        let equal = mutant!("moments: other terms", equal, of_second.opcode == of_first.opcode);
        self.equal.insert((second, first), equal);
        equal
    }

    /// Whether an instruction gives the same each time.
    fn is_plain(&self, data: &InstData) -> bool {
        let reads = match data.payload {
            Payload::Access { buffer, .. } => !self.written.contains(buffer),
            _ => true,
        };
        let effect = data.opcode.info().effect;
        data.regions.is_empty() && reads && matches!(effect, Effect::Pure | Effect::Read)
    }
}

/// Whether a float's sign is positive: that of a literal, of what is made of sizes, and of quotients and products of such.
fn is_positive(kernel: &Kernel, value: Value) -> bool {
    let Some(data) = kernel.definition_data(value) else { return false };
    match (data.opcode, &data.arguments[..]) {
        (Opcode::Const, _) => match kernel.constant_of(value) {
            Some(Constant::F32(bits)) => f32::from_bits(bits) > 0.0,
            Some(Constant::F64(bits)) => f64::from_bits(bits) > 0.0,
            _ => false,
        },
        (Opcode::Cast, [from]) if kernel.value_type(*from).is_float() => is_positive(kernel, *from),
        (Opcode::Cast, [from]) => kernel.symbolic(*from).is_some_and(|count| kernel.never_negative(&count)),
        (Opcode::Div | Opcode::Mul, [left, right]) => {
            is_positive(kernel, *left) && is_positive(kernel, *right)
        }
        _ => false,
    }
}
