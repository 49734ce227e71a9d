use super::super::segment;
use super::*;
use futures_util::FutureExt as _;

fn journal(home: &Path) -> Journal {
    Journal::open(home, "n", LedgerSync::Always).unwrap()
}

/// Returns the segment being written.
fn current_segment(journal: &Journal) -> PathBuf {
    let tail = journal.shared.tail();
    tail.segments.path(tail.segment)
}

/// Returns all records in the files of the journal.
fn on_disk(home: &Path) -> Vec<String> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(home.join(JOURNAL_FOLDER)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
    paths.sort();
    paths.iter().flat_map(|path| segment::read(path).unwrap().0).collect()
}

#[tokio::test]
async fn an_existing_segment_file_is_skipped() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.append(CallRow::example(1)).await.unwrap();
    // Like a rotation that failed after it created the file.
    segment::create(&Segments::new(&home.path().join(JOURNAL_FOLDER), "n").path(2), 0).unwrap();
    for number in 2..4 {
        let batch = journal.rotate().unwrap();
        assert_eq!(batch.rows().len(), 1);
        journal.discard(&batch);
        journal.append(CallRow::example(number)).await.unwrap();
    }
    assert_eq!(on_disk(home.path()), ["3"]);
}

#[tokio::test]
async fn after_a_partial_write_a_new_segment_starts() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.append(CallRow::example(1)).await.unwrap();
    let batch = journal.rotate().unwrap();
    journal.append(CallRow::example(2)).await.unwrap();
    // A file that can be neither written nor truncated.
    let path = current_segment(&journal);
    journal.shared.tail().file = File::open(path).unwrap();
    assert!(journal.append(CallRow::example(3)).await.is_err());
    journal.append(CallRow::example(4)).await.unwrap();
    // Discarding the first batch must not remove the segment of the second.
    journal.discard(&batch);
    assert_eq!(on_disk(home.path()), ["2", "4"]);
    let batch = journal.rotate().unwrap();
    assert_eq!(batch.rows().iter().map(|row| &*row.record).collect::<Vec<_>>(), ["2", "4"]);
    journal.discard(&batch);
    assert_eq!(on_disk(home.path()), Vec::<String>::new());
}

#[tokio::test]
async fn rows_that_sqlite_did_not_store_keep_their_segments() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.append(CallRow::example(1)).await.unwrap();
    let batch = journal.rotate().unwrap();
    assert_eq!(journal.find(CallRow::example(1).id), Some(CallRow::example(1)), "found while it is moved");
    journal.restore(batch);
    journal.append(CallRow::example(2)).await.unwrap();
    assert_eq!(
        [1, 2].map(|number| journal.find(CallRow::example(number).id)),
        [1, 2].map(|number| Some(CallRow::example(number)))
    );
    assert_eq!(on_disk(home.path()), ["1", "2"]);
    let batch = journal.rotate().unwrap();
    assert_eq!(batch.rows().len(), 2);
    journal.discard(&batch);
    assert_eq!(journal.find(CallRow::example(1).id), None, "SQLite has it");
    assert_eq!(on_disk(home.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_closed_journal_rejects_calls() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.close();
    journal.remove();
    assert!(journal.append(CallRow::example(1)).await.is_err());
    assert_eq!(on_disk(home.path()), Vec::<String>::new());
}

#[tokio::test]
async fn concurrent_calls_are_all_written_once() {
    for sync in [LedgerSync::Always, LedgerSync::Auto, LedgerSync::Os] {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::open(home.path(), "n", sync).unwrap();
        futures_util::future::try_join_all((1..100).map(|number| journal.append(CallRow::example(number))))
            .await
            .unwrap();
        let mut written: Vec<u32> = on_disk(home.path()).iter().map(|line| line.parse().unwrap()).collect();
        written.sort_unstable();
        assert_eq!(written, (1..100).collect::<Vec<_>>());
        assert!((1..100).all(|number| journal.find(CallRow::example(number).id).is_some()));
    }
}

#[tokio::test]
async fn a_cancelled_call_does_not_block_others() {
    for sync in [LedgerSync::Always, LedgerSync::Auto, LedgerSync::Os] {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::open(home.path(), "n", sync).unwrap();
        let mut first = Box::pin(journal.append(CallRow::example(1)));
        let mut second = Box::pin(journal.append(CallRow::example(2)));
        assert_eq!((&mut first).now_or_never().map(|done| done.is_ok()), None);
        assert_eq!((&mut second).now_or_never().map(|done| done.is_ok()), None);
        drop(first);
        second.await.unwrap();
        assert_eq!(on_disk(home.path()), ["1", "2"]);
    }
}

#[tokio::test]
async fn a_new_segment_is_preallocated_to_the_size_of_the_last() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    let length = || std::fs::metadata(current_segment(&journal)).unwrap().len();
    for number in 1..=9 {
        let long = CallRow { record: "x".repeat(8000).into(), ..CallRow::example(number) };
        journal.append(long).await.unwrap();
    }
    assert_eq!(length(), 9 * 8012);
    journal.discard(&journal.rotate().unwrap());
    assert_eq!(length(), 18 * 4096);
    journal.append(CallRow::example(10)).await.unwrap();
    assert_eq!(length(), 18 * 4096);
    assert_eq!(on_disk(home.path()), ["10"]);
    // After a small segment, nothing is preallocated.
    journal.discard(&journal.rotate().unwrap());
    assert_eq!(length(), 0);
}
