//! The progress of an installation, which several calls may follow.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use haft_core::encode::percent_decode;
use haft_core::problem::excerpt;
use haft_core::secret::{MASK, Secret, scrub_text};
use tokio::sync::watch;

use super::failure::BuildError;

/// The maximum number of lines that are kept for calls that follow; later ones are not shown.
const MAX_LINES: usize = 500;
/// The maximum length of a line, in characters.
const MAX_LINE_LENGTH: usize = 400;

/// The result of an installation.
pub(super) type BuildResult = Result<(), Arc<BuildError>>;

/// An installation that is running or has ended.
#[derive(Debug)]
pub(super) struct BuildProgress {
    pub(super) started: Instant,
    lines: Mutex<Vec<String>>,
    /// `None` while it is running.
    result: watch::Sender<Option<(Instant, BuildResult)>>,
}

impl BuildProgress {
    pub(super) fn new() -> Arc<Self> {
        let (result, _) = watch::channel(None);
        Arc::new(Self { started: Instant::now(), lines: Mutex::default(), result })
    }

    /// Adds a line, without credentials.
    pub(super) fn add(&self, line: &str, secrets: &[Secret]) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < MAX_LINES {
            lines.push(excerpt(masked(line.trim_end(), secrets).trim(), MAX_LINE_LENGTH));
        }
    }

    /// Returns the lines from this index.
    pub(super) fn lines_from(&self, index: usize) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(index..).unwrap_or_default().to_vec()
    }

    /// Ends it.
    pub(super) fn finish(&self, result: BuildResult) {
        self.result.send_replace(Some((Instant::now(), result)));
    }

    /// Returns when and how it ended.
    pub(super) fn finished(&self) -> Option<(Instant, BuildResult)> {
        self.result.borrow().clone()
    }

    /// Waits for the end.
    pub(super) async fn ended(&self) -> BuildResult {
        let mut result = self.result.subscribe();
        // The sender is in this object, so it exists while a receiver waits.
        let ended = result.wait_for(Option::is_some).await;
        ended.ok().and_then(|ended| ended.clone()).map_or(Ok(()), |(_, result)| result)
    }
}

/// Returns a text of an installer without credentials: those of the index, and those in any URL.
pub(super) fn masked(text: &str, secrets: &[Secret]) -> String {
    let mut text = text.to_owned();
    scrub_text(&mut text, secrets);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || "/'\"<>()".contains(c)).unwrap_or(after.len());
        let host = after.get(..end).unwrap_or_default();
        rest = match host.rfind('@') {
            Some(at) => {
                out.push_str(MASK);
                after.get(at..).unwrap_or_default()
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}

/// Returns the credentials of a URL, which must not be shown.
pub(super) fn secrets_of(index_url: Option<&Secret>) -> Vec<Secret> {
    let Some(url) = index_url.and_then(|url| url::Url::parse(url.expose()).ok()) else { return Vec::new() };
    let parts = [url.username(), url.password().unwrap_or_default(), url.query().unwrap_or_default()];
    let forms = parts.into_iter().flat_map(|part| [part.to_owned(), percent_decode(part)]);
    let mut secrets: Vec<Secret> = forms.filter(|form| form.len() > 3).map(Secret::new).collect();
    secrets.dedup();
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_urls_are_masked() {
        let index = Secret::new("https://robot:pa%40ss-word@host/simple".to_owned());
        let secrets = secrets_of(Some(&index));
        for (text, expected) in [
            (
                "Looking in indexes: https://robot:pa%40ss-word@host/simple",
                "Looking in indexes: https://***@host/simple",
            ),
            ("token pa@ss-word", "token ***"),
            ("at https://x:y@a/b and http://c/d@e", "at https://***@a/b and http://c/d@e"),
            ("'https://u@h'", "'https://***@h'"),
            ("no URL", "no URL"),
        ] {
            assert_eq!(masked(text, &secrets), expected);
        }
    }
}
