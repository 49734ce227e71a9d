//! A load generator over keep-alive connections with little overhead.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The result of a load.
pub struct Figures {
    /// Requests per second.
    pub per_second: f64,
    /// The median latency.
    pub p50: Duration,
    /// The 99th percentile of the latency.
    pub p99: Duration,
    /// The number of requests.
    pub count: usize,
}

/// Returns the bytes of a request.
pub fn request(method: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl Figures {
    /// Summarizes the latencies of a run.
    pub fn new(mut times: Vec<Duration>, elapsed: Duration) -> Self {
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

/// Sends the same request over several connections for this time.
pub async fn run(addr: SocketAddr, request: &[u8], connections: usize, time: Duration) -> Result<Figures> {
    run_each(addr, &vec![request.to_vec(); connections], time).await
}

/// Sends each request repeatedly for this time, each over its own connection.
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
    Ok(Figures::new(times, started.elapsed()))
}

/// A keep-alive connection.
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

    /// Sends a request and returns the body of the response.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<String> {
        Ok(self.exchange_all(request).await?.1)
    }

    /// Sends a request and returns the head of the response in lower case and the body.
    pub async fn exchange_all(&mut self, request: &[u8]) -> Result<(String, String)> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await?;
            if read == 0 {
                bail!("the server closed the connection");
            }
            if let Some(response) = complete(&self.buffer)? {
                return Ok(response);
            }
        }
    }
}

/// Returns the head and the body once the response is complete.
fn complete(bytes: &[u8]) -> Result<Option<(String, String)>> {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = bytes.split_at(end + 4);
    let head = std::str::from_utf8(head)?.to_ascii_lowercase();
    if !head.starts_with("http/1.1 2") {
        bail!("{head}{}", String::from_utf8_lossy(body));
    }
    let is_complete = if head.contains("transfer-encoding: chunked") {
        body.ends_with(b"0\r\n\r\n")
    } else if head.starts_with("http/1.1 202") {
        true
    } else {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        body.len() >= length.context("no length")?.trim().parse::<usize>()?
    };
    Ok(is_complete.then(|| (head, String::from_utf8_lossy(body).into_owned())))
}
