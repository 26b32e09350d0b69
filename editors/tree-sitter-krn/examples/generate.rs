//! Makes `src/parser.c` and what belongs to it from `grammar.js`: `cargo run -p tree-sitter-krn --example generate`.

use std::path::Path;
use tree_sitter_generate::{ABI_VERSION_MAX, OptLevel, generate_parser_in_directory};

fn main() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = std::env::args_os().nth(1).map_or_else(|| own.join("src"), Into::into);
    let (grammar, mut reports) = (None::<&Path>, Vec::new());
    let made = generate_parser_in_directory(
        own,
        Some(out),
        grammar,
        ABI_VERSION_MAX,
        None,
        Some("node"),
        true,
        OptLevel::default(),
        &mut reports,
    );
    for report in reports {
        eprintln!("{report}");
    }
    if let Err(error) = made {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
