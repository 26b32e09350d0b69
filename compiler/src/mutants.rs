//! Wrong versions of lowering, passes and selection, for the tests that must notice them.
//!
//! `mutant!("licm: a load leaves a loop that writes its buffer", right, wrong)` is `right`. In the crate's own tests it is
//! `wrong` while the mutant of that name is switched on ([`with`]); no other build has the wrong version. A name begins with
//! the pass, or with `lower` or `select`. `passes/tests/mutants.rs` collects the names from the source, and fails where a mutant is not caught.

#[cfg(not(test))]
macro_rules! mutant {
    ($name:literal, $right:expr, $wrong:expr $(,)?) => {
        $right
    };
}

#[cfg(test)]
macro_rules! mutant {
    ($name:literal, $right:expr, $wrong:expr $(,)?) => {
        if crate::mutants::is_on($name) { $wrong } else { $right }
    };
}

pub(crate) use mutant;
#[cfg(test)]
pub(crate) use switch::{is_on, with};

#[cfg(test)]
mod switch {
    use std::cell::Cell;

    thread_local! {
        /// The mutant that is on in this thread, and how often its place was reached.
        static ON: Cell<(Option<&'static str>, u64)> = const { Cell::new((None, 0)) };
    }

    pub fn is_on(name: &str) -> bool {
        let (on, reached) = ON.get();
        let is_on = on == Some(name);
        if is_on {
            ON.set((on, reached + 1));
        }
        is_on
    }

    /// Runs something with a mutant switched on; what comes of it, and how often the mutant's place was reached. Threads that
    /// the work starts do not have it.
    pub fn with<T>(name: &'static str, work: impl FnOnce() -> T) -> (T, u64) {
        struct Off;
        impl Drop for Off {
            fn drop(&mut self) {
                ON.set((None, 0));
            }
        }
        ON.set((Some(name), 0));
        let _off = Off;
        let result = work();
        (result, ON.get().1)
    }
}
