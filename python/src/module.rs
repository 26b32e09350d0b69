//! Compiled files, on the devices where somebody launches them.

use crate::devices::{self, Place, check_process, mark_used};
use crate::{errors, sharding};
use krn_compiler::data::HostArray;
use krn_compiler::diagnostic::json::to_json;
use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::fat::Fat;
use krn_compiler::manifest::{KernelManifest, Manifest};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileError, CompileOptions, CompiledModule, TARGETS, compile, newest_target};
use krn_runtime::{Error, Module as Loaded};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a file was compiled with.
struct Source {
    text: SourceFile,
    options: CompileOptions,
    /// Whether the target is the user's, and not the device's.
    chosen: bool,
    compiled: CompiledModule,
}

enum Origin {
    Source(Box<Source>),
    /// A document of `krn build --emit fat`.
    Document(String),
}

/// A compiled file.
pub struct File {
    origin: Origin,
    pub manifest: Manifest,
    warnings: Vec<String>,
    sharding: String,
    loaded: Mutex<Vec<(Place, Arc<Loaded>)>>,
}

impl File {
    /// The file on a device; loaded there once.
    pub fn on(&self, place: Place) -> krn_runtime::Result<Arc<Loaded>> {
        // A panic elsewhere leaves the list whole: it is changed in single steps.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, module)) = loaded.iter().find(|(known, _)| *known == place) {
            return Ok(Arc::clone(module));
        }
        let device = devices::device(place)?;
        let module = match &self.origin {
            Origin::Document(document) => Loaded::from_fat(&device, document)?,
            Origin::Source(source) => {
                let newest = newest_target(device.capability());
                let target = newest.filter(|newest| !source.chosen && *newest != source.options.target);
                match target {
                    None => device.load(&source.compiled)?,
                    Some(target) => {
                        let options = CompileOptions { target: target.to_string(), ..source.options.clone() };
                        let compiled = compile(&source.text, &options).map_err(|error| {
                            // The same text has compiled for another target.
                            Error::NoDevice(format!("{}: for {target}: {error}", source.text.name()))
                        })?;
                        device.load(&compiled.compiled)?
                    }
                }
            }
        };
        let module = Arc::new(module);
        loaded.push((place, Arc::clone(&module)));
        Ok(module)
    }
}

/// A compiled file: what `krn.compile` and `krn.load` make modules of.
#[pyclass(frozen, module = "krn._krn")]
pub struct Program {
    pub file: Arc<File>,
}

#[pymethods]
impl Program {
    /// The manifest as JSON.
    fn manifest(&self) -> PyResult<String> {
        serde_json::to_string(&self.file.manifest)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
    }

    /// The warnings, each as JSON.
    fn warnings(&self) -> Vec<String> {
        self.file.warnings.clone()
    }

    /// The PTX that was made when the file was compiled; of a document, none.
    fn ptx(&self) -> Option<String> {
        match &self.file.origin {
            Origin::Source(source) => Some(source.compiled.ptx.clone()),
            Origin::Document(_) => None,
        }
    }

    /// The bytes of a static on a device, behind all work there.
    fn read_static(&self, py: Python<'_>, name: &str, device: &str) -> PyResult<Vec<u8>> {
        check_process(py)?;
        let place = Place::parse(py, device)?;
        let read = py.detach(|| {
            let _current = place.keeps_current();
            let module = self.file.on(place)?;
            devices::device(place)?.synchronize()?;
            module.read_static(name)
        });
        read.map(|value| value.bytes).map_err(|error| errors::runtime(py, &error))
    }

    /// Sets a static on a device, behind all work there.
    fn write_static(&self, py: Python<'_>, name: &str, bytes: Vec<u8>, device: &str) -> PyResult<()> {
        check_process(py)?;
        let place = Place::parse(py, device)?;
        let written = py.detach(|| {
            let _current = place.keeps_current();
            let module = self.file.on(place)?;
            devices::device(place)?.synchronize()?;
            let known = module.manifest().statics.iter().find(|known| known.name == name);
            let value =
                known.and_then(|known| HostArray::zeros(known.element.clone(), known.extents.clone()));
            let value = value.map_or_else(|| module.read_static(name), Ok)?;
            let (expected, given) = (value.bytes.len() as u64, bytes.len() as u64);
            if expected != given {
                let what = format!("the bytes of the static `{name}`");
                return Err(Error::Length { what, expected, given });
            }
            module.write_static(name, &HostArray { bytes, ..value })
        });
        written.map_err(|error| errors::runtime(py, &error))
    }

    /// By kernel and dimension: how it can be split among processes; as JSON. Of a document, nothing is known.
    fn sharding(&self) -> String {
        self.file.sharding.clone()
    }
}

/// Compiles the text of a file. Without a target, the code that is made now is for the newest one, and each device has
/// code of its own when something is launched there.
#[pyfunction]
#[pyo3(signature = (text, name, dims, target, unchecked, prints))]
pub fn compile_source(
    py: Python<'_>,
    text: &str,
    name: &str,
    dims: BTreeMap<String, u64>,
    target: Option<&str>,
    unchecked: bool,
    prints: bool,
) -> PyResult<Program> {
    check_process(py)?;
    mark_used();
    let source = SourceFile::new(name, text);
    let newest = || newest_target(None).unwrap_or(TARGETS[0]);
    let mut options = CompileOptions::for_target(target.unwrap_or_else(newest));
    options.sizes.extend(dims);
    (options.unchecked, options.prints) = (unchecked, prints);
    // Python's arrays of structs lie as in C, unless a schedule says that they do not.
    options.without.push("soa".to_string());
    let compilation = py.detach(|| compile(&source, &options)).map_err(|error| {
        let text = match &error {
            CompileError::Diagnostics(found) => render(&source, found, RenderOptions::default()),
            other => format!("{name}: {other}"),
        };
        errors::compile(py, text.trim_end(), &source, &error)
    })?;
    let warnings = compilation.warnings.iter().map(|warning| to_json(&source, warning)).collect();
    let kernels = compilation.program.kernels.iter();
    let rules: serde_json::Map<_, _> =
        kernels.map(|kernel| (kernel.name.clone(), sharding::rules(kernel))).collect();
    let sharding = serde_json::Value::Object(rules).to_string();
    let (compiled, chosen) = (compilation.compiled, target.is_some());
    let manifest = compiled.manifest.clone();
    let origin = Origin::Source(Box::new(Source { text: source, options, chosen, compiled }));
    Ok(Program { file: Arc::new(File { origin, manifest, warnings, sharding, loaded: Mutex::default() }) })
}

/// Reads a document of `krn build --emit fat`, whose code is loaded where something is launched.
#[pyfunction]
pub fn load_document(py: Python<'_>, document: String) -> PyResult<Program> {
    check_process(py)?;
    let wrong = |error| errors::runtime(py, &Error::Document(error));
    let fat = Fat::parse(&document).map_err(wrong)?;
    let manifest = fat.image(None).map_err(wrong)?.manifest.clone();
    let nothing = |kernel: &KernelManifest| (kernel.name.clone(), serde_json::json!({}));
    let rules: serde_json::Map<_, _> = manifest.kernels.iter().map(nothing).collect();
    let sharding = serde_json::Value::Object(rules).to_string();
    let (origin, warnings) = (Origin::Document(document), Vec::new());
    Ok(Program { file: Arc::new(File { origin, manifest, warnings, sharding, loaded: Mutex::default() }) })
}
