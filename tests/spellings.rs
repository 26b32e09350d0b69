//! The spelling table: one function written in several ways should cost the same, since people write all of them.
//!
//! The kernels of `tests/spellings/` are called `function__spelling`. Each spelling's predicted time is divided by the least
//! that its function ever had, which `tests/spellings.table` keeps; it may be 1.1 at most. What is more today is known, and stands in the
//! table with its ratio: none may become worse, no new one may come, and one that is cured has to be taken off.
//! `KRN_ACCEPT_SPELLINGS=1 cargo test --test all spellings` writes the table anew.
//!
//! That the spellings are of one function is tested as well: on the same data they give the same results.

use krn_compiler::CompileOptions;
use krn_compiler::compile;
use krn_compiler::data::{HostArray, Scalar};
use krn_compiler::manifest::{SymbolKind, Value};
use krn_compiler::source::SourceFile;
use krn_runtime::profile::{Costs, costs};
use krn_runtime::verify::cases::{Directives, at_sizes};
use krn_runtime::verify::{CheckOptions, check};
use krn_runtime::{Device, Outputs, Selection};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const TABLE: &str = "tests/spellings.table";
const HEAD: &str = "\
# What the spellings of a function cost: `tests/spellings.rs` says how to write this anew.
# function | the least time that it ever had | spellings that take more than 1.1 times as long, with their ratios\n\n";
/// How many times as long as the best one a spelling may take.
const RED: f64 = 1.1;
/// A known ratio may rise so much, and a least time fall, before the table has to be written anew.
const SAME: f64 = 1.02;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files() -> Vec<SourceFile> {
    let folder = std::fs::read_dir(root().join("tests/spellings")).expect("the folder of spellings");
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let source = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        SourceFile::new(name, std::fs::read_to_string(path).expect("a file of kernels"))
    };
    paths.iter().map(source).collect()
}

/// Function and spelling.
fn parts(kernel: &str) -> (&str, &str) {
    kernel.split_once("__").unwrap_or_else(|| panic!("`{kernel}` is not called function__spelling"))
}

/// A line of the table.
#[derive(Clone, PartialEq, Debug, Default)]
struct Function {
    /// In microseconds.
    least: f64,
    /// Ratios of the spellings that cost too much.
    known: BTreeMap<String, f64>,
}

type Table = BTreeMap<String, Function>;

fn print(table: &Table) -> String {
    let line = |(name, function): (&String, &Function)| {
        let known: Vec<String> =
            function.known.iter().map(|(spelling, ratio)| format!("{spelling} {ratio:.2}")).collect();
        format!("{name} | {:.3} us | {}", function.least, known.join(", ")).trim_end().to_string() + "\n"
    };
    HEAD.to_string() + &table.iter().map(line).collect::<String>()
}

fn parse(text: &str) -> Option<Table> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut fields = line.split(" |").map(str::trim);
            let name = fields.next()?.to_string();
            let least = fields.next()?.strip_suffix(" us")?.parse().ok()?;
            let known = fields.next()?.split(", ").filter(|known| !known.is_empty());
            let known = known.map(|known| {
                let (spelling, ratio) = known.split_once(' ')?;
                Some((spelling.to_string(), ratio.parse().ok()?))
            });
            Some((name, Function { least, known: known.collect::<Option<_>>()? }))
        })
        .collect()
}

