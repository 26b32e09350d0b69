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
pub(crate) use switch::{is_on, reached_by, with};

#[cfg(test)]
mod switch {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;

    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Off,
        /// The mutant of a name, and how often its place was reached.
        On(&'static str, u64),
        /// None is on, and the names of those whose places are reached are kept.
        Noted,
    }

    thread_local! {
        static STATE: Cell<State> = const { Cell::new(State::Off) };
        static REACHED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub fn is_on(name: &'static str) -> bool {
        match STATE.get() {
            State::Off => false,
            State::On(on, reached) => {
                let is_on = on == name;
                if is_on {
                    STATE.set(State::On(on, reached + 1));
                }
                is_on
            }
            State::Noted => {
                REACHED.with_borrow_mut(|reached| reached.insert(name));
                false
            }
        }
    }

    /// Runs something with a mutant switched on; what comes of it, and how often the mutant's place was reached. Threads that
    /// the work starts do not have it.
    pub fn with<T>(name: &'static str, work: impl FnOnce() -> T) -> (T, u64) {
        let (result, last) = during(State::On(name, 0), work);
        (result, if let State::On(_, reached) = last { reached } else { 0 })
    }

    /// Runs something without a mutant; what comes of it, and the mutants whose places it reached: with any other one it does
    /// the same.
    pub fn reached_by<T>(work: impl FnOnce() -> T) -> (T, BTreeSet<&'static str>) {
        REACHED.take();
        let (result, _) = during(State::Noted, work);
        (result, REACHED.take())
    }

    /// What comes of some work in a state, and the state at its end.
    fn during<T>(state: State, work: impl FnOnce() -> T) -> (T, State) {
        struct Off;
        impl Drop for Off {
            fn drop(&mut self) {
                STATE.set(State::Off);
            }
        }
        STATE.set(state);
        let _off = Off;
        let result = work();
        (result, STATE.get())
    }
}
