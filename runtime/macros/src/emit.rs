//! The module that `kernels!` writes.

mod kernel;
mod types;

use crate::arguments::Arguments;
use crate::compiled::Compiled;
use crate::locate::locate;
use crate::names::{self, Names};
use crate::{messages, signature};
use krn_compiler::check::typed::Static;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use std::path::{Path, PathBuf};
use syn::{Error, Result};
use types::Types;

/// What `Kernels` has beside the kernels.
const METHODS: [&str; 9] =
    ["load", "on", "stream", "device", "module", "prepare", "layout", "upload", "zeros"];

/// The module, for a call in that file, where the compiler says which.
pub fn expand(input: TokenStream, caller: Option<PathBuf>, krn: &TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = syn::parse2(input)?;
    let span = arguments.path.span();
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let written = arguments.path.value();
    let located = locate(&written, caller.as_deref(), manifest.as_deref());
    let located = located.map_err(|message| Error::new(span, message))?;
    let stem = located.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    // The same on every machine, since messages of running programs have it.
    let inside = manifest.as_ref().and_then(|manifest| located.path.strip_prefix(manifest).ok());
    let name = inside.map_or_else(|| written.clone(), |path| path.display().to_string());
    let compiled = Compiled::new(&name, located.bytes, &arguments)?;
    let module_name = match &arguments.name {
        Some(name) => name.clone(),
        None => names::ident(&names::module_name(&stem), span),
    };
    let body = module(&compiled, &arguments, krn)?;
    let warnings = messages::warnings(&compiled.source, &compiled.warnings, span);
    let dependency = dependency(&located.path);
    let text = format!("The kernels of `{name}`.\n\n{}", signature::comment_at_head(&compiled.source));
    Ok(quote! {
        #[doc = #text]
        #[allow(
            dead_code, non_snake_case, non_camel_case_types, non_upper_case_globals, private_interfaces,
            clippy::all, rustdoc::all
        )]
        pub mod #module_name {
            #dependency
            #body
        }
        #warnings
    })
}

