//! torch for the tests of the Python package: who wants it, and where it comes from.

use std::process::Command;

/// What is installed from PyPI: versions that the tests have passed with. For Linux it comes with NVIDIA's libraries, of
/// which [`SIZE`] tells, and runs on machines without a GPU as well.
pub const REQUIREMENT: &str = "torch>=2.11,<2.16";

/// The oldest version of it.
const OLDEST: (u32, u32) = (2, 11);

/// What installing it takes.
pub const SIZE: &str = "for Linux 3 GB to download, 5 GB on the disk";

/// Says to the tests of the package that torch is there: they fail then where it is not, and skip nothing for want of it.
pub const IS_THERE: &str = "KRN_TORCH_IS_THERE";

/// Whether this is continuous integration, where nothing is left out.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|said| !said.is_empty() && said != "false" && said != "0")
}

/// The version of torch that an interpreter has, where the tests can use it.
pub fn of_interpreter(interpreter: &str) -> Option<String> {
    let said = Command::new(interpreter)
        .args(["-c", "from importlib.metadata import version; print(version('torch'))"])
        .output()
        .ok()
        .filter(|said| said.status.success())?;
    let version = String::from_utf8_lossy(&said.stdout).trim().to_string();
    is_new_enough(&version).then_some(version)
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
