//! A server that tells and tells: what it sends unasked is read no faster than it is worth. What waits meanwhile waits in
//! the server's own pipe, so that neither memory nor a processor is spent on it, and the connection stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::{Instant, sleep};

/// How much may come at once, and how much of it is granted anew in a second. A message is worth one, and one more for
/// each 16 KiB.
const AT_ONCE: u64 = 20_000;
const PER_SECOND: u64 = 2000;
const PIECE: u64 = 16 << 10;

/// What is left to a server.
pub(super) struct Pace {
    left: u64,
    granted: Instant,
    /// Whether it was told that there is too much.
    is_told: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { left: AT_ONCE, granted: Instant::now(), is_told: false }
    }
}

impl Pace {
    /// Spends what some messages are worth; waits where there is not enough left.
    pub(super) async fn spend(&mut self, messages: u64, bytes: u64) {
        let worth = messages.saturating_add(bytes / PIECE);
        let mut missing = worth;
        loop {
            self.grant();
            let paid = missing.min(self.left);
            self.left -= paid;
            missing -= paid;
            if missing == 0 {
                return;
            }
            if !std::mem::replace(&mut self.is_told, true) {
                tracing::warn!("an MCP server sends more than is read of it; it is read slowly");
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn grant(&mut self) {
        let passed = u64::try_from(self.granted.elapsed().as_millis()).unwrap_or(u64::MAX);
        let granted = passed.saturating_mul(PER_SECOND) / 1000;
        if granted > 0 {
            self.left = self.left.saturating_add(granted).min(AT_ONCE);
            self.granted = Instant::now();
        }
    }
}

/// A transport that reads what was not asked for at that pace.
pub(super) struct Paced<T> {
    inner: T,
    pace: Pace,
    /// What came since the last message, counted where it is read.
    bytes: Arc<AtomicU64>,
    /// What the message that was read last is worth, where it was not asked for.
    owed: Option<u64>,
}

impl<T> Paced<T> {
    pub(super) fn new(inner: T, bytes: Arc<AtomicU64>) -> Self {
        Self { inner, pace: Pace::default(), bytes, owed: None }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Paced<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        // Spent before the next one is read, so that none is lost where this is dropped meanwhile.
        if let Some(bytes) = self.owed {
            self.pace.spend(1, bytes).await;
            self.owed = None;
        }
        let message = self.inner.receive().await?;
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        let is_asked = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        self.owed = (!is_asked).then_some(bytes);
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
    async fn what_is_too_much_takes_its_time() {
        let mut pace = Pace::default();
        let begun = Instant::now();
        for _ in 0..AT_ONCE {
            pace.spend(1, 100).await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "a burst is taken as it comes");
        for _ in 0..PER_SECOND * 5 {
            pace.spend(1, 0).await;
        }
        let taken = begun.elapsed();
        assert!(taken >= Duration::from_secs(5) && taken < Duration::from_secs(6), "{taken:?}");
        let begun = Instant::now();
        pace.spend(1, 16 << 20).await;
        assert!(begun.elapsed() >= Duration::from_millis(400), "a large one is worth more");
    }
}
