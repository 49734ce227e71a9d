//! One open socket: reads frames, shows runs, and ends when it must.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::StreamExt as _;
use haft_agent::run::RunEvent;
use haft_core::id::{ApprovalId, ChatId};
use haft_core::outcome::ErrorCode;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::client_frame::{ClientFrame, MessageFrame};
use super::server_frame::{self, RunContext, RunFrames};
use super::{requests, server_frame as frames};
use haft_platform::Installation;
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;
use haft_platform::{request_id, runs};

/// How many answers a socket shows at once.
const MAX_RUNS: usize = 8;
/// How many frames wait for a client.
const QUEUE: usize = 256;
/// How long a client may take to make room for a frame.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the server sends a ping.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long a client may be silent: pongs count.
const MAX_SILENCE: Duration = Duration::from_secs(75);
/// How long the last frame may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a socket is closed.
struct Closing(u16, &'static str);

const TOO_SLOW: Closing = Closing(close_code::POLICY, "the client reads too slowly");
const TOO_LARGE: Closing = Closing(close_code::SIZE, "a frame exceeds the limit of 1 MiB");
const SILENT: Closing = Closing(close_code::POLICY, "the client did not answer pings");
const NO_ACCESS: Closing = Closing(close_code::POLICY, "the token or the session is no longer valid");
const STOPPING: Closing = Closing(close_code::AWAY, "the server stops");
const BY_CLIENT: Closing = Closing(close_code::NORMAL, "");

/// An open socket.
pub(super) struct Connection {
    app: Arc<Installation>,
    identity: Identity,
    /// The id of the request that opened it.
    request: String,
    outgoing: mpsc::Sender<Value>,
    /// The tasks that show runs. They end with the socket; the runs go on.
    shown: JoinSet<()>,
    /// Approvals decided on this socket: it has already received `approval_decided` for them.
    decided: Arc<Mutex<HashSet<ApprovalId>>>,
    slow: CancellationToken,
}

/// Serves a socket until it ends.
pub(super) async fn serve(
    app: Arc<Installation>,
    identity: Identity,
    request: String,
    mut socket: WebSocket,
) {
    let mut access_end = Box::pin(identity.stream_end(&app));
    let (outgoing, queue) = mpsc::channel(QUEUE);
    let connection = Connection {
        app,
        identity,
        request,
        outgoing,
        shown: JoinSet::new(),
        decided: Arc::default(),
        slow: CancellationToken::new(),
    };
    let Closing(code, reason) = Box::pin(connection.run(&mut socket, queue, access_end.as_mut())).await;
    let close = Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }));
    let closing = async {
        // Fails if the client closed first; reading then sends the response to its close frame.
        let _ = socket.send(close).await;
        // Reads until the client has closed: closing a connection with unread data resets it, and the client would lose
        // the close frame.
        while let Some(Ok(_)) = socket.recv().await {}
    };
    // A client that is gone or stuck does not get it.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
}

