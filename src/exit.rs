//! Exit codes, and failures that carry one.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | all is well |
//! | 1 | mistakes in a `.krn` or `.kir` file, codes that do not exist, or `krn fmt --check` would change a file |
//! | 2 | wrong use of the command line |
//! | 3 | a result differs from the reference evaluator's |
//! | 4 | a device, launch or bounds failure |
//! | 5 | a file could not be read or written |
//! | 6 | not verified: nothing is known to be wrong, but too little could be judged |
//! | 130 | interrupted |

use std::fmt::Display;

pub const INPUT: u8 = 1;
pub const USAGE: u8 = 2;
pub const MISMATCH: u8 = 3;
pub const DEVICE: u8 = 4;
pub const FILE: u8 = 5;
pub const NOT_VERIFIED: u8 = 6;
pub const INTERRUPTED: u8 = 130;

/// Why a command did not succeed.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    /// Empty where everything has been said already.
    message: String,
}

impl Failure {
    pub fn new(code: u8, message: impl Display) -> Self {
        Self { code, message: message.to_string() }
    }

    /// Everything has been said on the terminal already.
    pub fn silent(code: u8) -> Self {
        Self { code, message: String::new() }
    }

    /// The same about something, which the message may begin with.
    pub fn about(self, subject: impl Display) -> Self {
        let subject = subject.to_string();
        match self.message.is_empty() || self.message.starts_with(&subject) {
            true => self,
            false => Self { message: format!("{subject}: {}", self.message), ..self },
        }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn print(&self) {
        if !self.message.is_empty() {
            eprintln!("error: {}", self.message);
        }
    }
}

impl From<krn_runtime::Error> for Failure {
    fn from(error: krn_runtime::Error) -> Self {
        let code = match error {
            krn_runtime::Error::Interrupted => INTERRUPTED,
            krn_runtime::Error::Argument { .. } | krn_runtime::Error::UnknownKernel { .. } => USAGE,
            _ => DEVICE,
        };
        Self::new(code, error)
    }
}

pub type Result<T> = std::result::Result<T, Failure>;
