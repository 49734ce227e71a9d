//! One file of the journal: framed, checksummed records.
//!
//! A frame is the length (4 bytes), the checksum (8 bytes) and the JSON of a call. Whatever does not fit this at
//! the end of a file is what a crash left of a write that nobody was told of.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

const HEAD: usize = 12;

/// Spells a record as a frame.
pub(crate) fn frame(record: &str) -> io::Result<Vec<u8>> {
    let length = u32::try_from(record.len()).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(HEAD + record.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&checksum(record.as_bytes()).to_le_bytes());
    bytes.extend_from_slice(record.as_bytes());
    Ok(bytes)
}

/// Makes the file of a new segment.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    // Calls hold what people asked for: nobody else reads them.
    File::options().append(true).create_new(true).mode(0o600).open(path)
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
    Ok((records, !rest.is_empty()))
}

fn next(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*length).try_into().ok()?)?;
    if checksum(body) != u64::from_le_bytes(*sum) {
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
            records in proptest::collection::vec(".{0,80}", 0..6),
            cut in 0.0..1.0,
            noise in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let frames: Vec<Vec<u8>> = records.iter().map(|record| frame(record).unwrap()).collect();
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
            std::fs::write(&path, &bytes).unwrap();
            let (found, torn) = read(&path).unwrap();
            prop_assert_eq!(&found[..whole], &records[..whole]);
            prop_assert_eq!(found.len(), whole);
            prop_assert_eq!(torn, bytes.len() > end);
        }
    }
}