impl Connection {
    async fn run(
        mut self,
        socket: &mut WebSocket,
        mut queue: mpsc::Receiver<Value>,
        mut access_end: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Closing {
        let mut pings = tokio::time::interval(PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        let mut heard_at = Instant::now();
        loop {
            let sent = tokio::select! {
                biased;
                () = &mut access_end => {
                    let is_stopping = self.app.events().stopping().is_cancelled();
                    return if is_stopping { STOPPING } else { NO_ACCESS };
                }
                () = self.slow.cancelled() => return TOO_SLOW,
                Some(frame) = queue.recv() => send(socket, Message::Text(frame.to_string().into())).await,
                received = socket.recv() => {
                    heard_at = Instant::now();
                    match received {
                        Some(Ok(message)) => self.handle(socket, message).await,
                        Some(Err(error)) => return closing_of(&error),
                        None => return BY_CLIENT,
                    }
                }
                _ = pings.tick() => {
                    if heard_at.elapsed() > MAX_SILENCE {
                        return SILENT;
                    }
                    send(socket, Message::Ping(axum::body::Bytes::new())).await
                }
                Some(_) = self.shown.join_next() => Ok(()),
            };
            if let Err(closing) = sent {
                return closing;
            }
        }
    }

    /// Handles a message of the client, and sends what answers it at once.
    async fn handle(&mut self, socket: &mut WebSocket, message: Message) -> Result<(), Closing> {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => {
                let error = ServiceError::bad_request("send text frames with JSON, not binary ones");
                return send_frame(socket, &server_frame::error(&error)).await;
            }
            // axum replies to pings and close frames.
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
            Message::Close(_) => return Err(BY_CLIENT),
        };
        let handled = match ClientFrame::parse(&text) {
            Ok(frame) => request_id::scope(self.request.clone(), self.carry_out(frame)).await,
            Err(error) => Err(error),
        };
        match handled {
            Ok(Some(frame)) => send_frame(socket, &frame).await,
            Ok(None) => Ok(()),
            Err(error) => send_frame(socket, &server_frame::error(&error)).await,
        }
    }

    /// Carries out a frame; returns the frame that answers it.
    async fn carry_out(&mut self, frame: ClientFrame) -> Result<Option<Value>, ServiceError> {
        match frame {
            ClientFrame::Ping => Ok(Some(frames::pong())),
            ClientFrame::Message(message) => self.ask(message).await.map(Some),
            ClientFrame::Stop(stop) => {
                requests::stop(&self.app, &self.identity, ChatId(stop.chat_id)).await?;
                Ok(None)
            }
            ClientFrame::ApprovalResponse(decision) => {
                let id = ApprovalId(decision.approval_id);
                // Before the run goes on and says so, too.
                self.lock().insert(id);
                match requests::decide(&self.app, &self.identity, decision).await {
                    Ok((approval, call, approved)) => Ok(Some(frames::decided(approval, call, approved))),
                    Err(error) => {
                        self.lock().remove(&id);
                        Err(error)
                    }
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<ApprovalId>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an answer and shows it.
    async fn ask(&mut self, message: MessageFrame) -> Result<Value, ServiceError> {
        if self.shown.len() >= MAX_RUNS {
            let message =
                format!("this socket shows {MAX_RUNS} answers already; wait for one, or open another socket");
            return Err(ServiceError::new(ErrorCode::Overloaded, message));
        }
        let (chat, posted) = requests::write_message(&self.app, &self.identity, message).await?;
        let (Some(answer), Some(run)) = (posted.answer, posted.run) else {
            return Err(ServiceError::bad_request("the chat has no agent that answers"));
        };
        let place = RunContext { chat: chat.id, message: answer.id, run: run.id };
        let events = runs::follow(self.app.runs(), &self.identity.tenant, run.id);
        let forwarder = RunForwarder {
            outgoing: self.outgoing.clone(),
            slow: self.slow.clone(),
            decided: Arc::clone(&self.decided),
            frames: RunFrames::new(place),
        };
        self.shown.spawn(forwarder.forward(events));
        Ok(server_frame::start(&place, posted.message.id, run.definition.slug.as_str()))
    }
}

/// Forwards the events of one run to the client.
struct RunForwarder {
    outgoing: mpsc::Sender<Value>,
    slow: CancellationToken,
    decided: Arc<Mutex<HashSet<ApprovalId>>>,
    frames: RunFrames,
}

impl RunForwarder {
    async fn forward(mut self, events: impl futures_util::Stream<Item = RunEvent>) {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            if let RunEvent::ApprovalDecided { approval_id, .. } = &event
                && self.decided.lock().unwrap_or_else(PoisonError::into_inner).remove(approval_id)
            {
                continue;
            }
            for frame in self.frames.of(event) {
                if self.outgoing.send_timeout(frame, SEND_TIMEOUT).await.is_err() {
                    self.slow.cancel();
                    return;
                }
            }
        }
    }
}

async fn send_frame(socket: &mut WebSocket, frame: &Value) -> Result<(), Closing> {
    send(socket, Message::Text(frame.to_string().into())).await
}

async fn send(socket: &mut WebSocket, message: Message) -> Result<(), Closing> {
    match tokio::time::timeout(SEND_TIMEOUT, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(BY_CLIENT),
        Err(_) => Err(TOO_SLOW),
    }
}

/// Returns how to close a socket that failed.
fn closing_of(error: &axum::Error) -> Closing {
    // The library says it in words only; its errors are not part of axum's interface.
    let text = error.to_string();
    if text.contains("too long") || text.contains("too big") || text.contains("Space limit") {
        TOO_LARGE
    } else {
        Closing(close_code::PROTOCOL, "the frame is not valid")
    }
}
