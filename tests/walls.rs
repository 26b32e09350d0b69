//! The walls between rooms and floors: who may import whom, held by reading the source.
//!
//! The tables are those of `ARCHITECTURE.md`. Between modules of one room, and of one floor, imports go one way only: no
//! module reaches itself by way of others. [`imports`] says what counts as an import.

mod imports;

use imports::{Modules, cycles};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Room of the compiler, and the rooms that it may import. `data`, `targets`, `parallel` and `source` are leaves.
const ROOMS: &[(&str, &[&str])] = &[
    ("data", &[]),
    ("builtins", &["data"]),
    ("targets", &[]),
    ("version", &[]),
    ("source", &[]),
    ("algebra", &["data"]),
    ("layout", &[]),
    ("atoms", &["data", "layout"]),
    ("manifest", &["data"]),
    ("parallel", &[]),
    ("clock", &[]),
    ("mutants", &[]),
    ("diagnostic", &["source"]),
    ("syntax", &["source", "diagnostic"]),
    ("format", &["source", "diagnostic", "syntax"]),
    ("names", &["source", "syntax"]),
    ("check", &["source", "diagnostic", "syntax", "data", "builtins", "targets", "algebra", "mutants"]),
    ("ir", &["source", "data", "builtins", "manifest", "layout", "atoms"]),
    ("lower", &["source", "diagnostic", "syntax", "check", "data", "builtins", "manifest", "ir", "mutants"]),
    ("analysis", &["source", "data", "manifest", "ir", "algebra", "layout"]),
    (
        "passes",
        &["source", "data", "algebra", "layout", "atoms", "manifest", "ir", "analysis", "clock", "mutants"],
    ),
    (
        "ptx",
        &[
            "source", "data", "algebra", "atoms", "builtins", "manifest", "ir", "analysis", "targets",
            "version", "parallel", "mutants",
        ],
    ),
    ("advise", &["source", "diagnostic", "syntax", "check", "data", "manifest", "ir", "analysis"]),
    ("scopes", &["source", "check", "data"]),
    ("reference", &["source", "diagnostic", "syntax", "check", "data", "builtins", "manifest"]),
];

/// Floor of the runtime, and the floors below that it may import. From the bottom up.
const FLOORS: &[(&str, &[&str])] = &[
    ("memory_kind", &[]),
    ("error", &["memory_kind"]),
    ("npy", &[]),
    ("npz", &["npy"]),
    ("emulator", &[]),
    ("sequence", &["error"]),
    ("backend", &["memory_kind", "error", "emulator", "sequence"]),
    ("cuda", &["memory_kind", "error", "emulator", "sequence", "backend"]),
    ("order", &["memory_kind", "error", "backend"]),
    ("device", &["memory_kind", "error", "emulator", "sequence", "backend", "cuda", "order"]),
    ("memory", &["memory_kind", "error", "backend", "order", "device"]),
    ("stream", &["memory_kind", "error", "backend", "order", "device", "memory"]),
    (
        "launch",
        &["memory_kind", "error", "emulator", "sequence", "backend", "order", "device", "memory", "stream"],
    ),
    ("transfer", &["memory_kind", "error", "backend", "device", "memory", "stream", "launch"]),
    ("typed", &["memory_kind", "error", "backend", "device", "memory", "stream", "launch", "transfer"]),
    ("verify", &["error", "device", "memory", "stream", "launch", "transfer"]),
    ("profile", &["error", "emulator", "device", "memory", "stream", "launch", "transfer", "verify"]),
];

