//! Snapshots of what every kernel in `kernels/` costs, counted by the emulator.

use krn_compiler::CompileOptions;
use krn_compiler::source::SourceFile;
use krn_runtime::profile::costs;

#[test]
fn kernels_cost_what_was_reviewed() {
    insta::glob!("../kernels", "*.krn", |path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let source = SourceFile::new(name, std::fs::read_to_string(path).unwrap());
        let found =
            costs(&source, &CompileOptions::for_target("sm_90")).unwrap_or_else(|error| panic!("{error}"));
        let kernels = path.file_stem().unwrap().to_string_lossy();
        insta::with_settings!({ snapshot_suffix => kernels, omit_expression => true }, {
            insta::assert_snapshot!(found);
        });
    });
}
