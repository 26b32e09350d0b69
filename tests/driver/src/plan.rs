//! What goes wrong, as the environment says.
//!
//! `KRN_FAKE_DRIVER` is a list of settings: `version=12040` (the driver's), `devices=0`, `memory=1048576` (bytes of the
//! device), and for each call `cuMemAlloc_v2=2@3`: its third time it gives the error 2. After an error that the driver
//! calls sticky, nearly all calls give that one. `KRN_FAKE_DRIVER_LOG` names a file that gets a line for each call.
//!
//! `stolen=3`: before the third launch, another library of that thread has made its own context current. `quick=1`:
//! calls are not noted and none fails, so that what the runtime adds to a call can be timed.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Errors after which a context is of no use.
const STICKY: &[i32] = &[214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719];
/// What works without a context that is alive.
const ALWAYS: &[&str] = &[
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
];

struct Fault {
    call: String,
    error: i32,
    time: u64,
}

struct Plan {
    numbers: HashMap<String, i64>,
    faults: Vec<Fault>,
}

#[derive(Default)]
struct State {
    calls: HashMap<&'static str, u64>,
    dead: Option<i32>,
}

fn plan() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(|| {
        let mut plan = Plan { numbers: HashMap::new(), faults: Vec::new() };
        let text = std::env::var("KRN_FAKE_DRIVER").unwrap_or_default();
        for (name, value) in text.split(',').filter_map(|setting| setting.split_once('=')) {
            if name.starts_with("cu") {
                let (error, time) = value.split_once('@').unwrap_or((value, "1"));
                if let (Ok(error), Ok(time)) = (error.parse(), time.parse()) {
                    plan.faults.push(Fault { call: name.to_string(), error, time });
                }
            } else if let Ok(value) = value.parse() {
                plan.numbers.insert(name.to_string(), value);
            }
        }
        plan
    })
}

fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// A setting, or what it is without.
pub fn number(name: &str, otherwise: i64) -> i64 {
    plan().numbers.get(name).copied().unwrap_or(otherwise)
}

/// Whether nothing is noted, and nothing fails.
pub fn is_quick() -> bool {
    static QUICK: OnceLock<bool> = OnceLock::new();
    *QUICK.get_or_init(|| number("quick", 0) != 0)
}

/// Writes a line to the log.
pub fn note(line: &str) {
    if let Some(path) = std::env::var_os("KRN_FAKE_DRIVER_LOG")
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        // A log that cannot be written is missed by the test that reads it.
        let _ = writeln!(file, "{line}");
    }
}

/// Notes a call, and gives the error that it has to return, if it has to.
pub fn begin(call: &'static str) -> Option<i32> {
    if is_quick() {
        return None;
    }
    let mut state = state();
    note(call);
    if !ALWAYS.contains(&call) && state.dead.is_some() {
        return state.dead;
    }
    let times = state.calls.entry(call).or_default();
    *times += 1;
    let times = *times;
    let fault = plan().faults.iter().find(|fault| fault.call == call && fault.time == times)?;
    if STICKY.contains(&fault.error) {
        state.dead = Some(fault.error);
    }
    Some(fault.error)
}
