//! What stands between the brackets of `kernels!(…)`.

use krn_compiler::SymbolValues;
use krn_compiler::TARGETS;
use krn_compiler::manifest::Value;
use proc_macro2::Ident;
use std::collections::{BTreeMap, BTreeSet};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Lit, LitBool, LitInt, LitStr, Result, Token, braced, bracketed};

/// Compiled for without a word of the user: every GPU since Turing runs one of them.
const DEFAULT_TARGETS: [&str; 3] = ["sm_75", "sm_80", "sm_90"];

pub struct Arguments {
    /// As written: relative to the calling file.
    pub path: LitStr,
    pub name: Option<Ident>,
    pub targets: Vec<String>,
    pub sizes: BTreeMap<String, u64>,
    /// Sizes and parameters that code is made for beside the usual.
    pub variants: Vec<SymbolValues>,
    /// Whether `print` tells values.
    pub prints: bool,
    /// The user's own types for structs of the file, by the file's name of each.
    pub structs: BTreeMap<String, (Ident, syn::Path)>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let path = input.parse::<LitStr>().map_err(|error| {
            Error::new(error.span(), "expected the path of a `.krn` file: `kernels!(\"gravity.krn\")`")
        })?;
        let targets = DEFAULT_TARGETS.map(str::to_string).to_vec();
        let (sizes, structs) = (BTreeMap::new(), BTreeMap::new());
        let mut arguments =
            Self { path, name: None, targets, sizes, variants: Vec::new(), prints: false, structs };
        let mut seen = BTreeSet::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            // `for` is a keyword.
            let option = input.call(Ident::parse_any)?;
            if !seen.insert(option.to_string()) {
                return Err(Error::new(option.span(), format!("`{option}` was given twice")));
            }
            input.parse::<Token![=]>()?;
            match option.to_string().as_str() {
                "name" => arguments.name = Some(input.parse()?),
                "targets" => arguments.targets = targets_of(input)?,
                "sizes" => arguments.sizes = sizes_of(input)?,
                "for" => arguments.variants = variants_of(input)?,
                "prints" => arguments.prints = input.parse::<LitBool>()?.value,
                "structs" => arguments.structs = structs_of(input)?,
                _ => {
                    let message = format!(
                        "`{option}` is no option: there are `name`, `targets`, `sizes`, `for`, `prints` and `structs`"
                    );
                    return Err(Error::new(option.span(), message));
                }
            }
        }
        Ok(arguments)
    }
}

/// `["sm_80", "sm_90"]`
fn targets_of(input: ParseStream<'_>) -> Result<Vec<String>> {
    let list;
    let brackets = bracketed!(list in input);
    let mut targets: Vec<String> = Vec::new();
    for target in list.parse_terminated(<LitStr as Parse>::parse, Token![,])? {
        let name = target.value();
        if !TARGETS.contains(&name.as_str()) {
            let message = format!("`{name}` is no target; known are {}", TARGETS.join(", "));
            return Err(Error::new(target.span(), message));
        }
        if targets.contains(&name) {
            return Err(Error::new(target.span(), format!("`{name}` was given twice")));
        }
        targets.push(name);
    }
    if targets.is_empty() {
        return Err(Error::new(brackets.span.join(), "name at least one target: `[\"sm_90\"]`"));
    }
    Ok(targets)
}

/// `{ k: 64, n: 128 }`
fn sizes_of(input: ParseStream<'_>) -> Result<BTreeMap<String, u64>> {
    map_of(input, |list, _| list.parse::<LitInt>()?.base10_parse())
}

/// `[{ m: 4096, eps: 1e-5 }, { m: 64 }]`
fn variants_of(input: ParseStream<'_>) -> Result<Vec<SymbolValues>> {
    let list;
    bracketed!(list in input);
    let mut variants = Vec::new();
    while !list.is_empty() {
        variants.push(map_of(&list, |list, _| value_of(list))?);
        if !list.is_empty() {
            list.parse::<Token![,]>()?;
        }
    }
    Ok(variants)
}