/// Module of the Python package's native part, and those below that it may import. From the bottom up.
const PYTHON: &[(&str, &[&str])] = &[
    ("dlpack", &[]),
    ("elements", &["dlpack"]),
    ("errors", &[]),
    ("devices", &["errors"]),
    ("kinds", &["dlpack"]),
    ("tensor", &["dlpack", "elements", "errors", "devices", "kinds"]),
    ("libraries", &["dlpack", "elements", "errors", "devices", "kinds", "tensor"]),
    ("sharding", &[]),
    ("module", &["errors", "devices", "sharding"]),
    ("signature", &["elements", "errors", "tensor"]),
    ("refusals", &["errors", "devices", "kinds", "tensor", "signature"]),
    ("plans", &["devices", "tensor", "module", "signature"]),
    ("xla", &["devices", "tensor", "signature", "plans"]),
    (
        "kernel",
        &[
            "errors",
            "devices",
            "kinds",
            "tensor",
            "libraries",
            "module",
            "signature",
            "refusals",
            "plans",
            "xla",
        ],
    ),
];

/// Methods that other crates have as well, so that a call of the name need not mean ours: `HostArray::zeros`.
const OF_OTHER_CRATES: &[&str] = &["zeros"];

/// Modules that still import each other in a circle, and why; `name::` stands for a module and all below it. A line goes
/// with its last circle.
const CIRCLES: &[(&str, &str, &str)] = &[
    (
        "compiler/src",
        "check check::elaborator check::functions check::items check::occurrences check::ranges check::types",
        "types name items, and items have types and bodies",
    ),
    ("compiler/src", "check::prove::", "the walk asks for races and coverage, which ask what encloses them"),
    ("compiler/src", "ir::verifier::", "`mod.rs` has the state that its files add to"),
    ("compiler/src", "names::", "blocks are values, and values have blocks"),
    ("compiler/src", "lower lower::host", "`mod.rs` has the state that its files add to"),
    ("compiler/src", "passes::split_reductions::", "dies with the tiles"),
    ("compiler/src", "passes::stage::", "dies with the tiles"),
    ("compiler/src", "passes::threads::", "dies with the tiles"),
    ("compiler/src", "ptx::select::", "`mod.rs` has the errors and options of its files"),
    ("compiler/src", "reference::", "a body launches, and a launch evaluates bodies"),
    ("compiler/src", "syntax::parser::", "the grammar is recursive"),
    ("compiler/src", "syntax::print::", "`mod.rs` has the printer that its file adds to"),
    ("runtime/macros/src", "emit::", "`mod.rs` has what its file adds to"),
];

/// The floors of `passes/`, from the ground up: a module imports from its own floor and from those below.
const PASSES: &[(&str, &[&str])] = &[
    (
        "shared",
        &[
            "accumulate",
            "contiguous",
            "copying",
            "deviations",
            "distinct",
            "equal",
            "diff",
            "fill",
            "fingerprint",
            "insert",
            "iterations",
            "jam",
            "pass",
            "target",
            "pipeline_error",
            "promote",
            "rematerialize",
            "rows_last",
            "numbers",
            "special",
            "split_axes",
            "straight",
            "sweep",
            "weights",
        ],
    ),
    (
        "normal forms",
        &[
            "collapse",
            "delinearize",
            "double_buffer",
            "fold",
            "forward_stores",
            "fuse",
            "fuse_launches",
            "fuse_reductions",
            "hoist_checks",
            "hoist_reductions",
            "join_branches",
            "matricize",
            "merge_axes",
            "parallelize",
            "pin_windows",
            "promote_elements",
            "rebase_reductions",
            "recognize_reductions",
            "scan",
            "separate_windows",
            "sink_loads",
            "sink_loops",
            "soa",
            "speculate",
            "split_residues",
            "strip_mine",
            "trim_reductions",
            "unroll_and_jam",
            "unroll_components",
            "unroll_interleaved",
            "unroll_parts",
        ],
    ),
    (
        "tiles",
        &[
            "coalesce_axes",
            "map",
            "moments",
            "per_thread",
            "privatize",
            "reduce_atomics",
            "reuse",
            "rfactor",
            "split_reductions",
            "stage",
            "tile",
            "unroll_short",
        ],
    ),
    ("lowering", &["lower_tiles", "narrow", "normals", "peel", "threads", "unroll"]),
    (
        "scalar",
        &[
            "cse",
            "dce",
            "fuse_multiply_add",
            "guards",
            "licm",
            "scalarize",
            "split_boundary",
            "strength_reduce",
            "vectorize",
        ],
    ),
    ("runner", &["by_launch", "past", "pipeline", "standard", "text"]),
];

