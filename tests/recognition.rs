//! The recognition table: what small kernels of every kind cost, and which form the compiler gives them, held against
//! `tests/recognition.costs`, which is reviewed line by line.
//!
//! The rows are the kernels of `tests/recognition/` and `examples/`. After a change that is meant,
//!
//! ```text
//! krn test --costs --table tests/recognition.costs tests/recognition/*.krn examples/*.krn --accept --because "…"
//! ```
//!
//! writes the table anew. A tenth of the rows that the model counts runs on the emulator as well, which must count the same;
//! all of them with `KRN_TEST_ALL=1`.

use crate::tool_support::kernel_files;
use krn_compiler::CompileOptions;
use krn_compiler::source::SourceFile;
use krn_runtime::profile::{Cost, Costs, CountedBy, costs_checked};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const TABLE: &str = "tests/recognition.costs";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What the kernels cost now, and where model and emulator differ.
fn counted() -> (Costs, Vec<String>) {
    let files = kernel_files(&["tests/recognition", "examples"]);
    let (next, found) = (AtomicUsize::new(0), Mutex::new((Vec::new(), Vec::new())));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let text = std::fs::read_to_string(root().join(file)).expect("a file of kernels");
                    let checked = |kernel: &str| {
                        let name = format!("{file}:{kernel}");
                        xtask::is_in_share(&name, 10)
                    };
                    let source = SourceFile::new(file.as_str(), text);
                    let (costs, differ) =
                        costs_checked(&source, &CompileOptions::for_target("sm_90"), &checked)
                            .unwrap_or_else(|error| panic!("{file}: {error}"));
                    let named = |cost: Cost| Cost { kernel: format!("{file}:{}", cost.kernel), ..cost };
                    let mut found = found.lock().expect("no thread panicked");
                    found.0.extend(costs.0.into_iter().map(named));
                    found.1.extend(differ);
                }
            });
        }
    });
    let (mut costs, differ) = found.into_inner().expect("no thread panicked");
    costs.sort_by(|one, other| one.kernel.cmp(&other.kernel));
    (Costs(costs), differ)
}

#[test]
fn kernels_cost_no_more_than_the_table_says() {
    let table = std::fs::read_to_string(root().join(TABLE)).expect("the table");
    let table = Costs::parse(&table).unwrap_or_else(|error| panic!("{TABLE}: {error}"));
    assert!(table.0.len() >= 200, "{} rows", table.0.len());
    let of_emulator = table.0.iter().filter(|row| row.counted_by == CountedBy::Emulator).count();
    assert!(of_emulator >= 20, "{of_emulator} rows of which memory decides what they cost");
    let (costs, differ) = counted();
    assert!(differ.is_empty(), "model and emulator count otherwise:\n{}", differ.join("\n"));
    let changes = costs.against(&table);
    let wrong: String = changes
        .iter()
        .filter(|change| change.verdict.fails())
        .map(|change| format!("{:?}: {}\n{}", change.verdict, change.kernel, change.text))
        .collect();
    assert!(wrong.is_empty(), "{TABLE}:\n{wrong}");
}
