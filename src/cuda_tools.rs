//! NVIDIA's command-line programs (`ptxas`, `nvdisasm`), wherever they were installed: by a CUDA toolkit, by pip, or by
//! `cargo xtask setup`.

use crate::exit::{FILE, Failure, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that was found, and by what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    pub program: PathBuf,
    /// Where it was looked for: `PATH`, a variable, or a kind of installation.
    pub by: String,
}

impl Found {
    /// The last line with a version in what the program says of itself.
    pub fn version(&self) -> Option<String> {
        let output = Command::new(&self.program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().rev().find(|line| line.contains("release"))?;
        Some(line.trim().to_string())
    }
}

/// The variable that names a program: `KRN_PTXAS`.
pub fn variable(program: &str) -> String {
    format!("KRN_{}", program.to_uppercase())
}

/// The program that its variable names, else the first of `PATH`, of `cargo xtask setup`, of pip, and of a CUDA toolkit.
/// `None` as well where the variable is empty.
///
/// # Errors
/// The variable names what is no file.
pub fn find(program: &str) -> Result<Option<Found>> {
    Places::of_this_process().find(program)
}

/// What is looked through.
struct Places {
    /// What the program's variable says.
    named: fn(&str) -> Option<OsString>,
    path: Vec<PathBuf>,
    /// Folders that may be `target/` of this repository, or hold it.
    around: Vec<PathBuf>,
    /// Folders with a `lib/python3*` in them.
    python: Vec<PathBuf>,
    toolkits: Vec<PathBuf>,
}

impl Places {
    fn of_this_process() -> Self {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path: Vec<PathBuf> =
            std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        let ancestors = |path: Option<PathBuf>| {
            path.map(|path| path.ancestors().map(Path::to_path_buf).collect::<Vec<_>>()).unwrap_or_default()
        };
        let mut around = ancestors(std::env::current_dir().ok());
        around.extend(ancestors(std::env::current_exe().ok()));
        let mut python: Vec<PathBuf> = folder("VIRTUAL_ENV").into_iter().collect();
        python.extend(folder("CONDA_PREFIX"));
        python.extend(folder("HOME").map(|home| home.join(".local")));
        // `pip` installs beside the Python that runs it.
        python.extend(path.iter().filter_map(|folder| folder.parent()).map(Path::to_path_buf));
        let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(folder).collect();
        toolkits.extend(["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from));
        Self { named: |program| std::env::var_os(variable(program)), path, around, python, toolkits }
    }

    fn find(&self, program: &str) -> Result<Option<Found>> {
        let variable = variable(program);
        if let Some(named) = (self.named)(program) {
            if named.is_empty() {
                return Ok(None);
            }
            let found = PathBuf::from(named);
            if found.is_file() {
                return Ok(Some(Found { program: found, by: variable }));
            }
            let message = format!("{variable} names `{}`, which is not a file", found.display());
            return Err(Failure::new(FILE, message));
        }
        let file = format!("{program}{}", std::env::consts::EXE_SUFFIX);
        let setup = self.around.iter().flat_map(|folder| {
            [folder.join("cuda-tools"), folder.join("target").join("cuda-tools")]
                .into_iter()
                .flat_map(packages)
        });
        let pip = self.python.iter().flat_map(|folder| site_packages(folder)).flat_map(packages);
        let places = self
            .path
            .iter()
            .map(|folder| (folder.clone(), "PATH"))
            .chain(setup.map(|folder| (folder, "cargo xtask setup")))
            .chain(pip.map(|folder| (folder, "pip")))
            .chain(self.toolkits.iter().map(|folder| (folder.join("bin"), "a CUDA toolkit")));
        let mut programs =
            places.map(|(folder, by)| Found { program: folder.join(&file), by: by.to_string() });
        Ok(programs.find(|found| found.program.is_file()))
    }
}

/// The folders with programs of NVIDIA's Python packages below a folder: `nvidia/<package>/bin`.
fn packages(folder: PathBuf) -> Vec<PathBuf> {
    folders(&folder.join("nvidia")).into_iter().map(|package| package.join("bin")).collect()
}

/// Where the packages of a Python installation are.
fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    let versions = folders(&prefix.join("lib")).into_iter().filter(|folder| {
        folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python3"))
    });
    versions.flat_map(|version| [version.join("site-packages"), version.join("dist-packages")]).collect()
}

/// What lies in a folder, in the order of the names; nothing where there is none.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(folder: &Path) -> PathBuf {
        std::fs::create_dir_all(folder).expect("a temporary folder");
        let program = folder.join(format!("ptxas{}", std::env::consts::EXE_SUFFIX));
        std::fs::write(&program, "").expect("a temporary file");
        program
    }

    #[test]
    fn programs_are_found_where_each_installer_puts_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path();
        let nothing = || Places {
            named: |_| None,
            path: Vec::new(),
            around: Vec::new(),
            python: Vec::new(),
            toolkits: Vec::new(),
        };
        let found = |places: &Places| {
            let found = places.find("ptxas").expect("nothing is named");
            found.map(|found| (found.program, found.by))
        };
        let by = |path: &Path, by: &str| Some((path.to_path_buf(), by.to_string()));
        assert_eq!(found(&nothing()), None);

        let toolkit = install(&root.join("cuda/bin"));
        let mut places = Places { toolkits: vec![root.join("cuda")], ..nothing() };
        assert_eq!(found(&places), by(&toolkit, "a CUDA toolkit"));
        let pip = install(&root.join("venv/lib/python3.12/site-packages/nvidia/cuda_nvcc/bin"));
        places.python = vec![root.join("venv")];
        assert_eq!(found(&places), by(&pip, "pip"));
        let setup = install(&root.join("krn/target/cuda-tools/nvidia/cu13/bin"));
        places.around = vec![root.join("krn/target/debug"), root.join("krn/target"), root.join("krn")];
        assert_eq!(found(&places), by(&setup, "cargo xtask setup"));
        let path = install(&root.join("bin"));
        places.path = vec![root.join("nowhere"), root.join("bin")];
        assert_eq!(found(&places), by(&path, "PATH"));

        places.named = |_| Some(OsString::new());
        assert_eq!(found(&places), None);
        places.named = |_| Some("/no/such/ptxas".into());
        let Err(error) = places.find("ptxas") else { panic!("there is no such file") };
        assert!(error.message().contains("KRN_PTXAS names `/no/such/ptxas`, which is not a file"));
    }
}
