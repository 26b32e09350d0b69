//! `// krn-test:` comments: what a kernel's generated tests should look like. The grammar is in
//! `docs/test-directives.md`.

use super::super::fill::{Fill, FillError, FillPlan, check};
use super::super::sizes::Sizes;
use super::expression;
use crate::launch::binding::DIMENSION_LIMIT;
use krn_compiler::manifest::{ArgumentKind, ArgumentManifest, Direction, KernelManifest, SymbolKind};
use krn_compiler::source::{SourceFile, Span};
use std::collections::BTreeMap;

/// What every run should end in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Expected {
    /// Device and reference agree.
    #[default]
    Agreement,
    /// A bounds failure, on the device and on the reference alike.
    BoundsError,
    /// A fact about the values of an array that does not hold, on the device and on the reference alike.
    FactError,
    /// An `assert` that does not hold, on the device and on the reference alike.
    AssertionError,
    /// Refused before anything is launched.
    LaunchError,
}

/// Contents whose ends depend on the run's sizes.
#[derive(Clone, PartialEq, Debug)]
enum Contents {
    Random,
    RandomIn(String, String),
    Zeros,
    Ones,
    Iota,
    Ramp(String, String),
    Permutation,
    Special,
}

/// The directives of one kernel.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Directives {
    /// Sizes of a dimension, walked together with the other lists.
    pub dims: Vec<(String, Vec<String>)>,
    /// Values of a scalar parameter, or of one field (`config.scale`).
    pub set: Vec<(String, Vec<String>)>,
    /// Array, field (empty for all), contents.
    contents: Vec<(String, String, Contents)>,
    pub expected: Expected,
    /// Sizes of dimensions and values of integer parameters at which `krn test --costs` counts: one list a line.
    pub costs: Vec<Vec<(String, i64)>>,
}

const MARK: &str = "// krn-test:";

/// What a directive may begin with.
const WORDS: [&str; 5] = ["dims", "set", "in", "cost", "expect"];

impl Directives {
    /// Those in the comments above the kernel that starts at this (one-based) line.
    ///
    /// # Errors
    /// A line that does not follow the grammar, with its number.
    pub fn for_kernel(source: &SourceFile, line: u32) -> Result<Self, String> {
        let mut directives = Directives::default();
        for (number, text, _) in written_above(source, line) {
            directives.read(text).map_err(|message| format!("line {number}: `{text}`: {message}"))?;
        }
        Ok(directives)
    }

    /// The directive of one line.
    ///
    /// # Errors
    /// What does not follow the grammar.
    pub(super) fn of_line(text: &str) -> Result<Self, String> {
        let mut directives = Directives::default();
        directives.read(text)?;
        Ok(directives)
    }

    /// That the numbers in the contents of arrays can be worked out, where names have these values.
    ///
    /// # Errors
    /// The first one that cannot.
    pub(super) fn check_contents(&self, names: &dyn Fn(&str) -> Option<i128>) -> Result<(), String> {
        self.contents
            .iter()
            .try_for_each(|(array, ..)| self.plan_with(array, Fill::Random, names).map(|_| ()))
    }

