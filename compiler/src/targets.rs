//! The GPUs that kernels are compiled for, by name. What each can do stands in `ptx/target.rs`.

/// The targets that PTX is written for, oldest first. Every program is assembled for each of them in the tests.
pub const TARGETS: &[&str] = &["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"];

/// The compute capability of a target as 10 × major + minor.
pub fn capability(target: &str) -> Option<u32> {
    if !TARGETS.contains(&target) {
        return None;
    }
    target.strip_prefix("sm_")?.trim_end_matches('a').parse().ok()
}
