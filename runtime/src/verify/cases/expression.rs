//! Numbers in test directives: float literals, and integer expressions over names.

/// A float literal with a sign, or an integer expression.
///
/// # Errors
/// What is wrong with the text.
pub fn number(text: &str, names: &dyn Fn(&str) -> Option<i128>) -> Result<f64, String> {
    if let Ok(value) = text.parse::<f64>() {
        return Ok(value);
    }
    integer(text, names).map(|value| value as f64)
}

/// Literals, names, `+ - * /` and parentheses; division toward zero, by zero gives 0.
///
/// # Errors
/// What is wrong with the text.
pub fn integer(text: &str, names: &dyn Fn(&str) -> Option<i128>) -> Result<i128, String> {
    let mut reader = Reader { rest: text, names, depth: 0 };
    let value = reader.sum()?;
    if reader.rest.trim().is_empty() { Ok(value) } else { Err(format!("`{text}` is no number here")) }
}

struct Reader<'t> {
    rest: &'t str,
    names: &'t dyn Fn(&str) -> Option<i128>,
    depth: u32,
}

impl Reader<'_> {
    fn take(&mut self, wanted: char) -> bool {
        let trimmed = self.rest.trim_start();
        match trimmed.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value = value.saturating_add(self.product()?);
            } else if self.take('-') {
                value = value.saturating_sub(self.product()?);
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.factor()?;
        loop {
            if self.take('*') {
                value = value.saturating_mul(self.factor()?);
            } else if self.take('/') {
                value = value.checked_div(self.factor()?).unwrap_or(0);
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<i128, String> {
        self.depth += 1;
        if self.depth > 64 {
            return Err("the expression is too deep".to_string());
        }
        let value = if self.take('-') {
            Ok(self.factor()?.saturating_neg())
        } else if self.take('(') {
            let value = self.sum()?;
            if self.take(')') { Ok(value) } else { Err("a `)` is missing".to_string()) }
        } else {
            self.atom()
        };
        self.depth -= 1;
        value
    }

    fn atom(&mut self) -> Result<i128, String> {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        if let Ok(value) = word.replace('_', "").parse() {
            return Ok(value);
        }
        (self.names)(word)
            .ok_or_else(|| format!("`{word}` is neither a number nor a dimension or integer parameter"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_over_names_are_worked_out() {
        let names = |name: &str| (name == "n").then_some(10);
        assert_eq!(integer("2 * (n + 1) - n / 3", &names), Ok(19));
        assert_eq!(number("-1.5", &names), Ok(-1.5));
        assert!(integer("m", &names).is_err());
        assert!(integer("n +", &names).is_err());
        assert!(integer("n n", &names).is_err());
    }
}
