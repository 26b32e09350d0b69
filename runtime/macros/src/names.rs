//! Names of the `.krn` file as names of Rust.

use proc_macro2::{Ident, Span};
use std::collections::BTreeSet;

/// These cannot be raw.
const NEVER_RAW: [&str; 5] = ["self", "Self", "super", "crate", "_"];

/// The name, as `r#name` where it is a keyword, with an underscore where even that is not allowed.
pub fn ident(name: &str, span: Span) -> Ident {
    if NEVER_RAW.contains(&name) {
        return Ident::new(&format!("{}_", name.trim_end_matches('_')), span);
    }
    // A keyword is no identifier to the parser.
    match syn::parse_str::<Ident>(name) {
        Ok(_) => Ident::new(name, span),
        Err(_) => Ident::new_raw(name, span),
    }
}

/// Names of one namespace: a name that is taken gets underscores.
pub struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    pub fn with(taken: &[&str]) -> Self {
        Self { taken: taken.iter().map(|name| (*name).to_string()).collect() }
    }

    pub fn take(&mut self, name: &str, span: Span) -> Ident {
        let mut free = name.to_string();
        while NEVER_RAW.contains(&free.as_str()) || !self.taken.insert(free.clone()) {
            free.push('_');
        }
        ident(&free, span)
    }
}

/// Name of a module from a file's: what Rust does not take becomes an underscore.
pub fn module_name(stem: &str) -> String {
    let mut name: String =
        stem.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_numeric()) || name.is_empty() {
        name.insert(0, '_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_raw_and_taken_names_are_longer() {
        let span = Span::call_site();
        let mut names = Names::with(&["load"]);
        let taken: Vec<String> = ["load", "load", "match", "self", "x", "x_", "x"]
            .map(|name| names.take(name, span).to_string())
            .to_vec();
        assert_eq!(taken, ["load_", "load__", "r#match", "self_", "x", "x_", "x__"]);
        assert_eq!(ident("type", span).to_string(), "r#type");
        assert_eq!(ident("Self", span).to_string(), "Self_");
        assert_eq!([module_name("n-body"), module_name("3d"), module_name("")], ["n_body", "_3d", "_"]);
    }
}
