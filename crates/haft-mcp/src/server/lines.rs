//! Messages line by line. rmcp's own transport says nothing to a line that is no JSON and knows no batches; both have
//! their place in JSON-RPC.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::peek::{self, Peek};

/// How many answers to what is no message may wait to be written. Whoever does not read them is not read either.
const MAX_COMPLAINTS: u16 = 16;
/// How many batches may be under way. A place is not waited for: what cancels a call of a batch has to be read.
const MAX_BATCHES: usize = 256;
/// How long a client that sends nothing more may take to read what it was told.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A client that is spoken to line by line.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    longest: usize,
    /// Whether the rest of a line that is too long is being passed over.
    skips: bool,
    /// Whether the input is over.
    ended: bool,
    /// What a batch brought and was not handed over yet.
    waiting: VecDeque<ClientJsonRpcMessage>,
    write: Arc<tokio::sync::Mutex<Option<W>>>,
    batches: Arc<Mutex<Batches>>,
    /// What is to be said before another line is read.
    unsaid: VecDeque<String>,
    complaints: Arc<Semaphore>,
    /// Cancelled where the input is over.
    gone: CancellationToken,
}

/// The batches whose answers are not complete, and whether there may be any.
#[derive(Default)]
struct Batches {
    version: Option<String>,
    open: Vec<Batch>,
}

struct Batch {
    awaited: Vec<RequestId>,
    answers: Vec<Value>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    /// Speaks to whoever is at the other end; `gone` is cancelled when nothing more comes from there.
    pub(super) fn new(read: R, write: W, longest: usize, gone: CancellationToken) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            longest,
            skips: false,
            ended: false,
            waiting: VecDeque::new(),
            write: Arc::new(tokio::sync::Mutex::new(Some(write))),
            batches: Arc::default(),
            unsaid: VecDeque::new(),
            complaints: Arc::new(Semaphore::new(usize::from(MAX_COMPLAINTS))),
            gone,
        }
    }

    /// Reads on until a line is complete; `None` at the end. Where this is dropped half-way, the next one goes on.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        while !self.ended {
            let available = match self.read.fill_buf().await {
                Ok([]) => {
                    // The last line may do without its end.
                    self.ended = true;
                    return Some(std::mem::take(&mut self.line)).filter(|line| !line.is_empty());
                }
                Ok(available) => available,
                Err(error) => {
                    tracing::debug!(%error, "an MCP client can be read no more");
                    self.ended = true;
                    return None;
                }
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let is_long = self.line.len() + taken > self.longest;
            if !self.skips && !is_long {
                self.line.extend(available.iter().take(taken));
            }
            self.read.consume(taken);
            if is_long && !self.skips {
                self.skips = true;
                self.line.clear();
                let why = format!("a message has at most {} bytes", self.longest);
                self.complain(None, &ErrorData::invalid_request(why, None));
            }
            if end.is_some() && !std::mem::take(&mut self.skips) {
                return Some(std::mem::take(&mut self.line));
            }
            // The rest of a line that is too long may take its time.
            self.say().await;
        }
        None
    }

    /// Takes a line to the messages in it.
    fn take(&mut self, line: &[u8]) {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return;
        }
        if peek::is_batch(line) {
            return self.take_batch(line);
        }
        match message(line) {
            Ok(message) => self.hand_over(message),
            Err(Unread::Unheard) => {}
            Err(Unread::Wrong(id, error)) => self.complain(id.as_ref(), &error),
        }
    }

    fn take_batch(&mut self, line: &[u8]) {
        let (read, is_full) = {
            let batches = lock(&self.batches);
            (peek::batch(line, batches.version.as_deref()), batches.open.len() >= MAX_BATCHES)
        };
        let values = match read {
            Ok(values) => values,
            Err(error) => return self.complain(None, &error),
        };
        let mut batch = Batch { awaited: Vec::new(), answers: Vec::new() };
        let mut messages = Vec::with_capacity(values.len());
        for value in values {
            match message(value.to_string().as_bytes()) {
                Ok(ClientJsonRpcMessage::Request(request)) if is_full => {
                    let why = "too many batches are under way; wait for their answers";
                    let why = ErrorData::invalid_request(why, None);
                    batch.answers.push(peek::error(Some(&request.id), &why));
                }
                Ok(ClientJsonRpcMessage::Request(request)) if batch.awaited.contains(&request.id) => {
                    let why = ErrorData::invalid_request("the id is in the batch twice", None);
                    batch.answers.push(peek::error(Some(&request.id), &why));
                }
                Ok(message) => {
                    if let ClientJsonRpcMessage::Request(request) = &message {
                        batch.awaited.push(request.id.clone());
                    }
                    messages.push(message);
                }
                Err(Unread::Unheard) => {}
                Err(Unread::Wrong(id, error)) => batch.answers.push(peek::error(id.as_ref(), &error)),
            }
        }
        if !batch.awaited.is_empty() {
            lock(&self.batches).open.push(batch);
        } else if !batch.answers.is_empty() {
            self.tell(Value::Array(batch.answers).to_string());
        }
        for message in messages {
            self.hand_over(message);
        }
    }

    fn hand_over(&mut self, message: ClientJsonRpcMessage) {
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // Nobody waits for its answer any more, and there may be none.
            let done = lock(&self.batches).settle(id, None);
            if let Settled::Complete(answers) = done {
                self.tell(answers);
            }
        }
        self.waiting.push_back(message);
    }

    fn complain(&mut self, id: Option<&RequestId>, error: &ErrorData) {
        tracing::debug!(error = %error.message, "an MCP client sent what is no message");
        self.tell(peek::error(id, error).to_string());
    }

    fn tell(&mut self, line: String) {
        self.unsaid.push_back(line);
    }

    /// Has written what is to be said, while others are answered; waits where too much of it is not written yet. Where
    /// this is dropped half-way, the next one goes on.
    async fn say(&mut self) {
        while !self.unsaid.is_empty() {
            let Ok(place) = Arc::clone(&self.complaints).acquire_owned().await else { return };
            let Some(line) = self.unsaid.pop_front() else { return };
            let write = Arc::clone(&self.write);
            tokio::spawn(async move {
                let _ = put(&write, line).await;
                drop(place);
            });
        }
    }
}

