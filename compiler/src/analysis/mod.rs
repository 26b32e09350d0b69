//! The affine index algebra and what is computed from it: access patterns, uses, trip counts.
