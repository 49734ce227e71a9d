//! The line transport: one JSON-RPC message per line, over standard input and output or any other byte stream.
//!
//! rmcp's own transport ignores lines that are not JSON and does not support batches; JSON-RPC requires both.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::batch;
use super::client_context::ClientContext;
use super::envelope::{self, Envelope};
use super::handler::McpServer;

/// How many error responses may wait to be written before reading stops.
const MAX_PENDING_ERRORS: u16 = 16;
/// How many batches can be in progress. Further ones are rejected instead of queued: a queue would also hold back the
/// cancellation of calls in a batch.
const MAX_BATCHES: usize = 256;
/// How long a client that has closed its input may take to read the pending error responses.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the standard input and output of this process.
pub fn stdio() -> (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static) {
    rmcp::transport::stdio_pipes()
}

/// Serves one client over a byte stream until the client disconnects or `cancel` is cancelled. A message above
/// `max_bytes` is rejected.
pub async fn serve_lines<R, W>(
    server: &McpServer,
    client: ClientContext,
    (read, write): (R, W),
    max_bytes: usize,
    cancel: CancellationToken,
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let server = server.for_client(client);
    let transport = Lines::new(read, write, max_bytes, server.input_closed.clone());
    let running = match serve_server_with_ct(server, transport, cancel).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return,
        Err(error) => {
            tracing::warn!(%error, "failed to initialize an MCP connection");
            return;
        }
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => {
            tracing::error!(%error, "an MCP connection failed");
        }
        Ok(_) => {}
    }
}

/// The line transport of one client.
struct Lines<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    max_bytes: usize,
    /// Whether the rest of a line above the limit is being skipped.
    is_skipping: bool,
    /// Whether the input has ended.
    ended: bool,
    /// Messages of a batch that rmcp has not received yet.
    received: VecDeque<ClientJsonRpcMessage>,
    write: Arc<tokio::sync::Mutex<Option<W>>>,
    batches: Arc<Mutex<Batches>>,
    /// Responses of the transport itself, to be written before another line is read.
    outgoing: VecDeque<String>,
    pending_errors: Arc<Semaphore>,
    /// Cancelled at the end of the input.
    input_closed: CancellationToken,
}

/// The batches in progress, and the protocol version, which decides whether batches are allowed.
#[derive(Default)]
struct Batches {
    version: Option<String>,
    open: Vec<Batch>,
}

