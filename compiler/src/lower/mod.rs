//! Typed kernel to IR in phase `abstract`.
