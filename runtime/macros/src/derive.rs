//! `#[derive(KrnStruct)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, LitStr, Result};

pub fn expand(input: TokenStream, krn: &TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    check_representation(&input)?;
    if let Some(parameter) = input.generics.params.first() {
        return Err(Error::new(
            parameter.span(),
            "a struct of a kernel has no parameters: its layout must be known; write one struct for each type",
        ));
    }
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => &fields.named,
            Fields::Unnamed(fields) => {
                return Err(Error::new(
                    fields.span(),
                    "fields of a kernel's structs have names: write `struct S { x: f32 }`",
                ));
            }
            Fields::Unit => return Err(Error::new(input.ident.span(), "a struct of a kernel has fields")),
        },
        Data::Enum(data) => {
            return Err(Error::new(data.enum_token.span, "kernels know structs, but no enums"));
        }
        Data::Union(data) => {
            return Err(Error::new(data.union_token.span, "kernels know structs, but no unions"));
        }
    };
    if fields.is_empty() {
        return Err(Error::new(input.ident.span(), "a struct of a kernel has fields"));
    }
    let ident = &input.ident;
    let name = ident.unraw().to_string();
    let mut described = Vec::with_capacity(fields.len());
    let types = fields.iter().map(|field| &field.ty);
    let inside = types.clone();
    for field in fields {
        let Field { ident: Some(field_ident), ty, .. } = field else { continue };
        let field_name = given_name(&field.attrs)?.unwrap_or_else(|| field_ident.unraw().to_string());
        described.push(quote! {
            (#field_name, ::core::mem::offset_of!(Self, #field_ident), <#ty as #krn::Field>::field())
        });
    }
    Ok(quote! {
        // SAFETY: the struct is `repr(C)` and not packed; offsets and size are the compiler's; every field describes
        // itself.
        #[automatically_derived]
        unsafe impl #krn::Element for #ident {
            fn element_type() -> #krn::ElementType {
                #krn::struct_type::<Self, _>(#name, [#(#described),*])
            }

            fn has_padding() -> ::core::primitive::bool {
                let fields = 0 #(+ ::core::mem::size_of::<#types>())*;
                fields != ::core::mem::size_of::<Self>() #(|| <#inside as #krn::Field>::has_padding_inside())*
            }
        }
    })
}

/// `repr(C)` and nothing else.
fn check_representation(input: &DeriveInput) -> Result<()> {
    let mut is_c = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("C") {
                is_c = true;
                return Ok(());
            }
            Err(meta.error("kernels lay structs out as C does: `#[repr(C)]` alone"))
        })?;
    }
    if is_c {
        return Ok(());
    }
    Err(Error::new(input.ident.span(), "kernels lay structs out as C does: add `#[repr(C)]`"))
}

/// `#[krn(name = "self")]`
fn given_name(attributes: &[Attribute]) -> Result<Option<String>> {
    let mut name = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("krn")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") {
                return Err(meta.error("a field takes `#[krn(name = \"…\")]`"));
            }
            name = Some(meta.value()?.parse::<LitStr>()?.value());
            Ok(())
        })?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(input: TokenStream) -> String {
        expand(input, &quote!(::krn)).expect_err("it must not go through").to_string()
    }

    #[test]
    fn what_is_no_struct_of_a_kernel_is_refused() {
        let layout = "kernels lay structs out as C does: add `#[repr(C)]`";
        let alone = "kernels lay structs out as C does: `#[repr(C)]` alone";
        assert_eq!(
            refused(quote!(
                struct S {
                    x: f32,
                }
            )),
            layout
        );
        assert_eq!(
            refused(quote!(
                #[repr(C, packed)]
                struct S {
                    x: f32,
                }
            )),
            alone
        );
        assert_eq!(
            refused(quote!(
                #[repr(C)]
                #[repr(align(16))]
                struct S {
                    x: f32,
                }
            )),
            alone
        );
        assert_eq!(
            refused(quote!(
                #[repr(transparent)]
                struct S {
                    x: f32,
                }
            )),
            alone
        );
        assert!(
            refused(quote!(
                #[repr(C)]
                struct S<T> {
                    x: T,
                }
            ))
            .contains("no parameters")
        );
        assert!(
            refused(quote!(
                #[repr(C)]
                struct S(f32);
            ))
            .contains("have names")
        );
        assert_eq!(
            refused(quote!(
                #[repr(C)]
                struct S;
            )),
            "a struct of a kernel has fields"
        );
        assert_eq!(
            refused(quote!(
                #[repr(C)]
                struct S {}
            )),
            "a struct of a kernel has fields"
        );
        assert!(
            refused(quote!(
                #[repr(C)]
                enum E {
                    A,
                    B,
                }
            ))
            .contains("no enums")
        );
        assert!(refused(quote!(#[repr(C)] union U { x: f32, y: u32 })).contains("no unions"));
        assert!(
            refused(quote!(
                #[repr(C)]
                struct S {
                    #[krn(nome = "y")]
                    x: f32,
                }
            ))
            .contains("takes `#[krn")
        );
    }

    #[test]
    fn names_are_those_of_the_file() {
        let input = quote!(
            #[repr(C)]
            struct r#Type {
                r#match: f32,
                #[krn(name = "self")]
                own: u8,
            }
        );
        let text = expand(input, &quote!(::krn)).expect("a good struct").to_string();
        for name in ["\"Type\"", "\"match\"", "\"self\""] {
            assert!(text.contains(name), "{text}");
        }
    }
}
