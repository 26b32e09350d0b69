//! Devices that a fault has made useless to the process.

use std::fmt;

/// Why a device cannot be used any more in this process, and what ran before. CUDA gives up a device's whole context then:
/// its arrays and modules are gone, and each later call on the device fails in the same way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostDevice {
    /// `NVIDIA H200 (sm_90)`.
    pub device: String,
    pub cause: LossCause,
    /// The driver's call that told of it: seldom the one whose fault it is.
    pub call: String,
    /// What the driver said.
    pub message: String,
    /// The latest launches that were not known to be done by then, stream by stream: one of them did it, in all likelihood.
    pub in_flight: Vec<String>,
}

/// What a device was lost by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossCause {
    /// A kernel did what the hardware does not allow: an access outside of all memory, or one that is not aligned.
    Kernel,
    /// The system stopped a kernel that ran too long.
    Timeout,
    /// The hardware failed: memory that cannot be corrected, a link, a GPU that does not answer.
    Hardware,
    /// Somebody else in the process destroyed the context.
    Destroyed,
}

impl LossCause {
    fn advice(self) -> &'static str {
        match self {
            Self::Kernel => {
                "run the kernel on the emulator, with `krn run --sanitize`, to see the line and the threads at fault"
            }
            Self::Timeout => {
                "a GPU that drives a display stops kernels that run for seconds: give them less to do at once"
            }
            Self::Hardware => "`nvidia-smi -q` says more of the hardware",
            Self::Destroyed => "another library in this process reset the device",
        }
    }
}

impl fmt::Display for LostDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, cause, call, message, in_flight } = self;
        write!(f, "{device} is lost to this process: {call} failed: {message}")?;
        write_in_flight(f, in_flight)?;
        write!(f, "\n  all its arrays are gone; only a new process can use it again\n  {}", cause.advice())
    }
}

/// Launches that may have caused a failure, one a line.
pub(crate) fn write_in_flight(f: &mut fmt::Formatter<'_>, in_flight: &[String]) -> fmt::Result {
    if !in_flight.is_empty() {
        f.write_str("\n  launched before, and not known to be done:")?;
    }
    in_flight.iter().try_for_each(|launch| write!(f, "\n    {launch}"))
}
