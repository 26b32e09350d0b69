//! The GPUs that kernels are compiled for, by name. What each can do stands in `ptx/target.rs`.

/// The targets that PTX is written for, oldest first. Every program is assembled for each of them in the tests.
pub const TARGETS: &[&str] = &["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"];

/// The newest target that a device of this capability runs, of those that later devices run, too. With `None` (the
/// emulator, which runs all) the default, `sm_90`. `None` for a device older than all targets.
pub fn newest_target(device: Option<u32>) -> Option<&'static str> {
    let Some(device) = device else { return Some("sm_90") };
    let runs =
        |target: &&&str| !target.ends_with('a') && capability(target).is_some_and(|needs| needs <= device);
    TARGETS.iter().filter(runs).max_by_key(|target| capability(target)).copied()
}

/// The compute capability of a target as 10 × major + minor.
pub fn capability(target: &str) -> Option<u32> {
    if !TARGETS.contains(&target) {
        return None;
    }
    target.strip_prefix("sm_")?.trim_end_matches('a').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gets_the_newest_target_that_it_runs() {
        let newest = |device| newest_target(Some(device));
        assert_eq!(newest(90), Some("sm_90"));
        assert_eq!(newest(89), Some("sm_89"));
        assert_eq!(newest(103), Some("sm_100"));
        assert_eq!(newest(70), None);
        assert_eq!(newest_target(None), Some("sm_90"));
    }
}