    /// That the kernel has what is named.
    ///
    /// # Errors
    /// The first name that it does not have.
    pub fn check_names(&self, manifest: &KernelManifest) -> Result<(), String> {
        let is_dim = |name: &str| {
            let mut dims = manifest.symbols.iter().filter(|s| matches!(s.kind, SymbolKind::Dim { .. }));
            dims.any(|symbol| symbol.name == name)
        };
        if let Some((name, _)) = self.dims.iter().find(|(name, _)| !is_dim(name)) {
            let is_value = |argument: &ArgumentManifest| {
                argument.name == *name && matches!(argument.kind, ArgumentKind::Value { .. })
            };
            let hint = if manifest.arguments.iter().any(is_value) {
                format!("; it is a parameter: `set {name}=…`")
            } else {
                String::new()
            };
            return Err(format!("there is no dimension `{name}`{hint}"));
        }
        let is_input = |name: &str| {
            manifest.arguments.iter().any(|argument| match argument.kind {
                ArgumentKind::Array { direction, .. } => argument.name == name && direction != Direction::Out,
                ArgumentKind::Value { .. } => false,
            })
        };
        if let Some((array, ..)) = self.contents.iter().find(|(array, ..)| !is_input(array)) {
            return Err(format!("there is no input `{array}`"));
        }
        let has_field = |array: &str, field: &str| {
            let mut arguments = manifest.arguments.iter().filter(|argument| argument.name == array);
            let is_or_holds = |path: &str| {
                path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            arguments.any(|argument| match &argument.kind {
                ArgumentKind::Array { buffer, .. } => {
                    buffer.element.leaves.iter().any(|leaf| is_or_holds(&leaf.path))
                }
                ArgumentKind::Value { .. } => false,
            })
        };
        let mut fields = self.contents.iter().filter(|(_, field, _)| !field.is_empty());
        if let Some((array, field, _)) = fields.find(|(array, field, _)| !has_field(array, field)) {
            return Err(format!("`{array}` has no field `{field}`"));
        }
        let is_number = |name: &str| {
            let known = |kind: &SymbolKind| !matches!(kind, SymbolKind::Counter);
            manifest.symbols.iter().any(|symbol| symbol.name == name && known(&symbol.kind))
        };
        match self.costs.iter().flatten().find(|(name, _)| !is_number(name)) {
            Some((name, _)) => Err(format!("there is no dimension or integer parameter `{name}`")),
            None => Ok(()),
        }
    }

    /// The sizes that the lists give in a run, by dimension.
    ///
    /// # Errors
    /// A number that cannot be worked out.
    pub fn dims_of(&self, run: usize) -> Result<BTreeMap<String, i64>, String> {
        let mut dims = BTreeMap::new();
        for (name, list) in &self.dims {
            let value = expression::integer(&list[run % list.len()], &|_| None)?;
            let size = i64::try_from(value).ok().filter(|size| (0..=DIMENSION_LIMIT as i64).contains(size));
            let size = size.ok_or_else(|| format!("`dims {name}={value}`: a size is from 0 to 2^36"))?;
            dims.insert(name.clone(), size);
        }
        Ok(dims)
    }

    /// Takes other contents, `random(0, n)` and the like, for an array (`x`) or for a field of it (`x.mass`).
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn replace_contents(&mut self, target: &str, text: &str) -> Result<(), String> {
        let new = contents(text)?;
        let (array, field) = target.split_once('.').unwrap_or((target, ""));
        self.contents.retain(|(known, old, _)| known != array || !(field.is_empty() || field == old));
        self.contents.push((array.to_string(), field.to_string(), new));
        Ok(())
    }

    /// How many runs the lists ask for: the longest one's length, at least 1.
    pub fn runs(&self) -> usize {
        self.dims.iter().chain(&self.set).map(|(_, list)| list.len()).max().unwrap_or(1)
    }

    fn read(&mut self, text: &str) -> Result<(), String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let begins = |entry: &str| {
            let (word, rest) = entry.split_once(' ')?;
            WORDS.iter().find(|known| **known == word && !rest.trim_start().starts_with('=')).copied()
        };
        if let Some(other) = entries(rest).find_map(begins) {
            return Err(format!("`{other} …` is a directive of its own, and needs a line of its own"));
        }
        match (word, rest.trim()) {
            ("expect", "bounds-error") => self.expected = Expected::BoundsError,
            ("expect", "fact-error") => self.expected = Expected::FactError,
            ("expect", "assertion-error") => self.expected = Expected::AssertionError,
            ("expect", "launch-error") => self.expected = Expected::LaunchError,
            ("dims", rest) => lists(rest, &mut self.dims)?,
            ("set", rest) => lists(rest, &mut self.set)?,
            ("cost", rest) => self.costs.push(sizes(rest)?),
            ("in", rest) => {
                for entry in entries(rest) {
                    let (name, what) = entry.split_once('=').ok_or("write name=contents")?;
                    let (array, field) = name.trim().split_once('.').unwrap_or((name.trim(), ""));
                    let contents = contents(what.trim())?;
                    self.contents.push((array.to_string(), field.to_string(), contents));
                }
            }
            _ => {
                return Err(
                    "write `dims …`, `set …`, `in …`, `cost …`, `expect bounds-error`, `expect fact-error`, \
                     `expect assertion-error` or `expect launch-error`"
                        .to_string(),
                );
            }
        }
        Ok(())
    }

