//! The access itself within the text that an instruction stands for, and what it is called.

use crate::source::{SourceFile, Span};

/// Where the text of an access to an array stands, and its subscripts. The span of an instruction is that of the access or of
/// a statement around it.
pub(crate) struct Accessed {
    pub span: Span,
    pub subscripts: Vec<String>,
}

/// The first access to an array of this name within a span.
pub(crate) fn accessed(source: &SourceFile, span: Span, name: &str) -> Option<Accessed> {
    let text = source.slice(span);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (start, _) = text.match_indices(name).find(|(at, _)| {
        !text[..*at].ends_with(|c| is_word(c) || c == '.')
            && text[at + name.len()..].trim_start().starts_with('[')
    })?;
    let open = start + text[start..].find('[')?;
    let (mut depth, mut from, mut subscripts) = (0, open + 1, Vec::new());
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => {
                depth -= 1;
                if depth == 0 {
                    subscripts.push(text[from..at].trim().to_string());
                    let mut end = at + 1;
                    // With the field that is read.
                    let rest = &text[end..];
                    if let Some(field) = rest.strip_prefix('.') {
                        end += 1 + field.find(|c| !is_word(c)).unwrap_or(field.len());
                    }
                    return Some(Accessed {
                        span: Span::new(span.start + start as u32, span.start + end as u32),
                        subscripts,
                    });
                }
            }
            ',' if depth == 1 => {
                subscripts.push(text[from..at].trim().to_string());
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// What an access does to its array.
pub(crate) fn verb(writes: bool) -> &'static str {
    if writes { "writes" } else { "reads" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_found_with_their_subscripts() {
        let source = SourceFile::new("t", "b[j, f(i, 2)] = xa[i] + a [i].mass * 2");
        let all = Span::new(0, source.text().len() as u32);
        let found = accessed(&source, all, "a").expect("there is one");
        assert_eq!(source.slice(found.span), "a [i].mass");
        let found = accessed(&source, all, "b").expect("there is one");
        assert_eq!(
            (source.slice(found.span), found.subscripts.as_slice()),
            ("b[j, f(i, 2)]", &["j".to_string(), "f(i, 2)".to_string()][..])
        );
        assert!(accessed(&source, all, "c").is_none());
    }
}
