//! The time, where there is a clock: nothing else in the compiler asks for it.

#[cfg(not(target_family = "wasm"))]
mod clock_of_system {
    use std::time::{Duration, Instant};

    /// A point in time.
    #[derive(Clone, Copy, Debug)]
    pub struct Start(Instant);

    impl Start {
        pub fn now() -> Self {
            Self(Instant::now())
        }

        /// The time since.
        pub fn elapsed(self) -> Duration {
            self.0.elapsed()
        }
    }
}

/// WebAssembly has none of its own: all times are zero.
#[cfg(target_family = "wasm")]
mod clock_of_system {
    use std::time::Duration;

    /// A point in time.
    #[derive(Clone, Copy, Debug)]
    pub struct Start;

    impl Start {
        pub fn now() -> Self {
            Self
        }

        /// The time since.
        pub fn elapsed(self) -> Duration {
            Duration::ZERO
        }
    }
}

pub use clock_of_system::Start;
