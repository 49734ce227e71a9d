//! The timer of guests: a thread that increments the epoch of the engine while any guest runs.
//!
//! A guest yields at each tick, so a call blocks a thread of the server for one tick at most. The timer sleeps while no
//! guest runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use wasmtime::Engine;

/// How long a guest runs before it yields.
pub(crate) const TICK: Duration = Duration::from_millis(2);

/// How many ticks the timer continues after the last guest, so that calls in a row need not wake it.
const IDLE_TICKS: u32 = 100;

#[derive(Default)]
struct Shared {
    running: AtomicUsize,
    asleep: AtomicBool,
    stop: AtomicBool,
}

/// The timer thread; it ends on drop.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let (engine, inner) = (engine.clone(), Arc::clone(&shared));
        let handle = thread::Builder::new()
            .name("haft-wasm-ticker".to_owned())
            .spawn(move || tick(&engine, &inner))?;
        Ok(Self { shared, thread: handle.thread().clone() })
    }

    /// Counts a guest as running until the returned value is dropped.
    pub(crate) fn running(self: &Arc<Self>) -> Running {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running(Arc::clone(self))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn tick(engine: &Engine, shared: &Shared) {
    let mut idle = 0;
    while !shared.stop.load(Ordering::SeqCst) {
        idle = if shared.running.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
        if idle > IDLE_TICKS {
            // `asleep` is set before `running` is read: a guest that starts in between wakes the timer.
            shared.asleep.store(true, Ordering::SeqCst);
            if shared.running.load(Ordering::SeqCst) == 0 && !shared.stop.load(Ordering::SeqCst) {
                thread::park();
            }
            shared.asleep.store(false, Ordering::SeqCst);
            idle = 0;
        }
        thread::sleep(TICK);
        engine.increment_epoch();
    }
}

/// A running guest.
pub(crate) struct Running(Arc<Ticker>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.shared.running.fetch_sub(1, Ordering::SeqCst);
    }
}
