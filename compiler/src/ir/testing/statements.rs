//! The statements of random kernels.

use super::generator::Generator;
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::kernel::{Payload, Phase};
use crate::ir::op::{Class, Combiner, OPS, Opcode, Shape};
use crate::ir::text::parse_kernel;

impl Generator<'_> {
    /// Up to `count` statements; with memory and regions inside the outer loop.
    pub fn statements(&mut self, count: usize, inside: bool) {
        for _ in 0..self.pick(count + 1) {
            let Some(left) = self.budget.checked_sub(1) else { return };
            self.budget = left;
            match self.pick(if inside { 21 } else { 6 }) {
                0..6 => self.operation(),
                6..9 => self.load(),
                9 => self.store(),
                10 => self.atomic(),
                11 if self.depth < 3 => self.if_else(),
                12 if self.depth < 3 => self.reduce(),
                13 if self.depth < 3 => self.for_loop(),
                14 if self.depth < 3 => self.while_loop(),
                15 => self.check(),
                16 => self.checked_load(),
                17 => self.load_in_a_loop(),
                18 => self.float_corner(),
                19 => self.unordered(),
                20 => self.changed_element(),
                _ => self.operation(),
            }
        }
    }

    /// Any op without regions and memory.
    fn operation(&mut self) {
        let plain: Vec<_> = OPS
            .iter()
            .filter(|info| info.phases.contains(Phase::Abstract))
            .filter(|info| !matches!(info.shape, Shape::Special | Shape::Leaf))
            .copied()
            .collect();
        let common =
            [Opcode::Add, Opcode::Sub, Opcode::Mul, Opcode::Div, Opcode::Rem, Opcode::Lt, Opcode::Not];
        let info = match self.pick(3) {
            0 => plain[self.pick(plain.len())],
            _ => *common[self.pick(common.len())].info(),
        };
        let scalar = self.any_type();
        let fit = |class: Class| if class.contains(scalar) { Some(scalar) } else { None };
        let class = match info.shape {
            Shape::Unary(class) | Shape::Binary(class) | Shape::Compare(class) => class,
            Shape::Shift => Class::Integer,
            Shape::Test | Shape::Ternary => Class::Float,
            _ => Class::Any,
        };
        let scalar =
            fit(class).unwrap_or(if class.contains(Scalar::I32) { Scalar::I32 } else { Scalar::F32 });
        let (mut payload, mut types) = (Payload::None, vec![scalar]);
        match info.shape {
            Shape::Binary(_) | Shape::Compare(_) => types = vec![scalar; 2],
            Shape::Shift => types.push(Scalar::I32),
            Shape::Select => types = vec![Scalar::Bool, scalar, scalar],
            Shape::Ternary => types = vec![scalar; 3],
            Shape::Cast => {
                let to = Scalar::ALL[self.pick(13)];
                let refused = to == Scalar::Bool || (scalar == Scalar::Bool && to.is_float());
                payload = Payload::Cast(if refused { scalar } else { to });
            }
            Shape::Bits => {
                types = vec![if info.opcode == Opcode::ToBits { Scalar::F32 } else { Scalar::U64 }];
            }
            Shape::Random => types = vec![Scalar::U64; 2],
            _ => {}
        }
        let operands: Vec<Value> = types.into_iter().map(|scalar| self.value(scalar)).collect();
        if let Some(result) = self.builder.inst(info.opcode, payload, &operands) {
            self.pool.push(result);
        }
    }

    /// An index of the private array: a literal, or any value modulo its length.
    fn private_index(&mut self) -> Value {
        if self.literal_subscripts { self.literal_index() } else { self.short_index() }
    }

    fn literal_index(&mut self) -> Value {
        let at = self.pick(4) as i64;
        self.builder.constant_index(at)
    }

    /// An index below 4: a literal, or any value modulo 4.
    fn short_index(&mut self) -> Value {
        if self.pick(3) > 0 {
            return self.literal_index();
        }
        let value = self.value(Scalar::I64);
        let three = self.builder.constant_index(3);
        self.builder.binary(Opcode::And, value, three)
    }

    pub fn load(&mut self) {
        let Some(row) = self.row else { return };
        let column = self.columns.last().copied();
        let value = match (self.pick(5), column) {
            (0, Some(column)) => self.builder.load(self.arrays.matrix, 0, &[row, column]),
            (0 | 1, _) => self.builder.load(self.arrays.row_int, 0, &[row]),
            (2, _) => self.builder.load(self.arrays.bodies, 0, &[row]),
            (3, _) => {
                let index = self.short_index();
                self.builder.load(self.arrays.bodies, 1, &[row, index])
            }
            _ => {
                let index = self.private_index();
                match self.is_defined {
                    true => self.builder.load(self.arrays.private, 0, &[index]),
                    false => self.builder.load(self.arrays.bodies, 0, &[row]),
                }
            }
        };
        self.pool.push(value);
    }

    fn store(&mut self) {
        let Some(row) = self.row else { return };
        if self.pick(2) == 0 {
            let value = self.value(Scalar::F32);
            self.builder.store(self.arrays.bodies, 0, &[row], value);
        } else {
            let (index, value) = (self.private_index(), self.value(Scalar::F32));
            self.builder.store(self.arrays.private, 0, &[index], value);
        }
    }

    /// Changes an element of the private array, perhaps under a condition, and reads it.
    fn changed_element(&mut self) {
        let row = self.row;
        if row.is_none() {
            return;
        }
        let (index, value) = (self.private_index(), self.value(Scalar::F32));
        // Known to memory alone: a literal would be folded.
        let condition = row.filter(|_| self.pick(2) == 0).map(|row| {
            let loaded = self.builder.load(self.arrays.row_int, 0, &[row]);
            let zero = self.builder.constant_int(Scalar::I32, 0);
            self.builder.compare(Opcode::Lt, loaded, zero)
        });
        if let Some(condition) = condition {
            self.builder.begin_if(condition);
        }
        self.builder.store(self.arrays.private, 0, &[index], value);
        if condition.is_some() {
            self.builder.begin_else(&[]);
            self.builder.end_if(&[]);
        }
        let value = self.builder.load(self.arrays.private, 0, &[index]);
        self.pool.push(value);
    }

    fn atomic(&mut self) {
        let value = self.value(Scalar::I64);
        let seven = self.builder.constant_index(7);
        let bin = self.builder.binary(Opcode::And, value, seven);
        let value = self.value(Scalar::U32);
        self.builder.atomic(self.arrays.bins, 0, Combiner::Add, &[bin], value);
    }

    fn check(&mut self) {
        let index = self.value(Scalar::I64);
        let extent = self.value(Scalar::I64);
        self.builder.check(self.arrays.site, index, extent);
    }

    /// An operation that almost does nothing.
    fn float_corner(&mut self) {
        let x = self.value(Scalar::F32);
        let opcode = [Opcode::Add, Opcode::Sub, Opcode::Mul, Opcode::Div][self.pick(4)];
        let neutral = [0.0, -0.0, 1.0, 2.0, 3.0][self.pick(5)];
        let neutral = self.builder.constant_f32(neutral);
        let (a, b) = if self.pick(3) == 0 { (neutral, x) } else { (x, neutral) };
        let value = self.builder.binary(opcode, a, b);
        self.pool.push(value);
    }

    /// The opposite of a comparison that may have met a NaN.
    fn unordered(&mut self) {
        let (x, y) = (self.value(Scalar::F32), self.value(Scalar::F32));
        let opcode = [Opcode::Lt, Opcode::Le, Opcode::Gt, Opcode::Ge, Opcode::Eq, Opcode::Ne][self.pick(6)];
        let compared = self.builder.compare(opcode, x, y);
        let value = self.builder.unary(Opcode::Not, compared);
        self.pool.push(value);
    }

    /// A load that only the check before it keeps inside.
    fn checked_load(&mut self) {
        let (index, n) = (self.value(Scalar::I64), self.pool[0]);
        let inside = self.builder.check(self.arrays.site, index, n);
        self.builder.begin_if(inside);
        let value = self.builder.load(self.arrays.row_int, 0, &[index]);
        self.builder.begin_else(&[value]);
        let zero = self.builder.constant_int(self.builder.value_type(value), 0);
        let results = self.builder.end_if(&[zero]);
        self.pool.extend(results);
    }

    /// A load in a loop that runs only if it is inside.
    fn load_in_a_loop(&mut self) {
        let (index, n) = (self.value(Scalar::I64), self.pool[0]);
        let (zero, one) = (self.builder.constant_index(0), self.builder.constant_index(1));
        let above = self.builder.compare(Opcode::Ge, index, zero);
        let below = self.builder.compare(Opcode::Lt, index, n);
        let inside = self.builder.binary(Opcode::And, above, below);
        let trips = self.builder.select(inside, one, zero);
        self.builder.begin_reduce(&[("once", zero, trips)], &[Combiner::Max]);
        let value = self.builder.load(self.arrays.row_int, 0, &[index]);
        let results = self.builder.end_reduce(&[value]);
        self.pool.extend(results);
    }

    /// Adds the bits of the last values in scope to the bins, so that what they are can be seen.
    pub fn show(&mut self) {
        let last: Vec<Value> = self.pool.iter().rev().take(12).copied().collect();
        for (at, value) in last.into_iter().enumerate() {
            let bits = match self.builder.value_type(value) {
                Scalar::F32 | Scalar::F64 => self.builder.unary(Opcode::ToBits, value),
                _ => value,
            };
            // Both halves of a wide value.
            let bits = if self.builder.value_type(bits).size() == 8 {
                let wide = self.builder.cast(bits, Scalar::U64);
                let half = self.builder.constant_int(Scalar::I32, 32);
                let high = self.builder.binary(Opcode::Shr, wide, half);
                self.builder.binary(Opcode::Xor, wide, high)
            } else {
                bits
            };
            let bits = self.builder.cast(bits, Scalar::U32);
            let bin = self.builder.constant_index(at as i64 % 8);
            self.builder.atomic(self.arrays.bins, 0, Combiner::Add, &[bin], bits);
        }
    }

    /// The end of a loop over columns, or a small number.
    fn trips(&mut self) -> Value {
        match self.pick(3) {
            0 => self.builder.constant_index(2),
            1 => self.builder.constant_index(1),
            _ => self.pool[1],
        }
    }

    /// Runs a step within a region, whose values go out of scope after it.
    fn region<T>(&mut self, params: &[Value], step: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.pool.len();
        self.pool.extend_from_slice(params);
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        self.pool.truncate(mark);
        result
    }

    fn if_else(&mut self) {
        let condition = self.value(Scalar::Bool);
        let scalar = self.any_type();
        self.builder.begin_if(condition);
        let body = |generator: &mut Self| {
            generator.statements(5, true);
            generator.value(scalar)
        };
        let then = self.region(&[], body);
        self.builder.begin_else(&[then]);
        let otherwise = self.region(&[], body);
        let results = self.builder.end_if(&[otherwise]);
        self.pool.extend(results);
    }

    fn reduce(&mut self) {
        let zero = self.builder.constant_index(0);
        let m = self.trips();
        let pair = self.pick(3) == 0;
        let scalar = [Scalar::F32, Scalar::I32, Scalar::U64][self.pick(3)];
        let combiner = match (pair, self.pick(4)) {
            (true, 0) => Combiner::ArgMin,
            (true, 1) => self.own_combiner(scalar),
            (false, 3) => self.own_combiner(scalar),
            (true, _) => Combiner::ArgMax,
            (false, 0) => Combiner::Add,
            (false, 1) => Combiner::Max,
            (false, _) => Combiner::Min,
        };
        let index = self.builder.begin_reduce(&[("p", zero, m)], &[combiner])[0];
        let column = m == self.pool[1];
        if column {
            self.columns.push(index);
        }
        let value = self.region(&[index], |generator| {
            generator.statements(5, true);
            generator.value(scalar)
        });
        if column {
            self.columns.pop();
        }
        let contributions = if combiner.width() == 2 { vec![value, index] } else { vec![value] };
        let results = self.builder.end_reduce(&contributions);
        self.pool.extend(results);
    }

    /// The greatest of values and the sum of indices, which come out the same in any order; a branch chooses.
    fn own_combiner(&mut self, scalar: Scalar) -> Combiner {
        let low = match scalar {
            Scalar::F32 => "-inf".to_string(),
            Scalar::I32 => i32::MIN.to_string(),
            _ => "0".to_string(),
        };
        let text = format!(
            "kernel \"k\" {{ combiner own0 \"both\" (v0: {scalar}, v1: i64, v2: {scalar}, v3: i64) {{
                v4: {scalar} = max v0, v2
                v5: bool = eq v1, v3
                v6: i64 = if v5 {{
                    v7: i64 = const 2
                    v8: i64 = mul v1, v7
                    yield v8
                }} else {{
                    v9: i64 = add v1, v3
                    yield v9
                }}
                yield v4, v6
            }} from [{low}, 0] plan {{ }} }}"
        );
        let parsed = parse_kernel(&text).expect("the text is well-formed");
        let kernel = self.builder.kernel_mut();
        let known = kernel.combiners.iter().find(|(_, data)| data.types[0] == scalar).map(|(own, _)| own);
        let own = known.unwrap_or_else(|| {
            kernel.combiners.push(parsed.combiners.values().next().expect("there is one").clone())
        });
        kernel.own_combiner(own)
    }

    fn for_loop(&mut self) {
        let (low, step) = (self.builder.constant_index(0), self.builder.constant_index(2));
        let m = self.trips();
        let scalar = self.any_type();
        let initial = self.value(scalar);
        let (index, carried) = self.builder.begin_for("t", low, m, step, &[initial]);
        let column = m == self.pool[1];
        if column {
            self.columns.push(index);
        }
        let params: Vec<Value> = [index].into_iter().chain(carried).collect();
        let next = self.region(&params, |generator| {
            generator.statements(5, true);
            generator.value(scalar)
        });
        if column {
            self.columns.pop();
        }
        let results = self.builder.end_for(&[next]);
        self.pool.extend(results);
    }

    /// Counts up to a small number.
    fn while_loop(&mut self) {
        let (start, limit, one) = (0, 1 + self.pick(3) as i64, 1);
        let start = self.builder.constant_index(start);
        let scalar = self.any_type();
        let initial = self.value(scalar);
        let carried = self.builder.begin_while(&[start, initial]);
        let limit = self.builder.constant_index(limit);
        let condition = self.builder.compare(Opcode::Lt, carried[0], limit);
        let carried = self.builder.begin_while_body(condition);
        let one = self.builder.constant_index(one);
        let next = self.builder.binary(Opcode::Add, carried[0], one);
        let value = self.region(&carried, |generator| {
            generator.statements(4, true);
            generator.value(scalar)
        });
        let results = self.builder.end_while(&[next, value]);
        self.pool.extend(results);
    }
}
