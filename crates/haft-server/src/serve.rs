//! Listening: connections bounded in time and number, stopped gently.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::edge::Edge;
use crate::mcp::{StdioClient, UnknownBundle};

/// The most connections at once; more wait in the queue of the operating system.
const MAX_CONNECTIONS: usize = 10_000;
/// How long a client may take to send the head of a request, or be silent between two.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long to wait after a failed accept, as when no file handle is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often the end of running calls is looked for.
const DRAIN_STEP: Duration = Duration::from_millis(20);
/// How long cancelled calls may take to be recorded.
const RECORD_TIME: Duration = Duration::from_secs(5);

/// The open connections.
#[derive(Default)]
struct Connections {
    open: TaskTracker,
    finishing: CancellationToken,
}

impl Connections {
    /// Lets every connection finish the request that it is at, and waits for that.
    async fn finish(&self) {
        self.finishing.cancel();
        self.open.close();
        self.open.wait().await;
    }
}

impl App {
    /// Serves until `stop` is over; then lets what is running finish, within the grace time.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let upkeep = Upkeep::start(&self);
        let connections = Connections::default();
        let accepting = accept(&listener, self.edge(), &connections);
        tokio::select! {
            () = accepting => {}
            () = stop => {}
        }
        drop(listener);
        self.mcp().stop();
        self.drain(connections.finish()).await;
        self.mcp().end();
        upkeep.stop().await;
        self.close().await;
        Ok(())
    }

    /// Serves one MCP client at the standard input and output of this process, until it goes away or `stop` is over.
    pub async fn serve_stdio(
        self: Arc<Self>,
        client: StdioClient,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), UnknownBundle> {
        let seat = client.seat(&self)?;
        let upkeep = Upkeep::start(&self);
        tokio::select! {
            () = self.mcp().serve_stdio(seat) => {}
            () = stop => {}
        }
        self.mcp().stop();
        self.drain(std::future::ready(())).await;
        self.mcp().end();
        upkeep.stop().await;
        self.close().await;
        Ok(())
    }

    async fn drain(&self, connections: impl Future<Output = ()>) {
        let grace = self.settings().server.shutdown_grace;
        let finished = async {
            connections.await;
            self.idle().await;
        };
        if tokio::time::timeout(grace, finished).await.is_err() {
            tracing::warn!("the grace time is over; what still runs is cancelled");
            self.pipeline().stop();
            // Cancelled calls are recorded before the store closes.
            if tokio::time::timeout(RECORD_TIME, self.idle()).await.is_err() {
                tracing::error!("some calls could not be stopped and have no record");
            }
        }
    }

    async fn idle(&self) {
        while self.pipeline().running() > 0 {
            tokio::time::sleep(DRAIN_STEP).await;
        }
    }
}

/// What goes on beside the answering of requests.
struct Upkeep {
    watching: haft_store::WatchTasks,
    rest: JoinHandle<()>,
}

impl Upkeep {
    fn start(app: &Arc<App>) -> Self {
        let watching = app.store().watch();
        let app = Arc::clone(app);
        let rest = tokio::spawn(async move {
            tokio::join!(
                app.verify(),
                app.examine_sandbox(),
                app.keep_usage(),
                app.follow_tokens(),
                app.keep_mcp_servers()
            );
        });
        Self { watching, rest }
    }

    async fn stop(self) {
        self.rest.abort();
        self.watching.stop().await;
    }
}

async fn accept(listener: &TcpListener, edge: Edge, connections: &Connections) {
    let edge = Arc::new(edge);
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // HTTP/1.1 alone: its time limit holds from the first byte on, which one that has to guess the version
    // cannot promise. HTTP/2 is for the proxy that also does TLS.
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).keep_alive(true);
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(error = %error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        prepare(&stream);
        let edge = Arc::clone(&edge);
        let service = service_fn(move |request: http::Request<Incoming>| {
            let edge = Arc::clone(&edge);
            async move { Ok::<_, Infallible>(edge.answer(request.map(Body::new)).await) }
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
                tracing::debug!(error = %error, "a connection ended badly");
            }
            drop(permit);
        });
    }
}

/// Without this an answer in two writes waits for the other side's delayed acknowledgement, some 40 ms.
fn prepare(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = %error, "TCP_NODELAY could not be set");
    }
}
