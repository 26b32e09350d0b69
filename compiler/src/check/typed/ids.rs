//! What a program and its kernels are made of, by number.

use cranelift_entity::entity_impl;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {
        $($(#[$doc])* #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);)*
    };
}

ids! {
    /// A struct definition of the program.
    StructId "struct";
    /// An array of a kernel: parameter, result, temporary, local array, constant or static.
    ArrayId "array";
    /// A dimension name of a kernel.
    DimId "dim";
    /// A scalar (or struct) parameter of a kernel.
    ParamId "param";
    /// A `let` or `var` name (or an inlined function's parameter) of a kernel.
    LocalId "local";
    /// An index name: of `forall`, an implicit left-side name, a reduction name, or a sequential `for`.
    IndexId "index";
    /// An access whose bounds are checked on the device.
    SiteId "site";
    /// A `const` array of the program.
    ConstId "const";
    /// A reduction of the file's own that a kernel uses.
    ReductionId "reduction";
    /// A `static` of the program.
    StaticId "static";
}
