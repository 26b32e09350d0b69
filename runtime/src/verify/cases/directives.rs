//! `// krn-test:` comments: what a kernel's generated tests should look like. The grammar is in
//! `docs/test-directives.md`.

use super::super::Fill;
use super::super::fill::encode;
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, KernelManifest};
use krn_compiler::source::SourceFile;
use std::collections::BTreeMap;

/// What a run should end in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Expected {
    /// Device and reference agree.
    #[default]
    Agreement,
    /// Some runs end in a bounds failure, on the device and on the reference alike.
    BoundsError,
}

/// An input that depends on the case's dimensions.
#[derive(Clone, PartialEq, Debug)]
pub enum FillSpec {
    Random,
    Zeros,
    Iota,
    /// Uniform in low..high.
    Range(Bound, Bound),
    /// Non-decreasing from low to high.
    Sorted(Bound, Bound),
}

/// A number, or a dimension plus or minus a number.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    dim: Option<String>,
    number: f64,
}

/// The directives of one kernel.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Directives {
    /// Sizes to use for a dimension, instead of the generated ones.
    pub dims: BTreeMap<String, Vec<i64>>,
    pub fill: Vec<(String, FillSpec)>,
    /// Values for a scalar parameter (or a field `name.field` of a struct parameter), used in turn.
    pub set: Vec<(String, Vec<f64>)>,
    pub expected: Expected,
}

const MARK: &str = "// krn-test:";

impl Directives {
    /// Those in the comment lines right above the kernel that starts at this (one-based) line.
    ///
    /// # Errors
    /// A line that does not follow the grammar, with its number.
    pub fn for_kernel(source: &SourceFile, line: u32) -> Result<Self, String> {
        let mut first = line;
        while first > 1 && source.line_text(first - 1).trim_start().starts_with("//") {
            first -= 1;
        }
        let mut directives = Directives::default();
        for number in first..line {
            let text = source.line_text(number).trim();
            if let Some(text) = text.strip_prefix(MARK) {
                for directive in text.split(';') {
                    directives
                        .read(directive.trim())
                        .map_err(|message| format!("line {number}: `{}`: {message}", directive.trim()))?;
                }
            }
        }
        Ok(directives)
    }

    fn read(&mut self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Ok(());
        }
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        match (word, rest) {
            ("expect", "bounds-error") => self.expected = Expected::BoundsError,
            ("dims", rest) => {
                for part in rest.split_whitespace() {
                    let (name, sizes) = part.split_once('=').ok_or("write name=size,size,…")?;
                    let sizes: Option<Vec<i64>> = sizes.split(',').map(|size| size.parse().ok()).collect();
                    let sizes = sizes.filter(|sizes| sizes.iter().all(|size| *size >= 0));
                    self.dims.insert(name.to_string(), sizes.ok_or("sizes are whole numbers")?);
                }
            }
            ("in", rest) => {
                let (name, what) = rest.split_once('=').ok_or("write in name=what")?;
                self.fill.push((name.trim().to_string(), spec(what.trim())?));
            }
            ("set", rest) => {
                for part in rest.split_whitespace() {
                    let (name, values) = part.split_once('=').ok_or("write name=value,value,…")?;
                    let values: Option<Vec<f64>> = values.split(',').map(|value| value.parse().ok()).collect();
                    self.set.push((name.to_string(), values.ok_or("values are numbers")?));
                }
            }
            _ => return Err("write `dims`, `in`, `set` or `expect bounds-error`".to_string()),
        }
        Ok(())
    }

    /// The scalar parameters that are set, for the case with this seed.
    pub(super) fn params(
        &self,
        manifest: &KernelManifest,
        seed: u64,
    ) -> Result<BTreeMap<String, HostArray>, String> {
        let mut params: BTreeMap<String, HostArray> = BTreeMap::new();
        for (target, values) in &self.set {
            let (name, path) = target.split_once('.').unwrap_or((target, ""));
            let element = manifest.arguments.iter().find_map(|argument| match &argument.kind {
                ArgumentKind::Value { element } if argument.name == name => Some(element),
                _ => None,
            });
            let element = element.ok_or_else(|| format!("there is no scalar parameter `{name}`"))?;
            let leaf = element.leaves.iter().find(|leaf| leaf.path == path && leaf.extents.is_empty());
            let leaf = leaf.ok_or_else(|| format!("`{name}` has no field `{path}`"))?;
            let slot = match params.get_mut(name) {
                Some(slot) => slot,
                None => {
                    let blank = HostArray::zeros(element.clone(), Vec::new()).ok_or("too large")?;
                    params.entry(name.to_string()).or_insert(blank)
                }
            };
            let value = values[(seed % values.len() as u64) as usize];
            encode(leaf.scalar, value, &mut slot.bytes[leaf.offset as usize..]);
        }
        Ok(params)
    }

    /// The inputs' contents for a case's dimensions.
    pub(super) fn fills(&self, dims: &BTreeMap<String, i64>) -> Vec<(String, Fill)> {
        let value = |bound: &Bound| {
            bound.number + bound.dim.as_ref().and_then(|dim| dims.get(dim)).map_or(0.0, |size| *size as f64)
        };
        let made = |spec: &FillSpec| match spec {
            FillSpec::Random => Fill::Random,
            FillSpec::Zeros => Fill::Zeros,
            FillSpec::Iota => Fill::Iota,
            FillSpec::Range(low, high) => Fill::Range { low: value(low), high: value(high) },
            FillSpec::Sorted(low, high) => {
                Fill::Sorted { low: value(low) as i64, high: value(high) as i64 }
            }
        };
        self.fill.iter().map(|(name, spec)| (name.clone(), made(spec))).collect()
    }
}

