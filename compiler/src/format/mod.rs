//! The formatter: one style, without options.
//!
//! It works on tokens, so that no comment and no spelling of a number is lost: it changes the space between them, and
//! adds the comma behind the last parameter of a list over several lines.
//! `pieces.rs` takes a file apart, `breaks.rs` decides between which pieces a line ends, `lines.rs` how far each line
//! is indented, `wrap.rs` breaks lines that are too long, `spacing.rs` says what stands between two pieces of a line,
//! and `write.rs` puts it all together. `docs/formatting.md` tells the style.

mod breaks;
mod lines;
mod pieces;
mod spacing;
mod wrap;
mod write;

use crate::diagnostic::Diagnostics;
use crate::source::SourceFile;
use crate::syntax;
use pieces::Pieces;

/// The file in the style of the language. The tokens are the same but for commas behind the last parameters of lists, and
/// so are the comments, and what ends where.
///
/// # Errors
/// The file does not parse.
pub fn format(file: &SourceFile) -> Result<String, Diagnostics> {
    let (_, reports) = syntax::parse(file);
    if reports.has_errors() {
        return Err(reports);
    }
    // Lines end as the first one does; inside, and in comments over several lines, as everywhere.
    let text = file.text();
    let returns = text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
    if !text.contains("\r\n") {
        return Ok(formatted(file));
    }
    let plain = formatted(&SourceFile::new(file.name(), text.replace("\r\n", "\n")));
    Ok(if returns { plain.replace('\n', "\r\n") } else { plain })
}

fn formatted(file: &SourceFile) -> String {
    let pieces = Pieces::read(file);
    let mut breaks = breaks::kept(&pieces);
    // A break may ask for others: of the brackets around it, or where a line has become too long. They are only
    // added, so this ends.
    let lines = loop {
        breaks::close(&pieces, &mut breaks);
        let before = breaks.clone();
        let lines = lines::lines(&pieces, &mut breaks);
        if breaks == before && !wrap::wrap(&pieces, &lines, &mut breaks) {
            break lines;
        }
    };
    write::write(&pieces, &lines)
}
