//! Questions about a kernel that many rooms ask: types, definitions, nesting, uses, and which values the host
//! can compute too.

use super::entities::{Block, Buffer, Inst, Launch, Symbol, Value};
use super::kernel::{AxisSet, Definition, InstData, Kernel, Payload, Tile};
use super::op::{Constant, Effect, Opcode};
use crate::data::Scalar;
use crate::manifest::{BinaryOp, Expr, SymbolKind, UnaryOp};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;
use std::ops::{ControlFlow, Range};

/// Bytes of a row that a lane of a `load_matrix` names.
const MATRIX_ROW: u64 = 16;

/// How many nodes a host expression has at most for each instruction of its kernel. A sum of sums that are used twice has
/// 2^n; what was written out has a few for each instruction.
const SYMBOLIC_NODES: usize = 8;

/// Where every instruction and every block stands. A snapshot: edits make it stale.
#[derive(Clone, Debug, Default)]
pub struct Parents {
    /// The block that holds the instruction; none for one that was removed.
    pub block_of: SecondaryMap<Inst, PackedOption<Block>>,
    /// The instruction whose region the block is; none for a launch's root.
    pub owner_of: Owners,
}

/// The instruction whose region each block is; none for a launch's root.
pub type Owners = SecondaryMap<Block, PackedOption<Inst>>;

/// Owners of blocks, found launch by launch as far as they are asked for. Edits make what was found stale.
#[derive(Clone, Debug, Default)]
pub struct FoundOwners {
    owners: Owners,
    /// The next launch to look into.
    next: usize,
}

impl From<Owners> for FoundOwners {
    /// The others are found once they are asked for.
    fn from(owners: Owners) -> Self {
        Self { owners, next: 0 }
    }
}

impl FoundOwners {
    /// The instruction whose region a block is; none for a launch's root, and for what no launch runs.
    pub fn of(&mut self, kernel: &Kernel, block: Block) -> Option<Inst> {
        loop {
            if let Some(owner) = self.owners[block].expand() {
                return Some(owner);
            }
            let launch = kernel.launches.values().nth(self.next)?;
            self.next += 1;
            kernel.walk(launch.body, &mut |_, inst| {
                kernel.note_owner(inst, &mut self.owners);
            });
        }
    }
}

impl Parents {
    /// The instructions around `inst`, innermost first, without itself.
    pub fn enclosing(&self, inst: Inst) -> impl Iterator<Item = Inst> + '_ {
        let outer = move |inst: Inst| self.owner_of[self.block_of[inst].expand()?].expand();
        std::iter::successors(outer(inst), move |inst| outer(*inst))
    }

    /// Whether `inner` is `outer` or lies within one of its regions.
    pub fn block_within(&self, inner: Block, outer: Block) -> bool {
        let up = |block: &Block| self.block_of[self.owner_of[*block].expand()?].expand();
        std::iter::successors(Some(inner), up).any(|block| block == outer)
    }
}

impl InstData {
    /// Rows, columns and sums of an `outer` or `outer_fma`; `None` for other instructions, and where the number of operands
    /// does not fit.
    pub fn outer_operands(&self) -> Option<(&[Value], &[Value], &[Value])> {
        let Payload::Outer(rows) = self.payload else { return None };
        let rows = usize::from(rows);
        // A sum for each row and column.
        let rest = self.arguments.len().checked_sub(rows)?;
        if rows == 0 || rest == 0 || rest % (rows + 1) != 0 {
            return None;
        }
        let (rows, rest) = self.arguments.split_at(rows);
        let (columns, sums) = rest.split_at(rest.len() / (rows.len() + 1));
        Some((rows, columns, sums))
    }

    /// What the places of a `store_each` have in common, and their last subscripts, values and conditions: of an access with so
    /// many subscripts. `None` where the number of operands does not fit.
    pub fn each_operands(&self, subscripts: usize) -> Option<EachStored<'_>> {
        let (shared, rest) = self.arguments.split_at_checked(subscripts.checked_sub(1)?)?;
        let count = rest.len() / 3;
        if count == 0 || rest.len() % 3 != 0 {
            return None;
        }
        let (places, rest) = rest.split_at(count);
        let (values, conditions) = rest.split_at(count);
        Some(EachStored { shared, places, values, conditions })
    }
}

/// The operands of a `store_each`.
#[derive(Clone, Copy)]
pub struct EachStored<'d> {
    /// All subscripts but the last one.
    pub shared: &'d [Value],
    /// The last subscripts.
    pub places: &'d [Value],
    pub values: &'d [Value],
    pub conditions: &'d [Value],
}

