//! The methods of one kernel, and the module with its arrays.

use super::result_names;
use super::types::Types;
use crate::arguments::Arguments;
use crate::compiled::Compiled;
use crate::names::Names;
use crate::signature;
use krn_compiler::check::typed::{Array, ArrayRole, Kernel, SignatureItem};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

pub struct Writer<'a> {
    pub compiled: &'a Compiled,
    pub arguments: &'a Arguments,
    pub types: &'a Types<'a>,
    pub krn: &'a TokenStream,
    pub kernel: &'a Kernel,
    pub number: usize,
}

/// One of the signature, by Rust's name.
struct Parameter<'a> {
    ident: Ident,
    item: Item<'a>,
}

enum Item<'a> {
    Value(TokenStream),
    Array(&'a Array),
}

impl Parameter<'_> {
    fn is_result(&self) -> bool {
        matches!(self.item, Item::Array(Array { role: ArrayRole::Result(_), .. }))
    }
}

impl Writer<'_> {
    /// The kernel as a method, and the one that writes into given arrays.
    pub fn methods(&self, method: &Ident, names: &mut Names) -> TokenStream {
        let parameters = self.parameters();
        let results: Vec<&Array> = parameters
            .iter()
            .filter_map(|parameter| match parameter.item {
                Item::Array(array) if parameter.is_result() => Some(array),
                _ => None,
            })
            .collect();
        let (krn, number) = (self.krn, self.number);
        let documentation = self.documentation();
        let taken = parameters.iter().filter(|parameter| !parameter.is_result());
        let declared: Vec<TokenStream> = taken.clone().map(|parameter| self.declared(parameter)).collect();
        let operands = parameters.iter().map(|parameter| match parameter.is_result() {
            true => quote!(#krn::Operand::Absent),
            false => self.operand(parameter),
        });
        let made = result_names(results.len());
        let types: Vec<TokenStream> = results.iter().map(|array| self.array(array)).collect();
        let (ty, value) = match types.as_slice() {
            [] => (quote!(()), quote!(())),
            [one] => (quote!(#one), quote!(#krn::Array::from_dynamic(r0)?)),
            _ => (quote!((#(#types),*)), quote!((#(#krn::Array::from_dynamic(#made)?),*))),
        };
        let plain = quote! {
            #[doc = #documentation]
            pub fn #method(&self, #(#declared),*) -> #krn::Result<#ty> {
                let [#(#made),*] = self.0.launch(#number, &[#(#operands),*])?;
                ::core::result::Result::Ok(#value)
            }
        };
        if results.is_empty() {
            return plain;
        }
        let into = names.take(&format!("{}_into", self.kernel.name), Span::call_site());
        let declared = parameters.iter().map(|parameter| self.declared(parameter));
        let operands = parameters.iter().map(|parameter| self.operand(parameter));
        let documentation = format!(
            "As [`{name}`](Self::{name}), with the results written into arrays that are there.",
            name = method.to_string().trim_start_matches("r#")
        );
        quote! {
            #plain

            #[doc = #documentation]
            pub fn #into(&self, #(#declared),*) -> #krn::Result<()> {
                let [] = self.0.launch(#number, &[#(#operands),*])?;
                ::core::result::Result::Ok(())
            }
        }
    }

    /// The module of array arguments; nothing for a kernel without arrays.
    pub fn module(&self, names: &mut Names) -> TokenStream {
        let krn = self.krn;
        let mut constants = Names::with(&[]);
        let above = quote!(super::);
        let arrays = self.kernel.signature.iter().enumerate().filter_map(|(place, item)| match item {
            SignatureItem::Array(id) => Some((place, &self.kernel.arrays[*id])),
            SignatureItem::Param(_) => None,
        });
        let arrays: Vec<TokenStream> = arrays
            .map(|(place, array)| {
                let name = constants.take(&array.name.to_uppercase(), Span::call_site());
                let (ty, rank) = (self.types.rust_from(&above, &array.ty), array.extents.len());
                let number = self.number;
                let text = format!("`{}`", array.name);
                quote! {
                    #[doc = #text]
                    pub const #name: #krn::ArrayArgument<super::Kernels, #ty, #rank> =
                        #krn::ArrayArgument::new(#number, #place);
                }
            })
            .collect();
        if arrays.is_empty() {
            return TokenStream::new();
        }
        let name = names.take(&self.kernel.name, Span::call_site());
        let text = format!("The arrays of the kernel `{}`, to be made as it wants them.", self.kernel.name);
        quote! {
            #[doc = #text]
            pub mod #name {
                #(#arrays)*
            }
        }
    }

    fn parameters(&self) -> Vec<Parameter<'_>> {
        let mut names = Names::with(&[]);
        let items = self.kernel.signature.iter();
        items
            .map(|item| match item {
                SignatureItem::Param(id) => {
                    let param = &self.kernel.params[*id];
                    let ident = names.take(&param.name, Span::call_site());
                    Parameter { ident, item: Item::Value(self.types.rust(&param.ty)) }
                }
                SignatureItem::Array(id) => {
                    let array = &self.kernel.arrays[*id];
                    Parameter { ident: names.take(&array.name, Span::call_site()), item: Item::Array(array) }
                }
            })
            .collect()
    }

    /// `Array<f32, 2>`
    fn array(&self, array: &Array) -> TokenStream {
        let (krn, ty, rank) = (self.krn, self.types.rust(&array.ty), array.extents.len());
        quote!(#krn::Array<#ty, #rank>)
    }

    fn declared(&self, parameter: &Parameter<'_>) -> TokenStream {
        let (krn, ident) = (self.krn, &parameter.ident);
        match &parameter.item {
            Item::Value(ty) => quote!(#ident: #ty),
            Item::Array(array) if array.role == ArrayRole::Input => {
                let (ty, rank) = (self.types.rust(&array.ty), array.extents.len());
                quote!(#ident: impl #krn::Readable<#ty, #rank>)
            }
            Item::Array(array) => {
                let (ty, rank) = (self.types.rust(&array.ty), array.extents.len());
                quote!(#ident: impl #krn::Writable<#ty, #rank>)
            }
        }
    }

    fn operand(&self, parameter: &Parameter<'_>) -> TokenStream {
        let (krn, ident) = (self.krn, &parameter.ident);
        match &parameter.item {
            Item::Value(_) => quote!(#krn::Operand::value(&#ident)),
            Item::Array(array) if array.role == ArrayRole::Input => {
                quote!(#krn::Operand::Array(#krn::Readable::dynamic(&#ident)))
            }
            Item::Array(_) => quote!(#krn::Operand::Array(#krn::Writable::dynamic(&#ident))),
        }
    }

    fn documentation(&self) -> String {
        let mut text = String::new();
        if let Some(item) = signature::kernel_named(&self.compiled.file, &self.kernel.name) {
            let comment = signature::comment_above(&self.compiled.source, item.span);
            let signature = signature::signature(&self.compiled.source, item);
            text.push_str(&format!("{comment}\n\n```text\n{signature}\n```\n\n"));
        }
        let sizes = self.arguments.sizes.iter();
        let known = sizes.filter(|(name, _)| self.kernel.dims.values().any(|dim| dim.name == **name));
        let known: Vec<String> = known.map(|(name, size)| format!("`{name}` = {size}")).collect();
        if !known.is_empty() {
            text.push_str(&format!("Compiled for {}; other arrays are refused.\n\n", known.join(", ")));
        }
        text.push_str(
            "Queues a launch and returns; what the kernel does wrong is said by `stream().synchronize()`, or when \
             an array is read.\n\n# Errors\nA shape, a layout or a fact of the signature does not hold; out of \
             memory; a failed launch.",
        );
        text
    }
}
