//! Statics of a module, by name and Rust type.

use crate::error::{Error, Result};
use crate::launch::module::Module;
use crate::memory::element::{self, Element};
use krn_compiler::manifest::StaticManifest;
use std::marker::PhantomData;

/// A `static` of a module whose elements are `T`: one, or an array of them.
pub struct Static<'m, T: Element> {
    module: &'m Module,
    variable: &'m StaticManifest,
    pointer: u64,
    element: PhantomData<T>,
}

impl Module {
    /// The static of that name.
    ///
    /// ```
    /// use krn_compiler::{CompileOptions, compile, source::SourceFile};
    /// use krn_runtime::{Device, Selection};
    ///
    /// let text = "static calls: u32 = 5\nkernel count(x: f32[n]) { calls += 1 }";
    /// let compiled = compile(&SourceFile::new("s.krn", text), &CompileOptions::default()).unwrap().compiled;
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let module = device.load(&compiled)?;
    /// let calls = module.static_value::<u32>("calls")?;
    /// assert_eq!(calls.read()?, [5]);
    /// calls.write(&[7])?;
    /// assert_eq!(calls.read()?, [7]);
    /// let error = module.static_value::<i64>("calls").err().unwrap();
    /// assert_eq!(error.to_string(), "`calls`, a static of `u32`, is no `i64`");
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownStatic`], with the names that there are; [`Error::ArrayType`] where its type is another.
    pub fn static_value<T: Element>(&self, name: &str) -> Result<Static<'_, T>> {
        let (variable, pointer) = self.find_static(name)?;
        let wanted = T::element_type();
        if !element::same_type(&wanted, &variable.element) {
            let expected = format!("`{}`", wanted.name);
            let given = format!("`{name}`, a static of `{}`,", variable.element.name);
            return Err(Error::ArrayType { expected, given });
        }
        Ok(Static { module: self, variable, pointer, element: PhantomData })
    }
}

impl<T: Element> Static<'_, T> {
    /// Extents, outermost first; none for a single value.
    pub fn shape(&self) -> &[u64] {
        &self.variable.extents
    }

    /// The number of elements; 1 for a single value.
    pub fn len(&self) -> usize {
        self.variable.extents.iter().product::<u64>() as usize
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its elements, after the kernels that were launched before.
    ///
    /// # Errors
    /// A failed copy, or an earlier kernel's failure; [`Error::InvalidBool`].
    pub fn read(&self) -> Result<Vec<T>> {
        let backend = &self.module.device.backend;
        element::values_from(self.len(), |image| {
            self.module.with_statics(false, || backend.copy_out(0, self.pointer, image))
        })
    }

    /// Sets its elements, after the kernels that were launched before.
    ///
    /// # Errors
    /// [`Error::Length`] with another number of values; a failed copy.
    pub fn write(&self, values: &[T]) -> Result<()> {
        if values.len() != self.len() {
            return Err(Error::Length {
                what: format!("the static `{}`", self.variable.name),
                expected: self.len() as u64,
                given: values.len() as u64,
            });
        }
        let bytes = element::bytes_of(values);
        self.module.with_statics(true, || self.module.device.backend.copy_in(self.pointer, &bytes))
    }
}