impl Kernel {
    /// The sizes that it is compiled for, in words: `m = 4096, n = 4096`.
    pub fn sizes_in_words(&self) -> String {
        let values = self.symbols.values().zip(self.specialization.values());
        let named = values.filter_map(|(symbol, value)| Some(format!("{} = {}", symbol.name, (*value)?)));
        named.collect::<Vec<_>>().join(", ")
    }

    /// Whether an expression names the counter of a repeat.
    pub fn names_counter(&self, expr: &Expr) -> bool {
        let mut found = false;
        expr.each_symbol(&mut |symbol| {
            let symbol = self.symbols.get(Symbol::new(symbol));
            found |= symbol.is_some_and(|symbol| symbol.kind == SymbolKind::Counter);
        });
        found
    }

    /// The names of the symbols, by number.
    pub fn symbol_names(&self) -> Vec<&str> {
        self.symbols.values().map(|symbol| symbol.name.as_str()).collect()
    }

    /// The value's type: wide, but of tiles that are factors of a matrix atom.
    pub fn value_type(&self, value: Value) -> Scalar {
        self.values[value].ty
    }

    /// The value's shape.
    pub fn tile(&self, value: Value) -> Tile {
        self.values[value].tile
    }

    /// The shape that values of one op have together: that of the one with all axes, or of a scalar. `None` where none has
    /// the axes of all others.
    pub fn whole_tile<'v>(&self, values: impl Iterator<Item = &'v Value> + Clone) -> Option<Tile> {
        let tiles = || values.clone().map(|value| self.tile(*value));
        let all = tiles().fold(AxisSet::EMPTY, |all, tile| all.union(tile.axes));
        if all.is_empty() { Some(Tile::SCALAR) } else { tiles().find(|tile| tile.axes == all) }
    }

    /// The instruction of which the value is a result; none for a block's parameter.
    pub fn defining_inst(&self, value: Value) -> Option<Inst> {
        match self.values[value].definition {
            Definition::Result(inst, _) => Some(inst),
            Definition::Param(..) => None,
        }
    }

    /// The data of the defining instruction.
    pub fn definition_data(&self, value: Value) -> Option<&InstData> {
        self.defining_inst(value).map(|inst| &self.insts[inst])
    }

    /// The literal, where the value is one.
    pub fn constant_of(&self, value: Value) -> Option<Constant> {
        match self.definition_data(value)?.payload {
            Payload::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    /// `index + literal`, where the value is such a sum, or a difference.
    pub fn split_sum(&self, value: Value) -> Option<(Value, i64)> {
        let literal = |value: Value| self.int_of(value).and_then(|int| i64::try_from(int).ok());
        let data = self.definition_data(value)?;
        match (data.opcode, &data.arguments[..]) {
            (Opcode::Add, [root, other] | [other, root]) if literal(*other).is_some() => {
                Some((*root, literal(*other)?))
            }
            (Opcode::Sub, [root, other]) => Some((*root, literal(*other)?.checked_neg()?)),
            _ => None,
        }
    }

    /// A value of i64 as a sum of another one, if any, and a literal: `(v1 + 3) - 1` is `v1` and 2, and 5 is nothing and 5.
    pub fn root_and_literal(&self, mut value: Value) -> (Option<Value>, i64) {
        let mut sum = 0i64;
        while let Some((root, all)) =
            self.split_sum(value).and_then(|(root, more)| Some((root, sum.checked_add(more)?)))
        {
            (value, sum) = (root, all);
        }
        let last = self.int_of(value).and_then(|int| i64::try_from(int).ok());
        match last.and_then(|last| sum.checked_add(last)) {
            Some(all) => (None, all),
            None => (Some(value), sum),
        }
    }

    /// The integer, where the value is an integer literal.
    pub fn int_of(&self, value: Value) -> Option<i128> {
        match self.constant_of(value)? {
            Constant::Int(_, value) => Some(value),
            _ => None,
        }
    }

    /// The only result of an instruction; none where it has no result or several.
    pub fn result_of(&self, inst: Inst) -> Option<Value> {
        match self.insts[inst].results.as_slice() {
            [value] => Some(*value),
            _ => None,
        }
    }

    /// The operands of an access that are subscripts, which are the first ones.
    pub fn subscripts<'d>(&self, data: &'d InstData) -> &'d [Value] {
        &data.arguments[..data.arguments.len() - self.written_values(data)]
    }

    /// How many elements next to each other a load or a store touches.
    pub fn width(&self, data: &InstData) -> usize {
        match data.opcode {
            opcode if opcode.loads_matrices() => {
                let Payload::Access { buffer, .. } = data.payload else { return 1 };
                (MATRIX_ROW / self.buffers[buffer].element.size) as usize
            }
            opcode if opcode.is_load() => data.results.len(),
            Opcode::StoreVector => self.written_values(data),
            _ => 1,
        }
    }

    /// How many bytes a copy to shared memory has; `None` of other instructions.
    pub fn copied_bytes(&self, data: &InstData) -> Option<i128> {
        let copies = matches!(data.opcode, Opcode::CopyAsync | Opcode::CopyAsyncIf);
        // Behind the subscripts and the source's address.
        let bytes = data.arguments.get(self.subscripts(data).len() + 1).filter(|_| copies)?;
        self.int_of(*bytes)
    }

    /// How many of the last operands of an access are no subscripts: what it writes to memory, conditions.
    pub fn written_values(&self, data: &InstData) -> usize {
        match (data.opcode, &data.payload) {
            (Opcode::Store | Opcode::Atomic | Opcode::LoadIf, _) => 1,
            // The value and the condition; the source's address, and how many bytes.
            (Opcode::StoreIf | Opcode::CopyAsync, _) => 2,
            (Opcode::CopyAsyncIf, _) => 3,
            (Opcode::StoreVector | Opcode::StoreEach, Payload::Access { buffer, leaf }) => {
                data.arguments.len().saturating_sub(self.rank(*buffer, *leaf))
            }
            _ => 0,
        }
    }

    /// How many subscripts an access has: of the array's axes, then of the element's. None where there is no such leaf.
    pub fn rank(&self, buffer: Buffer, leaf: u32) -> usize {
        let buffer = self.buffers.get(buffer);
        let leaf = buffer.and_then(|data| data.element.leaves.get(leaf as usize));
        buffer.map_or(0, |data| data.extents.len()) + leaf.map_or(0, |leaf| leaf.extents.len())
    }

    /// The operands of a `store_each`; `None` for other instructions, and where the number of operands does not fit.
    pub fn each_stored<'d>(&self, data: &'d InstData) -> Option<EachStored<'d>> {
        match (data.opcode, &data.payload) {
            (Opcode::StoreEach, Payload::Access { buffer, leaf }) => {
                data.each_operands(self.rank(*buffer, *leaf))
            }
            _ => None,
        }
    }

    /// The `yield` that ends a region; none for a launch's root.
    pub fn terminator(&self, block: Block) -> Option<Inst> {
        let last = *self.blocks[block].insts.last()?;
        (self.insts[last].opcode == Opcode::Yield).then_some(last)
    }

    /// What a region yields; empty for a launch's root.
    pub fn yields(&self, block: Block) -> &[Value] {
        self.terminator(block).map_or(&[], |inst| self.insts[inst].arguments.as_slice())
    }

    /// The `(low, high)` operands of each axis of a `forall`, `reduce` or `for`; empty for other instructions.
    pub fn loop_bounds(&self, inst: Inst) -> SmallVec<[(Value, Value); 2]> {
        let data = &self.insts[inst];
        let axes = match &data.payload {
            Payload::Loop { axes } | Payload::Reduce { axes, .. } => axes.len(),
            _ => 0,
        };
        data.arguments.chunks_exact(2).take(axes).map(|pair| (pair[0], pair[1])).collect()
    }

    /// The ranges of a loop's axes, where literals say all of them.
    pub fn literal_ranges(&self, inst: Inst) -> Option<Vec<Range<i64>>> {
        let literal = |value: Value| i64::try_from(self.int_of(value)?).ok();
        self.loop_bounds(inst).into_iter().map(|(low, high)| Some(literal(low)?..literal(high)?)).collect()
    }

    /// How many iterations a loop of steps of 1 has, where literals say it.
    pub fn literal_iterations(&self, inst: Inst) -> Option<i64> {
        let extent = |range: Range<i64>| range.end.checked_sub(range.start).map(|extent| extent.max(0));
        let mut ranges = self.literal_ranges(inst)?.into_iter();
        ranges.try_fold(1i64, |all, range| all.checked_mul(extent(range)?))
    }

    /// Visits every instruction of a block and of the regions within, each before those inside it.
    pub fn walk(&self, block: Block, visit: &mut impl FnMut(Block, Inst)) {
        for inst in &self.blocks[block].insts {
            visit(block, *inst);
            self.insts[*inst].regions.iter().for_each(|region| self.walk(*region, visit));
        }
    }

    /// As [`walk`](Self::walk), until somebody has seen enough.
    pub fn walk_until(
        &self,
        block: Block,
        visit: &mut impl FnMut(Block, Inst) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for inst in &self.blocks[block].insts {
            visit(block, *inst)?;
            self.insts[*inst].regions.iter().try_for_each(|region| self.walk_until(*region, visit))?;
        }
        ControlFlow::Continue(())
    }

    /// What all launches do, those among them that a pass does not look at: of whoever asks who else uses an array.
    pub fn bodies(&self) -> impl Iterator<Item = Block> {
        self.launches.values().map(|launch| launch.body).chain(self.past.iter().copied())
    }

    /// Visits every instruction that some launch runs, launch by launch.
    pub fn walk_all(&self, visit: &mut impl FnMut(Block, Inst)) {
        for body in self.bodies() {
            self.walk(body, visit);
        }
    }

    /// The blocks below and with `block`, each before those inside it.
    pub fn blocks_in(&self, block: Block) -> Vec<Block> {
        let mut found = vec![block];
        let mut next = 0;
        while let Some(block) = found.get(next).copied() {
            next += 1;
            for inst in &self.blocks[block].insts {
                found.extend(&self.insts[*inst].regions);
            }
        }
        found
    }

    /// Notes an instruction as the owner of its regions.
    pub fn note_owner(&self, inst: Inst, owners: &mut Owners) {
        for region in &self.insts[inst].regions {
            owners[*region] = inst.into();
        }
    }

    /// Where everything stands now.
    pub fn parents(&self) -> Parents {
        let mut parents = Parents { block_of: self.of_insts(), owner_of: self.of_blocks() };
        self.walk_all(&mut |block, inst| {
            parents.block_of[inst] = block.into();
            self.note_owner(inst, &mut parents.owner_of);
        });
        parents
    }

    /// Where everything in a block stands, whether or not some launch runs it.
    pub fn parents_in(&self, block: Block) -> Parents {
        let mut parents = Parents::default();
        self.walk(block, &mut |block, inst| {
            parents.block_of[inst] = block.into();
            self.note_owner(inst, &mut parents.owner_of);
        });
        parents
    }

    /// How often each value is an operand of an instruction that some launch runs.
    pub fn use_counts(&self) -> SecondaryMap<Value, u32> {
        let mut counts = self.of_values();
        self.walk_all(&mut |_, inst| self.insts[inst].arguments.iter().for_each(|value| counts[*value] += 1));
        counts
    }

    /// How often each value is an operand in one launch.
    pub fn use_counts_in(&self, launch: Launch) -> SecondaryMap<Value, u32> {
        let mut counts = self.of_values();
        self.walk(self.launches[launch].body, &mut |_, inst| {
            self.insts[inst].arguments.iter().for_each(|value| counts[*value] += 1);
        });
        counts
    }

    /// The parallel loop that is all that a launch does, beside values.
    pub fn only_loop(&self, launch: Launch) -> Option<Inst> {
        let (forall, before) = self.blocks[self.launches[launch].body].insts.split_last()?;
        let is_value = |inst: &Inst| self.insts[*inst].opcode.info().effect == Effect::Pure;
        (self.insts[*forall].opcode == Opcode::Forall && before.iter().all(is_value)).then_some(*forall)
    }

    /// The i64 value as an expression that the host can compute before a launch: constants and symbols under
    /// sums, products, quotients, remainders, minima and maxima. `None` for anything else. Integer symbols
    /// narrower than 64 bits may come through casts to i64; arithmetic counts only in i64, because the host's
    /// integers do not wrap. `None` too where values that are used again and again would make the expression
    /// [`SYMBOLIC_NODES`] times as long as the kernel.
    pub fn symbolic(&self, value: Value) -> Option<Expr> {
        self.symbolic_within(value, &mut (SYMBOLIC_NODES * self.insts.len()))
    }

    /// The same with at most so many nodes, less those that it has.
    fn symbolic_within(&self, value: Value, room: &mut usize) -> Option<Expr> {
        *room = room.checked_sub(1)?;
        let data = self.definition_data(value)?;
        if data.opcode == Opcode::Cast && data.payload == Payload::Cast(Scalar::I64) {
            return self.symbolic_leaf(data.arguments[0]);
        }
        if self.value_type(value) != Scalar::I64 {
            return None;
        }
        let op = match data.opcode {
            Opcode::Const | Opcode::Symbol => return self.symbolic_leaf(value),
            Opcode::Neg => {
                return Some(Expr::Unary(
                    UnaryOp::Negate,
                    self.symbolic_within(data.arguments[0], room)?.into(),
                ));
            }
            Opcode::Add => BinaryOp::Add,
            Opcode::Sub => BinaryOp::Sub,
            Opcode::Mul => BinaryOp::Mul,
            Opcode::Div => BinaryOp::Div,
            Opcode::Rem => BinaryOp::Rem,
            Opcode::Min => BinaryOp::Min,
            Opcode::Max => BinaryOp::Max,
            // What `fold` makes of quotients and remainders.
            Opcode::Shr | Opcode::And => {
                let before = *room;
                let dividend = self.symbolic_within(data.arguments[0], room)?;
                // A rounded quotient holds its dividend twice.
                *room = room.checked_sub(before - *room)?;
                let literal = i64::try_from(self.int_of(data.arguments[1])?).ok()?;
                let divisor = match data.opcode {
                    Opcode::Shr => 1i64.checked_shl((literal & 63) as u32)?,
                    _ => literal.checked_add(1)?,
                };
                let power = divisor > 0 && divisor.count_ones() == 1;
                return power.then(|| self.by_power(data.opcode == Opcode::Shr, dividend, divisor));
            }
            _ => return None,
        };
        let left = self.symbolic_within(data.arguments[0], room)?;
        Some(Expr::binary(op, left, self.symbolic_within(data.arguments[1], room)?))
    }

    /// The quotient, or the remainder, that a shift or a mask gives: rounded towards less, where the host's division rounds
    /// towards 0.
    fn by_power(&self, quotient: bool, dividend: Expr, divisor: i64) -> Expr {
        let divisor = Expr::Int(divisor);
        let op = if quotient { BinaryOp::Div } else { BinaryOp::Rem };
        if self.never_negative(&dividend) {
            return Expr::binary(op, dividend, divisor);
        }
        let of = |op, left, right: &Expr| Expr::binary(op, left, right.clone());
        let signed = of(BinaryOp::Rem, dividend.clone(), &divisor);
        let remainder = of(BinaryOp::Rem, of(BinaryOp::Add, signed, &divisor), &divisor);
        match quotient {
            true => of(BinaryOp::Div, of(BinaryOp::Sub, dividend, &remainder), &divisor),
            false => remainder,
        }
    }

    /// How many iterations a loop between two bounds has, which may be fewer than none, where the host can compute both.
    pub fn symbolic_extent(&self, low: Value, high: Value) -> Option<Expr> {
        let (low, high) = (self.symbolic(low)?, self.symbolic(high)?);
        Some(if low == Expr::Int(0) { high } else { Expr::binary(BinaryOp::Sub, high, low) })
    }

    /// How many iterations a loop has along all of its axes, where the host can compute that.
    pub fn symbolic_iterations(&self, inst: Inst) -> Option<Expr> {
        let extents = self.loop_bounds(inst).into_iter().map(|(low, high)| self.symbolic_extent(low, high));
        extents.reduce(|left, right| Some(Expr::binary(BinaryOp::Mul, left?, right?)))?
    }

    /// Whether an expression is made of dimensions and literals in a way that keeps it from being negative, or a fact says
    /// that what is subtracted is no more.
    pub fn never_negative(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Binary(BinaryOp::Sub, left, right) => {
                let Expr::Int(taken) = **right else { return false };
                self.facts.iter().any(|fact| match &fact.condition {
                    Expr::Binary(BinaryOp::GreaterEqual, known, least) => {
                        known == left && matches!(**least, Expr::Int(least) if least >= taken)
                    }
                    _ => false,
                })
            }
            Expr::Int(value) => *value >= 0,
            Expr::Symbol(index) => self
                .symbols
                .get(Symbol::new(*index))
                .is_some_and(|data| matches!(data.kind, SymbolKind::Dim { .. })),
            Expr::Binary(op, left, right) => {
                use BinaryOp::{Add, CeilDiv, Div, Max, Min, Mul, Rem};
                matches!(op, Add | Mul | Div | CeilDiv | Rem | Min | Max)
                    && self.never_negative(left)
                    && self.never_negative(right)
            }
            _ => false,
        }
    }

    /// A literal or symbol that i64 holds exactly.
    fn symbolic_leaf(&self, value: Value) -> Option<Expr> {
        match self.definition_data(value)?.payload {
            Payload::Constant(Constant::Int(_, value)) => i64::try_from(value).ok().map(Expr::Int),
            Payload::Symbol(symbol) => {
                let scalar = self.symbols[symbol].scalar;
                (scalar.is_integer() && scalar != Scalar::U64).then(|| Expr::Symbol(symbol.as_u32() as usize))
            }
            _ => None,
        }
    }
}
