//! Limits the rate at which unrequested messages of a server are read. The rest waits in the pipe, so that a server that
//! floods its client costs neither memory nor CPU time, and the connection stays open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::{Instant, sleep};

/// The capacity of the token bucket. A message costs one token, and one more for each 16 KiB.
const BURST: u64 = 20_000;
/// How many tokens are added per second.
const TOKENS_PER_SECOND: u64 = 2000;
const BYTES_PER_TOKEN: u64 = 16 << 10;

/// A token bucket.
pub(super) struct RateLimiter {
    tokens: u64,
    refilled: Instant,
    /// Whether the limit was logged.
    is_logged: bool,
}

impl Default for RateLimiter {
    fn default() -> Self {
        Self { tokens: BURST, refilled: Instant::now(), is_logged: false }
    }
}

impl RateLimiter {
    /// Acquires the tokens for some messages; waits until there are enough.
    pub(super) async fn acquire(&mut self, messages: u64, bytes: u64) {
        let mut missing = messages.saturating_add(bytes / BYTES_PER_TOKEN);
        loop {
            self.refill();
            let acquired = missing.min(self.tokens);
            self.tokens -= acquired;
            missing -= acquired;
            if missing == 0 {
                return;
            }
            if !std::mem::replace(&mut self.is_logged, true) {
                tracing::warn!("an MCP server exceeds the message rate limit; reading slowly");
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn refill(&mut self) {
        let elapsed = u64::try_from(self.refilled.elapsed().as_millis()).unwrap_or(u64::MAX);
        let added = elapsed.saturating_mul(TOKENS_PER_SECOND) / 1000;
        if added > 0 {
            self.tokens = self.tokens.saturating_add(added).min(BURST);
            self.refilled = Instant::now();
        }
    }
}

/// A transport that limits the rate of requests and notifications; responses are not limited.
pub(super) struct RateLimited<T> {
    inner: T,
    limiter: RateLimiter,
    /// The bytes read since the last message, counted by the reader.
    bytes: Arc<AtomicU64>,
    /// The size of the last message, if it has yet to be paid for.
    unpaid_bytes: Option<u64>,
}

impl<T> RateLimited<T> {
    pub(super) fn new(inner: T, bytes: Arc<AtomicU64>) -> Self {
        Self { inner, limiter: RateLimiter::default(), bytes, unpaid_bytes: None }
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
        // Paid before the next read, so that a dropped future loses no message.
        if let Some(bytes) = self.unpaid_bytes {
            self.limiter.acquire(1, bytes).await;
            self.unpaid_bytes = None;
        }
        let message = self.inner.receive().await?;
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        let is_response = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        self.unpaid_bytes = (!is_response).then_some(bytes);
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn messages_above_the_rate_wait() {
        let mut limiter = RateLimiter::default();
        let start = Instant::now();
        for _ in 0..BURST {
            limiter.acquire(1, 100).await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "a burst does not wait");
        for _ in 0..TOKENS_PER_SECOND * 5 {
            limiter.acquire(1, 0).await;
        }
        let taken = start.elapsed();
        assert!(taken >= Duration::from_secs(5) && taken < Duration::from_secs(6), "{taken:?}");
        let start = Instant::now();
        limiter.acquire(1, 16 << 20).await;
        assert!(start.elapsed() >= Duration::from_millis(400), "a large message costs more");
    }
}
