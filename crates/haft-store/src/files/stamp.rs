//! Stat stamps: what tells a changed file without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use haft_core::Timestamp;

use crate::time::from_micros;

/// The clock of a file system may tick this coarsely: a file that was written and read within one tick may
/// change once more without a new stamp.
const TICK: Duration = Duration::from_millis(50);

/// What a file looked like when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) String);

impl Stamp {
    /// Returns the stamp of a file.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self(format!(
            "{}.{}:{}.{}:{}:{}",
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
            metadata.size(),
            metadata.ino()
        ))
    }

    /// Returns a stamp that no file has: the file is read again at the next opportunity.
    pub(crate) fn unknown() -> Self {
        Self(String::new())
    }

    /// Tells whether the file has to be read again.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns when a file was last changed.
pub(crate) fn modified_at(metadata: &Metadata) -> Timestamp {
    from_micros(metadata.mtime().saturating_mul(1_000_000).saturating_add(metadata.mtime_nsec() / 1000))
}

/// Tells whether a file is so new that its stamp cannot be trusted yet. The time of its last change of any kind
/// decides: nobody can set that one.
#[expect(
    clippy::disallowed_methods,
    reason = "compared with the clock of the file system, which no test sets"
)]
pub(crate) fn is_fresh(metadata: &Metadata) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = u64::try_from(metadata.ctime()).unwrap_or_default();
    let changed = Duration::new(seconds, u32::try_from(metadata.ctime_nsec()).unwrap_or_default());
    // One that lies well ahead was changed before the clock was set back.
    now.abs_diff(changed) < TICK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_lies_ahead_is_not_fresh_for_ever() {
        let home = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(home.path().join("a")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000)).unwrap();
        for _ in 0..500 {
            if !is_fresh(&file.metadata().unwrap()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it stays fresh");
    }
}
