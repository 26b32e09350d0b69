//! "Did you mean": the known name that is nearest to what the user wrote.

use super::Diagnostic;
use super::edit::Edit;

impl Diagnostic {
    /// For a diagnostic that points at an unknown name: proposes the nearest of the known ones, as the help line and as
    /// the edit that puts it in the place of the other; `help` where none is near.
    pub fn nearest_or<'a>(
        self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        help: impl Into<String>,
    ) -> Self {
        match nearest(name, known) {
            Some(near) => self.did_you_mean(near),
            None => self.help(help),
        }
    }

    /// Proposes what was probably meant by the word that the diagnostic points at.
    pub fn did_you_mean(mut self, word: &str) -> Self {
        self.edits.push(Edit::replace(self.primary.span, word));
        self.help(format!("did you mean `{word}`?"))
    }
}

/// The candidate nearest to `name` by edit distance (insertions, deletions, substitutions and swaps of
/// neighbours count one each), if it is near enough to be meant: at most a third of the letters differ.
/// Among equally near ones the first wins. Case differences count as nothing but break no tie.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A megabyte-long name is no typing mistake.
    let length = name.chars().take(65).count();
    if length == 0 || length > 64 {
        return None;
    }
    let limit = (length / 3).clamp(1, 3);
    let lower = name.to_lowercase();
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in candidates {
        if candidate == name || candidate.len() > 256 {
            continue;
        }
        let folded = candidate.to_lowercase();
        let distance = if folded == lower { 0 } else { distance(&lower, &folded, limit) };
        // One letter for another single letter is no likeness at all.
        if distance <= limit
            && (length > 1 || distance == 0)
            && best.is_none_or(|(known, _)| distance < known)
        {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edit distance with swaps of neighbouring letters (optimal string alignment), or something larger than
/// `limit` as soon as it is known to be larger.
fn distance(from: &str, to: &str, limit: usize) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    if from.len().abs_diff(to.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut cost = (previous[j] + usize::from(a != b)).min(previous[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        if row.iter().all(|cost| *cost > limit) {
            return limit + 1;
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps_and_slips_are_found_and_strangers_are_not() {
        assert_eq!(nearest("trasnpose", ["matmul", "transpose"]), Some("transpose"));
        assert_eq!(nearest("kernal", ["kernel", "const"]), Some("kernel"));
        assert_eq!(nearest("Alpha", ["beta", "alpha"]), Some("alpha"));
        assert_eq!(nearest("ab", ["ba", "abc"]), Some("ba"));
        assert_eq!(nearest("x", ["y", "z"]), None);
        assert_eq!(nearest("X", ["y", "x"]), Some("x"));
        assert_eq!(nearest("exp", ["sqrt", "floor"]), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest(&"a".repeat(1 << 20), ["a"]), None);
    }
}
