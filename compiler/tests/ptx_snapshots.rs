//! The PTX of every example, as it was reviewed. A change of the compiler that changes it shows here, kernel by
//! kernel: run with `INSTA_UPDATE=always`, and read the difference before you commit it.

use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};

#[test]
fn examples_compile_to_the_ptx_that_was_reviewed() {
    insta::glob!("../../examples", "*.krn", |path| {
        // Without this machine's folders.
        let name = format!("examples/{}", path.file_name().unwrap().to_string_lossy());
        let source = SourceFile::new(name.as_str(), std::fs::read_to_string(path).unwrap());
        let done = compile(&source, &CompileOptions::for_target("sm_90"))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!("ptx", done.compiled.ptx);
        });
    });
}
