//! Serving connections, bounded in time and number, with a graceful shutdown.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::edge::Edge;
use crate::mcp::{Mcp, StdioClient, UnknownBundle};
use crate::open_stream::ClientAddress;
use crate::router;
use haft_platform::Installation;
use haft_platform::maintenance::BackgroundTasks;
use haft_platform::permissions;

/// The most concurrent connections; further ones wait in the accept queue of the operating system.
const MAX_CONNECTIONS: usize = 10_000;
/// How long a client may take to send the headers of a request, or stay idle between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait after a failed accept, for example when no file descriptor is free.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// How often the shutdown checks for running calls.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long cancelled calls may take to be recorded.
const RECORD_TIMEOUT: Duration = Duration::from_secs(5);

/// The open connections.
#[derive(Default)]
struct Connections {
    open: TaskTracker,
    finishing: CancellationToken,
}

impl Connections {
    /// Waits until every connection has finished its current request.
    async fn finish(&self) {
        self.finishing.cancel();
        self.open.close();
        self.open.wait().await;
    }
}

/// Serves HTTP until `stop` completes, then shuts down.
pub(crate) async fn http(
    app: &Arc<Installation>,
    mcp: &Arc<Mcp>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send,
) {
    permissions::warn_if_open(&app.settings().home);
    app.store().keep_reserve().await;
    let background = BackgroundTasks::start(app);
    let connections = Connections::default();
    let accepting = accept(&listener, router::edge(app, mcp), &connections);
    tokio::select! {
        () = accepting => {}
        () = stop => {}
    }
    drop(listener);
    shut_down(app, mcp, background, connections.finish()).await;
}

/// Serves one MCP client over standard input and output until it disconnects or `stop` completes, then shuts down.
pub(crate) async fn stdio(
    app: &Arc<Installation>,
    mcp: &Mcp,
    client: StdioClient,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), UnknownBundle> {
    let client = client.context(app)?;
    let background = BackgroundTasks::start(app);
    tokio::select! {
        () = mcp.serve_stdio(client) => {}
        () = stop => {}
    }
    shut_down(app, mcp, background, std::future::ready(())).await;
    Ok(())
}

async fn shut_down(
    app: &Installation,
    mcp: &Mcp,
    background: BackgroundTasks,
    connections: impl Future<Output = ()>,
) {
    mcp.stop();
    app.events().stop();
    app.stop_queue();
    app.runs().stop();
    drain(app, connections).await;
    mcp.end();
    app.retrieval().stop().await;
    background.stop().await;
    app.close().await;
}

/// Waits for connections and calls to finish; cancels what still runs after the grace period.
async fn drain(app: &Installation, connections: impl Future<Output = ()>) {
    let grace = app.settings().server.shutdown_grace;
    let finished = async {
        connections.await;
        idle(app).await;
    };
    if tokio::time::timeout(grace, finished).await.is_err() {
        tracing::warn!(?grace, "shutdown grace period exceeded; cancelling the running calls");
        app.pipeline().stop();
        // Cancelled calls are recorded before the store closes.
        if tokio::time::timeout(RECORD_TIMEOUT, idle(app)).await.is_err() {
            tracing::error!("some calls did not stop and were not recorded");
        }
    }
}

async fn idle(app: &Installation) {
    while app.pipeline().running() > 0 {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn accept(listener: &TcpListener, edge: Edge, connections: &Connections) {
    let edge = Arc::new(edge);
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // HTTP/1.1 only: the header timeout holds from the first byte, which a server that detects the version cannot
    // guarantee. HTTP/2 is left to the proxy that terminates TLS.
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).keep_alive(true);
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        set_nodelay(&stream);
        let edge = Arc::clone(&edge);
        let client = ClientAddress(client.ip());
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            let edge = Arc::clone(&edge);
            request.extensions_mut().insert(client);
            async move { Ok::<_, Infallible>(respond(&edge, request).await) }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let finishing = connections.finishing.clone();
        connections.open.spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                biased;
                ended = &mut connection => ended,
                () = finishing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(error = %error, "connection error");
            }
            drop(permit);
        });
    }
}

/// Handles a request. The connection cannot be used again if its body was not read to the end, so the response says that
/// it will be closed.
async fn respond(edge: &Edge, request: http::Request<Incoming>) -> Response {
    if request.body().is_end_stream() {
        return edge.handle(request.map(Body::new)).await;
    }
    let read = Arc::new(AtomicBool::new(false));
    let mut response =
        edge.handle(request.map(|inner| Body::new(TrackedBody { inner, read: Arc::clone(&read) }))).await;
    if !read.load(Ordering::Relaxed) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// A request body that notes when it was read to its end.
struct TrackedBody {
    inner: Incoming,
    read: Arc<AtomicBool>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.inner.is_end_stream() {
            self.read.store(true, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Sets `TCP_NODELAY`: otherwise a response in two writes waits about 40 ms for a delayed acknowledgement.
fn set_nodelay(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = %error, "failed to set TCP_NODELAY");
    }
}