/// A number, with its sign, or a bool.
fn value_of(input: ParseStream<'_>) -> Result<Value> {
    let negative = input.parse::<Option<Token![-]>>()?.is_some();
    let literal: Lit = input.parse()?;
    match (&literal, negative) {
        (Lit::Int(number), _) => {
            let number: i128 = number.base10_parse()?;
            Ok(Value::Int(if negative { -number } else { number }))
        }
        (Lit::Float(number), _) => {
            let number: f64 = number.base10_parse()?;
            Ok(Value::Float(if negative { -number } else { number }))
        }
        (Lit::Bool(value), false) => Ok(Value::Bool(value.value)),
        _ => Err(Error::new(literal.span(), "expected a number or a bool: `{ m: 4096, eps: 1e-5 }`")),
    }
}

/// `{ Body: crate::Body }`
fn structs_of(input: ParseStream<'_>) -> Result<BTreeMap<String, (Ident, syn::Path)>> {
    map_of(input, |list, name| Ok((name.clone(), list.parse()?)))
}

/// `{ name: value, … }`, each name once.
fn map_of<T>(
    input: ParseStream<'_>,
    value: impl Fn(ParseStream<'_>, &Ident) -> Result<T>,
) -> Result<BTreeMap<String, T>> {
    let list;
    braced!(list in input);
    let mut map = BTreeMap::new();
    while !list.is_empty() {
        let name: Ident = list.parse()?;
        list.parse::<Token![:]>()?;
        if map.insert(name.to_string(), value(&list, &name)?).is_some() {
            return Err(Error::new(name.span(), format!("`{name}` was given twice")));
        }
        if !list.is_empty() {
            list.parse::<Token![,]>()?;
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn options_are_read() {
        let all = quote!("a/b.krn", name = other, targets = ["sm_80", "sm_90a"], sizes = { k: 64, n: 1_000 },
            for = [{ m: 4_096, eps: -1e-5 }, { wide: true }], prints = true, structs = { Body: crate::bodies::Body },);
        let arguments: Arguments = syn::parse2(all).expect("good options");
        assert_eq!(arguments.path.value(), "a/b.krn");
        assert_eq!(arguments.name.expect("there").to_string(), "other");
        assert_eq!(arguments.targets, ["sm_80", "sm_90a"]);
        assert_eq!(arguments.sizes, BTreeMap::from([("k".to_string(), 64), ("n".to_string(), 1000)]));
        assert!(arguments.structs.contains_key("Body"));
        let set = |values: &[(&str, Value)]| -> SymbolValues {
            values.iter().map(|(name, value)| ((*name).to_string(), *value)).collect()
        };
        let first = set(&[("m", Value::Int(4096)), ("eps", Value::Float(-1e-5))]);
        assert_eq!(arguments.variants, [first, set(&[("wide", Value::Bool(true))])]);
        assert!(arguments.prints);
        let plain: Arguments = syn::parse2(quote!("a.krn")).expect("a path");
        assert_eq!((&plain.targets[..], plain.prints), (&DEFAULT_TARGETS.map(str::to_string)[..], false));
    }

    #[test]
    fn what_is_no_option_is_refused() {
        let refused =
            |tokens| syn::parse2::<Arguments>(tokens).err().expect("it must not go through").to_string();
        assert!(refused(quote!(gravity)).contains("expected the path of a `.krn` file"));
        assert!(refused(quote!()).contains("expected the path"));
        assert!(refused(quote!("a.krn", size = {})).contains("`size` is no option"));
        assert!(
            refused(quote!("a.krn", targets = ["sm_9"])).contains("`sm_9` is no target; known are sm_75")
        );
        assert!(refused(quote!("a.krn", targets = [])).contains("at least one target"));
        assert!(refused(quote!("a.krn", targets = ["sm_80", "sm_80"])).contains("given twice"));
        assert!(refused(quote!("a.krn", name = a, name = b)).contains("`name` was given twice"));
        assert!(refused(quote!("a.krn", sizes = { k: 1, k: 2 })).contains("`k` was given twice"));
        assert!(refused(quote!("a.krn", structs = { A: B, A: C })).contains("`A` was given twice"));
        assert!(refused(quote!("a.krn", for = [{ m: 1, m: 2 }])).contains("`m` was given twice"));
        assert!(refused(quote!("a.krn", for = [{ m: "a" }])).contains("expected a number or a bool"));
        assert!(refused(quote!("a.krn", for = { m: 1 })).contains("expected square brackets"));
        assert!(refused(quote!("a.krn", prints = 1)).contains("expected boolean literal"));
        assert!(refused(quote!("a.krn" "b.krn")).contains("expected `,`"));
    }
}
