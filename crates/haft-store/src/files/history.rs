//! Backups of replaced and deleted definitions.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use haft_core::Timestamp;
use haft_definition::folder::{SymbolicLinks, read_text};

use super::layout::HISTORY;
use super::write::{self, FileMode, IfExists};

/// The format of the time in the name of a backup.
const TIME_FORMAT: &str = "%Y%m%dT%H%M%SZ";
/// The largest number of backups of one file within one second.
const MAX_PER_SECOND: u32 = 1000;

/// Creates the backup folder. It is private, as a definition may have been removed because it held a secret.
pub(crate) fn create_folder(home: &Path) -> io::Result<()> {
    let folder = home.join(HISTORY);
    fs::create_dir_all(&folder)?;
    if fs::metadata(&folder)?.permissions().mode() & 0o077 != 0
        && let Err(error) = fs::set_permissions(&folder, Permissions::from_mode(0o700))
    {
        tracing::warn!(folder = %folder.display(), %error, "cannot make the backup folder private");
    }
    Ok(())
}

/// Saves a copy and returns its path relative to the home folder.
pub(crate) fn save(home: &Path, path: &str, content: &[u8], now: Timestamp) -> io::Result<String> {
    add(home, path, now, |backup| write::write(backup, content, IfExists::Fail, FileMode::Private))
}

/// Moves a file that cannot be read to the backups and returns its path relative to the home folder.
pub(crate) fn move_file(home: &Path, path: &str, now: Timestamp) -> io::Result<String> {
    add(home, path, now, |backup| write::rename_to_new(&home.join(path), backup))
}

/// Returns the newest backup of a file, if there is one that can be read.
pub(crate) fn newest(home: &Path, path: &str) -> io::Result<Option<String>> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let mut newest: Option<(String, u32, PathBuf)> = None;
    let entries = match fs::read_dir(home.join(HISTORY)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Some((name, stamp, n)) = entry.file_name().to_str().and_then(parse) else { continue };
        let is_newer = newest.as_ref().is_none_or(|(other, m, _)| (other, *m) < (&stamp, n));
        if name == file && is_newer {
            newest = Some((stamp, n, entry.path()));
        }
    }
    let text = newest.and_then(|(_, _, path)| read_text(&path, SymbolicLinks::Reject).ok());
    Ok(text.map(|(text, _)| text))
}

fn add(
    home: &Path,
    path: &str,
    now: Timestamp,
    store: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<String> {
    create_folder(home)?;
    let file = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = file.rsplit_once('.').unwrap_or((file, "json"));
    let stamp = now.strftime(TIME_FORMAT);
    for n in 1..=MAX_PER_SECOND {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let backup = format!("{HISTORY}/{stem}-{stamp}{suffix}.{ending}.bak");
        match store(&home.join(&backup)) {
            Ok(()) => return Ok(backup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many backups within one second"))
}

/// Removes backups older than `oldest`, and all but the newest `copies` of each file name. Returns how many were
/// removed. Folders and files that are not named like a backup stay.
pub(crate) fn prune(home: &Path, oldest: Option<Timestamp>, copies: Option<usize>) -> io::Result<usize> {
    let mut by_name: HashMap<String, Vec<(String, u32, PathBuf)>> = HashMap::new();
    for entry in fs::read_dir(home.join(HISTORY))? {
        let entry = entry?;
        let name = entry.file_name();
        let Some((file, stamp, n)) = name.to_str().and_then(parse) else { continue };
        if !entry.file_type()?.is_dir() {
            by_name.entry(file).or_default().push((stamp, n, entry.path()));
        }
    }
    let oldest = oldest.map(|oldest| oldest.strftime(TIME_FORMAT).to_string());
    let mut removed = 0;
    for (_, mut backups) in by_name {
        // The time format sorts chronologically.
        backups.sort_by(|a, b| (&b.0, b.1).cmp(&(&a.0, a.1)));
        for (index, (stamp, _, path)) in backups.into_iter().enumerate() {
            let old = oldest.as_ref().is_some_and(|oldest| stamp < *oldest);
            if old || copies.is_some_and(|copies| index >= copies) {
                write::remove(&path)?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}

/// Parses the name of a backup: the file, the second, and the number within that second.
fn parse(name: &str) -> Option<(String, String, u32)> {
    let (rest, ending) = name.strip_suffix(".bak")?.rsplit_once('.')?;
    let (stem, last) = rest.rsplit_once('-')?;
    let (stem, stamp, n) = match last.parse() {
        Ok(n) => {
            let (stem, stamp) = stem.rsplit_once('-')?;
            (stem, stamp, n)
        }
        Err(_) => (stem, last, 1),
    };
    jiff::civil::DateTime::strptime(TIME_FORMAT, stamp).ok()?;
    Some((format!("{stem}.{ending}"), stamp.to_owned(), n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_of_the_same_second_get_numbers() {
        let home = tempfile::tempdir().unwrap();
        let now: Timestamp = "2026-08-01T10:00:00Z".parse().unwrap();
        let save = |text: &str| save(home.path(), "skills/b/weather.skill", text.as_bytes(), now).unwrap();
        let paths = [save("one"), save("two")];
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

    #[test]
    fn old_and_surplus_backups_are_removed_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        create_folder(home.path()).unwrap();
        let folder = home.path().join(HISTORY);
        let names = [
            "a-20260101T000000Z.skill.bak",
            "a-20260801T100000Z.skill.bak",
            "a-20260801T100000Z-2.skill.bak",
            "a-20260801T100000Z-10.skill.bak",
            "a-2-20260801T100000Z.skill.bak",
            "a-20260801T100000Z.json.bak",
            "notes.txt",
            "a-19990101.skill.bak",
            "a.skill.bak",
        ];
        for name in names {
            fs::write(folder.join(name), "x").unwrap();
        }
        fs::create_dir(folder.join("b-20260101T000000Z.skill.bak")).unwrap();
        let remaining = || {
            let all = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
            let mut all: Vec<_> = all.map(|name| name.into_string().unwrap()).collect();
            all.sort();
            all
        };
        let before = remaining();
        assert_eq!((prune(home.path(), None, None).unwrap(), remaining()), (0, before.clone()));
        let without = |gone: &[&str]| -> Vec<_> {
            before.iter().filter(|name| !gone.contains(&name.as_str())).cloned().collect()
        };
        let may = "2026-05-01T00:00:00Z".parse().unwrap();
        assert_eq!(prune(home.path(), Some(may), None).unwrap(), 1);
        assert_eq!(remaining(), without(&names[..1]));
        assert_eq!(prune(home.path(), Some(may), Some(2)).unwrap(), 1);
        assert_eq!(remaining(), without(&names[..2]));
    }
}
