use super::*;
use haft_core::call::CallStatus;

fn row(number: u8) -> Row {
    Row {
        id: CallId(uuid::Uuid::from_bytes([number; 16])),
        tenant: "default".into(),
        tool_id: "t".into(),
        status: CallStatus::Success,
        record: format!("record {number}"),
    }
}

fn journal(home: &Path) -> Journal {
    Journal::open(home, "n", true).unwrap()
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
    journal.append(row(1)).await.unwrap();
    // As a rotation leaves it that failed after the file was made.
    segment::create(&segment_file(&journal.folder, "n", 2)).unwrap();
    for number in 2..4 {
        let batch = journal.rotate().unwrap();
        assert_eq!(batch.rows.len(), 1);
        journal.forget(&batch);
        journal.append(row(number)).await.unwrap();
    }
    assert_eq!(on_disk(home.path()), ["record 3"]);
}

#[tokio::test]
async fn behind_a_torn_record_a_new_segment_starts() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.append(row(1)).await.unwrap();
    let batch = journal.rotate().unwrap();
    journal.append(row(2)).await.unwrap();
    // A file that can be neither written nor cut.
    let path = segment_file(&journal.folder, "n", journal.writing().segment);
    journal.writing().file = Arc::new(File::open(path).unwrap());
    assert!(journal.append(row(3)).await.is_err());
    journal.append(row(4)).await.unwrap();
    // Moving the first batch must not take the segment of the second along.
    journal.forget(&batch);
    assert_eq!(on_disk(home.path()), ["record 2", "record 4"]);
    let batch = journal.rotate().unwrap();
    assert_eq!(
        batch.rows.iter().map(|row| row.record.as_str()).collect::<Vec<_>>(),
        ["record 2", "record 4"]
    );
    journal.forget(&batch);
    assert_eq!(on_disk(home.path()), Vec::<String>::new());
}

#[tokio::test]
async fn rows_that_could_not_be_moved_keep_their_segments() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.append(row(1)).await.unwrap();
    let batch = journal.rotate().unwrap();
    journal.put_back(batch);
    journal.append(row(2)).await.unwrap();
    assert_eq!(on_disk(home.path()), ["record 1", "record 2"]);
    let batch = journal.rotate().unwrap();
    assert_eq!(batch.rows.len(), 2);
    journal.forget(&batch);
    assert_eq!(on_disk(home.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_closed_journal_takes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let journal = journal(home.path());
    journal.close();
    journal.remove();
    assert!(journal.append(row(1)).await.is_err());
    assert_eq!(on_disk(home.path()), Vec::<String>::new());
}
