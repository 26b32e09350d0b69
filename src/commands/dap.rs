//! `krn dap`

use crate::dap;
use crate::exit::Result;

pub fn run() -> Result<()> {
    dap::serve();
    Ok(())
}
