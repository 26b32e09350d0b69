//! Documentation of what the macro writes, from the text of the `.krn` file.

use krn_compiler::source::{SourceFile, Span};
use krn_compiler::syntax::ast::{File, Item, KernelItem};

/// The comment lines that stand right above an item.
pub fn comment_above(source: &SourceFile, item: Span) -> String {
    let (line, _) = source.line_column(item.start);
    let mut lines = Vec::new();
    for above in (1..line).rev() {
        let Some(comment) = source.line_text(above).trim_start().strip_prefix("//") else { break };
        lines.push(plain(comment));
    }
    lines.reverse();
    lines.join("\n")
}

/// The comment lines with which the file begins.
pub fn comment_at_head(source: &SourceFile) -> String {
    let lines = (1..=source.line_count()).map(|line| source.line_text(line));
    let comments = lines.map_while(|line| line.strip_prefix("//"));
    comments.map(plain).collect::<Vec<_>>().join("\n")
}

/// Without what documentation would take for code to run.
fn plain(comment: &str) -> String {
    comment.trim_start_matches('/').trim().replace("```", "`")
}

/// The text from `kernel` to the body, with the facts.
pub fn signature<'a>(source: &'a SourceFile, kernel: &KernelItem) -> &'a str {
    source.slice(Span::new(kernel.span.start, kernel.body.span.start)).trim_end()
}

pub fn kernel_named<'a>(file: &'a File, name: &str) -> Option<&'a KernelItem> {
    file.items.iter().find_map(|item| match item {
        Item::Kernel(kernel) if kernel.name.name == name => Some(kernel),
        _ => None,
    })
}

/// The whole item of the struct or static of that name.
pub fn item_span(file: &File, name: &str) -> Option<Span> {
    file.items.iter().find_map(|item| match item {
        Item::Struct(item) if item.name.name == name => Some(item.span),
        Item::Static(item) if item.name.name == name => Some(item.span),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_signatures_are_those_of_the_text() {
        let text = "// far\n\n/// A body.\n// It has mass.\nstruct Body { mass: f32 }\n\
                    kernel k(b: Body[n],\n    c: f32) -> y: f32[n]\n    where n > 2 {\n    y[i] = c * b[i].mass\n}\n";
        let source = SourceFile::new("k.krn", text);
        let (file, diagnostics) = krn_compiler::syntax::parse(&source);
        assert!(diagnostics.is_empty());
        let body = item_span(&file, "Body").expect("there");
        assert_eq!(comment_above(&source, body), "A body.\nIt has mass.");
        let kernel = kernel_named(&file, "k").expect("there");
        assert_eq!(comment_above(&source, kernel.span), "");
        let expected = "kernel k(b: Body[n],\n    c: f32) -> y: f32[n]\n    where n > 2";
        assert_eq!(signature(&source, kernel), expected);
        assert_eq!(comment_at_head(&source), "far");
        assert!(kernel_named(&file, "none").is_none() && item_span(&file, "k").is_none());
    }
}
