//! Limits the rate at which unsolicited messages of a server are handled, so that a server that floods its client uses
//! little memory and CPU time, and the connection stays open. Notifications of a program above the rate are dropped, so
//! that responses behind them arrive without delay; all other messages wait in the pipe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::{Instant, sleep};

use super::handler::NotificationHandler;

/// The capacity of a token bucket. A message costs one token, and more the larger it is.
const BURST: u64 = 20_000;
/// The rate at which messages are handled.
const HANDLED: Rate = Rate { tokens_per_second: 2000, bytes_per_token: 16 << 10 };
/// The rate at which messages are read, for those that are dropped.
const READ: Rate = Rate { tokens_per_second: 50_000, bytes_per_token: 8 << 10 };
/// The rate at which events of remote servers are read.
const STREAMED: Rate = Rate { tokens_per_second: 10_000, bytes_per_token: 64 << 10 };

/// The refill rate of a token bucket, and the cost of a message.
#[derive(Clone, Copy)]
struct Rate {
    tokens_per_second: u64,
    bytes_per_token: u64,
}

/// A token bucket.
pub(super) struct RateLimiter {
    rate: Rate,
    tokens: u64,
    refilled: Instant,
    /// Whether the limit was logged.
    is_logged: bool,
}

impl Default for RateLimiter {
    fn default() -> Self {
        Self::new(STREAMED)
    }
}

impl RateLimiter {
    fn new(rate: Rate) -> Self {
        Self { rate, tokens: BURST, refilled: Instant::now(), is_logged: false }
    }

    fn cost(&self, messages: u64, bytes: u64) -> u64 {
        messages.saturating_add(bytes / self.rate.bytes_per_token)
    }

    /// Acquires the tokens for one message if there are enough.
    fn try_acquire(&mut self, bytes: u64) -> bool {
        self.refill();
        let left = self.tokens.checked_sub(self.cost(1, bytes));
        if let Some(left) = left {
            self.tokens = left;
        } else {
            self.log("dropping notifications");
        }
        left.is_some()
    }

    fn log(&mut self, consequence: &str) {
        if !std::mem::replace(&mut self.is_logged, true) {
            tracing::warn!("an MCP server exceeds the message rate limit; {consequence}");
        }
    }

    /// Acquires the tokens for some messages; waits until there are enough.
    pub(super) async fn acquire(&mut self, messages: u64, bytes: u64) {
        let mut missing = self.cost(messages, bytes);
        loop {
            self.refill();
            let acquired = missing.min(self.tokens);
            self.tokens -= acquired;
            missing -= acquired;
            if missing == 0 {
                return;
            }
            self.log("reading slowly");
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn refill(&mut self) {
        let elapsed = u64::try_from(self.refilled.elapsed().as_millis()).unwrap_or(u64::MAX);
        let added = elapsed.saturating_mul(self.rate.tokens_per_second) / 1000;
        if added > 0 {
            self.tokens = self.tokens.saturating_add(added).min(BURST);
            self.refilled = Instant::now();
        }
    }
}

/// A transport with a limited rate of messages other than responses.
pub(super) struct RateLimited<T> {
    inner: T,
    handled: RateLimiter,
    read: RateLimiter,
    /// The bytes read since the last message, counted by the reader.
    bytes: Arc<AtomicU64>,
    /// The last message, if its tokens have not been acquired yet.
    unpaid: Option<PendingCost>,
    handler: NotificationHandler,
}

/// A message whose tokens the next read acquires first.
#[derive(Clone, Copy)]
enum PendingCost {
    /// A message of this size was dropped.
    Dropped(u64),
    /// A request of this size was passed on.
    Passed(u64),
}

impl<T> RateLimited<T> {
    pub(super) fn new(inner: T, bytes: Arc<AtomicU64>, handler: NotificationHandler) -> Self {
        let (handled, read) = (RateLimiter::new(HANDLED), RateLimiter::new(READ));
        Self { inner, handled, read, bytes, unpaid: None, handler }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for RateLimited<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // Acquired before the next read, so that a dropped future loses no message.
            match self.unpaid {
                Some(PendingCost::Dropped(bytes)) => self.read.acquire(1, bytes).await,
                Some(PendingCost::Passed(bytes)) => self.handled.acquire(1, bytes).await,
                None => {}
            }
            self.unpaid = None;
            let message = self.inner.receive().await?;
            let bytes = self.bytes.swap(0, Ordering::Relaxed);
            match &message {
                JsonRpcMessage::Request(_) => self.unpaid = Some(PendingCost::Passed(bytes)),
                JsonRpcMessage::Notification(dropped) if !self.handled.try_acquire(bytes) => {
                    // Several announcements of a changed list cause one read, so none is lost.
                    if let ServerNotification::ToolListChangedNotification(_) = dropped.notification {
                        self.handler.list_changed.notify_one();
                    }
                    self.unpaid = Some(PendingCost::Dropped(bytes));
                    continue;
                }
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) | JsonRpcMessage::Notification(_) => {}
            }
            return Some(message);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use serde_json::{Value, json};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn messages_above_the_rate_wait() {
        let mut limiter = RateLimiter::new(HANDLED);
        let start = Instant::now();
        for _ in 0..BURST {
            limiter.acquire(1, 100).await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "a burst does not wait");
        for _ in 0..HANDLED.tokens_per_second * 5 {
            limiter.acquire(1, 0).await;
        }
        let taken = start.elapsed();
        assert!(taken >= Duration::from_secs(5) && taken < Duration::from_secs(6), "{taken:?}");
        let start = Instant::now();
        limiter.acquire(1, 16 << 20).await;
        assert!(start.elapsed() >= Duration::from_millis(400), "a large message costs more");
    }

    /// A transport that has received all of its messages.
    struct Received(VecDeque<Value>);

    impl Transport<RoleClient> for Received {
        type Error = std::io::Error;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
            let next = self.0.pop_front().map(|message| serde_json::from_value(message).unwrap());
            std::future::ready(next)
        }

        fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
            std::future::ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_behind_a_flood_of_notifications_arrives_at_once() {
        let notification =
            |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
        let line = notification("notifications/message", json!({"level": "info", "data": "x"}));
        let mut messages: VecDeque<Value> = std::iter::repeat_n(line, 30_000).collect();
        messages.push_back(notification("notifications/tools/list_changed", json!({})));
        messages.push_back(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        let handler = NotificationHandler::default();
        let mut transport = RateLimited::new(Received(messages), Arc::default(), handler.clone());
        let start = Instant::now();
        let mut passed = 0_u64;
        while let JsonRpcMessage::Notification(_) = transport.receive().await.unwrap() {
            passed += 1;
        }
        // At the rate of handled messages, the dropped ones would take five seconds.
        assert_eq!((passed, start.elapsed()), (BURST, Duration::ZERO));
        // The announcement was dropped, too, but its effect was not.
        tokio::time::timeout(Duration::from_secs(1), handler.list_changed.notified()).await.unwrap();
    }
}
