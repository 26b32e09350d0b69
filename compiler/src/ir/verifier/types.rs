//! Operand, result, parameter and yield types of each op. Runs on kernels whose structure holds.

use super::Verifier;
use crate::atoms::MatrixAtom;
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Atom, BufferKind, Kernel, Payload};
use crate::ir::op::{Class, Combiner, Constant, Opcode, Shape};
use crate::ir::typing::{bits_type, result_type};
use crate::manifest::{Direction, Layout};
use std::iter::{RepeatN, empty, once, repeat_n};

/// Whether a literal is one of its type, which is wide.
fn fits(constant: Constant) -> bool {
    match constant {
        Constant::Int(Scalar::I32, value) => i32::try_from(value).is_ok(),
        Constant::Int(Scalar::I64, value) => i64::try_from(value).is_ok(),
        Constant::Int(Scalar::U32, value) => u32::try_from(value).is_ok(),
        Constant::Int(Scalar::U64, value) => u64::try_from(value).is_ok(),
        Constant::Int(..) => false,
        Constant::Bool(_) | Constant::F32(_) | Constant::F64(_) => true,
    }
}

/// Whether launches may write to a buffer.
fn is_writable(kind: BufferKind) -> bool {
    let input = matches!(kind, BufferKind::Argument { direction: Direction::In, .. });
    !input && !matches!(kind, BufferKind::Constant(_))
}

/// Whether a buffer is in global memory, and none of the module's.
fn is_global(kind: BufferKind) -> bool {
    matches!(kind, BufferKind::Argument { .. } | BufferKind::Scratch)
}

/// Whether a value is a number of bytes that are copied in the background at once.
fn is_copied_at_once(kernel: &Kernel, bytes: Value) -> bool {
    matches!(kernel.int_of(bytes), Some(4 | 8 | 16))
}

fn fits_vector(width: usize, scalar: Scalar) -> bool {
    matches!(width, 2 | 4 | 8 | 16) && scalar.size() * width as u64 <= 16
}

/// The types of so many subscripts or bounds.
fn indices(count: usize) -> RepeatN<Scalar> {
    repeat_n(Scalar::I64, count)
}

/// Whether a combiner works on a scalar.
fn combines(combiner: Combiner, scalar: Scalar) -> bool {
    match combiner {
        // Of the table: `combiners` asks it, and atomics have none.
        Combiner::Own(..) => false,
        Combiner::And | Combiner::Or | Combiner::Xor => Class::Bits.contains(scalar),
        _ => Class::Numeric.contains(scalar),
    }
}

