//! How a process ended.

use std::time::Duration;

use crate::capture::CapturedOutput;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It was stopped at a limit.
    Stopped(Limit),
}

impl ExitReason {
    /// Reads the code that a supervisor passes on: a signal is 128 and its number, as shells have it.
    pub fn from_code(code: i32) -> Self {
        match code {
            129..=192 => Self::from_signal(code - 128),
            _ => ExitReason::Exited(code),
        }
    }

    /// Reads a signal: a processor's time and a file's size are limits that the kernel tells by one.
    pub fn from_signal(signal: i32) -> Self {
        match signal {
            libc::SIGXCPU => ExitReason::Stopped(Limit::Cpu),
            libc::SIGXFSZ => ExitReason::Stopped(Limit::FileSize),
            _ => ExitReason::Signalled(signal),
        }
    }
}

/// What stopped a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The clock.
    Wall,
    /// The processor's time.
    Cpu,
    /// Memory.
    Memory,
    /// The size of a file.
    FileSize,
    /// Far more output than is kept.
    Output,
}

impl Limit {
    /// Returns the stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Limit::Wall => "wall_time",
            Limit::Cpu => "cpu_time",
            Limit::Memory => "memory",
            Limit::FileSize => "file_size",
            Limit::Output => "output",
        }
    }
}

/// What came of a process.
#[derive(Debug, Clone)]
pub struct ProcessResult {
    /// How it ended.
    pub ending: ExitReason,
    /// The beginning of what it wrote to its standard output.
    pub stdout: CapturedOutput,
    /// The end of what it wrote to its standard error.
    pub stderr: CapturedOutput,
    /// How long it took.
    pub took: Duration,
    /// Whether it met the limit of processes on its way.
    pub processes_met: bool,
}