struct Batch {
    pending: Vec<RequestId>,
    responses: Vec<Value>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    /// Creates the transport; it cancels `input_closed` at the end of the input.
    fn new(read: R, write: W, max_bytes: usize, input_closed: CancellationToken) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            max_bytes,
            is_skipping: false,
            ended: false,
            received: VecDeque::new(),
            write: Arc::new(tokio::sync::Mutex::new(Some(write))),
            batches: Arc::default(),
            outgoing: VecDeque::new(),
            pending_errors: Arc::new(Semaphore::new(usize::from(MAX_PENDING_ERRORS))),
            input_closed,
        }
    }

    /// Reads a line; `None` at the end of the input. Cancel-safe: a dropped read continues with the next call.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        while !self.ended {
            let available = match self.read.fill_buf().await {
                Ok([]) => {
                    // The last line needs no newline.
                    self.ended = true;
                    return Some(std::mem::take(&mut self.line)).filter(|line| !line.is_empty());
                }
                Ok(available) => available,
                Err(error) => {
                    tracing::debug!(%error, "failed to read from an MCP client");
                    self.ended = true;
                    return None;
                }
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let is_long = self.line.len() + taken > self.max_bytes;
            if !self.is_skipping && !is_long {
                self.line.extend(available.iter().take(taken));
            }
            self.read.consume(taken);
            if is_long && !self.is_skipping {
                self.is_skipping = true;
                self.line.clear();
                let message = format!("message size limit ({} bytes) exceeded", self.max_bytes);
                self.reject(None, &ErrorData::invalid_request(message, None));
            }
            if end.is_some() && !std::mem::take(&mut self.is_skipping) {
                return Some(std::mem::take(&mut self.line));
            }
            // The rest of a skipped line may arrive late; its error does not wait for it.
            self.flush_outgoing().await;
        }
        None
    }

    /// Parses a line into messages.
    fn accept(&mut self, line: &[u8]) {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return;
        }
        if batch::is_batch(line) {
            return self.accept_batch(line);
        }
        match parse(line) {
            Ok(message) => self.push(message),
            Err(ParseError::UnknownNotification) => {}
            Err(ParseError::Invalid(id, error)) => self.reject(id.as_ref(), &error),
        }
    }

    fn accept_batch(&mut self, line: &[u8]) {
        let (parsed, is_full) = {
            let batches = lock(&self.batches);
            (batch::parse(line, batches.version.as_deref()), batches.open.len() >= MAX_BATCHES)
        };
        let values = match parsed {
            Ok(values) => values,
            Err(error) => return self.reject(None, &error),
        };
        let mut batch = Batch { pending: Vec::new(), responses: Vec::new() };
        let mut messages = Vec::with_capacity(values.len());
        for value in values {
            match parse(value.get().as_bytes()) {
                Ok(ClientJsonRpcMessage::Request(request)) if is_full => {
                    let message = format!("limit of {MAX_BATCHES} batches in progress exceeded");
                    batch.reject(Some(&request.id), &ErrorData::invalid_request(message, None));
                }
                Ok(ClientJsonRpcMessage::Request(request)) if batch.pending.contains(&request.id) => {
                    let error = ErrorData::invalid_request("duplicate id in the batch", None);
                    batch.reject(Some(&request.id), &error);
                }
                Ok(message) => {
                    if let ClientJsonRpcMessage::Request(request) = &message {
                        batch.pending.push(request.id.clone());
                    }
                    messages.push(message);
                }
                Err(ParseError::UnknownNotification) => {}
                Err(ParseError::Invalid(id, error)) => batch.reject(id.as_ref(), &error),
            }
        }
        if !batch.pending.is_empty() {
            lock(&self.batches).open.push(batch);
        } else if !batch.responses.is_empty() {
            self.outgoing.push_back(Value::Array(batch.responses).to_string());
        }
        for message in messages {
            self.push(message);
        }
    }

    fn push(&mut self, message: ClientJsonRpcMessage) {
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // A cancelled request may get no response, so its batch does not wait for one.
            let progress = lock(&self.batches).settle(id, None);
            if let BatchProgress::Complete(responses) = progress {
                self.outgoing.push_back(responses);
            }
        }
        self.received.push_back(message);
    }

    fn reject(&mut self, id: Option<&RequestId>, error: &ErrorData) {
        tracing::debug!(error = %error.message, "rejected a message of an MCP client");
        self.outgoing.push_back(envelope::error(id, error).to_string());
    }

    /// Writes the responses of the transport itself in the background; waits where too many are pending. Cancel-safe.
    async fn flush_outgoing(&mut self) {
        while !self.outgoing.is_empty() {
            let Ok(permit) = Arc::clone(&self.pending_errors).acquire_owned().await else { return };
            let Some(line) = self.outgoing.pop_front() else { return };
            let write = Arc::clone(&self.write);
            tokio::spawn(async move {
                let _ = write_line(&write, line).await;
                drop(permit);
            });
        }
    }
}

impl Batch {
    fn reject(&mut self, id: Option<&RequestId>, error: &ErrorData) {
        self.responses.push(envelope::error(id, error));
    }
}

/// Waits until all pending error responses are written, within the flush timeout.
async fn all_written(pending_errors: &Semaphore) {
    let written = pending_errors.acquire_many(u32::from(MAX_PENDING_ERRORS));
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, written).await;
}

