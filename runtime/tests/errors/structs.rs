//! Structs that no kernel has.

use krn_runtime::KrnStruct;

#[derive(Clone, Copy, KrnStruct)]
struct AsRustLikes {
    x: f32,
}

#[repr(C)]
#[derive(Clone, Copy, KrnStruct)]
struct Unknown {
    name: &'static str,
}

#[repr(C)]
#[derive(Clone, Copy, KrnStruct)]
enum Either {
    One,
}

#[repr(C)]
#[derive(Clone, Copy, KrnStruct)]
struct Generic<T> {
    x: T,
}

#[repr(C)]
#[derive(Clone, Copy, KrnStruct)]
struct Tuple(f32);

fn main() {}
