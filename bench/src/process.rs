//! A server process: started, watched, ended.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How long a server that says nothing may take until it listens.
const LISTENS_WITHIN: Duration = Duration::from_secs(60);

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
        Self::announced(Command::new(std::env::current_exe()?).args(words))
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

    /// Starts a program that listens on the port it is told.
    pub fn on_port(command: impl FnOnce(u16) -> Command) -> Result<Self> {
        let started = Instant::now();
        let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child =
            command(addr.port()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut server = Self { child, addr, token: "none".to_owned(), ready_after: Duration::ZERO };
        while TcpStream::connect(addr).is_err() {
            if server.child.try_wait()?.is_some() || started.elapsed() > LISTENS_WITHIN {
                bail!("the server did not start");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        server.ready_after = started.elapsed();
        Ok(server)
    }

    /// Returns its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the processor time that it and all that it started have used, in seconds.
    pub fn cpu_seconds(&self) -> Result<f64> {
        cpu_seconds(self.child.id())
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

/// Returns the processor time that a process and all that it started have used, in seconds.
pub fn cpu_seconds(process: u32) -> Result<f64> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may have ended since.
        let Ok(text) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        all.insert(id, Used::read(&text));
    }
    let mut tree = vec![process];
    let mut ticks = 0.0;
    while let Some(id) = tree.pop() {
        ticks += all.get(&id).map_or(0.0, |used| used.ticks);
        tree.extend(all.iter().filter(|(_, used)| used.parent == id).map(|(id, _)| *id));
    }
    Ok(ticks / 100.0)
}

/// What one process has used.
struct Used {
    parent: u32,
    /// Its own, and that of its children that ended.
    ticks: f64,
}

impl Used {
    /// Reads `/proc/ID/stat`, behind the name, which may contain anything.
    fn read(text: &str) -> Self {
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let number =
            |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        let parent = fields.get(1).and_then(|text| text.parse().ok()).unwrap_or_default();
        Self { parent, ticks: (11..=14).map(number).sum() }
    }
}