    /// What an input array holds in a run of these sizes.
    ///
    /// # Errors
    /// A number that cannot be worked out.
    pub fn plan(&self, array: &str, sizes: &Sizes) -> Result<FillPlan, String> {
        let plan = self.plan_with(array, sizes.default_fill(array), &|name| sizes.number(name))?;
        // No elements need no number.
        let empty = sizes.shapes.get(array).is_some_and(|shape| shape.contains(&0));
        if empty { Ok(plan) } else { self.held_to_ranges(array, plan) }
    }

    /// That there are numbers in each range of the plan; an error says what the directive asks for.
    fn held_to_ranges(&self, array: &str, plan: FillPlan) -> Result<FillPlan, String> {
        let own = self.contents.iter().filter(|(known, ..)| known == array);
        for (_, field, contents) in own {
            let fill = plan.of(field);
            let (what, low, high) = match contents {
                Contents::RandomIn(low, high) => ("random", low, high),
                Contents::Ramp(low, high) => ("ramp", low, high),
                _ => continue,
            };
            if let Err(FillError::NoRange { low: from, high: to }) = check(fill) {
                return Err(format!(
                    "`{what}({low}, {high})` would go from {from} to {to}: it rises, by at most 2^53"
                ));
            }
        }
        Ok(plan)
    }

    /// The same, in a run whose names have these values; `default` is for what no directive names.
    fn plan_with(
        &self,
        array: &str,
        default: Fill,
        names: &dyn Fn(&str) -> Option<i128>,
    ) -> Result<FillPlan, String> {
        let mut plan = FillPlan::from(default);
        for (_, field, contents) in self.contents.iter().filter(|(known, ..)| known == array) {
            let fill = match contents {
                Contents::Random => Fill::Random,
                Contents::RandomIn(low, high) => {
                    let (low, high) = (expression::number(low, names)?, expression::number(high, names)?);
                    Fill::Range { low, high }
                }
                Contents::Zeros => Fill::Zeros,
                Contents::Ones => Fill::Ones,
                Contents::Iota => Fill::Iota,
                Contents::Ramp(low, high) => {
                    let (low, high) = (expression::number(low, names)?, expression::number(high, names)?);
                    Fill::Ramp { low, high }
                }
                Contents::Permutation => Fill::Permutation,
                Contents::Special => Fill::Special,
            };
            if field.is_empty() {
                plan.default = fill;
            } else {
                plan.fields.push((field.clone(), fill));
            }
        }
        Ok(plan)
    }
}

/// The directives in the comments above the kernel that starts at a line: their lines, what stands behind the mark, and
/// where.
pub(super) fn written_above(source: &SourceFile, line: u32) -> Vec<(u32, &str, Span)> {
    let mut first = line;
    let belongs = |text: &str| text.is_empty() || text.starts_with("//");
    while first > 1 && belongs(source.line_text(first - 1).trim()) {
        first -= 1;
    }
    let written = |number: u32| {
        let (whole, start) = (source.line_text(number), source.line_span(number).start);
        let text = whole.trim().strip_prefix(MARK)?.trim();
        let end = start + whole.trim_end().len() as u32;
        Some((number, text, Span::new(end - text.len() as u32, end)))
    };
    (first..line).filter_map(written).collect()
}

/// Entries are separated by `;`.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').map(str::trim).filter(|entry| !entry.is_empty())
}

fn lists(text: &str, into: &mut Vec<(String, Vec<String>)>) -> Result<(), String> {
    for entry in entries(text) {
        let (name, values) = entry.split_once('=').ok_or("write name=value,value,…")?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_string()).collect();
        if values.iter().any(String::is_empty) {
            return Err("a value is missing".to_string());
        }
        into.push((name.trim().to_string(), values));
    }
    Ok(())
}