fn spec(text: &str) -> Result<FillSpec, String> {
    match text {
        "random" => return Ok(FillSpec::Random),
        "zeros" => return Ok(FillSpec::Zeros),
        "iota" => return Ok(FillSpec::Iota),
        _ => {}
    }
    let bounds = |inner: &str| -> Option<(Bound, Bound)> {
        let (low, high) = inner.strip_suffix(')')?.split_once(',')?;
        Some((bound(low.trim())?, bound(high.trim())?))
    };
    let known = "write random, zeros, iota, range(low,high) or sorted(low,high)";
    if let Some(inner) = text.strip_prefix("range(") {
        return bounds(inner).map(|(low, high)| FillSpec::Range(low, high)).ok_or(known.to_string());
    }
    if let Some(inner) = text.strip_prefix("sorted(") {
        return bounds(inner).map(|(low, high)| FillSpec::Sorted(low, high)).ok_or(known.to_string());
    }
    Err(known.to_string())
}

/// `3`, `-1.5`, `n`, `n+1`, `n-1`.
fn bound(text: &str) -> Option<Bound> {
    if let Ok(number) = text.parse() {
        return Some(Bound { dim: None, number });
    }
    let at = text.find(['+', '-']);
    let (dim, number) = match at {
        Some(at) => (&text[..at], text[at..].replace(' ', "").parse().ok()?),
        None => (text, 0.0),
    };
    let dim = dim.trim();
    let is_name = dim.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !dim.is_empty();
    is_name.then(|| Bound { dim: Some(dim.to_string()), number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_read_from_the_comment_above_the_kernel() {
        let text = "// krn-test: dims q=1\n\n// Gathers.\n// krn-test: dims n=0,31; in idx=range(0,n-1)\n// krn-test: set k=2,3\nkernel g() {}\n";
        let source = SourceFile::new("t.krn", text);
        let directives = Directives::for_kernel(&source, 6).expect("well formed");
        assert_eq!(directives.dims, BTreeMap::from([("n".to_string(), vec![0, 31])]));
        assert_eq!(directives.set, [("k".to_string(), vec![2.0, 3.0])]);
        let dims = BTreeMap::from([("n".to_string(), 31)]);
        assert_eq!(directives.fills(&dims), [("idx".to_string(), Fill::Range { low: 0.0, high: 30.0 })]);
    }

    #[test]
    fn a_wrong_directive_names_its_line() {
        let source = SourceFile::new("t.krn", "// krn-test: dim n=3\nkernel g() {}\n");
        let message = Directives::for_kernel(&source, 2).expect_err("refused");
        assert!(message.starts_with("line 1: `dim n=3`"), "{message}");
    }
}
