//! `krn lsp`

use crate::exit::{FILE, Failure, Result};
use crate::lsp;

pub fn run() -> Result<()> {
    lsp::serve().map_err(|error| Failure::new(FILE, format!("the connection to the editor broke: {error}")))
}