/// `n=1000; m=5`, one number each.
fn sizes(text: &str) -> Result<Vec<(String, i64)>, String> {
    let size = |entry: &str| {
        let (name, value) = entry.split_once('=').ok_or("write name=number")?;
        let value = value.trim().parse().map_err(|_| format!("`{}` is no number", value.trim()))?;
        Ok((name.trim().to_string(), value))
    };
    entries(text).map(size).collect()
}

fn contents(text: &str) -> Result<Contents, String> {
    let ends = |inner: &str| -> Option<(String, String)> {
        let (low, high) = inner.strip_suffix(')')?.split_once(',')?;
        Some((low.trim().to_string(), high.trim().to_string()))
    };
    Ok(match text {
        "random" => Contents::Random,
        "zeros" => Contents::Zeros,
        "ones" => Contents::Ones,
        "iota" => Contents::Iota,
        "permutation" => Contents::Permutation,
        "special" => Contents::Special,
        _ => {
            if let Some((low, high)) = text.strip_prefix("random(").and_then(ends) {
                Contents::RandomIn(low, high)
            } else if let Some((low, high)) = text.strip_prefix("ramp(").and_then(ends) {
                Contents::Ramp(low, high)
            } else {
                return Err(format!(
                    "`{text}` is none of random, random(lo, hi), zeros, ones, iota, ramp(lo, hi), permutation and special"
                ));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_read_from_the_comments_above_the_kernel() {
        let text = "// krn-test: dims q=1\nkernel a() {}\n\n// Gathers.\n// krn-test: dims n=0,31; m=5\n\
                    // krn-test: in idx=random(0, n - 1); p.x=iota\n// krn-test: set k=2,n,4\nkernel g() {}\n";
        let source = SourceFile::new("t.krn", text);
        let directives = Directives::for_kernel(&source, 8).expect("well formed");
        assert_eq!(directives.runs(), 3);
        assert_eq!(directives.dims[1], ("m".to_string(), vec!["5".to_string()]));
        let names = |name: &str| (name == "n").then_some(31);
        assert_eq!(
            directives.plan_with("idx", Fill::Random, &names),
            Ok(Fill::Range { low: 0.0, high: 30.0 }.into())
        );
        let plan = FillPlan { default: Fill::Random, fields: vec![("x".to_string(), Fill::Iota)] };
        assert_eq!(directives.plan_with("p", Fill::Random, &names), Ok(plan));
        assert_eq!(directives.dims_of(1).map(|dims| dims["n"]), Ok(31));
        let mut directives = directives;
        assert_eq!(directives.replace_contents("p", "ramp(0.5, n)"), Ok(()));
        assert_eq!(
            directives.plan_with("p", Fill::Random, &names),
            Ok(Fill::Ramp { low: 0.5, high: 31.0 }.into())
        );
        assert_eq!(directives.replace_contents("p", "ramp(31, 3)"), Ok(()));
        let mut sizes = Sizes::default();
        let falling = directives.plan("p", &sizes).expect_err("falls");
        assert!(falling.starts_with("`ramp(31, 3)` would go from 31 to 3"), "{falling}");
        sizes.shapes.insert(String::from("p"), vec![5, 0]);
        assert!(directives.plan("p", &sizes).is_ok(), "nothing needs no number");
    }

    #[test]
    fn a_wrong_directive_names_its_line() {
        let source = SourceFile::new("t.krn", "// krn-test: dim n=3\nkernel g() {}\n");
        let message = Directives::for_kernel(&source, 2).expect_err("refused");
        assert!(message.starts_with("line 1: `dim n=3`"), "{message}");
        let source = SourceFile::new("t.krn", "// krn-test: in x=iota; set n=3\nkernel g() {}\n");
        let message = Directives::for_kernel(&source, 2).expect_err("refused");
        assert!(
            message.ends_with("`set …` is a directive of its own, and needs a line of its own"),
            "{message}"
        );
    }
}