/// Has cargo build again when the file changes.
fn dependency(path: &Path) -> TokenStream {
    let path = path.display().to_string();
    quote!(
        const _: &[::core::primitive::u8] = ::core::include_bytes!(#path);
    )
}

fn module(compiled: &Compiled, arguments: &Arguments, krn: &TokenStream) -> Result<TokenStream> {
    let program = &compiled.program;
    let mut type_names = Names::with(&["Kernels"]);
    let types = Types::new(compiled, arguments, krn, &mut type_names)?;
    let structs = types.items();
    let checks = types.checks();
    let document = Literal::string(&compiled.document.to_json());
    let kernel_names = program.kernels.iter().map(|kernel| &kernel.name);

    let mut method_names = Names::with(&METHODS);
    // Kernels keep their names before anything that is made of names.
    let methods: Vec<Ident> =
        program.kernels.iter().map(|kernel| method_names.take(&kernel.name, Span::call_site())).collect();
    let mut kernel_methods = TokenStream::new();
    let mut modules = TokenStream::new();
    for (number, (kernel, method)) in program.kernels.iter().zip(&methods).enumerate() {
        let written = kernel::Writer { compiled, arguments, types: &types, krn, kernel, number };
        kernel_methods.extend(written.methods(method, &mut method_names));
        modules.extend(written.module(&mut type_names));
    }
    let statics = program.statics.values().map(|variable| {
        let documentation = signature::item_span(&compiled.file, &variable.name)
            .map(|span| signature::comment_above(&compiled.source, span))
            .unwrap_or_default();
        static_methods(variable, &types, krn, &documentation, &mut method_names)
    });
    let statics: TokenStream = statics.collect();
    let common = common_methods(krn);
    Ok(quote! {
        #structs

        const DOCUMENT: &::core::primitive::str = #document;

        /// The kernels, loaded on a device, and the stream that they are launched on. Cheap to clone.
        #[derive(Clone, Debug)]
        pub struct Kernels(#krn::TypedModule);

        impl Kernels {
            /// Loads the kernels, to be launched on the stream that all kernels of the device share that are loaded so;
            /// `on` gives them another.
            ///
            /// # Errors
            /// None of the targets runs on the device; the device has no stream left.
            pub fn load(device: &#krn::Device) -> #krn::Result<Self> {
                let module = #krn::TypedModule::load(device, DOCUMENT, &[#(#kernel_names),*])?;
                #checks
                ::core::result::Result::Ok(Self(module))
            }

            #common
            #kernel_methods
            #statics
        }

        #modules
    })
}

fn common_methods(krn: &TokenStream) -> TokenStream {
    let usize = quote!(::core::primitive::usize);
    quote! {
        /// The same kernels, launched on another stream.
        pub fn on(&self, stream: &#krn::Stream) -> Self {
            Self(self.0.on(stream))
        }

        /// Where launches are queued.
        pub fn stream(&self) -> &#krn::Stream {
            self.0.stream()
        }

        /// The device that they are loaded on.
        pub fn device(&self) -> &#krn::Device {
            self.0.device()
        }

        /// The module, for what goes by name.
        pub fn module(&self) -> &::std::sync::Arc<#krn::Module> {
            self.0.module()
        }

        /// Compiles and loads what a kernel needs for these sizes, so that no launch waits for it: dimensions and parameters
        /// by name, all dimensions among them.
        ///
        /// # Errors
        /// Names that there are not, values that the kernel does not take; the driver refuses the code.
        pub fn prepare(
            &self,
            kernel: &::core::primitive::str,
            sizes: &[(&::core::primitive::str, #krn::Value)],
        ) -> #krn::Result<()> {
            self.0.prepare(kernel, sizes)
        }

        /// How an argument's structs are to lie in memory: for `ArrayOptions`.
        ///
        /// # Errors
        /// None, for arguments of these kernels.
        pub fn layout<T: #krn::Element, const RANK: #usize>(
            &self,
            argument: #krn::ArrayArgument<Self, T, RANK>,
        ) -> #krn::Result<#krn::Layout> {
            self.0.layout(argument)
        }

        /// An array in device memory with these values, in row-major order, that lies as the kernel wants it.
        ///
        /// # Errors
        /// The shape holds another number of elements; out of memory; a failed copy.
        pub fn upload<T: #krn::Element, const RANK: #usize>(
            &self,
            argument: #krn::ArrayArgument<Self, T, RANK>,
            shape: [#usize; RANK],
            values: &[T],
        ) -> #krn::Result<#krn::Array<T, RANK>> {
            self.0.upload(argument, shape, values)
        }

        /// An array in device memory, all its bytes zero, that lies as the kernel wants it.
        ///
        /// # Errors
        /// Out of memory.
        pub fn zeros<T: #krn::Element, const RANK: #usize>(
            &self,
            argument: #krn::ArrayArgument<Self, T, RANK>,
            shape: [#usize; RANK],
        ) -> #krn::Result<#krn::Array<T, RANK>> {
            self.0.zeros(argument, shape)
        }
    }
}

/// To read a static, and to set it.
fn static_methods(
    variable: &Static,
    types: &Types<'_>,
    krn: &TokenStream,
    documentation: &str,
    names: &mut Names,
) -> TokenStream {
    let name = &variable.name;
    let get = names.take(name, Span::call_site());
    let set = names.take(&format!("set_{name}"), Span::call_site());
    let ty = types.rust(&variable.ty);
    let read =
        format!("The static `{name}`, after the kernels that were launched before.\n\n{documentation}");
    let write = format!("Sets the static `{name}`, after the kernels that were launched before.");
    let errors = "\n\n# Errors\nA failed copy, or an earlier kernel's failure.";
    let (read, write) = (format!("{read}{errors}"), format!("{write}{errors}"));
    let variable_of = quote!(self.0.module().static_value::<#ty>(#name)?);
    if variable.extents.is_empty() {
        return quote! {
            #[doc = #read]
            pub fn #get(&self) -> #krn::Result<#ty> {
                self.0.read_single(#name)
            }

            #[doc = #write]
            pub fn #set(&self, value: #ty) -> #krn::Result<()> {
                #variable_of.write(&[value])
            }
        };
    }
    quote! {
        #[doc = #read]
        pub fn #get(&self) -> #krn::Result<::std::vec::Vec<#ty>> {
            #variable_of.read()
        }

        #[doc = #write]
        pub fn #set(&self, values: &[#ty]) -> #krn::Result<()> {
            #variable_of.write(values)
        }
    }
}

/// `r0`, `r1`, …: results of a launch.
fn result_names(count: usize) -> Vec<Ident> {
    (0..count).map(|number| format_ident!("r{number}")).collect()
}
