//! The crate that exports the macros, by the name that the user's crate has for it.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// `::krn` or `::krn_runtime`, or what the user calls it.
pub fn crate_path() -> syn::Result<TokenStream> {
    let candidates = [("krn", "krn"), ("krn-runtime", "krn_runtime")];
    for (package, library) in candidates {
        // Both libraries know themselves by their own name, too.
        let name = match crate_name(package) {
            Ok(FoundCrate::Itself) => library.to_string(),
            Ok(FoundCrate::Name(name)) => name,
            Err(_) => continue,
        };
        let name = Ident::new(&name, Span::call_site());
        return Ok(quote!(::#name));
    }
    Err(syn::Error::new(Span::call_site(), "add `krn` or `krn-runtime` to the dependencies in Cargo.toml"))
}
