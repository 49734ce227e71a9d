//! A server process: started, watched, ended.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// A running server.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub addr: SocketAddr,
    /// Its token.
    pub token: String,
    /// How long it took from the start of the process to the address.
    pub ready_after: Duration,
}

impl Server {
    /// Starts this program as a server.
    pub fn start(words: &[&str]) -> Result<Self> {
        let started = Instant::now();
        let mut child = Command::new(std::env::current_exe()?).args(words).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let addr = lines.next().context("the server did not start")??.parse()?;
        let ready_after = started.elapsed();
        let token = lines.next().context("the server has no token")??;
        Ok(Self { child, addr, token, ready_after })
    }

    /// Returns the processor time it has used, in seconds.
    pub fn cpu_seconds(&self) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks =
            |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
        Ok((ticks(11) + ticks(12)) / 100.0)
    }

    /// Returns the memory it holds, in megabytes.
    pub fn resident_megabytes(&self) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kilobytes / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
