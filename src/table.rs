//! Tables on the terminal, and the sizes that stand above them.

use crate::commands::run::show_value;
use krn_runtime::verify::Sizes;

/// ` with n = 1000, alpha = 2`; nothing where there is nothing to say.
pub fn with(sizes: &Sizes) -> String {
    let mut parts: Vec<String> = sizes.dims.iter().map(|(name, size)| format!("{name} = {size}")).collect();
    parts.extend(sizes.params.iter().map(|(name, value)| format!("{name} = {}", show_value(value))));
    if parts.is_empty() { String::new() } else { format!(" with {}", parts.join(", ")) }
}

/// Rows of equal length as lines: the first column to the left, the others to the right.
pub fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = format!("  {:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line.push_str(&format!("  {cell:>width$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
