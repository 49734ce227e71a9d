use std::sync::Arc;

use super::*;
use tokio::sync::{Semaphore, mpsc};

/// A group commit whose writes wait for a permit and report what they stored.
struct Rig {
    group_commit: Arc<GroupCommit>,
    permits: Arc<Semaphore>,
    groups: mpsc::UnboundedReceiver<String>,
}

fn rig() -> Rig {
    let permits = Arc::new(Semaphore::new(0));
    let (report, groups) = mpsc::unbounded_channel();
    let gate = Arc::clone(&permits);
    let group_commit = GroupCommit::new(move |rows| {
        let records: Vec<String> = rows.iter().map(|row| row.record.to_string()).collect();
        let gate = Arc::clone(&gate);
        report.send(records.join(" ")).unwrap();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            assert!(!records.contains(&"66".to_owned()), "panic on purpose");
            if records.contains(&"13".to_owned()) {
                let (action, failure) = ("write the call journal", StorageFailure::DiskFull);
                return Err(WriteError { action, failure, message: "no luck".into() });
            }
            Ok(Vec::new())
        })
    });
    Rig { group_commit: Arc::new(group_commit), permits, groups }
}

impl Rig {
    fn commit(&self, number: u8) -> tokio::task::JoinHandle<Result<(), StoreError>> {
        let group_commit = Arc::clone(&self.group_commit);
        tokio::spawn(async move { group_commit.commit(CallRow::example(number)).await })
    }

    /// Waits until the queue has this many calls.
    async fn queued(&self, calls: usize) {
        while self.group_commit.shared.queue().entries.len() != calls {
            tokio::task::yield_now().await;
        }
    }

    async fn group(&mut self) -> String {
        self.groups.recv().await.unwrap()
    }
}

#[tokio::test]
async fn calls_that_arrive_during_a_write_are_written_together_next() {
    let mut rig = rig();
    let first = rig.commit(1);
    assert_eq!(rig.group().await, "1");
    let second = rig.commit(2);
    rig.queued(1).await;
    let third = rig.commit(13);
    rig.queued(2).await;
    rig.permits.add_permits(1);
    first.await.unwrap().unwrap();
    assert_eq!(rig.group().await, "2 13");
    rig.permits.add_permits(1);
    for stored in [second, third] {
        let error = stored.await.unwrap().unwrap_err();
        assert_eq!(error.with_cause(), "cannot write the call journal: no luck");
        assert!(matches!(error, StoreError::Unavailable { failure: StorageFailure::DiskFull, .. }));
    }
    let fourth = rig.commit(4);
    assert_eq!(rig.group().await, "4");
    rig.permits.add_permits(1);
    fourth.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_is_stored_even_if_its_caller_stops_waiting() {
    let mut rig = rig();
    let first = rig.commit(1);
    assert_eq!(rig.group().await, "1");
    let cancelled = rig.commit(2);
    rig.queued(1).await;
    cancelled.abort();
    assert!(cancelled.await.unwrap_err().is_cancelled());
    let third = rig.commit(3);
    rig.queued(2).await;
    rig.permits.add_permits(2);
    first.await.unwrap().unwrap();
    assert_eq!(rig.group().await, "2 3");
    third.await.unwrap().unwrap();
    rig.group_commit.flush().await;
}

#[tokio::test]
async fn a_write_that_panics_fails_only_its_group() {
    let mut rig = rig();
    rig.permits.add_permits(2);
    let first = rig.commit(66);
    assert!(first.await.unwrap().is_err());
    let second = rig.commit(1);
    second.await.unwrap().unwrap();
    assert_eq!([rig.group().await, rig.group().await], ["66", "1"]);
}
