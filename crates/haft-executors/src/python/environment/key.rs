//! The name of an environment.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::dependencies::Needs;
use super::interpreter::Interpreter;
use super::settings::PythonSettings;

/// The number of hexadecimal digits of a key.
const DIGITS: usize = 40;

/// The name of an environment: a hash of the requirements, the vendored wheels, the interpreter and the index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvironmentKey(String);

impl EnvironmentKey {
    /// Returns the key of the environment with these packages.
    pub(super) fn new(needs: &Needs, interpreter: &Interpreter, settings: &PythonSettings) -> Self {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        };
        add("1");
        add(&interpreter.identity());
        // With vendored wheels nothing else is read.
        match &settings.index_url {
            Some(url) if needs.wheels.is_empty() => add(url.expose()),
            _ => add(""),
        }
        add(if settings.allow_builds && needs.wheels.is_empty() { "builds" } else { "wheels" });
        needs.requirements.iter().for_each(|requirement| add(&requirement.to_string()));
        add("wheels");
        for wheel in &needs.wheels {
            add(&wheel.name);
            add(&wheel.sha256);
        }
        let digest: [u8; 32] = digest.finalize().into();
        Self(hex(&digest).chars().take(DIGITS).collect())
    }

    /// Parses the name of a folder.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == DIGITS && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Returns the name of the folder.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnvironmentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Writes bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use haft_core::requirement::Requirements;
    use haft_core::secret::Secret;

    use super::super::wheels::Wheel;
    use super::*;

    #[test]
    fn everything_that_decides_the_content_is_in_the_key() {
        let needs = |lines: &[&str], wheels: &[(&str, &str)]| {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            let wheels = wheels
                .iter()
                .map(|(name, sha256)| Wheel { name: (*name).to_owned(), sha256: (*sha256).to_owned() });
            let requirements = Requirements::parse_lines(&lines, "dependencies").unwrap();
            Needs { requirements, wheels: wheels.collect(), folder: None }
        };
        let python = |tag: &str, image: Option<&str>| Interpreter {
            tag: tag.to_owned(),
            platform: "linux-x86_64".to_owned(),
            libc: "glibc 2.36".to_owned(),
            uv: None,
            has_pip: true,
            has_venv: true,
            image: image.map(str::to_owned),
        };
        let settings = |index: Option<&str>, allow_builds| PythonSettings {
            index_url: index.map(|url| Secret::new(url.to_owned())),
            allow_builds,
            ..PythonSettings::default()
        };
        let (default, cpython) = (settings(None, false), python("cpython-311", None));
        let plain = EnvironmentKey::new(&needs(&["rich", "requests"], &[]), &cpython, &default);
        let same = EnvironmentKey::new(&needs(&["Requests", "rich", "rich"], &[]), &cpython, &default);
        assert_eq!(plain, same);
        assert_eq!(EnvironmentKey::parse(plain.as_str()), Some(plain.clone()));
        for other in [
            EnvironmentKey::new(&needs(&["rich"], &[]), &cpython, &default),
            EnvironmentKey::new(&needs(&["rich", "requests>=2"], &[]), &cpython, &default),
            EnvironmentKey::new(&needs(&["rich", "requests"], &[("a.whl", "00")]), &cpython, &default),
            EnvironmentKey::new(&needs(&["rich", "requests"], &[("a.whl", "01")]), &cpython, &default),
            EnvironmentKey::new(&needs(&["rich", "requests"], &[]), &python("cpython-312", None), &default),
            EnvironmentKey::new(
                &needs(&["rich", "requests"], &[]),
                &python("cpython-311", Some("a")),
                &default,
            ),
            EnvironmentKey::new(
                &needs(&["rich", "requests"], &[]),
                &cpython,
                &settings(Some("http://a"), false),
            ),
            EnvironmentKey::new(&needs(&["rich", "requests"], &[]), &cpython, &settings(None, true)),
        ] {
            assert_ne!(other, plain);
        }
        let vendored = needs(&["rich"], &[("a.whl", "00")]);
        assert_eq!(
            EnvironmentKey::new(&vendored, &cpython, &settings(Some("http://a"), true)),
            EnvironmentKey::new(&vendored, &cpython, &default)
        );
    }
}
