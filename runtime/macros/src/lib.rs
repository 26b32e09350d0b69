//! The macros of Krn's runtime; what they write names that crate by the name under which the user's crate has it.
//!
//! They are documented in `runtime/src/lib.rs`, where they are exported: examples here would need the runtime built a second
//! time, for the machine that macros run on.

mod arguments;
mod compiled;
mod derive;
mod emit;
mod home;
mod locate;
mod messages;
mod names;
mod signature;

use proc_macro::TokenStream;

// Documented where `krn-runtime` exports it.
#[proc_macro_derive(KrnStruct, attributes(krn))]
pub fn derive_krn_struct(input: TokenStream) -> TokenStream {
    let output = home::crate_path().and_then(|krn| derive::expand(input.into(), &krn));
    output.unwrap_or_else(syn::Error::into_compile_error).into()
}

// Documented where `krn-runtime` exports it.
#[proc_macro]
pub fn kernels(input: TokenStream) -> TokenStream {
    let span = proc_macro::Span::call_site().local_file();
    let output = home::crate_path().and_then(|krn| emit::expand(input.into(), span, &krn));
    output.unwrap_or_else(syn::Error::into_compile_error).into()
}
