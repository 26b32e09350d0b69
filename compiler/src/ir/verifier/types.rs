//! Operand, result, parameter and yield types of each op. Runs on kernels whose structure holds.

use super::Verifier;
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Payload};
use crate::ir::op::{Class, Combiner, Constant, Opcode, Shape};
use crate::ir::typing::{bits_type, result_type};
use crate::manifest::{Direction, Layout};
use smallvec::{SmallVec, smallvec};

/// Types of operands, results and the like.
type Types = SmallVec<[Scalar; 16]>;

/// Whether the integer is a value of the type.
fn fits(scalar: Scalar, value: i128) -> bool {
    match scalar {
        Scalar::I32 => i32::try_from(value).is_ok(),
        Scalar::I64 => i64::try_from(value).is_ok(),
        Scalar::U32 => u32::try_from(value).is_ok(),
        Scalar::U64 => u64::try_from(value).is_ok(),
        _ => false,
    }
}

fn types_i64(count: usize) -> Types {
    smallvec![Scalar::I64; count]
}

/// Whether a combiner works on a scalar.
fn combines(combiner: Combiner, scalar: Scalar) -> bool {
    match combiner {
        Combiner::And | Combiner::Or | Combiner::Xor => Class::Bits.contains(scalar),
        _ => Class::Numeric.contains(scalar),
    }
}

