//! One file of the journal: framed, checksummed records.
//!
//! A frame is the length (4 bytes), the checksum (8 bytes) and the JSON of a call. A file may end in zeros, room that
//! was made before it was needed. Whatever else does not fit this at the end of a file is what a crash left of a write
//! that nobody was told of.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

const HEAD: usize = 12;
/// Room is made page by page: of larger pieces the page cache makes larger pages, and writes the whole of one for
/// every record in it.
const PAGE: usize = 4096;

/// Spells a record as a frame, behind what is there.
pub(crate) fn frame(record: &str, bytes: &mut Vec<u8>) -> io::Result<()> {
    let length = u32::try_from(record.len()).map_err(io::Error::other)?;
    bytes.reserve(HEAD + record.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&checksum(record.as_bytes()).to_le_bytes());
    bytes.extend_from_slice(record.as_bytes());
    Ok(())
}

/// Makes the file of a new segment, with some room: a write within it changes nothing but data, so that waiting for
/// the disk takes half as long.
pub(crate) fn create(path: &Path, room: u64) -> io::Result<File> {
    // Calls hold what people asked for: nobody else reads them.
    let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    if room > 0 && make_room(&file, room).is_err() {
        // It is a help and not a need: on a full disk the records themselves may still fit.
        file.set_len(0)?;
    }
    Ok(file)
}

fn make_room(file: &File, room: u64) -> io::Result<()> {
    let mut at = 0;
    while at < room {
        file.write_all_at(&[0; PAGE], at)?;
        at += PAGE as u64;
    }
    file.sync_all()
}

/// Reads every whole record of a segment; returns also whether something at its end was cut off.
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
    // No record is empty: that is room, whose zeros have the right checksum.
    if body.is_empty() || checksum(body) != u64::from_le_bytes(*sum) {
        return None;
    }
    Some((std::str::from_utf8(body).ok()?, rest))
}

/// Tells a torn record from a whole one; it does not have to withstand an attack.
fn checksum(bytes: &[u8]) -> u64 {
    u64::from(crc32fast::hash(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Wherever a crash cuts the file, the records before the cut are read and nothing else.
        #[test]
        fn a_torn_tail_is_cut(
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
            // Noise behind a torn record; behind a whole one it might by chance be a record.
            if at > end { bytes.extend(noise); }
            let torn = bytes[end..].iter().any(|byte| *byte != 0);
            bytes.extend(vec![0; room]);
            std::fs::write(&path, &bytes).unwrap();
            prop_assert_eq!(read(&path).unwrap(), (records[..whole].to_vec(), torn));
        }
    }

    fn framed(record: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame(record, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn room_that_is_left_is_no_record() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("1.log");
        let file = create(&path, 5000).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 8192);
        assert_eq!(read(&path).unwrap(), (vec![], false));
        file.write_all_at(&framed("one"), 0).unwrap();
        assert_eq!(read(&path).unwrap(), (vec!["one".to_owned()], false));
    }
}