/// The table as it would be written now, and what is wrong with it as it is.
fn judge(before: &Table, found: &Costs) -> (Table, Vec<String>) {
    let (mut after, mut wrong) = (Table::new(), Vec::new());
    let mut times: BTreeMap<&str, Vec<(&str, f64)>> = BTreeMap::new();
    for cost in &found.0 {
        let (function, spelling) = parts(&cost.kernel);
        times.entry(function).or_default().push((spelling, cost.nanoseconds as f64 / 1e3));
    }
    for (name, spellings) in times {
        let now = spellings.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
        let old =
            before.get(name).cloned().unwrap_or(Function { least: f64::INFINITY, ..Function::default() });
        if now * SAME < old.least {
            wrong.push(format!("{name}: the least time is {now:.3} us; the table says {:.3}", old.least));
        }
        let mut function = Function { least: now.min(old.least), known: BTreeMap::new() };
        for (spelling, time) in spellings {
            let ratio = time / function.least;
            match old.known.get(spelling) {
                None if ratio > RED => {
                    wrong.push(format!(
                        "{name}__{spelling} takes {ratio:.2} times as long as the best one did"
                    ));
                }
                Some(known) if ratio > known * SAME + 0.005 => {
                    wrong.push(format!(
                        "{name}__{spelling} became worse: {ratio:.2} times, and it was {known:.2}"
                    ));
                }
                Some(_) if ratio <= RED => {
                    wrong.push(format!("{name}__{spelling} is cured: take it off the list of known ones"));
                }
                _ => {}
            }
            if ratio > RED {
                function.known.insert(spelling.to_string(), ratio);
            }
        }
        for gone in old
            .known
            .keys()
            .filter(|known| !found.0.iter().any(|cost| cost.kernel == format!("{name}__{known}")))
        {
            wrong.push(format!("{name}__{gone} is known, and is no kernel"));
        }
        after.insert(name.to_string(), function);
    }
    wrong.extend(
        before.keys().filter(|name| !after.contains_key(*name)).map(|name| format!("{name} is no function")),
    );
    (after, wrong)
}

#[test]
fn spellings_of_one_function_cost_the_same() {
    let mut found = Costs::default();
    for source in files() {
        let of_file = costs(&source, &CompileOptions::for_target("sm_90"));
        found.0.extend(of_file.unwrap_or_else(|error| panic!("{}: {error}", source.name())).0);
    }
    let text = std::fs::read_to_string(root().join(TABLE)).unwrap_or_default();
    let before = parse(&text).unwrap_or_else(|| panic!("{TABLE} cannot be read"));
    let (after, wrong) = judge(&before, &found);
    assert!(after.len() >= 60, "{} functions", after.len());
    for name in after.keys() {
        let count = found.0.iter().filter(|cost| parts(&cost.kernel).0 == name).count();
        assert!((3..=6).contains(&count), "{count} spellings of {name}");
    }
    if std::env::var_os("KRN_ACCEPT_SPELLINGS").is_some() {
        std::fs::write(root().join(TABLE), print(&after)).expect("the table can be written");
        return;
    }
    assert!(wrong.is_empty(), "{TABLE}:\n{}", wrong.join("\n"));
}

/// The results of a kernel for small sizes, each scalar as a float; checked against the reference evaluator.
fn results(source: &SourceFile) -> BTreeMap<String, Outputs> {
    let compilation = compile(source, &CompileOptions::for_target("sm_90")).expect("it compiles");
    let device = Device::open_as(Selection::Emulator).expect("always there");
    let module = device.load(&compilation.compiled).expect("it loads");
    let mut results = BTreeMap::new();
    for kernel in &compilation.program.kernels {
        let line = source.line_column(kernel.span.start).0;
        let directives = Directives::for_kernel(source, line).expect("directives");
        let manifest = module.kernel(&kernel.name).expect("it was compiled").manifest();
        let is_dim = |kind: &SymbolKind| matches!(kind, SymbolKind::Dim { .. });
        let dims: Vec<&str> =
            manifest.symbols.iter().filter(|s| is_dim(&s.kind)).map(|s| s.name.as_str()).collect();
        // As large as the directives say; else a little larger from try to try, until the facts hold.
        let case = (0..8).find_map(|more| {
            let size = |(at, name): (usize, &&str)| {
                let said = directives.dims.iter().find(|(known, _)| known == name);
                let first = if dims.len() == 1 { 35 } else { 13 + 2 * at as i128 };
                let size = said.map_or(first + more, |(_, sizes)| sizes[0].parse().expect("a number"));
                ((*name).to_string(), Value::Int(size))
            };
            at_sizes(manifest, &directives, &dims.iter().enumerate().map(size).collect::<Vec<_>>()).ok()
        });
        let case = case.unwrap_or_else(|| panic!("{}: no sizes", kernel.name));
        let inputs = case.inputs(manifest).expect("small");
        let (outputs, report) =
            check(&module, &compilation.program, kernel, &inputs, &CheckOptions::default())
                .unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        assert!(report.agrees(), "{}: {report:?}", kernel.name);
        results.insert(kernel.name.clone(), outputs.unwrap_or_else(|| panic!("{} was refused", kernel.name)));
    }
    results
}