impl Verifier<'_> {
    fn types_of(&self, values: &[Value]) -> Types {
        let mut few = [Scalar::Bool; 16];
        if values.len() <= few.len() {
            few.iter_mut().zip(values).for_each(|(ty, value)| *ty = self.kernel.value_type(*value));
            return Types::from_buf_and_len(few, values.len());
        }
        values.iter().map(|value| self.kernel.value_type(*value)).collect()
    }

    pub(super) fn types(&mut self, inst: Inst) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        for result in &data.results {
            let scalar = kernel.value_type(*result);
            if scalar.is_narrow() {
                self.fail(inst, format!("a value of the storage type {scalar}"));
            }
        }
        let shape = data.opcode.info().shape;
        if shape == Shape::Special {
            if data.opcode == Opcode::Yield && data.results.is_empty() {
                return;
            }
            let (operands, results) = (self.types_of(&data.arguments), self.types_of(&data.results));
            match data.opcode {
                Opcode::Load | Opcode::Store | Opcode::StoreIf | Opcode::Atomic => {
                    self.access(inst, &operands, &results)
                }
                Opcode::LoadIf if results.len() == 1 => self.access(inst, &operands, &results),
                Opcode::LoadVector | Opcode::LoadIf | Opcode::StoreVector => {
                    self.vector_access(inst, &operands, &results);
                }
                Opcode::BlockIndex | Opcode::GridSize | Opcode::ThreadIndex => {
                    self.signature(inst, &operands, &[], &results, &[Scalar::I64]);
                    if matches!(data.payload, Payload::Grid(3..)) {
                        self.fail(inst, "a grid has three axes: 0, 1 and 2");
                    }
                }
                Opcode::Address | Opcode::CopyAsync => self.copy(inst, &operands, &results),
                Opcode::CopyWait | Opcode::CopyCommit | Opcode::Barrier => {
                    self.signature(inst, &operands, &[], &results, &[])
                }
                Opcode::ShuffleXor => {
                    self.expect_types(inst, "results", &results, &operands);
                    if operands.len() != 1 || !matches!(data.payload, Payload::Lanes(1..=31)) {
                        self.fail(inst, "a shuffle has one operand and a mask of 1 to 31");
                    }
                }
                Opcode::Outer | Opcode::OuterFma => self.outer(inst, &operands, &results),
                Opcode::Check => self.signature(inst, &operands, &[Scalar::I64, Scalar::I64], &results, &[]),
                Opcode::Yield => self.expect_types(inst, "results", &results, &[]),
                _ => self.region_types(inst, &operands, &results),
            }
            return;
        }
        let count = match shape {
            Shape::Leaf => 0,
            Shape::Unary(_) | Shape::Test | Shape::Cast | Shape::Bits => 1,
            Shape::Binary(_) | Shape::Shift | Shape::Compare(_) | Shape::Random => 2,
            _ => 3,
        };
        if data.arguments.len() != count {
            self.fail(inst, format!("it has {} operands, not {count}", data.arguments.len()));
            return;
        }
        let mut operands = [Scalar::Bool; 3];
        for (ty, value) in operands.iter_mut().zip(&data.arguments) {
            *ty = kernel.value_type(*value);
        }
        let operands = &operands[..count];
        match (shape, operands) {
            (Shape::Leaf, _) => self.leaf(inst),
            (Shape::Unary(class), [a]) => self.class(inst, class, *a),
            (Shape::Test, [a]) => self.class(inst, Class::Float, *a),
            (Shape::Binary(class) | Shape::Compare(class), [a, b]) => {
                self.class(inst, class, *a);
                self.same(inst, *a, *b);
            }
            (Shape::Shift, [a, b]) => {
                self.class(inst, Class::Integer, *a);
                self.class(inst, Class::Integer, *b);
            }
            (Shape::Select, [condition, a, b]) => {
                self.same(inst, *condition, Scalar::Bool);
                self.same(inst, *a, *b);
            }
            (Shape::Ternary, [a, b, c]) => {
                self.class(inst, Class::Float, *a);
                self.same(inst, *a, *b);
                self.same(inst, *a, *c);
            }
            (Shape::Bits, [a]) if bits_type(data.opcode, *a).is_none() => {
                self.fail(inst, format!("no bits of the other kind for {a}"));
            }
            (Shape::Cast, [a]) => {
                let to_bool = data.payload == Payload::Cast(Scalar::Bool);
                if to_bool && *a != Scalar::Bool {
                    self.fail(inst, "a cast to bool");
                }
            }
            (Shape::Random, [a, b]) => {
                self.same(inst, *a, Scalar::U64);
                self.same(inst, *b, Scalar::U64);
            }
            _ => {}
        }
        let wanted = result_type(kernel, data.opcode, &data.payload, operands);
        match data.results[..] {
            [result] if wanted == Some(kernel.value_type(result)) => {}
            _ => self.expect_types(inst, "results", &self.types_of(&data.results), wanted.as_slice()),
        }
    }

    fn class(&mut self, inst: Inst, class: Class, scalar: Scalar) {
        if !class.contains(scalar) {
            self.fail(inst, format!("an operand has type {scalar}, the op wants {}", class.describe()));
        }
    }

    fn same(&mut self, inst: Inst, a: Scalar, b: Scalar) {
        if a != b {
            self.fail(inst, format!("operands have types {a} and {b}, the op wants one type"));
        }
    }

    fn expect_types(&mut self, inst: Inst, what: &str, found: &[Scalar], wanted: &[Scalar]) {
        if found != wanted {
            let names = |types: &[Scalar]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
            self.fail(inst, format!("{what} have types ({}), expected ({})", names(found), names(wanted)));
        }
    }

    fn signature(
        &mut self,
        inst: Inst,
        operands: &[Scalar],
        wanted: &[Scalar],
        results: &[Scalar],
        wanted_results: &[Scalar],
    ) {
        self.expect_types(inst, "operands", operands, wanted);
        self.expect_types(inst, "results", results, wanted_results);
    }

    /// As [`signature`](Self::signature), of an instruction whose first operands are subscripts.
    fn subscripted(
        &mut self,
        inst: Inst,
        operands: &[Scalar],
        (subscripts, others): (usize, &[Scalar]),
        results: &[Scalar],
        wanted_results: &[Scalar],
    ) {
        let sound = operands.split_at_checked(subscripts).is_some_and(|(indices, rest)| {
            rest == others && indices.iter().all(|scalar| *scalar == Scalar::I64)
        });
        if !sound || results != wanted_results {
            let mut wanted = types_i64(subscripts);
            wanted.extend_from_slice(others);
            self.signature(inst, operands, &wanted, results, wanted_results);
        }
    }

    fn leaf(&mut self, inst: Inst) {
        if let Payload::Constant(Constant::Int(scalar, value)) = self.kernel.insts[inst].payload
            && !fits(scalar, value)
        {
            self.fail(inst, format!("{value} is no {scalar}"));
        }
    }

    fn access(&mut self, inst: Inst, operands: &[Scalar], results: &[Scalar]) {
        let (Payload::Access { buffer, leaf } | Payload::Atomic { buffer, leaf, .. }) =
            self.kernel.insts[inst].payload
        else {
            return;
        };
        let data = &self.kernel.buffers[buffer];
        let leaf = &data.element.leaves[leaf as usize];
        let value = leaf.scalar.widened();
        let subscripts = data.extents.len() + leaf.extents.len();
        let opcode = self.kernel.insts[inst].opcode;
        if matches!(opcode, Opcode::Load | Opcode::LoadIf) {
            let others: &[Scalar] = if opcode == Opcode::LoadIf { &[Scalar::Bool] } else { &[] };
            if opcode == Opcode::LoadIf {
                self.not_private(inst, data.kind);
            }
            self.subscripted(inst, operands, (subscripts, others), results, &[value]);
            return;
        }
        let others = [value, Scalar::Bool];
        let others = if opcode == Opcode::StoreIf { &others[..] } else { &others[..1] };
        if opcode == Opcode::StoreIf && matches!(data.kind, BufferKind::Shared | BufferKind::Private) {
            self.fail(inst, "a conditional store to what is not in global memory");
        }
        self.subscripted(inst, operands, (subscripts, others), results, &[]);
        self.writable(inst, buffer);
        if let Payload::Atomic { op, .. } = self.kernel.insts[inst].payload
            && (op.width() != 1 || !combines(op, value))
        {
            self.fail(inst, format!("no atomic `{}` on {value}", op.name()));
        }
    }

    fn not_private(&mut self, inst: Inst, kind: BufferKind) {
        if kind == BufferKind::Private {
            self.fail(inst, "a conditional load from what is a thread's own");
        }
    }

    /// `load_vector`, `load_if` of several and `store_vector`: 2, 4, 8 or 16 scalars that lie next to each other, 16 bytes at
    /// most.
    fn vector_access(&mut self, inst: Inst, operands: &[Scalar], results: &[Scalar]) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let buffer_data = &kernel.buffers[buffer];
        let leaf_data = &buffer_data.element.leaves[leaf as usize];
        let value = leaf_data.scalar.widened();
        let mut indices: Types = smallvec![Scalar::I64; buffer_data.extents.len() + leaf_data.extents.len()];
        if data.opcode == Opcode::LoadIf {
            indices.push(Scalar::Bool);
            self.not_private(inst, buffer_data.kind);
        }
        let width = if data.opcode != Opcode::StoreVector {
            let values: Types = smallvec![value; results.len()];
            self.signature(inst, operands, &indices, results, &values);
            results.len()
        } else {
            let written = kernel.written_values(data);
            let mut wanted = indices;
            wanted.resize(wanted.len() + written, value);
            self.signature(inst, operands, &wanted, results, &[]);
            self.writable(inst, buffer);
            written
        };
        let bytes = leaf_data.scalar.size() * width as u64;
        if !matches!(width, 2 | 4 | 8 | 16) || bytes > 16 {
            self.fail(
                inst,
                format!("{width} scalars of {bytes} bytes: not 2, 4, 8 or 16 of at most 16 bytes"),
            );
        }
        if matches!(buffer_data.layout, Layout::Aosoa(_)) || leaf_data.scalar == Scalar::Bool {
            self.fail(inst, "no vector access to this buffer");
        }
    }

    /// `address` of something in global memory, and `copy_async` to shared memory.
    fn copy(&mut self, inst: Inst, operands: &[Scalar], results: &[Scalar]) {
        let data = &self.kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let buffer = &self.kernel.buffers[buffer];
        let subscripts = buffer.extents.len() + buffer.element.leaves[leaf as usize].extents.len();
        if data.opcode == Opcode::Address {
            let global = matches!(buffer.kind, BufferKind::Argument { .. } | BufferKind::Scratch);
            if !global {
                self.fail(inst, "an address of what is not in global memory");
            }
            self.signature(inst, operands, &types_i64(subscripts), results, &[Scalar::I64]);
            return;
        }
        self.signature(inst, operands, &types_i64(subscripts + 2), results, &[]);
        if buffer.kind != BufferKind::Shared {
            self.fail(inst, "a copy to what is not in shared memory");
        }
        let bytes = data.arguments.last().and_then(|bytes| self.kernel.int_of(*bytes));
        if !matches!(bytes, Some(4 | 8 | 16)) {
            self.fail(inst, "a copy of another number of bytes than 4, 8 or 16");
        }
    }

    /// Rows, columns and a sum for each pair, of one type; as many results as sums.
    fn outer(&mut self, inst: Inst, operands: &[Scalar], results: &[Scalar]) {
        let Some((rows, columns, sums)) = self.kernel.insts[inst].outer_operands() else {
            self.fail(inst, "its operands are not rows, columns and a sum for each pair");
            return;
        };
        debug_assert_eq!(rows.len() * columns.len(), sums.len());
        if let Some(first) = operands.first() {
            self.class(inst, Class::Float, *first);
            if let Some(other) = operands.iter().find(|other| *other != first) {
                self.same(inst, *first, *other);
            }
        }
        self.expect_types(inst, "results", results, &operands[operands.len() - sums.len()..]);
    }

    fn writable(&mut self, inst: Inst, buffer: Buffer) {
        match self.kernel.buffers[buffer].kind {
            BufferKind::Constant(_) => self.fail(inst, format!("`{buffer}` is constant")),
            BufferKind::Argument { direction: Direction::In, .. } => {
                self.fail(inst, format!("`{buffer}` is an input"));
            }
            _ => {}
        }
    }

    /// `forall`, `reduce`, `for`, `while`, `if`.
    fn region_types(&mut self, inst: Inst, operands: &[Scalar], results: &[Scalar]) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let carried = |skip: usize| operands.get(skip..).unwrap_or(&[]).to_vec();
        match (&data.payload, data.opcode) {
            (Payload::Loop { axes }, Opcode::Forall) => {
                let indices = vec![Scalar::I64; axes.len()];
                self.signature(inst, operands, &[Scalar::I64].repeat(2 * axes.len()), results, &[]);
                self.region(inst, data.regions[0], &indices, &[]);
            }
            (Payload::Reduce { axes, combiners }, _) => {
                let indices = vec![Scalar::I64; axes.len()];
                self.expect_types(inst, "operands", operands, &[Scalar::I64].repeat(2 * axes.len()));
                self.region(inst, data.regions[0], &indices, results);
                self.combiners(inst, combiners, results);
            }
            (Payload::Loop { .. }, _) => {
                let carried = carried(3);
                let params: Vec<Scalar> = [Scalar::I64].into_iter().chain(carried.iter().copied()).collect();
                let wanted: Vec<Scalar> =
                    [Scalar::I64; 3].into_iter().chain(carried.iter().copied()).collect();
                self.signature(inst, operands, &wanted, results, &carried);
                self.region(inst, data.regions[0], &params, &carried);
            }
            (_, Opcode::While) => {
                let carried = carried(0);
                self.expect_types(inst, "results", results, &carried);
                self.region(inst, data.regions[0], &carried, &[Scalar::Bool]);
                self.region(inst, data.regions[1], &carried, &carried);
            }
            _ => {
                self.expect_types(inst, "operands", operands, &[Scalar::Bool]);
                for region in &data.regions {
                    self.region(inst, *region, &[], results);
                }
            }
        }
    }

    fn region(&mut self, inst: Inst, region: Block, params: &[Scalar], yields: &[Scalar]) {
        let found = self.types_of(&self.kernel.blocks[region].params);
        self.expect_types(inst, "region parameters", &found, params);
        let found = self.types_of(self.kernel.yields(region));
        self.expect_types(inst, "yielded values", &found, yields);
    }

    fn combiners(&mut self, inst: Inst, combiners: &[Combiner], results: &[Scalar]) {
        let width: usize = combiners.iter().map(|combiner| combiner.width()).sum();
        if combiners.is_empty() || width != results.len() {
            self.fail(inst, format!("its combiners make {width} values, it has {} results", results.len()));
            return;
        }
        let mut at = 0;
        for combiner in combiners {
            let index_fits = combiner.width() == 1 || results[at + 1] == Scalar::I64;
            if !combines(*combiner, results[at]) || !index_fits {
                self.fail(inst, format!("no reduction `{}` on {}", combiner.name(), results[at]));
            }
            at += combiner.width();
        }
    }
}
