use super::*;
use std::sync::mpsc;
use std::thread::{self, ThreadId};

use futures_util::FutureExt as _;

/// A committer whose writes wait for a word, what they wrote, and where.
struct Rig {
    committer: Arc<Committer>,
    go: mpsc::Sender<Duration>,
    groups: mpsc::Receiver<(String, ThreadId)>,
}

fn rig(durability: Durability) -> Rig {
    let (go, gone) = mpsc::channel::<Duration>();
    let (told, groups) = mpsc::channel();
    let gone = Mutex::new(gone);
    let committer = Committer::new(durability, move |rows| {
        let records: Vec<&str> = rows.iter().map(|row| &*row.record).collect();
        told.send((records.join(" "), thread::current().id())).unwrap();
        thread::sleep(gone.lock().unwrap().recv().unwrap());
        if records.contains(&"13") { Err(io::Error::other("no luck")) } else { Ok(()) }
    });
    Rig { committer: Arc::new(committer), go, groups }
}

impl Rig {
    fn commit(&self, number: u8) -> tokio::task::JoinHandle<Result<(), String>> {
        let committer = Arc::clone(&self.committer);
        tokio::spawn(async move {
            committer.commit(Row::example(number)).await.map_err(|error| error.to_string())
        })
    }

    /// Waits until so many rows wait for the next write.
    async fn waiting(&self, rows: usize) {
        while self.committer.shared.queue().group.rows.len() != rows {
            tokio::task::yield_now().await;
        }
    }

    fn group(&self) -> String {
        self.groups.recv().unwrap().0
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_while_another_writes_is_written_together_and_next() {
    let rig = rig(Durability::System);
    let first = rig.commit(1);
    assert_eq!(rig.group(), "1");
    let second = rig.commit(2);
    rig.waiting(1).await;
    let third = rig.commit(13);
    rig.waiting(2).await;
    rig.go.send(Duration::ZERO).unwrap();
    assert_eq!(first.await.unwrap(), Ok(()));
    assert_eq!(rig.group(), "2 13");
    rig.go.send(Duration::ZERO).unwrap();
    for written in [second, third] {
        let error = written.await.unwrap().unwrap_err();
        assert!(error.contains("write the call journal"), "{error}");
    }
    let fourth = rig.commit(4);
    assert_eq!(rig.group(), "4");
    rig.go.send(Duration::ZERO).unwrap();
    assert_eq!(fourth.await.unwrap(), Ok(()), "an error is of its group alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_should_lead_and_is_gone_leaves_nobody_waiting() {
    let rig = rig(Durability::System);
    let first = rig.commit(1);
    assert_eq!(rig.group(), "1");
    let next = rig.commit(2);
    rig.waiting(1).await;
    let other = rig.commit(3);
    rig.waiting(2).await;
    next.abort();
    assert!(next.await.unwrap_err().is_cancelled());
    rig.go.send(Duration::ZERO).unwrap();
    rig.go.send(Duration::ZERO).unwrap();
    assert_eq!(first.await.unwrap(), Ok(()));
    assert_eq!(rig.group(), "2 3");
    assert_eq!(other.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn the_lead_that_nobody_takes_is_followed_where_it_is_dropped() {
    let rig = rig(Durability::System);
    let mut queue = rig.committer.shared.queue();
    queue.led = true;
    drop(queue);
    let mut next = Box::pin(rig.committer.commit(Row::example(1)));
    assert!((&mut next).now_or_never().is_none());
    rig.committer.shared.hand_over();
    assert!(rig.groups.try_recv().is_err(), "it waits for its leader");
    rig.go.send(Duration::ZERO).unwrap();
    drop(next);
    assert_eq!(rig.group(), "1");
    assert!(!rig.committer.shared.queue().led);
}

#[tokio::test]
async fn after_a_slow_write_the_next_one_keeps_no_thread_of_the_runtime() {
    let rig = rig(Durability::System);
    let here = thread::current().id();
    let mut threads = Vec::new();
    for time in [QUICK * 4, Duration::ZERO] {
        rig.go.send(time).unwrap();
        rig.committer.commit(Row::example(1)).await.unwrap();
        threads.push(rig.groups.recv().unwrap().1 == here);
    }
    assert_eq!(threads, [true, false]);
}

#[tokio::test]
async fn a_row_that_comes_alone_is_written_where_it_comes_from() {
    let rig = rig(Durability::Disk);
    let here = thread::current().id();
    let mut threads = Vec::new();
    for _ in 0..=LONELY {
        // However busy the machine is: what counts here is the company.
        rig.committer.shared.slow.store(false, Ordering::Relaxed);
        rig.go.send(Duration::ZERO).unwrap();
        rig.committer.commit(Row::example(1)).await.unwrap();
        threads.push(rig.groups.recv().unwrap().1 == here);
    }
    assert_eq!(threads, [false, false, false, false, true]);
}

#[tokio::test]
async fn a_write_that_panics_is_the_end_of_its_group_only() {
    let committer = Arc::new(Committer::new(Durability::System, |rows| {
        assert_ne!(&*rows[0].record, "13", "no luck");
        Ok(())
    }));
    let theirs = Arc::clone(&committer);
    assert!(
        tokio::spawn(async move { theirs.commit(Row::example(13)).await.is_ok() })
            .await
            .unwrap_err()
            .is_panic()
    );
    committer.commit(Row::example(1)).await.unwrap();
}
