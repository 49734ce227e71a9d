//! How a process ended.

use std::time::Duration;

use crate::capture::CapturedOutput;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Signalled(i32),
    /// It exceeded a limit.
    Stopped(Limit),
}

impl ExitReason {
    /// Converts the exit code of a supervisor, which is 128 plus the number of a signal.
    pub fn from_code(code: i32) -> Self {
        match code {
            129..=192 => Self::from_signal(code - 128),
            _ => ExitReason::Exited(code),
        }
    }

    /// Converts a signal; the kernel reports exceeded CPU time and file size with signals.
    pub fn from_signal(signal: i32) -> Self {
        match signal {
            libc::SIGXCPU => ExitReason::Stopped(Limit::Cpu),
            libc::SIGXFSZ => ExitReason::Stopped(Limit::FileSize),
            _ => ExitReason::Signalled(signal),
        }
    }
}

/// A limit that stopped a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Wall time.
    Wall,
    /// CPU time.
    Cpu,
    /// Memory.
    Memory,
    /// File size.
    FileSize,
    /// Output far above the limit.
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

/// The result of a process.
#[derive(Debug, Clone)]
pub struct ProcessResult {
    /// How it ended.
    pub ending: ExitReason,
    /// The beginning of standard output.
    pub stdout: CapturedOutput,
    /// The end of standard error.
    pub stderr: CapturedOutput,
    /// Its run time.
    pub took: Duration,
    /// Whether it reached the process limit.
    pub processes_met: bool,
}
