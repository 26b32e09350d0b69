//! Files that arrays come from and go to: `.npy` files with one array, `.npz` files with several by name.

use crate::exit::{Failure, INPUT, Result, USAGE};
use crate::files::{self, Target};
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_runtime::{npy, npz};
use std::path::{Path, PathBuf};

/// A file, or an array of a `.npz` file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayFile {
    pub path: PathBuf,
    /// The array's name, where the file has several.
    pub member: Option<String>,
    /// The precision in which its floats are taken, whatever the file has: `x.npy as bf16`.
    pub precision: Option<Scalar>,
}

const FLOATS: [Scalar; 4] = [Scalar::F64, Scalar::F32, Scalar::F16, Scalar::BF16];

impl ArrayFile {
    /// `x.npy`, `all.npz:x`, or `all.npz` for the array that is called like the argument, each perhaps with a type of
    /// floats behind it, `x.npy as bf16`; `None` for anything else.
    pub fn parse(text: &str, argument: &str) -> Option<Self> {
        let converted = text.rsplit_once(" as ").map(|(file, name)| (file, Scalar::from_name(name.trim())));
        if let Some((file, Some(precision))) = converted {
            let precision = Some(precision).filter(|scalar| FLOATS.contains(scalar))?;
            let file = Self::parse(file.trim_end(), argument).filter(|file| file.precision.is_none())?;
            return Some(Self { precision: Some(precision), ..file });
        }
        let several = |path: &str, member: &str| Self {
            path: path.into(),
            member: Some(member.to_string()),
            precision: None,
        };
        if let Some(at) = text.rfind(".npz:") {
            let (path, member) = (&text[..at + ".npz".len()], &text[at + ".npz:".len()..]);
            return (!member.is_empty()).then(|| several(path, member));
        }
        if text.ends_with(".npz") {
            return Some(several(text, argument));
        }
        text.ends_with(".npy").then(|| Self::single(text))
    }

    /// A file with one array, whatever its name.
    pub fn single(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), member: None, precision: None }
    }

    pub fn read(&self, argument: &str, wanted: &ElementType) -> Result<HostArray> {
        let bytes = files::read(&self.path)?;
        let read = |wanted: &ElementType| match &self.member {
            None => npy::read(&bytes, wanted),
            Some(member) => npz::read(&bytes, member, wanted),
        };
        let failure = |message: String| {
            Failure::new(INPUT, format!("`{}` for `{argument}`: {message}", self.path.display()))
        };
        let error = match (self.precision, wanted.as_scalar()) {
            (Some(precision), scalar) if scalar != Some(precision) => {
                return Err(failure(format!(
                    "`as {precision}` is not the type of `{argument}`, which is `{}`",
                    wanted.name
                )));
            }
            _ => match read(wanted) {
                Ok(array) => return Ok(array),
                Err(error) => error,
            },
        };
        // Floats of another precision are taken only where that is asked for.
        let scalar = wanted.as_scalar().filter(|scalar| FLOATS.contains(scalar));
        let other = scalar.and_then(|to| {
            let given = FLOATS.into_iter().find_map(|from| read(&ElementType::scalar(from)).ok())?;
            npy::in_precision(&given, to)
        });
        match (other, scalar) {
            (Some(array), _) if self.precision.is_some() => Ok(array),
            (Some(_), Some(scalar)) => Err(failure(format!(
                "{error}; to convert it say so: --in '{argument}={} as {scalar}'",
                self.spelled()
            ))),
            _ => Err(failure(error.to_string())),
        }
    }

    /// As [`ArrayFile::parse`] reads it.
    fn spelled(&self) -> String {
        match &self.member {
            None => self.path.display().to_string(),
            Some(member) => format!("{}:{member}", self.path.display()),
        }
    }

    /// Whether both cannot be written: the same array of a file, or a file and an array of it.
    fn clashes(&self, other: &ArrayFile) -> bool {
        self.path == other.path
            && (self.member == other.member || self.member.is_none() || other.member.is_none())
    }
}

/// That no file, or array of a file, is written twice.
pub fn check_apart<'f>(written: impl Iterator<Item = &'f ArrayFile>, file: &ArrayFile) -> Result<()> {
    let mut written = written;
    match (written.any(|known| known.clashes(file)), &file.member) {
        (false, _) => Ok(()),
        (true, None) => Err(Failure::new(USAGE, format!("--out writes `{}` twice", file.path.display()))),
        (true, Some(member)) => {
            Err(Failure::new(USAGE, format!("--out writes `{}:{member}` twice", file.path.display())))
        }
    }
}

/// The files that results go to, known to be writable. Each is written whole: a `.npz` file has the arrays of this run and
/// no others.
pub struct Targets<'f> {
    files: Vec<Written<'f>>,
}

/// One file, and the results that go there.
struct Written<'f> {
    path: &'f Path,
    target: Target<'f>,
    results: Vec<(&'f str, &'f ArrayFile)>,
}

impl<'f> Targets<'f> {
    /// Of results by name.
    pub fn open(outputs: &'f [(String, ArrayFile)]) -> Result<Self> {
        let mut files: Vec<Written<'f>> = Vec::new();
        for (name, file) in outputs {
            let (path, result) = (file.path.as_path(), (name.as_str(), file));
            match files.iter_mut().find(|known| known.path == path) {
                Some(known) => known.results.push(result),
                None => files.push(Written { path, target: Target::new(path)?, results: vec![result] }),
            }
        }
        Ok(Self { files })
    }

    pub fn write(self, results: &[(String, HostArray)]) -> Result<()> {
        for Written { target, results: wanted, .. } in self.files {
            let result = |name: &str| results.iter().find(|(known, _)| known == name).map(|(_, array)| array);
            let named: Vec<(Option<&str>, &HostArray)> = wanted
                .iter()
                .filter_map(|(name, file)| Some((file.member.as_deref(), result(name)?)))
                .collect();
            match named.as_slice() {
                [] => {}
                [(None, array)] => target.write(&npy::write(array))?,
                several => {
                    let several: Vec<(&str, &HostArray)> =
                        several.iter().filter_map(|(member, array)| Some(((*member)?, *array))).collect();
                    let bytes = npz::write(&several);
                    target.write(&bytes.map_err(|error| Failure::new(USAGE, error.to_string()))?)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_files_have_names() {
        let parse =
            |text| ArrayFile::parse(text, "x").map(|file| (file.path.display().to_string(), file.member));
        let npz = |path: &str, member: &str| Some((path.to_string(), Some(member.to_string())));
        assert_eq!(parse("a/b.npy"), Some(("a/b.npy".to_string(), None)));
        assert_eq!(parse("a/b.npz"), npz("a/b.npz", "x"));
        assert_eq!(parse("a/b.npz:weights"), npz("a/b.npz", "weights"));
        assert_eq!(parse("c:/b.npz:a.npy"), npz("c:/b.npz", "a.npy"));
        assert_eq!((parse("a.npz:"), parse("a.txt")), (None, None));
        let precision = |text| ArrayFile::parse(text, "x").map(|file| file.precision);
        assert_eq!(precision("a/b.npy as bf16"), Some(Some(Scalar::BF16)));
        assert_eq!(precision("a/b.npz:w as f64"), Some(Some(Scalar::F64)));
        assert_eq!(precision("a/b as c.npy"), Some(None));
        assert_eq!(precision("a.npy as i32"), None);
        assert_eq!(precision("a.npy as f32 as f16"), None);
    }
}
