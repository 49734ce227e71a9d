//! Backups of what updates and deletes replaced.

use std::io;
use std::path::Path;

use haft_core::Timestamp;

use super::layout::HISTORY;
use super::write::{self, Existing};

/// How many backups one tool may get within one second.
const TRIES: u32 = 1000;

/// Keeps a copy; returns its path relative to the home folder.
pub(crate) fn keep(home: &Path, path: &str, content: &[u8], now: Timestamp) -> io::Result<String> {
    std::fs::create_dir_all(home.join(HISTORY))?;
    let file = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = file.rsplit_once('.').unwrap_or((file, "json"));
    let stamp = now.strftime("%Y%m%dT%H%M%SZ");
    for n in 1..=TRIES {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let backup = format!("{HISTORY}/{stem}-{stamp}{suffix}.{ending}.bak");
        match write::write(&home.join(&backup), content, Existing::Refuse) {
            Ok(()) => return Ok(backup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("there are too many backups of this second"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_of_the_same_second_are_kept_apart() {
        let home = tempfile::tempdir().unwrap();
        let now: Timestamp = "2026-08-01T10:00:00Z".parse().unwrap();
        let keep = |text: &str| keep(home.path(), "skills/b/weather.skill", text.as_bytes(), now).unwrap();
        let paths = [keep("one"), keep("two")];
        assert_eq!(
            paths,
            [
                "tool-history/weather-20260801T100000Z.skill.bak",
                "tool-history/weather-20260801T100000Z-2.skill.bak"
            ]
        );
        assert_eq!(std::fs::read_to_string(home.path().join(&paths[1])).unwrap(), "two");
    }
}
