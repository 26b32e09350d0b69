//! Diagnostics as JSON for editors: one object a line.

use super::{Diagnostic, Diagnostics, Label, Severity};
use crate::source::SourceFile;
use serde::Serialize;

/// A place in the file and what is said there. Offsets are in bytes from zero; lines and columns count from
/// one, columns in Unicode scalar values.
#[derive(Serialize)]
struct JsonLabel<'a> {
    start: u32,
    end: u32,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    message: &'a str,
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    severity: &'a str,
    code: &'a str,
    message: &'a str,
    file: &'a str,
    primary: JsonLabel<'a>,
    secondary: Vec<JsonLabel<'a>>,
    help: Option<&'a str>,
    notes: &'a [String],
    /// The help line, as changes of the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edits: Vec<JsonEdit<'a>>,
}

/// Bytes to be replaced, and by what.
#[derive(Serialize)]
struct JsonEdit<'a> {
    start: u32,
    end: u32,
    text: &'a str,
}

/// Every diagnostic of a file as a line of JSON.
pub fn to_json_lines(file: &SourceFile, diagnostics: &Diagnostics) -> String {
    diagnostics.iter().flat_map(|diagnostic| [to_json(file, diagnostic), "\n".to_string()]).collect()
}

/// One diagnostic as a JSON object, without a line end.
pub fn to_json(file: &SourceFile, diagnostic: &Diagnostic) -> String {
    let object = JsonDiagnostic {
        severity: match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        code: diagnostic.code.0,
        message: &diagnostic.message,
        file: file.name(),
        primary: label(file, &diagnostic.primary),
        secondary: diagnostic.secondary.iter().map(|one| label(file, one)).collect(),
        help: diagnostic.help.as_deref(),
        notes: &diagnostic.notes,
        edits: diagnostic.edits.iter().map(edit).collect(),
    };
    // Plain strings and numbers always serialize.
    serde_json::to_string(&object).unwrap_or_default()
}

fn edit(edit: &super::edit::Edit) -> JsonEdit<'_> {
    JsonEdit { start: edit.span.start, end: edit.span.end, text: &edit.text }
}

fn label<'a>(file: &SourceFile, label: &'a Label) -> JsonLabel<'a> {
    let (line, column) = file.line_column(label.span.start);
    let (end_line, end_column) = file.line_column(label.span.end);
    let (start, end) = (label.span.start, label.span.end);
    JsonLabel { start, end, line, column, end_line, end_column, message: &label.message }
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;
    use crate::source::Span;

    #[test]
    fn an_object_a_line_with_places_in_bytes_and_columns() {
        let file = SourceFile::new("é.krn", "é x\n\"y\"");
        let mut all = Diagnostics::new();
        all.push(
            Diagnostic::error(codes::E0011, Span::new(3, 4), "a \"quoted\"\nmessage", "here")
                .label(Span::new(5, 8), "there")
                .help("h"),
        );
        all.push(Diagnostic::warning(codes::E0001, Span::new(0, 0), "w", ""));
        let text = to_json_lines(&file, &all);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["primary"]["column"], 3);
        assert_eq!(lines[0]["primary"]["start"], 3);
        assert_eq!(lines[0]["secondary"][0]["end_line"], 2);
        assert_eq!(lines[1]["severity"], "warning");
        insta::assert_snapshot!(text);
    }
}
