//! The program `krn`. All that it does is in the library: `tool.rs`.

use std::process::ExitCode;

/// Compiling makes and drops many small things, on several threads: a sixth of its time with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(krn::tool(std::env::args_os()))
}
