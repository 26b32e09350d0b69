//! A module's PTX as text, cut into entries, and these into runs of lines that come from one place of the source.

/// Where something stands in the source; both count from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

/// Lines one after the other from one place; `None` for those that come from none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run<'t> {
    pub place: Option<Place>,
    pub text: &'t str,
    pub lines: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry<'t> {
    pub name: &'t str,
    pub runs: Vec<Run<'t>>,
}

/// What stands in front of the entries, and the entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing<'t> {
    pub head: &'t str,
    pub entries: Vec<Entry<'t>>,
}

impl Entry<'_> {
    pub fn lines(&self) -> usize {
        self.runs.iter().map(|run| run.lines).sum()
    }
}

const ENTRY: &str = ".visible .entry ";

pub fn listing(ptx: &str) -> Listing<'_> {
    let (head, pieces) = split_before(ptx, ENTRY);
    let entries = pieces.into_iter().map(|piece| entry(piece.trim_end())).collect();
    Listing { head, entries }
}

/// A text up to the first line that starts so, and the pieces from each such line to the next.
pub fn split_before<'t>(text: &'t str, start: &str) -> (&'t str, Vec<&'t str>) {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with(start) {
            starts.push(at);
        }
        at += line.len();
    }
    let head = &text[..starts.first().copied().unwrap_or(text.len())];
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    (head, starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect())
}

fn entry(text: &str) -> Entry<'_> {
    let name = text[ENTRY.len()..].split(['(', '\n']).next().unwrap_or_default().trim();
    let mut runs: Vec<Run<'_>> = Vec::new();
    let (mut start, mut at, mut lines) = (0, 0, 0);
    let mut place = None;
    let mut close = |end: usize, start: &mut usize, lines: &mut usize, place| {
        if *start < end {
            runs.push(Run { place, text: &text[*start..end], lines: *lines });
        }
        (*start, *lines) = (end, 0);
    };
    for line in text.split_inclusive('\n') {
        let word = line.trim();
        if let Some(next) = loc(word) {
            close(at, &mut start, &mut lines, place);
            place = Some(next);
        } else if word == "}" && line.starts_with('}') {
            close(at, &mut start, &mut lines, place);
            place = None;
        }
        at += line.len();
        lines += 1;
    }
    close(at, &mut start, &mut lines, place);
    Entry { name, runs }
}

/// `.loc file line column`.
fn loc(line: &str) -> Option<Place> {
    let mut words = line.strip_prefix(".loc ")?.split_whitespace().skip(1);
    let line = words.next()?.parse().ok()?;
    let column = words.next()?.parse().ok()?;
    Some(Place { line, column })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_cut_and_nothing_is_lost() {
        let ptx = ".version 7.8\n\n.visible .entry k(\n    .param .u64 p\n)\n{\n    ld p;\n    .loc 1 3 5\n    add;\n\
                   loop:\n    .loc 1 4 9\n    mul;\n    .loc 1 3 5\n    ret;\n}\n\n.visible .entry k_2()\n{\n    ret;\n}\n";
        let listing = listing(ptx);
        assert_eq!(listing.head, ".version 7.8\n\n");
        let names: Vec<&str> = listing.entries.iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["k", "k_2"]);
        let entry = &listing.entries[0];
        let places: Vec<Option<(u32, u32)>> =
            entry.runs.iter().map(|run| run.place.map(|place| (place.line, place.column))).collect();
        assert_eq!(places, [None, Some((3, 5)), Some((4, 9)), Some((3, 5)), None]);
        let whole: String = entry.runs.iter().map(|run| run.text).collect();
        assert!(ptx.contains(&whole) && whole.ends_with("}") && entry.lines() == whole.lines().count());
    }
}
