//! What kernels print.

use krn_compiler::manifest::Value;
use std::fmt;

/// What a kernel's launches have printed since somebody last looked: sorted by launch; in a launch by the values of the index
/// names that prints have in common, outermost first, then by their place in the file; in one iteration as it printed them.
#[derive(Clone, PartialEq, Debug)]
pub struct Prints {
    pub kernel: String,
    pub file: String,
    pub lines: Vec<Print>,
    /// Prints for which there was no room. Which ones these are is up to the device.
    pub left_out: u64,
}

/// What one iteration has printed by one `print`.
#[derive(Clone, PartialEq, Debug)]
pub struct Print {
    pub line: u32,
    pub column: u32,
    /// The index names around it with their values, outermost first.
    pub indices: Vec<(String, i64)>,
    /// The operands, as the user wrote them.
    pub values: Vec<(String, Printed)>,
}

/// A value that is printed.
#[derive(Clone, PartialEq, Debug)]
pub enum Printed {
    Scalar(Value),
    F32(f32),
    /// The fields of a struct with their values, or the elements of a fixed array, in order; an array's have no names.
    Fields(Vec<(String, Printed)>),
    Elements(Vec<Printed>),
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Printed::Scalar(value) => value.fmt(f),
            Printed::F32(value) => write!(f, "{value:?}"),
            Printed::Fields(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                write!(f, "{{ {} }}", fields.join(", "))
            }
            Printed::Elements(elements) => {
                let elements: Vec<String> = elements.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", elements.join(", "))
            }
        }
    }
}

impl fmt::Display for Print {
    /// Without the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)?;
        for (at, (name, value)) in self.indices.iter().enumerate() {
            write!(f, "{} {name} = {value}", if at == 0 { ": for" } else { "," })?;
        }
        for (at, (text, value)) in self.values.iter().enumerate() {
            write!(f, "{} {text} = {value}", if at == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Prints {
    /// A line for each, without the last line's end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, file, lines, left_out } = self;
        for (at, line) in lines.iter().enumerate() {
            write!(f, "{}{file}:{line}", if at == 0 { "" } else { "\n" })?;
        }
        if *left_out > 0 {
            let end = if lines.is_empty() { "" } else { "\n" };
            write!(f, "{end}{file}: kernel `{kernel}`: … and {} more", grouped(*left_out))?;
        }
        Ok(())
    }
}

/// A count for people: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_place_indices_and_values() {
        let scalar = |value| Printed::Scalar(Value::Int(value));
        let fields = Printed::Fields(vec![
            ("x".to_string(), Printed::F32(1.0)),
            ("v".to_string(), Printed::Elements(vec![scalar(1), scalar(2)])),
        ]);
        let values = vec![("n + 1".to_string(), scalar(5)), ("b".to_string(), fields)];
        let indices = vec![("i".to_string(), 3), ("j".to_string(), -1)];
        let mut print = Print { line: 2, column: 9, indices, values };
        assert_eq!(print.to_string(), "2:9: for i = 3, j = -1: n + 1 = 5, b = { x: 1.0, v: [1, 2] }");
        print.values.clear();
        assert_eq!(print.to_string(), "2:9: for i = 3, j = -1");
        let lines = vec![print.clone(), Print { indices: Vec::new(), ..print }];
        let (kernel, file) = ("k".to_string(), "f.krn".to_string());
        let prints = Prints { kernel, file, lines, left_out: 1_234_567 };
        let text = "f.krn:2:9: for i = 3, j = -1\nf.krn:2:9\nf.krn: kernel `k`: … and 1,234,567 more";
        assert_eq!(prints.to_string(), text);
    }
}
