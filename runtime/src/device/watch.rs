//! Who is told of what happens on a device: that somebody has waited for code, what kernels print.

use crate::device::prints::Prints;
use krn_compiler::manifest::Value;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// That a launch, or `prepare`, has waited for the code of a kernel: because nobody had launched that code before, or
/// because it was compiled for sizes that none of the known code was chosen for.
#[derive(Clone, PartialEq, Debug)]
pub struct NewVariant {
    pub kernel: String,
    /// The dimensions and parameters for which it was asked for, by name; of `prepare`, those that it was given.
    pub sizes: Vec<(String, Value)>,
    /// For which sizes the code runs, in words.
    pub guard: String,
    /// Why it was not there.
    pub why: String,
    /// What the compiler took; `None` where the code was compiled before.
    pub compile: Option<Duration>,
    /// What the driver took to assemble and load it; `None` where it has the same code for other sizes.
    pub assemble: Option<Duration>,
}

impl fmt::Display for NewVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, sizes, guard, why, compile, assemble } = self;
        let sizes: Vec<String> = sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        let sizes = if sizes.is_empty() { "no sizes".to_string() } else { sizes.join(", ") };
        let time = |what: &str, time: &Option<Duration>| match time {
            Some(time) => format!("{what} in {:.1} ms", time.as_secs_f64() * 1e3),
            None => format!("not {what}"),
        };
        let (compile, assemble) = (time("compiled", compile), time("assembled", assemble));
        write!(f, "kernel `{kernel}`, {sizes}: {why}; code for {guard}; {compile}, {assemble}")
    }
}

type Watcher<E> = Arc<dyn Fn(&E) + Send + Sync>;

/// Those who are told of such events.
pub(crate) struct Watchers<E> {
    known: Mutex<Vec<Watcher<E>>>,
}

impl<E> Default for Watchers<E> {
    fn default() -> Self {
        Self { known: Mutex::default() }
    }
}

impl<E> Watchers<E> {
    pub fn add(&self, watcher: Watcher<E>) {
        // A panic elsewhere leaves the list whole: it is changed in single steps.
        self.known.lock().unwrap_or_else(PoisonError::into_inner).push(watcher);
    }

    /// Tells all of them; how many they are.
    fn each(&self, event: &E) -> usize {
        // Without the lock: they may do as they like, launch kernels among other things.
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.iter().for_each(|watcher| watcher(event));
        known.len()
    }
}

impl Watchers<NewVariant> {
    /// Tells all of them, and the log on standard error where `KRN_LOG` names `variants`.
    pub fn tell(&self, variant: &NewVariant) {
        if is_logged() {
            eprintln!("krn: {variant}");
        }
        self.each(variant);
    }
}

impl Watchers<Prints> {
    /// Tells all of them; standard error, where there is nobody.
    pub fn tell(&self, prints: &Prints) {
        if self.each(prints) == 0 {
            eprintln!("{prints}");
        }
    }
}

/// Whether the environment asks for the log.
fn is_logged() -> bool {
    static LOGGED: OnceLock<bool> = OnceLock::new();
    let asks =
        || std::env::var("KRN_LOG").is_ok_and(|asked| asked.split(',').any(|word| word.trim() == "variants"));
    *LOGGED.get_or_init(asks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_all() {
        let mut variant = NewVariant {
            kernel: "k".to_string(),
            sizes: vec![("n".to_string(), Value::Int(8)), ("eps".to_string(), Value::Float(0.5))],
            guard: "n < 64".to_string(),
            why: "this code was never launched before".to_string(),
            compile: None,
            assemble: Some(Duration::from_micros(1500)),
        };
        let text = "kernel `k`, n = 8, eps = 0.5: this code was never launched before; code for n < 64; not compiled, \
                    assembled in 1.5 ms";
        assert_eq!(variant.to_string(), text);
        (variant.sizes, variant.compile) = (Vec::new(), Some(Duration::from_millis(2)));
        variant.assemble = None;
        assert!(variant.to_string().starts_with("kernel `k`, no sizes: "));
        assert!(variant.to_string().ends_with("; compiled in 2.0 ms, not assembled"));
    }
}
