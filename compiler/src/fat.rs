//! One document with a module for several GPUs: what `krn build --emit fat` writes, what programs embed, and what a host
//! in any language reads to launch the PTX itself. JSON; `docs/manifest.md` describes it.

use crate::compile::{CompiledModule, OriginText};
use crate::manifest::Manifest;
use crate::ptx;
use crate::targets::capability;
use crate::version::{TABLE, VERSION};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The first field of a document of this version.
const FORMAT: &str = "krn fat 2";

/// A module for several targets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fat {
    /// `krn fat 2`
    pub format: String,
    /// One a target, in the order in which they were asked for.
    pub images: Vec<Image>,
}

/// A module for one target. Launches differ from target to target: code goes with its own manifest only.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Image {
    /// `sm_90`
    pub target: String,
    /// The version of the compiler: guards are its own, and variants of two versions may overlap.
    #[serde(default)]
    pub compiler: String,
    /// The version of the figures by which it chooses.
    #[serde(default)]
    pub table: String,
    pub manifest: Manifest,
    /// For the driver to compile; runs on the target and on all later ones (`sm_90a`: on that one alone).
    pub ptx: String,
    /// Machine code in base64, if it was made: runs on GPUs of the same generation (major number).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cubin: Option<String>,
    /// Whether each kernel of the machine code first waits for those in front of it on its stream, so that it may be started
    /// before they are done: see [`ptx::dependent`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// What it was compiled from, so that a program with a compiler of this version has code made for other sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<OriginText>,
}

/// Why a document cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FatError {
    /// It is no JSON, or not of this form.
    Malformed(String),
    /// It was written in another format, of this name.
    Format(String),
    /// None of its targets runs on a device of this capability (10 × major + minor).
    NoTarget { capability: u32, targets: Vec<String> },
}

impl fmt::Display for FatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => write!(f, "no module of Krn: {why}"),
            Self::Format(format) => {
                write!(f, "the module has the format `{format}`, this library reads `{FORMAT}`")
            }
            Self::NoTarget { capability, targets } => {
                let targets = targets.join(", ");
                write!(f, "the module was compiled for {targets}; the device is an sm_{capability}")
            }
        }
    }
}

impl std::error::Error for FatError {}

impl Fat {
    /// A document of these images.
    pub fn new(images: Vec<Image>) -> Self {
        Self { format: FORMAT.to_string(), images }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// [`FatError::Malformed`] and [`FatError::Format`].
    pub fn parse(json: &str) -> Result<Self, FatError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
        }
        let malformed = |error: serde_json::Error| FatError::Malformed(error.to_string());
        let head: Head = serde_json::from_str(json).map_err(malformed)?;
        if head.format != FORMAT {
            return Err(FatError::Format(head.format));
        }
        serde_json::from_str(json).map_err(malformed)
    }

    /// The document as text.
    pub fn to_json(&self) -> String {
        // Strings, numbers and vectors of them: nothing that JSON could not say.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The image for a device: the newest that runs there, the device's own generation-specific one first. With `None`
    /// (the emulator, which runs all) the newest.
    ///
    /// # Errors
    /// [`FatError::NoTarget`].
    pub fn image(&self, device: Option<u32>) -> Result<&Image, FatError> {
        let rank = |image: &&Image| {
            let own = image.target.ends_with('a');
            let needs = capability(&image.target)?;
            let runs = device.is_none_or(|device| if own { needs == device } else { needs <= device });
            runs.then_some((needs, own))
        };
        let best = self.images.iter().filter(|image| rank(image).is_some()).max_by_key(rank);
        best.ok_or_else(|| FatError::NoTarget {
            capability: device.unwrap_or(0),
            targets: self.images.iter().map(|image| image.target.clone()).collect(),
        })
    }
}

impl Image {
    /// A module that was compiled for the target, with the machine code that was made of its PTX, if it was, and with what it
    /// was compiled from.
    pub fn new(target: &str, compiled: CompiledModule, code: Option<Vec<u8>>) -> Self {
        let CompiledModule { ptx, manifest, origin, .. } = compiled;
        let source = origin.as_ref().and_then(OriginText::of);
        let cubin = code.map(|code| STANDARD.encode(code));
        let (target, compiler, table) = (target.to_string(), VERSION.to_string(), TABLE.to_string());
        Self { target, compiler, table, manifest, ptx, cubin, waits: false, source }
    }

    /// The same with machine code that `assemble` makes of PTX for the target: where the target can, of one whose kernels
    /// wait for those in front of them.
    ///
    /// # Errors
    /// What `assemble` says.
    pub fn assembled<E>(
        target: &str,
        compiled: CompiledModule,
        assemble: impl FnOnce(&str, &str) -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        let waiting = ptx::dependent::wait_for_grids(&compiled.module);
        let waits = waiting.is_some();
        let code = match waiting {
            Some(module) => assemble(&ptx::print(&module), target)?,
            None => assemble(&compiled.ptx, target)?,
        };
        Ok(Self { waits, ..Self::new(target, compiled, Some(code)) })
    }

