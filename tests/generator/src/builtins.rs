//! Calls of built-in functions: of every one in the compiler's table that can give the wanted type.

use krn_compiler::builtins::{Builtin, Signature};
use krn_compiler::data::Scalar;

use crate::expressions::Expressions;
use crate::scope::Scope;
use crate::types::Wide;

/// The functions that give `ty`, each with a type that its arguments can have.
pub fn giving(ty: Wide, elementary: bool) -> Vec<(Builtin, Wide)> {
    Builtin::all()
        .filter(|builtin| matches!(builtin, Builtin::Math(_)) == elementary)
        .flat_map(|builtin| {
            let signature = builtin.signature();
            let arguments = signature.types().iter().map(|scalar| (*scalar, wide(*scalar)));
            arguments
                .filter(move |(scalar, _)| wide(signature.result(*scalar)) == ty)
                .map(move |(_, argument)| (builtin, argument))
        })
        .collect()
}

/// The type of the generator that is one of the compiler's.
fn wide(scalar: Scalar) -> Wide {
    match scalar {
        Scalar::Bool => Wide::Bool,
        Scalar::I32 => Wide::I32,
        Scalar::I64 => Wide::I64,
        Scalar::U32 => Wide::U32,
        Scalar::U64 => Wide::U64,
        Scalar::F32 => Wide::F32,
        Scalar::F64 => Wide::F64,
        Scalar::I8 | Scalar::I16 | Scalar::U8 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => {
            panic!("built-in functions work in wide types, not in {}", scalar.name())
        }
    }
}

impl Expressions<'_, '_> {
    pub fn builtin(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        // As many of the elementary functions as of all others: nested, they leave every range soon.
        let elementary = ty.is_float() && self.choices.below(2) == 1;
        let (builtin, argument) = self.choices.one_of(&giving(ty, elementary));
        let mut operand = |ty| self.expression(ty, scope, depth - 1);
        let arguments: Vec<String> = match builtin.signature() {
            Signature::Select => vec![operand(Wide::Bool), operand(argument), operand(argument)],
            // Any integers; the numbers are compared, so the seed is one that both sides know.
            Signature::RandomBits | Signature::RandomFloat => vec!["7u64".into(), operand(argument)],
            Signature::Floats
            | Signature::FloatTest
            | Signature::Signed
            | Signature::Numbers
            | Signature::Integer
            | Signature::ToBits
            | Signature::FromBits => (0..builtin.arity()).map(|_| operand(argument)).collect(),
        };
        format!("{}({})", builtin.name(), arguments.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::Choices;
    use crate::scope::Names;
    use crate::types::NUMBERS;
    use std::collections::BTreeSet;

    /// A function is generated because it stands in the compiler's table, and in every type that it takes.
    #[test]
    fn every_built_in_function_is_called() {
        // Mixed well: what follows at a fixed distance must not be alike.
        let mixed = |at: u32| {
            let at = (at ^ at >> 16).wrapping_mul(0x45d9_f3b5);
            let at = (at ^ at >> 15).wrapping_mul(0x2c1b_3c6d);
            at ^ at >> 14
        };
        let numbers: Vec<u32> = (1..400_000).map(mixed).collect();
        let mut choices = Choices::new(&numbers);
        let mut names = Names::default();
        let mut called = BTreeSet::new();
        for ty in NUMBERS.into_iter().chain([Wide::Bool]) {
            for _ in 0..2000 {
                let mut expressions = Expressions { choices: &mut choices, names: &mut names };
                let text = expressions.builtin(ty, &Scope::default(), 1);
                let (name, _) = text.split_once('(').expect("a call");
                called.insert((name.to_string(), ty.name()));
            }
        }
        for builtin in Builtin::all() {
            let signature = builtin.signature();
            for scalar in signature.types() {
                let call = (builtin.name().to_string(), wide(signature.result(*scalar)).name());
                assert!(called.contains(&call), "no random program has {call:?}");
            }
        }
    }
}
