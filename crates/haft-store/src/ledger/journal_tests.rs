use super::super::segment;
use super::*;
use futures_util::FutureExt as _;

fn journal(home: &Path) -> Journal {
    Journal::open(home, "n", Durability::Disk).unwrap()
}

/// The file that the journal writes now.
fn current(journal: &Journal) -> PathBuf {
    let tail = journal.core.tail();
    tail.segments.path(tail.segment)
}

/// Everything that the files of the journal hold, in their order.
fn on_disk(home: &Path) -> Vec<String> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(home.join(FOLDER)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
    paths.sort();
    paths.iter().flat_map(|path| segment::read(path).unwrap().0).collect()
}

#[tokio::test]
async fn a_segment_that_is_in_the_way_is_stepped_over() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.append(Row::example(1)).await.unwrap();
    // As a rotation leaves it that failed after the file was made.
    segment::create(&Segments::new(&home.path().join(FOLDER), "n").path(2), 0).unwrap();
    for number in 2..4 {
        let batch = journal.rotate().unwrap();
        assert_eq!(batch.rows().len(), 1);
        journal.forget(&batch);
        journal.append(Row::example(number)).await.unwrap();
    }
    assert_eq!(on_disk(home.path()), ["3"]);
}

#[tokio::test]
async fn behind_a_torn_record_a_new_segment_starts() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.append(Row::example(1)).await.unwrap();
    let batch = journal.rotate().unwrap();
    journal.append(Row::example(2)).await.unwrap();
    // A file that can be neither written nor cut.
    let path = current(&journal);
    journal.core.tail().file = File::open(path).unwrap();
    assert!(journal.append(Row::example(3)).await.is_err());
    journal.append(Row::example(4)).await.unwrap();
    // Moving the first batch must not take the segment of the second along.
    journal.forget(&batch);
    assert_eq!(on_disk(home.path()), ["2", "4"]);
    let batch = journal.rotate().unwrap();
    assert_eq!(batch.rows().iter().map(|row| &*row.record).collect::<Vec<_>>(), ["2", "4"]);
    journal.forget(&batch);
    assert_eq!(on_disk(home.path()), Vec::<String>::new());
}

#[tokio::test]
async fn rows_that_could_not_be_moved_keep_their_segments() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.append(Row::example(1)).await.unwrap();
    let batch = journal.rotate().unwrap();
    assert_eq!(journal.find(Row::example(1).id), Some(Row::example(1)), "it is known while it is moved");
    journal.put_back(batch);
    journal.append(Row::example(2)).await.unwrap();
    assert_eq!(
        [1, 2].map(|number| journal.find(Row::example(number).id)),
        [1, 2].map(|number| Some(Row::example(number)))
    );
    assert_eq!(on_disk(home.path()), ["1", "2"]);
    let batch = journal.rotate().unwrap();
    assert_eq!(batch.rows().len(), 2);
    journal.forget(&batch);
    assert_eq!(journal.find(Row::example(1).id), None, "the tables know it");
    assert_eq!(on_disk(home.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_closed_journal_takes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.close();
    journal.remove();
    assert!(journal.append(Row::example(1)).await.is_err());
    assert_eq!(on_disk(home.path()), Vec::<String>::new());
}

#[tokio::test]
async fn all_who_wait_at_a_moment_are_written_by_one_and_in_order() {
    for durability in [Durability::Disk, Durability::System] {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::open(home.path(), "n", durability).unwrap();
        futures_util::future::try_join_all((1..100).map(|number| journal.append(Row::example(number))))
            .await
            .unwrap();
        let all: Vec<String> = (1..100).map(|number| number.to_string()).collect();
        assert_eq!(on_disk(home.path()), all);
        assert!((1..100).all(|number| journal.find(Row::example(number).id).is_some()));
    }
}

#[tokio::test]
async fn who_goes_away_first_leaves_nobody_waiting() {
    for durability in [Durability::Disk, Durability::System] {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::open(home.path(), "n", durability).unwrap();
        // The first of a group sees to it, also where it is given up before it came to that.
        let mut first = Box::pin(journal.append(Row::example(1)));
        let mut second = Box::pin(journal.append(Row::example(2)));
        assert_eq!((&mut first).now_or_never().map(|done| done.is_ok()), None);
        assert_eq!((&mut second).now_or_never().map(|done| done.is_ok()), None);
        drop(first);
        second.await.unwrap();
        assert_eq!(on_disk(home.path()), ["1", "2"]);
    }
}

#[tokio::test]
async fn the_next_segment_has_the_room_that_the_last_one_needed() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    let length = || std::fs::metadata(current(&journal)).unwrap().len();
    for number in 1..=9 {
        let long = Row { record: "x".repeat(8000).into(), ..Row::example(number) };
        journal.append(long).await.unwrap();
    }
    assert_eq!(length(), 9 * 8012);
    journal.forget(&journal.rotate().unwrap());
    assert_eq!(length(), 18 * 4096);
    journal.append(Row::example(10)).await.unwrap();
    assert_eq!(length(), 18 * 4096);
    assert_eq!(on_disk(home.path()), ["10"]);
    // A quiet time needs none.
    journal.forget(&journal.rotate().unwrap());
    assert_eq!(length(), 0);
}