/// Crate, and the only files, or folders of files, that may name it.
const CRATES: &[(&str, &[&str])] = &[
    ("ariadne", &["compiler/src/diagnostic"]),
    ("chumsky", &["compiler/src/syntax"]),
    ("crossbeam_channel", &["src/dap", "src/lsp"]),
    ("cudarc", &["runtime/src/cuda"]),
    ("gen_lsp_types", &["src/lsp"]),
    ("lsp_server", &["src/lsp"]),
    ("maud", &["src/commands/report"]),
    ("proc_macro", &["runtime/macros/src"]),
    ("pyo3", &["python/src"]),
    ("similar", &["compiler/src/passes/diff.rs"]),
    ("syn", &["runtime/macros/src"]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a source folder can be read") {
            let path = entry.expect("a folder entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// What of a crate breaks a table: modules that import a room or floor that theirs may not.
fn broken_walls(source: &str, table: &[(&str, &[&str])]) -> Vec<String> {
    let top = |module: &str| module.split("::").next().unwrap_or_default().to_string();
    let mut broken = Vec::new();
    for (module, imports) in Modules::read(&root().join(source)).imports() {
        let Some((room, allowed)) = table.iter().find(|(room, _)| *room == top(&module)) else { continue };
        for import in imports {
            let other = top(&import);
            let is_room = table.iter().any(|(name, _)| *name == other);
            if is_room && other != *room && !allowed.contains(&other.as_str()) {
                broken.push(format!("{source}: `{module}` imports `{import}`"));
            }
        }
    }
    broken
}

#[test]
fn rooms_and_floors_import_only_what_the_map_allows() {
    let tables = [("compiler/src", ROOMS), ("runtime/src", FLOORS), ("python/src", PYTHON)];
    let broken = tables.map(|(source, table)| broken_walls(source, table)).concat();
    assert!(broken.is_empty(), "walls broken:\n{}", broken.join("\n"));
}

#[test]
fn no_module_imports_itself_by_way_of_others() {
    let (mut broken, mut known) = (Vec::new(), BTreeSet::new());
    for source in ["compiler/src", "runtime/src", "runtime/macros/src", "src", "python/src", "xtask/src"] {
        for circle in cycles(&Modules::read(&root().join(source)).imports()) {
            let is_known = |modules: &str| {
                let stands_for = |name: &str, module: &str| match name.strip_suffix("::") {
                    Some(top) => module == top || module.starts_with(name),
                    None => module == name,
                };
                circle.iter().all(|module| modules.split(' ').any(|name| stands_for(name, module)))
            };
            match CIRCLES.iter().find(|(there, modules, _)| *there == source && is_known(modules)) {
                Some((_, modules, _)) => drop(known.insert((source, *modules))),
                None => broken.push(format!("{source}: {}", circle.join(", "))),
            }
        }
    }
    assert!(broken.is_empty(), "modules that import each other in a circle:\n{}", broken.join("\n"));
    let gone = CIRCLES.iter().filter(|(source, modules, _)| !known.contains(&(*source, *modules)));
    let gone: Vec<_> = gone.map(|(source, modules, _)| format!("{source}: {modules}")).collect();
    assert!(
        gone.is_empty(),
        "no circle is left among these: take them out of `CIRCLES`:\n{}",
        gone.join("\n")
    );
}

/// An upper floor may add methods to a type of a lower one, as `transfer` adds `upload` to `Device`. Who stands below must
/// not call them, although it names nothing of that floor.
#[test]
fn methods_of_upper_floors_are_not_called_below() {
    let top = |module: &str| module.split("::").next().unwrap_or_default().to_string();
    let modules = Modules::read(&root().join("runtime/src"));
    let may_name = |from: &str, floor: &str| {
        let known = FLOORS.iter().find(|(name, _)| *name == top(from));
        known.is_none_or(|(name, below)| *name == floor || below.contains(&floor))
    };
    let (mut seen, mut broken) = (0, Vec::new());
    for added in modules.added_methods() {
        seen += 1;
        let definers = modules.definers(&added.method);
        for caller in modules.callers(&added.method) {
            // A function of that name which it may call: that is meant, as far as can be read.
            let has_another = definers.iter().any(|module| may_name(&caller, &top(module)));
            if !has_another && !OF_OTHER_CRATES.contains(&added.method.as_str()) {
                broken
                    .push(format!("`{caller}` calls `{}::{}` of `{}`", added.on, added.method, added.module));
            }
        }
    }
    assert!(broken.is_empty(), "walls broken:\n{}", broken.join("\n"));
    assert!(seen > 10, "{seen} methods were found");
}

#[test]
fn passes_import_from_their_floor_and_those_below() {
    let floor = |name: &str| PASSES.iter().position(|(_, modules)| modules.contains(&name));
    let pass = |module: &str| Some(module.strip_prefix("passes::")?.split("::").next()?.to_string());
    let (mut broken, mut seen) = (Vec::new(), BTreeSet::new());
    for (module, imports) in Modules::read(&root().join("compiler/src")).imports() {
        let Some(name) = pass(&module) else { continue };
        let Some(own) = floor(&name) else {
            broken.push(format!("`{module}` is on no floor"));
            continue;
        };
        let above =
            |other: &&String| pass(other).is_some_and(|name| floor(&name).is_none_or(|floor| floor > own));
        broken.extend(imports.iter().filter(above).map(|other| format!("`{module}` imports `{other}`")));
        seen.insert(name);
    }
    assert!(broken.is_empty(), "floors of passes:\n{}", broken.join("\n"));
    for name in PASSES.iter().flat_map(|(_, modules)| *modules) {
        assert!(seen.contains(*name), "there is no `{name}` any more");
    }
}

#[test]
fn every_floor_is_in_the_table() {
    for (source, table) in [("runtime/src", FLOORS), ("python/src", PYTHON)] {
        let mut floors = BTreeSet::new();
        for (at, (floor, below)) in table.iter().enumerate() {
            assert!(
                below.iter().all(|below| floors.contains(below)),
                "`{floor}` may import what stands above it"
            );
            assert!(floors.insert(*floor), "`{floor}` stands twice in the table, the second time at {at}");
        }
        for entry in fs::read_dir(root().join(source)).expect("the source") {
            let path = entry.expect("a folder entry can be read").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            assert!(name == "lib" || floors.contains(name.as_str()), "`{name}` is on no floor of the table");
        }
    }
}

#[test]
fn every_room_is_in_the_table() {
    for entry in fs::read_dir(root().join("compiler/src")).expect("the compiler's source") {
        let path = entry.expect("a folder entry can be read").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let joins = ["lib", "compile", "accuracy", "fat"].contains(&name.as_str());
        assert!(joins || ROOMS.iter().any(|(room, _)| *room == name), "`{name}` is in no row of the table");
    }
}

#[test]
fn outside_crates_stay_where_they_are_used() {
    let mut broken = Vec::new();
    for folder in ["compiler/src", "runtime/src", "runtime/macros/src", "src", "python/src"] {
        for file in rust_files(&root().join(folder)) {
            let relative = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            let text = fs::read_to_string(&file).expect("a source file can be read");
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                for (name, homes) in CRATES {
                    let used = code.contains(&format!("{name}::")) || code.contains(&format!("use {name}"));
                    if used && !homes.iter().any(|home| relative.starts_with(home)) {
                        let homes = homes.join(" and ");
                        broken.push(format!("{relative}:{}: `{name}` outside {homes}", number + 1));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "walls broken:\n{}", broken.join("\n"));
}

/// Only the compiler's own crates: it must build where there is no operating system.
#[test]
fn the_compiler_does_no_io() {
    let mut broken = Vec::new();
    for file in rust_files(&root().join("compiler/src")) {
        let relative = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        // Tests read files, and stand in files or folders of that name.
        if relative.contains("tests") || relative.contains("testing") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file can be read");
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for (number, line) in code.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if ["std::fs", "std::net", "std::process", "std::env"].iter().any(|path| code.contains(path)) {
                broken.push(format!("{relative}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(broken.is_empty(), "the compiler does IO:\n{}", broken.join("\n"));
}

/// What stands in one module, so that a target without it changes that module alone: of the compiler, and of everything else.
const ONE_HOME: &[(&str, &[&str], &str)] = &[
    (
        "compiler/src",
        &["std::thread", "rayon", "thread::spawn", "available_parallelism"],
        "compiler/src/parallel.rs",
    ),
    (
        "compiler/src",
        &["std::time::Instant", "Instant::now", "SystemTime", "UNIX_EPOCH"],
        "compiler/src/clock.rs",
    ),
    (
        "compiler/src",
        &["target_family", "target_os", "cfg(unix)", "cfg(windows)", "std::os::"],
        "compiler/src/parallel.rs compiler/src/clock.rs",
    ),
    ("src", &["target_family", "target_os", "cfg(unix)", "cfg(windows)", "std::os::"], "src/unfinished.rs"),
    ("runtime/src", &["target_family", "target_os", "cfg(unix)", "cfg(windows)", "std::os::"], ""),
];

#[test]
fn threads_clock_and_platform_stand_in_one_module_each() {
    let mut broken = Vec::new();
    for (folder, words, homes) in ONE_HOME {
        for file in rust_files(&root().join(folder)) {
            let relative = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            if homes.split(' ').any(|home| home == relative) || relative.contains("tests") {
                continue;
            }
            let text = fs::read_to_string(&file).expect("a source file can be read");
            let code = text.split("#[cfg(test)]").next().unwrap_or("");
            for (number, line) in code.lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                if let Some(word) = words.iter().find(|word| code.contains(**word)) {
                    broken.push(format!("{relative}:{}: `{word}` belongs to {homes}", number + 1));
                }
            }
        }
    }
    assert!(broken.is_empty(), "walls broken:\n{}", broken.join("\n"));
    // Without WebAssembly's half, these would be no homes.
    for home in ["compiler/src/parallel.rs", "compiler/src/clock.rs"] {
        let text = fs::read_to_string(root().join(home)).expect("a source file can be read");
        for half in ["#[cfg(target_family = \"wasm\")]", "#[cfg(not(target_family = \"wasm\"))]"] {
            assert_eq!(text.matches(half).count(), 1, "{home}: {half}");
        }
    }
}

/// Cargo does not look for tests by itself where they are modules of one program: a file that nobody names would never run.
#[test]
fn every_file_of_tests_is_run() {
    let mut forgotten = Vec::new();
    for package in ["", "compiler", "runtime"] {
        let folder = root().join(package);
        let read = |path: &str| fs::read_to_string(folder.join(path)).expect("a file of the package");
        let (modules, manifest) = (read("tests/main.rs"), read("Cargo.toml"));
        for entry in fs::read_dir(folder.join("tests")).expect("a folder of tests") {
            let path = entry.expect("a folder entry can be read").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let is_test = path.extension().is_some_and(|extension| extension == "rs")
                || path.join("mod.rs").exists()
                || path.join("main.rs").exists();
            let is_named = modules.lines().any(|line| line == format!("mod {name};"))
                || manifest.contains(&format!("path = \"tests/{name}.rs\""))
                || manifest.contains(&format!("path = \"tests/{name}/main.rs\""));
            if is_test && !is_named {
                forgotten.push(path.display().to_string());
            }
        }
    }
    assert!(forgotten.is_empty(), "no program of tests has {forgotten:?}: `mod` in `main.rs`, or `[[test]]`");
}
