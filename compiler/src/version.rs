//! What says which code a compiler makes: two that say the same make the same bytes of the same request.

/// The version of the compiler: that of the crate, and a hash of its sources.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("KRN_SOURCES"));

/// The version of the table of figures of GPUs by which choices are made; the version of the compiler says as much, and more.
pub const TABLE: &str = env!("KRN_TABLE");

/// Both, for people: `0.1.0+9a3c… (table 51f0…)`.
pub const VERSIONS: &str =
    concat!(env!("CARGO_PKG_VERSION"), "+", env!("KRN_SOURCES"), " (table ", env!("KRN_TABLE"), ")");
