//! The thread that a kernel runs on: it stands still where it stops, and answers what it is asked.

use super::program::Program;
use super::stops::{Mode, Stop, Stops};
use super::transport::Client;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use krn_runtime::emulator::Fault;
use krn_runtime::emulator::debug::{Debugger, Launched, Moment};
use krn_runtime::verify;
use krn_runtime::{Device, Error};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lines that breakpoints with messages may say.
const MOST_SAID: u64 = 10_000;

type Look = Box<dyn FnOnce(&Moment<'_>) + Send>;

/// What the thread that stands still is asked.
enum Ask {
    Look(Look),
    Go(Mode),
    End,
}

/// A run of a kernel.
pub struct Session {
    pub program: Arc<Program>,
    client: Arc<Client>,
    stops: Mutex<Stops>,
    asks: Receiver<Ask>,
    ask: Sender<Ask>,
    /// The thread stands still.
    standing: AtomicBool,
    pausing: AtomicBool,
    interrupted: Arc<AtomicBool>,
    /// The last stop, for who asks why.
    last: Mutex<Option<Stop>>,
    /// Whose lanes the editor's threads were at the last stop: launch, block, warp, and which of them did not wait.
    shown: Mutex<Option<(u64, u64, usize, u32)>>,
    said: AtomicU64,
    blind: bool,
}

impl Session {
    pub fn new(program: Arc<Program>, client: Arc<Client>, stops: Stops, blind: bool) -> Arc<Self> {
        let (ask, asks) = unbounded();
        Arc::new(Self {
            program,
            client,
            stops: Mutex::new(stops),
            asks,
            ask,
            standing: AtomicBool::new(false),
            pausing: AtomicBool::new(false),
            interrupted: Arc::default(),
            last: Mutex::new(None),
            shown: Mutex::new(None),
            said: AtomicU64::new(0),
            blind,
        })
    }

    /// What decides where to stop.
    pub fn stops(&self) -> MutexGuard<'_, Stops> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the run.
    pub fn start(self: &Arc<Self>, sanitize: bool) -> std::io::Result<()> {
        let session = Arc::clone(self);
        let run = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| session.run(sanitize)));
            session.standing.store(false, Ordering::SeqCst);
            let code = match ended {
                Ok(Ok(text)) => {
                    session.client.say("stdout", text.trim_end());
                    0
                }
                Ok(Err(Error::Interrupted)) => 130,
                Ok(Err(error)) => {
                    session.client.say("stderr", &error.to_string());
                    i32::from(crate::exit::DEVICE)
                }
                Err(_) => {
                    session.client.say("stderr", "the debugger has a bug: the run has ended");
                    1
                }
            };
            session.client.event("exited", json!({ "exitCode": code }));
            session.client.event("terminated", json!({}));
        };
        std::thread::Builder::new().name("kernel".to_string()).spawn(run).map(drop)
    }

    fn run(self: &Arc<Self>, sanitize: bool) -> Result<String, Error> {
        let flag = Arc::clone(&self.interrupted);
        let debugger: Arc<dyn Debugger> = Arc::clone(self) as Arc<dyn Debugger>;
        let device = Device::debugged_emulator(flag, debugger, sanitize);
        let program = &self.program;
        let module = device.load(&program.compilation.compiled)?;
        let session = Arc::downgrade(self);
        device.watch_prints(move |prints| {
            if let Some(session) = session.upgrade() {
                session.client.say("stdout", &prints.to_string());
            }
        });
        let outputs = verify::run(&module, program.kernel(), &program.case)?;
        let mut text = format!("{} has ended\n", program.kernel().name);
        for (name, array) in &outputs.arrays {
            text.push_str(&format!("  {name}: {}\n", crate::commands::run::preview(array)));
        }
        Ok(text)
    }

    /// Looks at the moment at which the thread stands still; `None` where it runs.
    pub fn look<T: Send + 'static>(&self, look: impl FnOnce(&Moment<'_>) -> T + Send + 'static) -> Option<T> {
        if !self.standing.load(Ordering::SeqCst) {
            return None;
        }
        let (send, receive) = bounded(1);
        let look: Look = Box::new(move |moment| drop(send.send(look(moment))));
        self.ask.send(Ask::Look(look)).ok()?;
        receive.recv().ok()
    }

    /// Goes on; whether it stood still.
    pub fn go(&self, mode: Mode) -> bool {
        let stood = self.standing.swap(false, Ordering::SeqCst);
        stood && self.ask.send(Ask::Go(mode)).is_ok()
    }

    pub fn pause(&self) {
        self.pausing.store(true, Ordering::SeqCst);
    }

    /// Gives the run up.
    pub fn end(&self) {
        self.interrupted.store(true, Ordering::SeqCst);
        if self.standing.swap(false, Ordering::SeqCst) {
            let _ = self.ask.send(Ask::End);
        }
    }

    /// Why it stands still.
    pub fn last_stop(&self) -> Option<Stop> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stands still.
    fn stand(&self, moment: &Moment<'_>, stop: Stop) {
        let (thread, reason) = (stop.lane + 1, stop.reason);
        let mut body = json!({ "reason": reason, "threadId": thread, "allThreadsStopped": true });
        if let Some(text) = &stop.text {
            body["text"] = text.lines().next().unwrap_or_default().into();
            body["description"] = "Stopped at a failure".into();
        }
        if !stop.breakpoints.is_empty() {
            body["hitBreakpointIds"] = stop.breakpoints.clone().into();
        }
        let mut stops = self.stops();
        stops.look_at(moment, stop.lane);
        let lanes = (stops.launch, moment.block, moment.warp, moment.active);
        drop(stops);
        let before = self.shown.lock().unwrap_or_else(PoisonError::into_inner).replace(lanes);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
        self.pausing.store(false, Ordering::SeqCst);
        self.standing.store(true, Ordering::SeqCst);
        // Who gave the run up just before does not know that it stands.
        if self.interrupted.load(Ordering::SeqCst) {
            self.standing.store(false, Ordering::SeqCst);
            return;
        }
        if before.is_some_and(|before| before != lanes) {
            // The threads have other names now: an editor that keeps what it was told asks again for one that was gone.
            self.client.event("thread", json!({ "reason": "exited", "threadId": thread }));
        }
        self.client.event("stopped", body);
        loop {
            match self.asks.recv() {
                Ok(Ask::Look(look)) => look(moment),
                Ok(Ask::Go(mode)) => {
                    self.stops().mode = mode;
                    return;
                }
                Ok(Ask::End) | Err(_) => return,
            }
        }
    }

    fn say(&self, text: &str) {
        match self.said.fetch_add(1, Ordering::Relaxed) {
            count if count < MOST_SAID => self.client.say("console", text),
            MOST_SAID => self.client.say("console", "… no more is said: it was too much"),
            _ => {}
        }
    }
}

