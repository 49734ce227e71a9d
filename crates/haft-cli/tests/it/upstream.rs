//! An API on loopback that tools call: it answers with what it was sent.

#![expect(clippy::unwrap_used, reason = "a harness may fail the test")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::json;

/// Starts the API; it ends with the process of the test.
pub(crate) fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(&stream));
        }
    });
    addr
}

/// Answers one request; paths below `/fail` fail.
fn answer(mut stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).ok()? > 2 {}
    let header = |name: &str| {
        let start = format!("{name}: ");
        let line = head.lines().find(|line| line.to_lowercase().starts_with(&start))?;
        line.get(start.len()..).map(str::to_owned)
    };
    let length = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let target = head.split(' ').nth(1)?.to_owned();
    let status = if target.starts_with("/fail") { "500 Internal Server Error" } else { "200 OK" };
    let said = json!({
        "target": target,
        "key": header("x-key"),
        "body": String::from_utf8(body).ok()?,
    })
    .to_string();
    let length = said.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{said}"
    );
    stream.write_all(answer.as_bytes()).ok()
}
