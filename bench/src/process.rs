//! A server process.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// The timeout for a server to start listening.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running server.
pub struct Server {
    child: Child,
    /// The address.
    pub addr: SocketAddr,
    /// The token.
    pub token: String,
    /// The time from the start of the process until it listens.
    pub ready_after: Duration,
}

impl Server {
    /// Starts this program as a server.
    pub fn start(args: &[&str]) -> Result<Self> {
        Self::announced(Command::new(std::env::current_exe()?).args(args))
    }

    /// Starts a program that prints its address and its token.
    pub fn announced(command: &mut Command) -> Result<Self> {
        let started = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let addr = lines.next().context("the server did not start")??.parse()?;
        let ready_after = started.elapsed();
        let token = lines.next().context("the server has no token")??;
        Ok(Self { child, addr, token, ready_after })
    }

    /// Starts a program that listens on a given port.
    pub fn on_port(command: impl FnOnce(u16) -> Command) -> Result<Self> {
        let started = Instant::now();
        let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child =
            command(addr.port()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut server = Self { child, addr, token: "none".to_owned(), ready_after: Duration::ZERO };
        while TcpStream::connect(addr).is_err() {
            if server.child.try_wait()?.is_some() || started.elapsed() > START_TIMEOUT {
                bail!("the server did not start");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        server.ready_after = started.elapsed();
        Ok(server)
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the CPU time of the process and its descendants in seconds.
    pub fn cpu_seconds(&self) -> Result<f64> {
        cpu_seconds(self.child.id())
    }

    /// Returns the resident memory in megabytes.
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

/// Returns the CPU time of a process and its descendants in seconds.
pub fn cpu_seconds(process: u32) -> Result<f64> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // The process may have ended.
        let Ok(text) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        all.insert(id, CpuTime::parse(&text));
    }
    let mut tree = vec![process];
    let mut ticks = 0.0;
    while let Some(id) = tree.pop() {
        ticks += all.get(&id).map_or(0.0, |time| time.ticks);
        tree.extend(all.iter().filter(|(_, time)| time.parent == id).map(|(id, _)| *id));
    }
    Ok(ticks / 100.0)
}

/// The CPU time of a process.
struct CpuTime {
    parent: u32,
    /// Its own ticks and those of its finished children.
    ticks: f64,
}

impl CpuTime {
    /// Parses `/proc/ID/stat` after the name, which may contain any character.
    fn parse(text: &str) -> Self {
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let number =
            |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        let parent = fields.get(1).and_then(|text| text.parse().ok()).unwrap_or_default();
        Self { parent, ticks: (11..=14).map(number).sum() }
    }
}
