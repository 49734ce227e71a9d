//! The local admin token, created on first start and readable only by the owner of the home folder.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::secret::Secret;

/// The name of the file in the home folder.
const FILE: &str = "tokens";

/// The shortest token that is accepted.
const MIN_LENGTH: usize = 16;

/// Generates a token of 256 random bits.
pub fn generate() -> Result<Secret, getrandom::Error> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)?;
    Ok(Secret::new(format!("haft_{}", URL_SAFE_NO_PAD.encode(bytes))))
}

/// The local token cannot be read or created.
#[derive(Debug, thiserror::Error)]
#[error("cannot read or create the local token in `{}`", path.display())]
pub struct LocalTokenError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Reads the token of a home folder, or creates it.
pub fn load_or_create(home: &Path) -> Result<Secret, LocalTokenError> {
    let path = home.join(FILE);
    let fail = |source| LocalTokenError { path: path.clone(), source };
    match fs::read_to_string(&path) {
        Ok(text) if !first_line(&text).is_empty() => {
            let token = first_line(&text);
            if token.len() < MIN_LENGTH {
                let reason = format!(
                    "the token is shorter than {MIN_LENGTH} characters; remove the file to create a new one"
                );
                return Err(fail(io::Error::other(reason)));
            }
            Ok(Secret::new(token.to_owned()))
        }
        Ok(_) => create(&path).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(&path).map_err(fail),
        Err(error) => Err(fail(error)),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}

/// Creates the token. If two processes start at once, the link succeeds for one, and the other reads its token.
fn create(path: &Path) -> io::Result<Secret> {
    let token = generate().map_err(io::Error::other)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    writeln!(file, "{}", token.expose())?;
    file.sync_all()?;
    let linked = fs::hard_link(&temporary, path);
    let existing = match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let text = fs::read_to_string(path)?;
            if first_line(&text).is_empty() {
                fs::rename(&temporary, path)?;
                None
            } else {
                Some(Secret::new(first_line(&text).to_owned()))
            }
        }
        other => {
            other?;
            None
        }
    };
    let _ = fs::remove_file(&temporary);
    Ok(existing.unwrap_or(token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_first_start_creates_the_token_and_later_ones_read_it() {
        let home = tempfile::tempdir().unwrap();
        let first = load_or_create(home.path()).unwrap();
        assert!(first.expose().starts_with("haft_") && first.expose().len() > 40);
        assert_eq!(load_or_create(home.path()).unwrap(), first);
        let mode = fs::metadata(home.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        fs::write(home.path().join(FILE), "guess\n").unwrap();
        assert!(load_or_create(home.path()).is_err());
    }
}