impl Debugger for Session {
    fn begins(&self, launch: &Launched<'_>) {
        let bytes = launch.argument("error_record").and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        let threads: u64 = launch.block().iter().map(|extent| u64::from(*extent)).product();
        self.stops().begin(threads.div_ceil(32) as usize, bytes.map(u64::from_le_bytes));
    }

    fn instruction(&self, moment: &Moment<'_>) {
        if self.blind || self.interrupted.load(Ordering::Relaxed) {
            return;
        }
        let mut stops = self.stops();
        if self.pausing.load(Ordering::Relaxed) {
            stops.mode = Mode::Pause;
        }
        let stop = stops.decide(&self.program, moment, &mut |text| self.say(&text));
        drop(stops);
        if let Some(stop) = stop {
            self.stand(moment, stop);
        }
    }

    fn failed(&self, moment: &Moment<'_>, fault: &Fault) {
        if self.blind || self.interrupted.load(Ordering::Relaxed) {
            return;
        }
        let [width, height, _] = moment.launch.block();
        let [x, y, z] = fault.thread;
        let lane = (x + width * (y + height * z)) as usize % 32;
        let stop = Stop { reason: "exception", text: Some(fault.to_string()), breakpoints: Vec::new(), lane };
        self.stand(moment, stop);
    }

    fn ends(&self) {}
}