    /// The image as the compiler would have given it. Where another version has, nobody can ask it for more code.
    ///
    /// # Errors
    /// [`FatError::Malformed`] where PTX or base64 are damaged.
    pub fn module(&self) -> Result<CompiledModule, FatError> {
        let module = ptx::parse(&self.ptx).map_err(|error| FatError::Malformed(format!("{error}")))?;
        let source = self.source.as_ref().filter(|_| self.compiler == VERSION);
        let origin = source.map(|source| source.origin(&self.manifest.source, &self.target));
        Ok(CompiledModule { ptx: self.ptx.clone(), module, manifest: self.manifest.clone(), origin })
    }

    /// The machine code, if there is any and a device of this capability runs it.
    ///
    /// # Errors
    /// [`FatError::Malformed`] where base64 is damaged.
    pub fn code(&self, device: u32) -> Result<Option<Vec<u8>>, FatError> {
        let runs = capability(&self.target).is_some_and(|made| made / 10 == device / 10 && made <= device);
        let Some(cubin) = self.cubin.as_ref().filter(|_| runs) else { return Ok(None) };
        STANDARD.decode(cubin).map(Some).map_err(|error| FatError::Malformed(format!("its code: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use crate::source::SourceFile;

    /// Its machine code is the text of the PTX.
    fn fat(targets: &[&str]) -> Fat {
        let text = "kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }\n";
        let source = SourceFile::new("double.krn", text);
        let image = |target: &&str| {
            let compiled =
                compile(&source, &CompileOptions::for_target(*target)).expect("it compiles").compiled;
            let code = compiled.ptx.as_bytes().to_vec();
            Image::new(target, compiled, Some(code))
        };
        Fat::new(targets.iter().map(image).collect())
    }

    #[test]
    fn a_document_comes_back_as_it_went() {
        let fat = fat(&["sm_80", "sm_90"]);
        let back = Fat::parse(&fat.to_json()).expect("its own text");
        assert_eq!(back, fat);
        let image = back.image(Some(90)).expect("it is there");
        let module = image.module().expect("its own PTX");
        assert_eq!(ptx::print(&module.module), image.ptx);
        let symbols = vec![None; module.manifest.kernels[0].symbols.len()];
        let special = |image: &Image| {
            let origin = image.module().expect("its own PTX").origin;
            origin.map(|origin| origin.specialize("double", &symbols).map(|module| module.manifest.target))
        };
        assert!(matches!(special(image), Some(Ok(target)) if target == "sm_90"));
        assert_eq!((image.compiler.as_str(), image.table.as_str()), (VERSION, TABLE));
        let older = Image { compiler: "0.0.1".to_string(), ..image.clone() };
        let closed = Image { source: None, ..image.clone() };
        assert!(special(&older).is_none() && special(&closed).is_none());
        assert_eq!(image.code(90).expect("its own code").as_deref(), Some(image.ptx.as_bytes()));
    }

    #[test]
    fn machine_code_waits_where_the_target_can() {
        for (target, waits) in [("sm_80", false), ("sm_90", true)] {
            let mut given = fat(&[target]);
            let compiled = given.images.remove(0).module().expect("its own PTX");
            // Its machine code is the text of the PTX again.
            let assemble = |ptx: &str, _: &str| Ok::<_, ()>(ptx.as_bytes().to_vec());
            let image = Image::assembled(target, compiled, assemble).expect("it never fails");
            let code = image.code(90).expect("its own").unwrap_or_default();
            let wait = code.windows(19).any(|words| words == b"griddepcontrol.wait");
            assert_eq!((image.waits, wait), (waits, waits));
            assert!(!image.ptx.contains("griddepcontrol"), "for the driver of whoever reads it");
            let document = Fat::new(vec![image]);
            assert_eq!(Fat::parse(&document.to_json()), Ok(document));
        }
    }

    #[test]
    fn a_device_gets_the_newest_image_that_runs_there() {
        let fat = fat(&["sm_80", "sm_90a", "sm_75", "sm_90"]);
        let target = |device| fat.image(device).map(|image| image.target.as_str());
        assert_eq!(target(None), Ok("sm_90a"));
        assert_eq!(target(Some(90)), Ok("sm_90a"));
        assert_eq!(target(Some(100)), Ok("sm_90"));
        assert_eq!(target(Some(89)), Ok("sm_80"));
        assert_eq!(target(Some(75)), Ok("sm_75"));
        assert!(matches!(target(Some(70)), Err(FatError::NoTarget { capability: 70, .. })));
        // Machine code is for one generation.
        let image = &fat.images[0];
        assert!(image.code(86).expect("good base64").is_some() && image.code(90).expect("unused").is_none());
    }

    #[test]
    fn what_is_no_such_document_is_refused() {
        assert!(matches!(Fat::parse("{"), Err(FatError::Malformed(_))));
        assert!(matches!(Fat::parse("[1]"), Err(FatError::Malformed(_))));
        let newer = r#"{"format": "krn fat 3", "images": 7}"#;
        assert_eq!(Fat::parse(newer), Err(FatError::Format("krn fat 3".to_string())));
        let mut broken = fat(&["sm_90"]);
        broken.images[0].cubin = Some("not base64".to_string());
        assert!(matches!(broken.images[0].code(90), Err(FatError::Malformed(_))));
        broken.images[0].ptx.push('}');
        assert!(matches!(broken.images[0].module(), Err(FatError::Malformed(_))));
    }
}
