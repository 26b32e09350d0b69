//! What nearly all instructions are, seen at a glance: without regions, operands in scope, the payload and the types that
//! the op table says. Whatever is not seen to be sound here is looked at rule by rule (`structure.rs`, `types.rs`), which
//! says what is wrong with it, if anything is.

use super::Verifier;
use super::types::{fits, is_copied_at_once, is_global, is_writable, may_be_vector};
use crate::data::Scalar;
use crate::ir::entities::{Buffer, Value};
use crate::ir::kernel::{BufferKind, InstData, Kernel, Payload};
use crate::ir::op::{Opcode, PayloadKind, Shape};
use cranelift_entity::SecondaryMap;

/// The values that are in scope where the walk is.
pub(super) struct Scope {
    types: SecondaryMap<Value, Option<Scalar>>,
    /// In the order of their definitions.
    defined: Vec<Value>,
}

impl Scope {
    pub fn new(kernel: &Kernel) -> Self {
        Self { types: kernel.of_values(), defined: Vec::with_capacity(kernel.values.len()) }
    }

    /// The type of a value that is in scope.
    #[inline(always)]
    pub fn ty(&self, value: Value) -> Option<Scalar> {
        self.types[value]
    }

    #[inline(always)]
    pub fn define(&mut self, value: Value, ty: Scalar) {
        self.types[value] = Some(ty);
        self.defined.push(value);
    }

    /// How many values are in scope.
    pub fn len(&self) -> usize {
        self.defined.len()
    }

    /// Leaves but the first ones in scope.
    pub fn truncate(&mut self, len: usize) {
        for value in &self.defined[len..] {
            self.types[*value] = None;
        }
        self.defined.truncate(len);
    }

    #[inline(always)]
    fn is(&self, value: Value, ty: Scalar) -> bool {
        self.ty(value) == Some(ty)
    }

    #[inline(always)]
    fn all(&self, values: &[Value], ty: Scalar) -> bool {
        values.iter().all(|value| self.is(*value, ty))
    }
}

impl Verifier<'_> {
    /// Of an instruction that is one of those that nearly all are, and surely sound but for its place and its results: the
    /// type that all of these must have.
    #[inline(always)]
    pub(super) fn plain(&self, data: &InstData, results: usize, scope: &Scope) -> Option<Scalar> {
        let info = data.opcode.info();
        let operands = data.arguments.as_slice();
        match (info.payload, &data.payload) {
            (PayloadKind::None, Payload::None) => match (info.shape, operands, results) {
                (Shape::Binary(class), [a, b], 1) => {
                    let ty = scope.ty(*a)?;
                    let wide = class.contains(ty) && !ty.is_narrow();
                    (wide && scope.is(*b, ty)).then_some(ty)
                }
                (Shape::Compare(class), [a, b], 1) => {
                    let ty = scope.ty(*a)?;
                    (class.contains(ty) && scope.is(*b, ty)).then_some(Scalar::Bool)
                }
                (Shape::Special, operands, 0) if data.opcode == Opcode::Yield => {
                    operands.iter().all(|value| scope.ty(*value).is_some()).then_some(Scalar::Bool)
                }
                _ => None,
            },
            (PayloadKind::Constant, Payload::Constant(constant)) => {
                (operands.is_empty() && results == 1 && fits(*constant)).then(|| constant.scalar())
            }
            (PayloadKind::Access, Payload::Access { buffer, leaf }) => {
                self.plain_access(data, results, (*buffer, *leaf), scope)
            }
            (PayloadKind::Outer, Payload::Outer(_)) => {
                let (rows, _, sums) = data.outer_operands()?;
                let ty = scope.ty(rows[0])?;
                let wide = ty.is_float() && !ty.is_narrow();
                (wide && results == sums.len() && scope.all(operands, ty)).then_some(ty)
            }
            _ => None,
        }
    }

    /// The same of loads, stores and copies: subscripts, values of the leaf's type, and a condition.
    #[inline(always)]
    fn plain_access(
        &self,
        data: &InstData,
        results: usize,
        (buffer, leaf): (Buffer, u32),
        scope: &Scope,
    ) -> Option<Scalar> {
        let buffer = self.kernel.buffers.get(buffer)?;
        let leaf = buffer.element.leaves.get(leaf as usize)?;
        let (subscripts, rest) =
            data.arguments.split_at_checked(buffer.extents.len() + leaf.extents.len())?;
        let ty = leaf.scalar.widened();
        let vector = |width: usize| may_be_vector(width, leaf.scalar, buffer.layout);
        let writes = results == 0 && is_writable(buffer.kind);
        let sound = match (data.opcode, rest) {
            (Opcode::Load, []) => results == 1,
            (Opcode::LoadVector, []) => vector(results),
            (Opcode::Store, [value]) => writes && scope.is(*value, ty),
            (Opcode::StoreIf, [value, condition]) => {
                let global = !matches!(buffer.kind, BufferKind::Shared | BufferKind::Private);
                global && writes && scope.is(*value, ty) && scope.is(*condition, Scalar::Bool)
            }
            (Opcode::StoreVector, values) => writes && scope.all(values, ty) && vector(values.len()),
            (Opcode::Address, []) if is_global(buffer.kind) && results == 1 => {
                return scope.all(subscripts, Scalar::I64).then_some(Scalar::I64);
            }
            (Opcode::CopyAsync, [source, bytes]) => {
                let shared = results == 0 && buffer.kind == BufferKind::Shared;
                shared
                    && scope.is(*source, Scalar::I64)
                    && scope.is(*bytes, Scalar::I64)
                    // Definitions lead somewhere as long as nothing is broken.
                    && self.errors.is_empty()
                    && is_copied_at_once(self.kernel, *bytes)
            }
            _ => false,
        };
        (sound && scope.all(subscripts, Scalar::I64)).then_some(ty)
    }
}