/// Waits until all that was said is written; whoever does not read it is not waited for.
async fn all_written(complaints: &Semaphore) {
    let written = complaints.acquire_many(u32::from(MAX_COMPLAINTS));
    let _ = tokio::time::timeout(LAST_WORDS, written).await;
}

/// Why a line is no message that could be handed over.
enum Unread {
    /// A notification of some other protocol, which nobody answers.
    Unheard,
    Wrong(Option<RequestId>, ErrorData),
}

fn message(line: &[u8]) -> Result<ClientJsonRpcMessage, Unread> {
    let peek = Peek::of(line);
    if let Some(peek) = &peek
        && let Some(fault) = peek.fault()
    {
        return Err(Unread::Wrong(peek.id.clone(), fault));
    }
    serde_json::from_slice(line).map_err(|_| match (peek, serde_json::from_slice::<Value>(line)) {
        (_, Err(error)) => {
            let why = format!("the line is not JSON: {error}");
            Unread::Wrong(None, ErrorData::parse_error(why, None))
        }
        (Some(Peek { id: None, method: Some(_), .. }), Ok(_)) => Unread::Unheard,
        (peek, Ok(_)) => {
            let id = peek.and_then(|peek| peek.id);
            Unread::Wrong(id, ErrorData::invalid_request("this is no message of JSON-RPC 2.0", None))
        }
    })
}

/// What became of a batch when one of its requests was answered.
enum Settled {
    /// The request is of none.
    Alone,
    /// Others are awaited.
    Waits,
    /// These are all answers.
    Complete(String),
}

impl Batches {
    fn settle(&mut self, id: &RequestId, answer: Option<Value>) -> Settled {
        let Some(at) = self.open.iter().position(|batch| batch.awaited.contains(id)) else {
            return Settled::Alone;
        };
        let Some(batch) = self.open.get_mut(at) else { return Settled::Alone };
        batch.awaited.retain(|awaited| awaited != id);
        batch.answers.extend(answer);
        if !batch.awaited.is_empty() {
            return Settled::Waits;
        }
        let answers = self.open.swap_remove(at).answers;
        if answers.is_empty() { Settled::Waits } else { Settled::Complete(Value::Array(answers).to_string()) }
    }

    /// Returns the line that goes out for a message; `None` where it waits for others.
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
                Settled::Alone => {}
                Settled::Waits => return Ok(None),
                Settled::Complete(answers) => return Ok(Some(answers)),
            }
        }
        serde_json::to_string(message).map(Some)
    }
}

fn lock(batches: &Mutex<Batches>) -> std::sync::MutexGuard<'_, Batches> {
    batches.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn put<W: AsyncWrite + Unpin>(
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
                Some(line) => put(&write, line).await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            self.say().await;
            let Some(line) = self.next_line().await else {
                self.gone.cancel();
                all_written(&self.complaints).await;
                return None;
            };
            self.take(&line);
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
