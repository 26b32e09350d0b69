//! A progress bar on work that takes longer than a second, on terminals only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);
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
        let mut progress = Self { bar: hidden_bar(), stop: None, drawing: None };
        if std::io::stderr().is_terminal() {
            let (stop, stopped) = channel();
            let bar = progress.bar.clone();
            progress.stop = Some(stop);
            progress.drawing = Some(std::thread::spawn(move || {
                draw(&bar, &stopped, PATIENCE, ProgressDrawTarget::stderr, state);
            }));
        }
        progress
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
    fn a_bar_comes_after_a_while_by_itself() {
        let quick = Duration::from_millis(1);
        let long = shown(Duration::from_millis(500), quick);
        assert!(long.contains("checking c [==============") && long.contains("=>   "), "{long}");
        assert_eq!(shown(quick, Duration::from_secs(60)), "");
    }
}
