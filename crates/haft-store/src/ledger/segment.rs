//! One file of the journal: framed, checksummed records.
//!
//! A frame is the length (4 bytes), the checksum (8 bytes) and the JSON of a call. A file may end in zeros, which were
//! preallocated. Any other incomplete frame at the end is the rest of a write that a crash interrupted before it was
//! acknowledged.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

const HEADER_BYTES: usize = 12;
/// Preallocation writes single pages: for larger writes the page cache uses larger pages, and writes a whole one for
/// every record in it.
const PAGE: usize = 4096;

/// Appends the frame of a record to a buffer.
pub(crate) fn append_frame(record: &str, bytes: &mut Vec<u8>) -> io::Result<()> {
    let length = u32::try_from(record.len()).map_err(io::Error::other)?;
    bytes.reserve(HEADER_BYTES + record.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&checksum(record.as_bytes()).to_le_bytes());
    bytes.extend_from_slice(record.as_bytes());
    Ok(())
}

/// Creates the file of a segment. A write within preallocated space changes only data, which halves the time of a
/// sync.
pub(crate) fn create(path: &Path, preallocation: u64) -> io::Result<File> {
    // Calls may hold private data: only the owner may read them.
    let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    if preallocation > 0 && preallocate(&file, preallocation).is_err() {
        // Only an optimisation: on a full disk the records themselves may still fit.
        file.set_len(0)?;
    }
    Ok(file)
}

fn preallocate(file: &File, size: u64) -> io::Result<()> {
    let mut at = 0;
    while at < size {
        file.write_all_at(&[0; PAGE], at)?;
        at += PAGE as u64;
    }
    file.sync_all()
}

/// Returns all complete records of a segment, and whether an incomplete one follows them.
pub(crate) fn read(path: &Path) -> io::Result<(Vec<String>, bool)> {
    let bytes = std::fs::read(path)?;
    let mut rest = bytes.as_slice();
    let mut records = Vec::new();
    while let Some((record, next)) = next(rest) {
        records.push(record.to_owned());
        rest = next;
    }
    Ok((records, rest.iter().any(|byte| *byte != 0)))
}

fn next(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*length).try_into().ok()?)?;
    // No record is empty: zeros are preallocated space, and their checksum is valid.
    if body.is_empty() || checksum(body) != u64::from_le_bytes(*sum) {
        return None;
    }
    Some((std::str::from_utf8(body).ok()?, rest))
}

/// Detects incomplete records; it does not protect against manipulation.
fn checksum(bytes: &[u8]) -> u64 {
    u64::from(crc32fast::hash(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// After a crash at any byte, exactly the records before it are read.
        #[test]
        fn an_incomplete_tail_is_ignored(
            records in proptest::collection::vec("[^\\x00]{1,80}", 0..6),
            cut in 0.0..1.0,
            noise in proptest::collection::vec(1_u8.., 0..20),
            room in 0_usize..40,
        ) {
            let frames: Vec<Vec<u8>> = records.iter().map(|record| framed(record)).collect();
            let all = frames.concat();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                reason = "a fraction of a small length")]
            let at = (all.len() as f64 * cut) as usize;
            let mut whole = 0;
            let mut end = 0;
            while frames.get(whole).is_some_and(|next| end + next.len() <= at) {
                end += frames[whole].len();
                whole += 1;
            }
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("1.log");
            let mut bytes = all[..at].to_vec();
            // Only after an incomplete record: after a complete one, noise might be a record by chance.
            if at > end { bytes.extend(noise); }
            let torn = bytes[end..].iter().any(|byte| *byte != 0);
            bytes.extend(vec![0; room]);
            std::fs::write(&path, &bytes).unwrap();
            prop_assert_eq!(read(&path).unwrap(), (records[..whole].to_vec(), torn));
        }
    }

    fn framed(record: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        append_frame(record, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn preallocated_space_holds_no_record() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("1.log");
        let file = create(&path, 5000).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 8192);
        assert_eq!(read(&path).unwrap(), (vec![], false));
        file.write_all_at(&framed("one"), 0).unwrap();
        assert_eq!(read(&path).unwrap(), (vec!["one".to_owned()], false));
    }
}
