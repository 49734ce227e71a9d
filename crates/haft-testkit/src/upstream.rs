//! HTTP servers on loopback for tests of tools.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

pub use axum;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request that a server received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenRequest {
    /// The method.
    pub method: String,
    /// The path and query, as sent.
    pub target: String,
    /// The headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// A server on a free loopback port; it ends when this is dropped.
pub struct Upstream {
    /// The address of the server.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    task: JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Upstream {
    /// Serves a router and records every request.
    pub async fn serve(router: Router) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen: Arc<Mutex<Vec<SeenRequest>>> = Arc::default();
        let router = router.layer(middleware::from_fn_with_state(Arc::clone(&seen), record));
        let task = tokio::spawn(async move {
            // The server runs until the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, seen, task })
    }

    /// Passes every connection to a function, for servers that misbehave.
    pub async fn raw<F, W>(handler: F) -> std::io::Result<Self>
    where
        F: Fn(TcpStream) -> W + Send + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(handler(stream));
            }
        });
        Ok(Self { address, seen: Arc::default(), task })
    }

    /// Responds to every connection with the same bytes after the head of a request, and closes it.
    pub async fn bytes(response: impl Into<Vec<u8>>) -> std::io::Result<Self> {
        let response: Arc<[u8]> = response.into().into();
        Self::raw(move |mut stream| {
            let response = Arc::clone(&response);
            async move {
                read_head(&mut stream).await;
                let _ = stream.write_all(&response).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    /// Returns a URL of this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the recorded requests.
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads a request up to the end of its head or of the connection.
pub async fn read_head(stream: &mut TcpStream) {
    let (mut head, mut buffer) = (Vec::<u8>::new(), [0_u8; 1024]);
    while let Ok(count) = stream.read(&mut buffer).await {
        head.extend(buffer.iter().take(count));
        if count == 0 || head.windows(4).any(|window| window == b"\r\n\r\n") {
            break;
        }
    }
}

async fn record(State(seen): State<Arc<Mutex<Vec<SeenRequest>>>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 16 * 1024 * 1024).await.unwrap_or_default();
    let entry = describe(&parts.method, &parts.uri, &parts.headers, &bytes);
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    next.run(Request::from_parts(parts, bytes.into())).await
}

/// Converts a request.
pub fn describe(method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> SeenRequest {
    SeenRequest {
        method: method.to_string(),
        target: uri.path_and_query().map_or_else(String::new, ToString::to_string),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body: String::from_utf8_lossy(body).into_owned(),
    }
}