impl<'k> Verifier<'k> {
    /// The types of values.
    fn types_of<'v>(&self, values: &'v [Value]) -> impl Iterator<Item = Scalar> + Clone + use<'k, 'v> {
        let kernel = self.kernel;
        values.iter().map(move |value| kernel.value_type(*value))
    }

    pub(super) fn types(&mut self, inst: Inst) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        for result in &data.results {
            let scalar = kernel.value_type(*result);
            if scalar.is_narrow() && !data.opcode.makes_storage() {
                self.fail(inst, format!("a value of the storage type {scalar}"));
            }
        }
        if !data.opcode.takes_storage()
            && let Some(scalar) = self.types_of(&data.arguments).find(|scalar| scalar.is_narrow())
        {
            self.fail(
                inst,
                format!("an operand has the storage type {scalar}: cast it, or load it as a wide one"),
            );
        }
        let shape = data.opcode.info().shape;
        if shape == Shape::Special {
            match data.opcode {
                Opcode::Load | Opcode::Store | Opcode::StoreIf | Opcode::Atomic => self.access(inst),
                Opcode::LoadIf if data.results.len() == 1 => self.access(inst),
                Opcode::StoreEach => self.each(inst),
                Opcode::LoadVector | Opcode::LoadIf | Opcode::StoreVector => self.vector_access(inst),
                Opcode::BlockIndex | Opcode::GridSize | Opcode::ThreadIndex => {
                    self.signature(inst, empty(), once(Scalar::I64));
                    if matches!(data.payload, Payload::Grid(3..)) {
                        self.fail(inst, "a grid has three axes: 0, 1 and 2");
                    }
                }
                Opcode::Address | Opcode::CopyAsync | Opcode::CopyAsyncIf => self.copy(inst),
                Opcode::CopyWait | Opcode::CopyCommit | Opcode::Barrier | Opcode::WarpBarrier => {
                    self.signature(inst, empty(), empty());
                }
                Opcode::ShuffleXor => {
                    self.expect_types(inst, "results", &data.results, self.types_of(&data.arguments));
                    if data.arguments.len() != 1 || !matches!(data.payload, Payload::Lanes(1..=31)) {
                        self.fail(inst, "a shuffle has one operand and a mask of 1 to 31");
                    }
                }
                Opcode::Outer | Opcode::OuterFma => self.outer(inst),
                Opcode::ReduceAlong => self.reduce_along(inst),
                Opcode::Contract => self.contract(inst),
                Opcode::Pack => self.pack(inst),
                Opcode::LoadMatrix | Opcode::LoadMatrixTransposed => self.load_matrix(inst),
                Opcode::Mma => self.mma(inst),
                // The third number is a value to report. An assertion reports the values of its index names.
                Opcode::Check => {
                    let assertion = match data.payload {
                        Payload::Site(site) => {
                            self.kernel.sites.get(site).and_then(|site| site.assertion.as_ref())
                        }
                        _ => None,
                    };
                    let numbers = match assertion {
                        Some(assertion) => assertion.indices.len(),
                        None => data.arguments.len().saturating_sub(1).clamp(2, 3),
                    };
                    self.signature(inst, once(Scalar::Bool).chain(indices(numbers)), empty());
                }
                Opcode::Print => self.print(inst),
                Opcode::Yield => self.expect_types(inst, "results", &data.results, empty()),
                _ => self.region_types(inst),
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
        let mut wanted = result_type(kernel, data.opcode, &data.payload, operands);
        if let (Payload::Cast(to), [result]) = (&data.payload, &data.results[..])
            && kernel.value_type(*result) == *to
        {
            wanted = Some(*to);
        }
        self.expect_types(inst, "results", &data.results, wanted.into_iter());
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

    fn expect_types(
        &mut self,
        inst: Inst,
        what: &str,
        found: &[Value],
        wanted: impl Iterator<Item = Scalar> + Clone,
    ) {
        let found = self.types_of(found);
        if !found.clone().eq(wanted.clone()) {
            let found: Vec<&str> = found.map(Scalar::name).collect();
            let wanted: Vec<&str> = wanted.map(Scalar::name).collect();
            let (found, wanted) = (found.join(", "), wanted.join(", "));
            self.fail(inst, format!("{what} have types ({found}), expected ({wanted})"));
        }
    }

    /// As [`signature`](Self::signature), of an access: subscripts, values of one type, and a condition.
    fn accesses(
        &mut self,
        inst: Inst,
        subscripts: usize,
        (value, written, read): (Scalar, usize, usize),
        condition: Option<Scalar>,
    ) {
        let operands = indices(subscripts).chain(repeat_n(value, written)).chain(condition);
        self.signature(inst, operands, repeat_n(value, read));
    }

    fn signature(
        &mut self,
        inst: Inst,
        operands: impl Iterator<Item = Scalar> + Clone,
        results: impl Iterator<Item = Scalar> + Clone,
    ) {
        let data = &self.kernel.insts[inst];
        self.expect_types(inst, "operands", &data.arguments, operands);
        self.expect_types(inst, "results", &data.results, results);
    }

    /// What is told are the values of the site's index names, then the scalars of its operands.
    fn print(&mut self, inst: Inst) {
        let kernel = self.kernel;
        let print = match kernel.insts[inst].payload {
            Payload::Site(site) => kernel.sites.get(site).and_then(|site| site.print.as_ref()),
            _ => None,
        };
        match print {
            Some(print) => self.signature(inst, print.scalars().into_iter(), empty()),
            None => self.fail(inst, "its site is no print"),
        }
    }

    fn leaf(&mut self, inst: Inst) {
        if let Payload::Constant(constant) = self.kernel.insts[inst].payload
            && let Constant::Int(scalar, value) = constant
            && !fits(constant)
        {
            self.fail(inst, format!("{value} is no {scalar}"));
        }
    }

    fn access(&mut self, inst: Inst) {
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
        // A tile may have the type that it has in memory.
        let loaded = self.kernel.insts[inst].results.first().map(|result| self.kernel.value_type(*result));
        let value = if loaded == Some(leaf.scalar) { leaf.scalar } else { value };
        let condition = matches!(opcode, Opcode::LoadIf | Opcode::StoreIf).then_some(Scalar::Bool);
        if matches!(opcode, Opcode::Load | Opcode::LoadIf) {
            if opcode == Opcode::LoadIf {
                self.not_private(inst, data.kind);
            }
            self.accesses(inst, subscripts, (value, 0, 1), condition);
            return;
        }
        if opcode == Opcode::StoreIf {
            self.in_global_memory(inst, data.kind);
        }
        self.accesses(inst, subscripts, (value, 1, 0), condition);
        self.writable(inst, buffer);
        if let Payload::Atomic { op, .. } = self.kernel.insts[inst].payload
            && (op.width() != 1 || !combines(op, value))
        {
            self.fail(inst, format!("no atomic `{}` on {value}", op.name()));
        }
    }

    /// `store_each`: as many places as values and conditions.
    fn each(&mut self, inst: Inst) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let Some(each) = kernel.each_stored(data) else {
            self.fail(inst, "its operands are not subscripts, and a value and a condition for each place");
            return;
        };
        let value = kernel.buffers[buffer].element.leaves[leaf as usize].scalar.widened();
        for (found, ty) in [
            (each.shared, Scalar::I64),
            (each.places, Scalar::I64),
            (each.values, value),
            (each.conditions, Scalar::Bool),
        ] {
            self.expect_types(inst, "operands", found, repeat_n(ty, found.len()));
        }
        self.expect_types(inst, "results", &data.results, empty());
        self.in_global_memory(inst, kernel.buffers[buffer].kind);
        self.writable(inst, buffer);
    }

    /// For stores that depend on conditions.
    fn in_global_memory(&mut self, inst: Inst, kind: BufferKind) {
        if matches!(kind, BufferKind::Shared | BufferKind::Private) {
            self.fail(inst, "a conditional store to what is not in global memory");
        }
    }

    fn not_private(&mut self, inst: Inst, kind: BufferKind) {
        if kind == BufferKind::Private {
            self.fail(inst, "a conditional load from what is a thread's own");
        }
    }

    /// `load_vector`, `load_if` of several and `store_vector`: 2, 4, 8 or 16 scalars that lie next to each other, 16 bytes at
    /// most.
    fn vector_access(&mut self, inst: Inst) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let buffer_data = &kernel.buffers[buffer];
        let leaf_data = &buffer_data.element.leaves[leaf as usize];
        let value = leaf_data.scalar.widened();
        let subscripts = buffer_data.extents.len() + leaf_data.extents.len();
        let condition = (data.opcode == Opcode::LoadIf).then_some(Scalar::Bool);
        if condition.is_some() {
            self.not_private(inst, buffer_data.kind);
        }
        let width = if data.opcode != Opcode::StoreVector {
            let width = data.results.len();
            self.accesses(inst, subscripts, (value, 0, width), condition);
            width
        } else {
            let written = kernel.written_values(data);
            self.accesses(inst, subscripts, (value, written, 0), None);
            self.writable(inst, buffer);
            written
        };
        if !fits_vector(width, leaf_data.scalar) {
            let bytes = leaf_data.scalar.size() * width as u64;
            self.fail(
                inst,
                format!("{width} scalars of {bytes} bytes: not 2, 4, 8 or 16 of at most 16 bytes"),
            );
        }
        if matches!(buffer_data.layout, Layout::Aosoa(_)) {
            self.fail(inst, "no vector access to this buffer");
        }
    }

    /// `address` of something in global memory, and `copy_async` to shared memory.
    fn copy(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let buffer = &self.kernel.buffers[buffer];
        let subscripts = buffer.extents.len() + buffer.element.leaves[leaf as usize].extents.len();
        if data.opcode == Opcode::Address {
            if !is_global(buffer.kind) {
                self.fail(inst, "an address of what is not in global memory");
            }
            self.signature(inst, indices(subscripts), once(Scalar::I64));
            return;
        }
        let mask = (data.opcode == Opcode::CopyAsyncIf).then_some(Scalar::Bool);
        self.signature(inst, indices(subscripts + 2).chain(mask), empty());
        if buffer.kind != BufferKind::Shared {
            self.fail(inst, "a copy to what is not in shared memory");
        }
        if !data.arguments.get(subscripts + 1).is_some_and(|bytes| is_copied_at_once(self.kernel, *bytes)) {
            self.fail(inst, "a copy of another number of bytes than 4, 8 or 16");
        }
    }

    /// A value for each part of the combiners, as many results of these types, and perhaps a mask.
    fn reduce_along(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        let Payload::Along { combiners, .. } = &data.payload else { return };
        let results: Vec<Scalar> = self.types_of(&data.results).collect();
        let mask = (data.arguments.len() == results.len() + 1).then_some(Scalar::Bool);
        self.expect_types(inst, "operands", &data.arguments, results.iter().copied().chain(mask));
        self.combiners(inst, combiners, &results);
    }

    /// Two factors and a sum, numbers of one type, which the result has; of a matrix atom, factors of types that its instruction
    /// takes.
    fn contract(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        if let (Payload::Contract { atom, .. }, [left, right, sum]) = (&data.payload, &data.arguments[..])
            && *atom != Atom::Fma
        {
            let operands = [left, right].map(|value| self.kernel.value_type(*value));
            match result_type(self.kernel, data.opcode, &data.payload, &operands) {
                Some(wanted) => {
                    self.expect_types(inst, "the sum", std::slice::from_ref(sum), once(wanted));
                    self.expect_types(inst, "results", &data.results, once(wanted));
                }
                None => {
                    let [left, right] = operands;
                    let name = atom.name();
                    self.fail(inst, format!("no instruction `{name}` multiplies {left} and {right}"));
                }
            }
            return;
        }
        if let Some(scalar) = self.types_of(&data.arguments).find(|scalar| scalar.is_narrow()) {
            self.fail(inst, format!("the atom `fma` takes no factors of the storage type {scalar}"));
        }
        let Some(first) = self.types_of(&data.arguments).next() else {
            self.fail(inst, "it has 0 operands, not 3");
            return;
        };
        self.class(inst, Class::Numeric, first);
        self.signature(inst, [first; 3].into_iter(), once(first));
    }

    /// As many wide values as there are elements of the type in a word.
    fn pack(&mut self, inst: Inst) {
        let Payload::Cast(scalar) = self.kernel.insts[inst].payload else { return };
        if !scalar.is_narrow() || scalar == Scalar::Bool {
            self.fail(inst, format!("{scalar} has no parts of a word: types of 8 and 16 bits have"));
            return;
        }
        let count = (4 / scalar.size()) as usize;
        self.signature(inst, repeat_n(scalar.widened(), count), once(Scalar::U32));
    }

    /// Rows of 16 bytes in shared memory; 1, 2 or 4 words.
    fn load_matrix(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let buffer = &self.kernel.buffers[buffer];
        let words = data.results.len();
        self.signature(inst, indices(buffer.extents.len()), repeat_n(Scalar::U32, words));
        if !matches!(words, 1 | 2 | 4) {
            self.fail(inst, format!("{words} words: not 1, 2 or 4"));
        }
        if buffer.kind != BufferKind::Shared {
            self.fail(inst, "matrices come from shared memory");
        }
        let size = buffer.element.as_scalar().map(Scalar::size).filter(|_| leaf == 0);
        let transposed = data.opcode == Opcode::LoadMatrixTransposed;
        if size != Some(2) && (transposed || size != Some(1)) {
            let bits = if transposed { "16 bits" } else { "8 or 16 bits" };
            self.fail(inst, format!("matrices have elements of {bits}"));
        }
    }

    /// The words of both factors, and four sums.
    fn mma(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        let Payload::Mma { left, right } = data.payload else { return };
        let Some(atom) = MatrixAtom::find(left, right) else {
            let (left, right) = (left.name(), right.name());
            self.fail(inst, format!("no instruction multiplies {left} and {right}"));
            return;
        };
        let [left, right, sums] = atom.words();
        let operands = repeat_n(Scalar::U32, left + right).chain(repeat_n(atom.sum(), sums));
        self.signature(inst, operands, repeat_n(atom.sum(), sums));
    }

    /// Rows, columns and a sum for each pair, of one type; as many results as sums.
    fn outer(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        let Some((rows, columns, sums)) = data.outer_operands() else {
            self.fail(inst, "its operands are not rows, columns and a sum for each pair");
            return;
        };
        debug_assert_eq!(rows.len() * columns.len(), sums.len());
        let mut operands = self.types_of(&data.arguments);
        if let Some(first) = operands.next() {
            self.class(inst, Class::Float, first);
            if let Some(other) = operands.find(|other| *other != first) {
                self.same(inst, first, other);
            }
        }
        self.expect_types(inst, "results", &data.results, self.types_of(sums));
    }

    fn writable(&mut self, inst: Inst, buffer: Buffer) {
        match self.kernel.buffers[buffer].kind {
            kind if is_writable(kind) => {}
            BufferKind::Constant(_) => self.fail(inst, format!("`{buffer}` is constant")),
            _ => self.fail(inst, format!("`{buffer}` is an input")),
        }
    }

    /// `forall`, `reduce`, `for`, `while`, `if`.
    fn region_types(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        let carried = |skip: usize| self.types_of(data.arguments.get(skip..).unwrap_or(&[]));
        let results = self.types_of(&data.results);
        match (&data.payload, data.opcode) {
            (Payload::Loop { axes }, Opcode::Forall) => {
                self.signature(inst, indices(2 * axes.len()), empty());
                self.region(inst, data.regions[0], indices(axes.len()), empty());
            }
            (Payload::Reduce { axes, combiners }, _) => {
                self.expect_types(inst, "operands", &data.arguments, indices(2 * axes.len()));
                self.region(inst, data.regions[0], indices(axes.len()), results.clone());
                self.combiners(inst, combiners, &results.collect::<Vec<_>>());
            }
            (Payload::Loop { .. }, _) => {
                let carried = carried(3);
                self.signature(inst, indices(3).chain(carried.clone()), carried.clone());
                self.region(inst, data.regions[0], indices(1).chain(carried.clone()), carried);
            }
            (_, Opcode::While) => {
                let carried = carried(0);
                self.expect_types(inst, "results", &data.results, carried.clone());
                self.region(inst, data.regions[0], carried.clone(), once(Scalar::Bool));
                self.region(inst, data.regions[1], carried.clone(), carried);
            }
            _ => {
                self.expect_types(inst, "operands", &data.arguments, once(Scalar::Bool));
                for region in &data.regions {
                    self.region(inst, *region, empty(), results.clone());
                }
            }
        }
    }

    fn region(
        &mut self,
        inst: Inst,
        region: Block,
        params: impl Iterator<Item = Scalar> + Clone,
        yields: impl Iterator<Item = Scalar> + Clone,
    ) {
        let kernel = self.kernel;
        self.expect_types(inst, "region parameters", &kernel.blocks[region].params, params);
        self.expect_types(inst, "yielded values", kernel.yields(region), yields);
    }

    fn combiners(&mut self, inst: Inst, combiners: &[Combiner], results: &[Scalar]) {
        let width: usize = combiners.iter().map(|combiner| combiner.width()).sum();
        if combiners.is_empty() || width != results.len() {
            self.fail(inst, format!("its combiners make {width} values, it has {} results", results.len()));
            return;
        }
        let mut at = 0;
        for combiner in combiners {
            let part = &results[at..at + combiner.width()];
            let fits = match combiner {
                Combiner::Own(own, _) => {
                    self.kernel.combiners.get(*own).is_some_and(|data| data.types == part)
                }
                known => combines(*known, part[0]) && (!known.is_position() || part[1] == Scalar::I64),
            };
            if !fits {
                let types: Vec<&str> = part.iter().map(|scalar| scalar.name()).collect();
                self.fail(inst, format!("no reduction `{combiner}` on {}", types.join(", ")));
            }
            at += combiner.width();
        }
    }
}
