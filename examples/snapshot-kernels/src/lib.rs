//! The kernels of a project, as text: what its host code compiles and launches. Their PTX is snapshot-tested in
//! `tests/ptx.rs`; `docs/testing-kernels.md` tells how that works.

/// Blurs an image along its rows.
pub const BLUR: &str = include_str!("../kernels/blur.krn");

/// Mean and variance of each row.
pub const ROW_STATISTICS: &str = include_str!("../kernels/row_statistics.krn");
