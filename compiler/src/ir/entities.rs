//! Typed indices into a kernel's arenas. The `Display` of an entity is its text form: `v3`, `buf0`, `axis1`.

use cranelift_entity::entity_impl;

macro_rules! entities {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {
        $($(#[$doc])* #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);)*
    };
}

entities! {
    /// An SSA value: an instruction's result or a block's parameter.
    Value "v";
    /// An instruction.
    Inst "inst";
    /// A region: a list of instructions with parameters, ended by `yield` (a launch's root block has no terminator).
    Block "block";
    /// An array in some memory.
    Buffer "buf";
    /// A value that is uniform over a launch and known to the host: a dimension, a scalar parameter, a repeat counter.
    Symbol "sym";
    /// One axis of a loop.
    Axis "axis";
    /// One kernel launch.
    Launch "launch";
    /// A device-side bounds check, by its number in the manifest.
    Site "site";
    /// A combiner of the user's own.
    OwnCombiner "own";
    /// A constant array of the module.
    ConstantArray "const";
    /// A static of the module.
    StaticArray "static";
}
