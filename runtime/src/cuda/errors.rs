//! Errors of the driver, in words.

use crate::error::Error;
use cudarc::driver::result::DriverError;

/// `an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)`.
pub(super) fn driver_message(error: DriverError) -> String {
    let name = error.error_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let text = error.error_string().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{text} ({name})")
}

/// For calls before there is a context.
pub(super) fn driver_error(call: &str) -> impl FnOnce(DriverError) -> Error + '_ {
    move |error| {
        let (call, message) = (call.to_string(), driver_message(error));
        Error::Driver { call, message, in_flight: Vec::new() }
    }
}

/// What was made on one device was given to another.
pub(super) fn elsewhere(call: &str, what: &str) -> Error {
    let message = format!("{what} on another device");
    Error::Driver { call: call.to_string(), message, in_flight: Vec::new() }
}
