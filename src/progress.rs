//! A progress bar on work that takes longer than a second, on terminals; elsewhere a line where something does not end.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// Off terminals, what goes on is told where it has gone on for so long, and then twice as long, and so on.
const LONG: Duration = Duration::from_secs(10);
const REDRAWN: Duration = Duration::from_millis(100);
/// Positions of a full bar.
const FULL: u64 = 1000;

/// How far something has come: what goes on, and the share of it that is done, from 0 to 1.
pub type State = (String, f64);

/// Shown once a second has passed, whatever the work does meanwhile; gone when dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Dropped to end the thread that draws.
    stop: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl Progress {
    /// Of work that is asked how far it has come.
    pub fn watching(state: impl Fn() -> State + Send + 'static) -> Self {
        let bar = hidden_bar();
        let (stop, stopped) = channel();
        let shown = bar.clone();
        let drawing = std::thread::spawn(move || match std::io::stderr().is_terminal() {
            true => draw(&shown, &stopped, PATIENCE, ProgressDrawTarget::stderr, state),
            false => tell(&stopped, LONG, |line| eprintln!("{line}"), state),
        });
        Self { bar, stop: Some(stop), drawing: Some(drawing) }
    }

    /// Prints something where the bar is not in the way.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

fn hidden_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(FULL), ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {elapsed}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn draw(
    bar: &ProgressBar,
    stopped: &Receiver<()>,
    patience: Duration,
    target: impl FnOnce() -> ProgressDrawTarget,
    state: impl Fn() -> State,
) {
    let more = |time| stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    if !more(patience) {
        return;
    }
    bar.set_draw_target(target());
    loop {
        let (what, share) = state();
        bar.set_message(what);
        bar.set_position((share.clamp(0.0, 1.0) * FULL as f64) as u64);
        if !more(REDRAWN) {
            return;
        }
    }
}

/// Says what goes on where that stays the same for long.
fn tell(stopped: &Receiver<()>, patience: Duration, mut say: impl FnMut(String), state: impl Fn() -> State) {
    let (mut wait, mut waited) = (patience, Duration::ZERO);
    loop {
        let (before, _) = state();
        if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let (now, share) = state();
        if now == before {
            waited += wait;
            wait *= 2;
            let percent = share.clamp(0.0, 1.0) * 100.0;
            say(format!("still {now}, {} s by now, {percent:.0}% done; Ctrl-C ends it", waited.as_secs()));
        } else {
            (wait, waited) = (patience, Duration::ZERO);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(drawing) = self.drawing.take() {
            // A bar that could not be drawn is no reason to fail.
            let _ = drawing.join();
        }
        self.bar.finish_and_clear();
    }
}

/// A bar over pieces of work that are done one after the other.
pub struct Counted {
    pub progress: Progress,
    /// What is being done, and how many pieces are behind it.
    state: Arc<Mutex<(String, u64)>>,
}

impl Counted {
    pub fn new(total: usize, verb: &'static str) -> Self {
        let state = Arc::new(Mutex::new((String::new(), 0u64)));
        let shared = Arc::clone(&state);
        let progress = Progress::watching(move || {
            let (what, begun) = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let share = begun.saturating_sub(1) as f64 / total.max(1) as f64;
            (format!("{verb} {what} ({begun} of {total})"), share)
        });
        Self { progress, state }
    }

    /// Begins the next piece.
    pub fn advance(&mut self, what: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = (what.to_string(), state.1 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Keeps what is written to it.
    #[derive(Clone, Debug, Default)]
    struct Recorder(Arc<Mutex<String>>);

    impl TermLike for Recorder {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> std::io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> std::io::Result<()> {
            self.0.lock().expect("no other test has it").push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> std::io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What the bar shows of work that takes so long.
    fn shown(work: Duration, patience: Duration) -> String {
        let recorder = Recorder::default();
        let target = {
            let recorder = recorder.clone();
            move || ProgressDrawTarget::term_like(Box::new(recorder))
        };
        let (stop, stopped) = channel();
        let drawing = std::thread::spawn(move || {
            draw(&hidden_bar(), &stopped, patience, target, || ("checking c".to_string(), 0.5));
        });
        std::thread::sleep(work);
        drop(stop);
        drawing.join().expect("it draws");
        recorder.0.lock().expect("nobody else has it").clone()
    }

    #[test]
    fn what_does_not_end_is_told_off_terminals() {
        let (stop, stopped) = channel();
        let mut stop = Some(stop);
        let mut told = Vec::new();
        let say = |line| {
            told.push(line);
            if told.len() == 2 {
                stop.take();
            }
        };
        tell(&stopped, Duration::from_millis(1), say, || ("running k, launch 1".to_string(), 0.0));
        assert_eq!(told, ["still running k, launch 1, 0 s by now, 0% done; Ctrl-C ends it"; 2]);
        // What goes on is told of by what it brings.
        let count = AtomicU64::new(0);
        let (stop, stopped) = channel();
        let stop = Mutex::new(Some(stop));
        let state = || {
            let count = count.fetch_add(1, Ordering::Relaxed);
            if count > 8 {
                stop.lock().expect("nobody else has it").take();
            }
            (format!("testing {count}"), 0.5)
        };
        tell(&stopped, Duration::from_millis(1), |line| panic!("{line}"), state);
    }

    #[test]
    fn a_bar_comes_after_a_while_by_itself() {
        let quick = Duration::from_millis(1);
        let long = shown(Duration::from_millis(500), quick);
        assert!(long.contains("checking c [==============") && long.contains("=>   "), "{long}");
        assert_eq!(shown(quick, Duration::from_secs(60)), "");
    }
}
