//! Formulas on the command line: numbers, names, `+ - * /` and parentheses.

use std::collections::BTreeMap;

/// Parentheses and signs that may stand within each other.
const DEPTH_LIMIT: usize = 100;

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    names: &'a BTreeMap<String, i64>,
    depth: usize,
}

/// The value of a formula over these names.
pub fn evaluate(text: &str, names: &BTreeMap<String, i64>) -> Result<f64, String> {
    let mut reader = Reader { text, rest: text, names, depth: 0 };
    let value = reader.sum()?;
    match reader.peek() {
        None if value.is_finite() => Ok(value),
        None => Err(format!("`{text}` is no finite number")),
        Some(_) => Err(format!("`{text}`: `{}` is left over", reader.rest)),
    }
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn skip(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        found
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.skip('+') {
                value += self.product()?;
            } else if self.skip('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.factor()?;
        loop {
            if self.skip('*') {
                value *= self.factor()?;
            } else if self.skip('/') {
                value /= self.factor()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err(format!("`{}` is nested too deep", self.text));
        }
        let value = self.primary();
        self.depth -= 1;
        value
    }

    fn primary(&mut self) -> Result<f64, String> {
        if self.skip('-') {
            return self.factor().map(|value| -value);
        }
        if self.skip('(') {
            let value = self.sum()?;
            return if self.skip(')') { Ok(value) } else { Err(format!("`{}` lacks a `)`", self.text)) };
        }
        match self.peek() {
            Some(first) if first.is_ascii_digit() || first == '.' => self.number(),
            Some(first) if first.is_alphabetic() || first == '_' => {
                let name = self.take(|c| c.is_alphanumeric() || c == '_');
                self.names.get(name).map(|value| *value as f64).ok_or_else(|| {
                    let known: Vec<&str> = self.names.keys().map(String::as_str).collect();
                    format!(
                        "`{}` has no dimension `{name}` to go by; there are {}",
                        self.text,
                        known.join(", ")
                    )
                })
            }
            _ => Err(format!("`{}` lacks a number or a name", self.text)),
        }
    }

    /// Digits, `_` between them, a fraction, an exponent.
    fn number(&mut self) -> Result<f64, String> {
        let start = self.rest;
        self.take(|c| c.is_ascii_digit() || c == '_' || c == '.');
        let exponent = self.rest.strip_prefix(['e', 'E']);
        if let Some(exponent) = exponent {
            let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            if digits.starts_with(|c: char| c.is_ascii_digit()) {
                self.rest = digits;
                self.take(|c| c.is_ascii_digit());
            }
        }
        let text = &start[..start.len() - self.rest.len()];
        text.replace('_', "").parse().map_err(|_| format!("`{text}` is no number"))
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_evaluated_with_the_usual_precedence() {
        let names = BTreeMap::from([("m".to_string(), 3), ("n_2".to_string(), 5)]);
        let value = |text| evaluate(text, &names);
        assert_eq!(value("2*m*n_2 + 1"), Ok(31.0));
        assert_eq!(value("-(m - 1) * 4 / 2"), Ok(-4.0));
        assert_eq!(value("1e3 + .5 + 1_000"), Ok(2000.5));
        assert!(value("2*k").expect_err("unknown").contains("`k`"));
        for bad in ["", "2*", "(m", "m m", "1..2", "1/0", "é", "2e"] {
            assert!(value(bad).is_err(), "{bad}");
        }
        assert!(value(&"(".repeat(100_000)).is_err());
    }
}