/// Why a line is not a message for rmcp.
enum ParseError {
    /// A notification with an unknown method, which gets no response.
    UnknownNotification,
    Invalid(Option<RequestId>, ErrorData),
}

fn parse(line: &[u8]) -> Result<ClientJsonRpcMessage, ParseError> {
    let envelope = Envelope::parse(line);
    if let Some(envelope) = &envelope
        && let Some(error) = envelope.params_error()
    {
        return Err(ParseError::Invalid(envelope.id.clone(), error));
    }
    if envelope.is_none()
        && let Some(error) = envelope::duplicate_key_error(line)
    {
        return Err(ParseError::Invalid(None, error));
    }
    serde_json::from_slice(line).map_err(|_| match (envelope, serde_json::from_slice::<Value>(line)) {
        (_, Err(error)) => {
            let message = format!("not valid JSON: {error}");
            ParseError::Invalid(None, ErrorData::parse_error(message, None))
        }
        (Some(Envelope { id: None, method: Some(_), .. }), Ok(_)) => ParseError::UnknownNotification,
        (envelope, Ok(_)) => {
            let id = envelope.and_then(|envelope| envelope.id);
            ParseError::Invalid(id, ErrorData::invalid_request("not a JSON-RPC 2.0 message", None))
        }
    })
}

/// The state of a batch after a response to one of its requests.
enum BatchProgress {
    /// The request belongs to no batch.
    NotInBatch,
    /// Other responses are pending.
    Pending,
    /// All responses of the batch.
    Complete(String),
}

impl Batches {
    /// Settles a request; it has no response where it was cancelled.
    fn settle(&mut self, id: &RequestId, response: Option<Value>) -> BatchProgress {
        let Some(at) = self.open.iter().position(|batch| batch.pending.contains(id)) else {
            return BatchProgress::NotInBatch;
        };
        let Some(batch) = self.open.get_mut(at) else { return BatchProgress::NotInBatch };
        batch.pending.retain(|pending| pending != id);
        batch.responses.extend(response);
        if !batch.pending.is_empty() {
            return BatchProgress::Pending;
        }
        let responses = self.open.swap_remove(at).responses;
        if responses.is_empty() {
            return BatchProgress::Pending;
        }
        BatchProgress::Complete(Value::Array(responses).to_string())
    }

    /// Returns the line to write for a message; `None` where its batch has pending responses.
    fn line(&mut self, message: &ServerJsonRpcMessage) -> Result<Option<String>, serde_json::Error> {
        let id = match message {
            ServerJsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.version = Some(result.protocol_version.to_string());
                }
                Some(&response.id)
            }
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = id.filter(|_| !self.open.is_empty()) {
            match self.settle(id, Some(serde_json::to_value(message)?)) {
                BatchProgress::NotInBatch => {}
                BatchProgress::Pending => return Ok(None),
                BatchProgress::Complete(responses) => return Ok(Some(responses)),
            }
        }
        serde_json::to_string(message).map(Some)
    }
}

fn lock(batches: &Mutex<Batches>) -> std::sync::MutexGuard<'_, Batches> {
    batches.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn write_line<W: AsyncWrite + Unpin>(
    write: &tokio::sync::Mutex<Option<W>>,
    mut line: String,
) -> io::Result<()> {
    line.push('\n');
    let mut write = write.lock().await;
    let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    write.write_all(line.as_bytes()).await?;
    write.flush().await
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let line = lock(&self.batches).line(&message);
        let write = Arc::clone(&self.write);
        async move {
            match line? {
                Some(line) => write_line(&write, line).await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(message) = self.received.pop_front() {
                return Some(message);
            }
            self.flush_outgoing().await;
            let Some(line) = self.next_line().await else {
                self.input_closed.cancel();
                all_written(&self.pending_errors).await;
                return None;
            };
            self.accept(&line);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.write.lock().await.take());
        Ok(())
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
