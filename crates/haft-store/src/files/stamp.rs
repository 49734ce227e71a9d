//! Times of files, and whether a stamp can be trusted.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use haft_core::Timestamp;

use crate::time::from_micros;

/// The coarsest clock of a file system: a file that was written and read within one tick may change again without a
/// new stamp.
const CLOCK_TICK: Duration = Duration::from_millis(50);

/// Returns when a file was last modified.
pub(crate) fn modified_at(metadata: &Metadata) -> Timestamp {
    from_micros(metadata.mtime().saturating_mul(1_000_000).saturating_add(metadata.mtime_nsec() / 1000))
}

/// Tells whether a file changed so recently that its stamp cannot be trusted yet. Uses the change time (ctime), which
/// users cannot set.
#[expect(
    clippy::disallowed_methods,
    reason = "compared with the clock of the file system, which no test sets"
)]
pub(crate) fn is_recent(metadata: &Metadata) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = u64::try_from(metadata.ctime()).unwrap_or_default();
    let changed = Duration::new(seconds, u32::try_from(metadata.ctime_nsec()).unwrap_or_default());
    // A time far in the future means that the clock was set back.
    now.abs_diff(changed) < CLOCK_TICK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_dated_in_the_future_is_not_recent_forever() {
        let home = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(home.path().join("a")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000)).unwrap();
        for _ in 0..500 {
            if !is_recent(&file.metadata().unwrap()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the file stays recent");
    }
}
