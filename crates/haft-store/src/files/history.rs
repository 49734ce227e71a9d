//! Backups of what updates and deletes replaced.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use haft_core::Timestamp;

use super::layout::HISTORY;
use super::write::{self, Existing, Mode};

/// How many backups one tool may get within one second.
const TRIES: u32 = 1000;

/// Makes the folder of the backups. Only its owner may look into it, as what was taken out of service may have
/// been taken out for a reason.
pub(crate) fn make(home: &Path) -> io::Result<()> {
    let folder = home.join(HISTORY);
    fs::create_dir_all(&folder)?;
    if fs::metadata(&folder)?.permissions().mode() & 0o077 != 0
        && let Err(error) = fs::set_permissions(&folder, Permissions::from_mode(0o700))
    {
        tracing::warn!(folder = %folder.display(), %error, "others may read the backups");
    }
    Ok(())
}

/// Keeps a copy; returns its path relative to the home folder.
pub(crate) fn keep(home: &Path, path: &str, content: &[u8], now: Timestamp) -> io::Result<String> {
    put(home, path, now, |backup| write::write(backup, content, Existing::Refuse, Mode::Private))
}

/// Keeps what cannot be read, by moving it as it is; returns its path relative to the home folder.
pub(crate) fn keep_unread(home: &Path, path: &str, now: Timestamp) -> io::Result<String> {
    put(home, path, now, |backup| write::move_new(&home.join(path), backup))
}

fn put(
    home: &Path,
    path: &str,
    now: Timestamp,
    place: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<String> {
    make(home)?;
    let file = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = file.rsplit_once('.').unwrap_or((file, "json"));
    let stamp = now.strftime("%Y%m%dT%H%M%SZ");
    for n in 1..=TRIES {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let backup = format!("{HISTORY}/{stem}-{stamp}{suffix}.{ending}.bak");
        match place(&home.join(&backup)) {
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
        assert_eq!(fs::read_to_string(home.path().join(&paths[1])).unwrap(), "two");
        let mode = |path: &str| fs::metadata(home.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(HISTORY), mode(&paths[0])), (0o700, 0o600));
    }
}
