//! Types of the `.krn` file as types of Rust.

use crate::arguments::Arguments;
use crate::compiled::Compiled;
use crate::names::{self, Names};
use crate::signature;
use krn_compiler::check::typed::{Program, StructDef, StructId, Type};
use krn_compiler::data::Scalar;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::BTreeMap;
use syn::{Error, Path, Result};

pub struct Types<'a> {
    compiled: &'a Compiled,
    krn: &'a TokenStream,
    /// What each struct is called in the module.
    names: BTreeMap<StructId, Ident>,
    /// The user's own, seen from the module.
    given: BTreeMap<StructId, Path>,
}

impl<'a> Types<'a> {
    /// # Errors
    /// The user gave a type for a struct that the file does not have.
    pub fn new(
        compiled: &'a Compiled,
        arguments: &Arguments,
        krn: &'a TokenStream,
        taken: &mut Names,
    ) -> Result<Self> {
        let structs = &compiled.program.structs;
        let mut given = BTreeMap::new();
        for (name, (ident, path)) in &arguments.structs {
            let Some((id, _)) = structs.iter().find(|(_, known)| known.name == *name) else {
                let known: Vec<String> = structs.values().map(|known| format!("`{}`", known.name)).collect();
                let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
                return Err(Error::new(
                    ident.span(),
                    format!("`{}` has no struct `{name}`; it has {known}", compiled.source.name()),
                ));
            };
            given.insert(id, from_inside(path));
        }
        let names =
            structs.iter().map(|(id, known)| (id, taken.take(&known.name, Span::call_site()))).collect();
        Ok(Self { compiled, krn, names, given })
    }

    fn program(&self) -> &Program {
        &self.compiled.program
    }

    /// The type, seen from the module.
    pub fn rust(&self, ty: &Type) -> TokenStream {
        self.rust_from(&TokenStream::new(), ty)
    }

    /// The type, seen from a module that calls the module `above` (`super::`).
    pub fn rust_from(&self, above: &TokenStream, ty: &Type) -> TokenStream {
        match ty {
            Type::Scalar(Scalar::F16) => {
                let krn = self.krn;
                quote!(#krn::f16)
            }
            Type::Scalar(Scalar::BF16) => {
                let krn = self.krn;
                quote!(#krn::bf16)
            }
            Type::Scalar(scalar) => {
                let name = format_ident!("{}", scalar.name());
                quote!(::core::primitive::#name)
            }
            Type::Struct(id) => {
                let name = self.names.get(id);
                quote!(#above #name)
            }
            Type::Array(inner, extent) => {
                let (inner, extent) = (self.rust_from(above, inner), *extent as usize);
                quote!([#inner; #extent])
            }
        }
    }

    /// The structs, and the names of those that the user gave.
    pub fn items(&self) -> TokenStream {
        let item = |(id, known): (StructId, &StructDef)| {
            let name = self.names.get(&id);
            match self.given.get(&id) {
                Some(path) => quote!(use #path as #name;),
                None => self.item(known, name),
            }
        };
        self.program().structs.iter().map(item).collect()
    }

    fn item(&self, known: &StructDef, name: Option<&Ident>) -> TokenStream {
        let krn = self.krn;
        let comment = signature::item_span(&self.compiled.file, &known.name)
            .map(|span| signature::comment_above(&self.compiled.source, span))
            .unwrap_or_default();
        let fields = known.fields.iter().map(|field| {
            let ident = names::ident(&field.name, Span::call_site());
            let ty = self.rust(&field.ty);
            // `self` and its like have another name in Rust.
            let known_as = (ident == format!("{}_", field.name)).then(|| {
                let name = &field.name;
                quote!(#[krn(name = #name)])
            });
            quote!(#known_as pub #ident: #ty)
        });
        quote! {
            #[doc = #comment]
            #[repr(C)]
            #[derive(Clone, Copy, Debug, PartialEq, #krn::KrnStruct)]
            pub struct #name {
                #(#fields),*
            }
        }
    }

    /// Statements that compare the user's structs with those of the variable `module`.
    pub fn checks(&self) -> TokenStream {
        let check = |id: &StructId| {
            let (name, ident) = (&self.program().structs[*id].name, self.names.get(id));
            quote!(module.check_struct::<#ident>(#name)?;)
        };
        self.given.keys().map(check).collect()
    }
}

/// A path that was written where the macro is called, seen from the module that the macro writes there.
fn from_inside(path: &Path) -> Path {
    let first = path.segments.first().map(|segment| segment.ident.to_string());
    let is_absolute = path.leading_colon.is_some() || first.as_deref() == Some("crate");
    if is_absolute {
        return path.clone();
    }
    let mut inside = path.clone();
    let above: syn::PathSegment = Ident::new("super", Span::call_site()).into();
    if first.as_deref() == Some("self") {
        inside.segments[0] = above;
    } else {
        inside.segments.insert(0, above);
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_the_same_from_inside() {
        let inside = |text: &str| {
            let path = from_inside(&syn::parse_str(text).expect("a path"));
            quote!(#path).to_string().replace(' ', "")
        };
        assert_eq!(inside("crate::a::B"), "crate::a::B");
        assert_eq!(inside("::a::B"), "::a::B");
        assert_eq!(inside("self::B"), "super::B");
        assert_eq!(inside("super::B"), "super::super::B");
        assert_eq!(inside("a::B"), "super::a::B");
    }
}
