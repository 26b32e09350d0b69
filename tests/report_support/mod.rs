//! What the tests of the report share.

use crate::tool_support::{command, ended};
use std::path::PathBuf;

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What a command prints that succeeds. No ptxas is found: numbers are the same on every machine.
pub fn krn(arguments: &[&str]) -> String {
    ended(&mut command(arguments), 0).0
}

/// The page of a kernel.
pub fn report(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("report.html");
    let output = path.display().to_string();
    let all: Vec<&str> = [&["report"][..], arguments, &["--device", "emulator", "-o", &output]].concat();
    assert_eq!(krn(&all), "", "the page is all there is");
    std::fs::read_to_string(path).expect("the page")
}

/// Elements that have no end.
const VOID: [&str; 4] = ["meta", "br", "hr", "input"];

/// Where elements do not nest, or an attribute is not quoted; `None` where all is well.
pub fn unbalanced(page: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let Some(mut rest) = page.strip_prefix("<!DOCTYPE html>") else { return Some("no doctype".to_string()) };
    while let Some(at) = rest.find('<') {
        if let Some(entity) = bad_entity(&rest[..at]) {
            return Some(entity);
        }
        rest = &rest[at + 1..];
        let Some(end) = tag_end(rest) else { return Some("a tag without end".to_string()) };
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        if tag.starts_with('/') {
            let last = open.pop();
            if last != Some(name) {
                return Some(format!("</{name}> closes {last:?}"));
            }
            continue;
        }
        if VOID.contains(&name) {
            continue;
        }
        open.push(name);
        if ["style", "script"].contains(&name) {
            let Some(end) = rest.find(&format!("</{name}>")) else {
                return Some(format!("<{name}> stays open"));
            };
            rest = &rest[end..];
        }
    }
    (!open.is_empty()).then(|| format!("{open:?} stay open"))
}

/// Where a tag ends: the first `>` that is in no quotes.
fn tag_end(text: &str) -> Option<usize> {
    let mut quoted = false;
    text.char_indices().find_map(|(at, c)| {
        quoted ^= c == '"';
        (c == '>' && !quoted).then_some(at)
    })
}

fn bad_entity(text: &str) -> Option<String> {
    let known = ["&amp;", "&lt;", "&gt;", "&quot;"];
    let mut all = text.match_indices('&').map(|(at, _)| &text[at..]);
    let bad = all.find(|rest| !known.iter().any(|known| rest.starts_with(known)))?;
    Some(bad.chars().take(20).collect())
}
