//! Loops that fail are restarted, and the server says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Importance, LoopSpec, LoopStates, Supervisor};
use crate::metrics::{Gauges, Metrics};

/// A loop that panics at first, ends the second time, and then runs until it may go on.
fn failing(importance: Importance, stop: &CancellationToken, runs: &Arc<Semaphore>) -> LoopSpec {
    let (count, runs, stop) = (Arc::new(AtomicU32::new(0)), Arc::clone(runs), stop.clone());
    let until = stop.clone();
    let run = move || -> haft_core::BoxFuture<'static, ()> {
        let (number, runs, until) = (count.fetch_add(1, Ordering::SeqCst), Arc::clone(&runs), until.clone());
        Box::pin(async move {
            runs.add_permits(1);
            match number {
                0 => panic!("the first run"),
                1 => {}
                _ => until.cancelled().await,
            }
        })
    };
    LoopSpec { name: "failing", importance, stop, run: Box::new(run) }
}

async fn runs(runs: &Semaphore, number: u32) {
    let waited = tokio::time::timeout(Duration::from_mins(1), runs.acquire_many(number)).await;
    waited.expect("the loop was not restarted").unwrap().forget();
}

async fn down(states: &LoopStates, expected: &[&str]) {
    let reached = async {
        while states.down() != expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), reached)
        .await
        .expect("the state of the loop did not change");
}

fn text(metrics: &Metrics) -> String {
    metrics.text(&Gauges { tools: 0, running_calls: 0, waiting: None })
}

#[tokio::test]
async fn a_loop_that_panics_or_ends_is_restarted_until_it_is_stopped() {
    for importance in [Importance::Security, Importance::Ordinary] {
        let (states, metrics) = (Arc::<LoopStates>::default(), Metrics::new(0));
        let (stop, started) = (CancellationToken::new(), Arc::new(Semaphore::new(0)));
        let task =
            Supervisor { states: &states, metrics: &metrics }.start(failing(importance, &stop, &started));
        if importance == Importance::Security {
            down(&states, &["failing"]).await;
            assert!(text(&metrics).contains("haft_loop_up{loop=\"failing\"} 0"), "{}", text(&metrics));
        }
        runs(&started, 3).await;
        down(&states, &[]).await;
        let metrics = text(&metrics);
        assert!(metrics.contains("haft_loop_up{loop=\"failing\"} 1"), "{metrics}");
        assert!(metrics.contains("haft_loop_restarts_total{loop=\"failing\"} 2"), "{metrics}");
        stop.cancel();
        task.await.unwrap();
        assert_eq!(started.available_permits(), 0, "a stopped loop is not restarted");
    }
}
