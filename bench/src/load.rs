//! A load of requests over kept connections, with as little of its own cost as possible.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What a load came to.
pub struct Figures {
    /// Requests per second.
    pub per_second: f64,
    /// The middle of the times.
    pub p50: Duration,
    /// The time that one in a hundred exceeds.
    pub p99: Duration,
    /// How many requests there were.
    pub count: usize,
}

/// Spells a request.
pub fn request(method: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl Figures {
    /// Sums up times that were taken within so long.
    pub fn of(mut times: Vec<Duration>, elapsed: Duration) -> Self {
        times.sort_unstable();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        Self {
            per_second: times.len() as f64 / elapsed.as_secs_f64(),
            p50: at(50),
            p99: at(99),
            count: times.len(),
        }
    }
}

/// Sends the same request for so long over so many connections.
pub async fn run(addr: SocketAddr, request: &[u8], connections: usize, time: Duration) -> Result<Figures> {
    run_each(addr, &vec![request.to_vec(); connections], time).await
}

/// Sends each request again and again for so long, each over a connection of its own.
pub async fn run_each(addr: SocketAddr, requests: &[Vec<u8>], time: Duration) -> Result<Figures> {
    let until = Instant::now() + time;
    let started = Instant::now();
    let tasks: Vec<_> = requests
        .iter()
        .map(|request| {
            let request = request.clone();
            tokio::spawn(async move {
                let mut connection = Connection::open(addr).await?;
                let mut times = Vec::with_capacity(100_000);
                while Instant::now() < until {
                    let sent = Instant::now();
                    connection.exchange(&request).await?;
                    times.push(sent.elapsed());
                }
                Ok::<_, anyhow::Error>(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    Ok(Figures::of(times, started.elapsed()))
}

/// One kept connection.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub async fn open(addr: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(64 * 1024) })
    }

    /// Sends a request and returns the body of its answer.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<String> {
        Ok(self.exchange_all(request).await?.1)
    }

    /// Sends a request and returns the head of its answer, in small letters, and its body.
    pub async fn exchange_all(&mut self, request: &[u8]) -> Result<(String, String)> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await?;
            if read == 0 {
                bail!("the server closed the connection");
            }
            if let Some(answer) = complete(&self.buffer)? {
                return Ok(answer);
            }
        }
    }
}

/// Returns head and body once the answer is whole.
fn complete(bytes: &[u8]) -> Result<Option<(String, String)>> {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = bytes.split_at(end + 4);
    let head = std::str::from_utf8(head)?.to_ascii_lowercase();
    if !head.starts_with("http/1.1 2") {
        bail!("{head}{}", String::from_utf8_lossy(body));
    }
    let whole = if head.contains("transfer-encoding: chunked") {
        body.ends_with(b"0\r\n\r\n")
    } else if head.starts_with("http/1.1 202") {
        true
    } else {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        body.len() >= length.context("no length")?.trim().parse::<usize>()?
    };
    Ok(whole.then(|| (head, String::from_utf8_lossy(body).into_owned())))
}