/// Scalars of an array, one after the other.
fn numbers(array: &HostArray) -> Vec<f64> {
    let leaves = &array.element.leaves;
    let elements = array.bytes.chunks_exact(array.element.size as usize);
    let of_leaf = |element: &[u8], at: usize| {
        let leaf = &leaves[at];
        let bytes = &element[leaf.offset as usize..];
        match leaf.scalar {
            Scalar::F32 => f64::from(f32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))),
            Scalar::I64 => i64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as f64,
            Scalar::I32 => f64::from(i32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))),
            Scalar::U32 => f64::from(u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))),
            Scalar::I8 => f64::from(bytes[0] as i8),
            Scalar::U8 => f64::from(bytes[0]),
            scalar => panic!("results of type {scalar}"),
        }
    };
    elements
        .flat_map(|element| (0..leaves.len()).map(|at| of_leaf(element, at)).collect::<Vec<_>>())
        .collect()
}

#[test]
fn spellings_are_of_one_function() {
    for source in files() {
        let results = results(&source);
        for (name, outputs) in &results {
            let function = parts(name).0;
            let (first_name, first) =
                results.iter().find(|(known, _)| parts(known).0 == function).expect("itself");
            assert_eq!(outputs.arrays.len(), first.arrays.len(), "{name} and {first_name}");
            for ((what, own), (_, other)) in outputs.arrays.iter().zip(&first.arrays) {
                let (own, other) = (numbers(own), numbers(other));
                assert_eq!(own.len(), other.len(), "`{what}` of {name} and {first_name}");
                assert!(own.iter().any(|number| *number != 0.0), "`{what}` of {name} is zero everywhere");
                for (own, other) in own.iter().zip(&other) {
                    let near = (own - other).abs() <= 1e-4 * (1.0 + own.abs());
                    assert!(near, "`{what}` of {name} and {first_name}: {own} and {other}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use krn_runtime::profile::{Cost, CountedBy, RowCounts};

    fn found(times: &[(&str, u64)]) -> Costs {
        let cost = |(kernel, nanoseconds): &(&str, u64)| Cost {
            kernel: (*kernel).to_string(),
            sizes: String::new(),
            nanoseconds: *nanoseconds,
            form: String::new(),
            counts: RowCounts::default(),
            counted_by: CountedBy::Model,
            because: String::new(),
        };
        Costs(times.iter().map(cost).collect())
    }

    #[test]
    fn a_table_is_held_against_what_is_found() {
        let table = parse("# head\n\nf | 1.000 us | slow 3.00\ng | 2.000 us |\n").expect("a table");
        assert_eq!(parse(&print(&table)).expect("its own text"), table);
        let wrong = |times: &[(&str, u64)]| judge(&table, &found(times)).1.join("; ");
        let good = [("f__a", 1000), ("f__slow", 3000), ("g__a", 2000)];
        assert_eq!(wrong(&good), "");
        assert_eq!(judge(&table, &found(&good)).0, table);
        let with = |kernel: &'static str, time: u64| {
            let mut times = good.to_vec();
            times.retain(|(known, _)| *known != kernel);
            times.push((kernel, time));
            wrong(&times)
        };
        assert_eq!(with("g__b", 2300), "g__b takes 1.15 times as long as the best one did");
        assert_eq!(with("f__slow", 3100), "f__slow became worse: 3.10 times, and it was 3.00");
        assert_eq!(with("f__slow", 1050), "f__slow is cured: take it off the list of known ones");
        assert_eq!(with("g__a", 1900), "g: the least time is 1.900 us; the table says 2.000");
        // All spellings slower than the best one ever was.
        assert_eq!(with("g__a", 2300), "g__a takes 1.15 times as long as the best one did");
        assert_eq!(wrong(&good[..1]), "f__slow is known, and is no kernel; g is no function");
        assert!(parse("f | 1.0\n").is_none());
    }
}
