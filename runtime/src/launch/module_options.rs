//! Modules from source, compiled while the program runs: for tools, and for sizes that only the run knows.

use crate::device::Device;
use crate::error::compile::CompileFailure;
use crate::error::{Error, Result};
use crate::launch::module::Module;
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileError, CompileOptions, compile, newest_target};
use std::path::Path;

/// How a module is compiled from source.
///
/// ```
/// use krn_runtime::{Device, ModuleOptions, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let text = "kernel sum_rows(a: f32[m, k]) -> s: f32[m] { s[i] = sum(p: a[i, p]) }";
/// let module = ModuleOptions::new().size("k", 64).from_source(&device, "sum_rows.krn", text)?;
/// assert_eq!(module.manifest().kernels[0].name, "sum_rows");
/// # Ok::<(), krn_runtime::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ModuleOptions {
    sizes: Vec<(String, u64)>,
    target: Option<String>,
    unchecked: bool,
    prints: bool,
}

impl ModuleOptions {
    /// For the newest target that runs on the device.
    pub fn new() -> Self {
        Self::default()
    }

    /// A dimension that is known: in every kernel with a dimension of this name code is made for that extent, and a
    /// launch with another is refused.
    pub fn size(mut self, name: impl Into<String>, extent: u64) -> Self {
        self.sizes.push((name.into(), extent));
        self
    }

    /// Another target than the device's own: `sm_80`.
    pub fn target(self, target: impl Into<String>) -> Self {
        Self { target: Some(target.into()), ..self }
    }

    /// Leaves the checks on the device out: of bounds, of `injective` and of `assert`.
    pub fn unchecked(self, unchecked: bool) -> Self {
        Self { unchecked, ..self }
    }

    /// Lets `print` tell values ([`Device::watch_prints`]); without this it is left out, and costs nothing.
    pub fn prints(self, prints: bool) -> Self {
        Self { prints, ..self }
    }

    /// Compiles the text of a `.krn` file, which messages call by that name, and loads it.
    ///
    /// # Errors
    /// [`Error::Compile`] with the mistakes in the text; as for [`Device::load`].
    pub fn from_source(&self, device: &Device, name: &str, text: &str) -> Result<Module> {
        let capability = device.capability();
        let target = self.target.as_deref().or_else(|| newest_target(capability));
        let mut options = match target {
            Some(target) => CompileOptions::for_target(target),
            None => {
                let target = format!("sm_{}", capability.unwrap_or(0));
                let error = CompileError::UnknownTarget(target);
                let text = format!("{name}: {error}");
                return Err(Error::Compile(Box::new(CompileFailure::new(error, text))));
            }
        };
        options.sizes.extend(self.sizes.iter().cloned());
        options.unchecked = self.unchecked;
        options.prints = self.prints;
        let source = SourceFile::new(name, text);
        let compilation = compile(&source, &options)
            .map_err(|error| Error::Compile(Box::new(CompileFailure::of(&source, error))))?;
        device.load(&compilation.compiled)
    }

    /// Compiles a `.krn` file and loads it.
    ///
    /// # Errors
    /// [`Error::File`] where it cannot be read, or holds other than UTF-8; as for [`from_source`](Self::from_source).
    pub fn from_file(&self, device: &Device, path: impl AsRef<Path>) -> Result<Module> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => self.from_source(device, &name, &text),
            Err(error) => Err(Error::File { path: name, message: error.to_string() }),
        }
    }
}

impl Module {
    /// Compiles the text of a `.krn` file for the device, and loads it; [`ModuleOptions`] can say more.
    ///
    /// ```
    /// use krn_runtime::{Device, Module, Selection};
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let error = Module::from_source(&device, "wrong.krn", "kernel k(x: f32[n]) { x[i] = 1.0 }").err().unwrap();
    /// assert!(error.to_string().contains("wrong.krn:1:23"), "{error}");
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`ModuleOptions::from_source`].
    pub fn from_source(device: &Device, name: &str, text: &str) -> Result<Self> {
        ModuleOptions::new().from_source(device, name, text)
    }

    /// Compiles a `.krn` file for the device, and loads it; [`ModuleOptions`] can say more.
    ///
    /// # Errors
    /// As for [`ModuleOptions::from_file`].
    pub fn from_file(device: &Device, path: impl AsRef<Path>) -> Result<Self> {
        ModuleOptions::new().from_file(device, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Selection;
    use crate::launch::argument::Argument;
    use crate::typed::Array;
    use krn_compiler::fat::{Fat, Image};

    const TEXT: &str = "kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }\n";

    fn device() -> Device {
        Device::open_as(Selection::Emulator).expect("always there")
    }

    fn text(result: Result<Module>) -> String {
        result.map(|_| ()).expect_err("it must not go through").to_string()
    }

    #[test]
    fn sizes_and_targets_are_kept() {
        let device = device();
        let module = ModuleOptions::new().size("n", 8).target("sm_80").unchecked(true);
        let module = module.from_source(&device, "double.krn", TEXT).expect("good");
        assert_eq!(module.manifest().target, "sm_80");
        let double = module.kernel("double").expect("there");
        let x = Array::from_slice(&device, [8], &[1.5f32; 8]).expect("small");
        let results = double.launch(&[("x", Argument::Array(x.dynamic()))]).expect("n is 8");
        let y = results.into_iter().next().map(|(_, array)| Array::<f32, 1>::from_dynamic(array));
        assert_eq!(y.expect("one").expect("f32").to_vec().expect("there"), [3.0; 8]);
        let x = Array::from_slice(&device, [4], &[1.5f32; 4]).expect("small");
        assert!(double.launch(&[("x", Argument::Array(x.dynamic()))]).is_err());
    }

    #[test]
    fn what_does_not_compile_says_why() {
        let device = device();
        let wrong = Module::from_source(&device, "w.krn", "kernel k(x: f32[n]) -> y: f32[n] { y[i] = z[i] }");
        let message = text(wrong);
        assert!(message.contains("w.krn:1:43") && message.contains("error[E"), "{message}");
        let unknown = ModuleOptions::new().size("k", 8).from_source(&device, "d.krn", TEXT);
        assert_eq!(text(unknown), "d.krn: no kernel has a dimension `k`; there are n");
        let unknown = ModuleOptions::new().target("sm_9").from_source(&device, "d.krn", TEXT);
        assert!(text(unknown).starts_with("d.krn: `sm_9` is no target"));
        let missing = Module::from_file(&device, "no/such/file.krn");
        assert!(text(missing).starts_with("cannot read `no/such/file.krn`: "));
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/vector_add.krn");
        assert!(Module::from_file(&device, here).is_ok());
    }

    #[test]
    fn documents_are_loaded_or_refused() {
        let device = device();
        let source = SourceFile::new("double.krn", TEXT);
        let image = |target| {
            let compiled = compile(&source, &CompileOptions::for_target(target)).expect("good").compiled;
            Image::new(target, compiled, None)
        };
        let fat = Fat::new(["sm_75", "sm_90"].map(image).into());
        let module = Module::from_fat(&device, &fat.to_json()).expect("its own text");
        assert_eq!(module.manifest().target, "sm_90");
        assert!(text(Module::from_fat(&device, "{}")).starts_with("no module of Krn"));
        let mut broken = fat;
        broken.images[1].ptx.push('}');
        assert!(matches!(Module::from_fat(&device, &broken.to_json()), Err(Error::Document(_))));
    }
}
