//! torch for the tests of the Python package: who wants it, and where it comes from.

use std::path::PathBuf;
use std::process::Command;

/// What is installed from PyPI: versions that the tests have passed with. For Linux it comes with NVIDIA's libraries, of
/// which [`SIZE`] tells, and runs on machines without a GPU as well.
pub const REQUIREMENT: &str = "torch>=2.11,<2.16";

/// The oldest version of it.
const OLDEST: (u32, u32) = (2, 11);

/// What installing it takes.
pub const SIZE: &str = "for Linux 3 GB to download, 5 GB on the disk";

/// Says to the tests of the package that torch was installed for them: they fail where it cannot be imported, and skip
/// nothing for want of it.
pub const IS_THERE: &str = "KRN_TORCH_IS_THERE";

/// Whether this is continuous integration, where nothing is left out.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|said| !said.is_empty() && said != "false" && said != "0")
}

/// A torch that somebody else installed.
pub struct Found {
    pub version: String,
    /// Where it can be imported from.
    pub folder: PathBuf,
}

/// The torch that an interpreter has, where it is new enough for the tests.
pub fn of_interpreter(interpreter: &str) -> Option<Found> {
    const PROGRAM: &str = "from importlib.metadata import distribution
torch = distribution('torch')
print(torch.version)
print(torch.locate_file(''))";
    let said = Command::new(interpreter).args(["-c", PROGRAM]).output().ok();
    let said = said.filter(|said| said.status.success())?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let (version, folder) = text.trim().split_once('\n')?;
    let found = Found { version: version.trim().to_string(), folder: PathBuf::from(folder.trim()) };
    is_new_enough(&found.version).then_some(found)
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    matches!((numbers.next(), numbers.next()), (Some(Some(major)), Some(Some(minor))) if (major, minor) >= OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared() {
        for (version, wanted) in [
            ("2.15.0", true),
            ("2.11.0+cu130", true),
            ("3.0", true),
            ("2.9.0", false),
            ("1.13.1", false),
            ("2", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), wanted, "{version}");
        }
        assert!(REQUIREMENT.contains(&format!(">={}.{}", OLDEST.0, OLDEST.1)));
    }
}
