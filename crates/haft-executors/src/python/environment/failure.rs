//! Why an installation failed: one message that says what to do, with the last lines of the installer.

use std::fmt;
use std::io;
use std::time::Duration;

use haft_core::duration;
use haft_core::outcome::{CallError, ErrorCode};
use haft_sandbox::{ExitReason, SandboxError};
use serde_json::json;

/// How many of the last lines of an installer are shown.
const SHOWN_LINES: usize = 12;
/// The maximum length of these lines together, in characters.
const MAX_SHOWN: usize = 1500;

/// Why an environment was not built.
#[derive(Debug, thiserror::Error)]
pub(super) enum BuildError {
    #[error(
        "no installer is available to tools: install `uv` into a folder of `sandbox.path`, or the package that has \
         `pip` (`python3-pip` on Debian, Ubuntu and Fedora, `py3-pip` on Alpine)"
    )]
    NoInstaller,
    #[error("{reason}; {installer} says: {output}")]
    Installer { installer: &'static str, reason: FailureReason, output: String },
    #[error(
        "the installation was stopped after {} (`python.build_timeout`); {installer} says: {output}",
        duration::format(*limit)
    )]
    Timeout { installer: &'static str, limit: Duration, output: String },
    #[error("the packages need more than {0} bytes (`python.max_bytes`)")]
    TooLarge(u64),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("failed to {operation}: {source}")]
    Io { operation: &'static str, source: io::Error },
    #[error("the installation was interrupted")]
    Interrupted,
}

impl BuildError {
    /// Returns a constructor for [`BuildError::Io`].
    pub(super) fn io(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { operation, source }
    }

    /// Returns whether a later call may succeed without a change of the definition or the settings.
    fn is_transient(&self) -> bool {
        match self {
            Self::Installer { reason, .. } => *reason == FailureReason::Unreachable,
            Self::Timeout { .. } | Self::Interrupted | Self::Io { .. } => true,
            Self::NoInstaller | Self::TooLarge(_) | Self::Sandbox(_) => false,
        }
    }

    /// Returns the error of a call that needs the environment.
    pub(super) fn to_call_error(&self) -> CallError {
        let error =
            CallError::new(ErrorCode::NotReady, format!("failed to install Python dependencies: {self}"))
                .retryable(self.is_transient())
                .for_model("this tool is unavailable: its Python dependencies could not be installed");
        match self {
            Self::Installer { installer, reason, .. } => {
                error.with_details(json!({"installer": installer, "reason": reason.as_str()}))
            }
            _ => error,
        }
    }
}

/// What went wrong, read from the output of an installer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureReason {
    /// The index does not answer.
    Unreachable,
    /// The index refuses access.
    Rejected,
    /// A package differs from its hash.
    HashMismatch,
    /// A dependency of a package has no hash.
    MissingHash,
    /// A package has no wheel for this interpreter, or none at all.
    NotFound { builds: bool, vendored: bool },
    /// The requirements contradict each other.
    Conflict,
    /// A package could not be built.
    BuildFailed,
    /// The disk is full.
    DiskFull,
    /// Anything else.
    Other(ExitReason),
}

impl FailureReason {
    /// Returns the stable name.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Rejected => "rejected",
            Self::HashMismatch => "hash_mismatch",
            Self::MissingHash => "missing_hash",
            Self::NotFound { .. } => "not_found",
            Self::Conflict => "conflict",
            Self::BuildFailed => "build_failed",
            Self::DiskFull => "disk_full",
            Self::Other(_) => "other",
        }
    }

    /// Reads the reason from the output. The most specific one counts: an installer that cannot reach its index also
    /// says that it has not found the package.
    pub(super) fn classify(output: &str, ending: ExitReason, builds: bool, vendored: bool) -> Self {
        let output = output.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| output.contains(word));
        if has(&["no space left on device", "disk quota exceeded"]) {
            Self::DiskFull
        } else if has(&["do not match the hashes", "hash mismatch"]) {
            Self::HashMismatch
        } else if has(&["--require-hashes mode", "hashes are required", "hash-checking is required"]) {
            Self::MissingHash
        } else if has(&["401 client error", "403 client error", "401 unauthorized", "403 forbidden"]) {
            Self::Rejected
        } else if has(&UNREACHABLE) {
            Self::Unreachable
        } else if has(&BUILD_FAILED) {
            Self::BuildFailed
        } else if has(&["resolutionimpossible", "are incompatible"]) {
            Self::Conflict
        } else if has(&NOT_FOUND) {
            Self::NotFound { builds, vendored }
        } else {
            Self::Other(ending)
        }
    }
}

/// What installers say if the index does not answer.
const UNREACHABLE: [&str; 7] = [
    "newconnectionerror",
    "connection broken by",
    "name resolution",
    "connecttimeout",
    "error sending request",
    "dns error",
    "client error (connect)",
];

/// What installers say if a package could not be built.
const BUILD_FAILED: [&str; 6] = [
    "failed building wheel",
    "metadata-generation-failed",
    "subprocess-exited-with-error",
    "failed to build",
    "build backend returned an error",
    "command 'gcc' failed",
];

/// What installers say if there is no such package or version.
const NOT_FOUND: [&str; 6] = [
    "no matching distribution",
    "could not find a version",
    "was not found in the",
    "there is no version of",
    "is available and you require",
    "no usable wheels",
];

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "the package index is unreachable; check the network and `python.index_url`",
            Self::Rejected => "the package index refuses access; check the credentials in `python.index_url`",
            Self::HashMismatch => "a package does not match its `--hash`",
            Self::MissingHash => {
                "with `--hash`, every package needs an exact version and a hash, also those that other packages require"
            }
            Self::NotFound { vendored: true, .. } => {
                "a package is missing in the folder `wheels`, or has no wheel there for this version of Python"
            }
            Self::NotFound { builds: true, .. } => "a package or its version does not exist in the index",
            Self::NotFound { builds: false, .. } => {
                "a package or its version does not exist in the index, or has no wheel for this version of Python; \
                 `python.allow_builds` also installs packages from source, which runs their code"
            }
            Self::Conflict => "the requirements contradict each other",
            Self::BuildFailed => "a package could not be built from source; it may need a compiler",
            Self::DiskFull => "the disk is full",
            Self::Other(ExitReason::Exited(code)) => return write!(f, "the installer failed with exit code {code}"),
            Self::Other(ExitReason::Signalled(signal)) => {
                return write!(f, "the installer was killed by signal {signal}");
            }
            Self::Other(ExitReason::Stopped(limit)) => {
                return write!(f, "the installer exceeded the limit `{}`", limit.as_str());
            }
        })
    }
}

/// Returns the last lines of the output of an installer, without empty ones.
pub(super) fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    let text = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n");
    let surplus = text.chars().count().saturating_sub(MAX_SHOWN);
    let text: String = text.chars().skip(surplus).collect();
    if text.is_empty() { "(no output)".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_installers_names_the_reason() {
        let exited = ExitReason::Exited(1);
        for (output, expected) in [
            (
                "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)'\n\
                 ERROR: Could not find a version that satisfies the requirement rich (from versions: none)",
                "unreachable",
            ),
            ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "hash_mismatch"),
            ("error: Hash mismatch for `rich==13`", "hash_mismatch"),
            (
                "ERROR: In --require-hashes mode, all requirements must have their versions pinned with ==.",
                "missing_hash",
            ),
            (
                "error: Hash-checking is required, but no trusted hash was provided for: `other`",
                "missing_hash",
            ),
            ("ERROR: HTTP error 401 Client Error: Unauthorized for url", "rejected"),
            ("ERROR: No matching distribution found for rich", "not_found"),
            (
                "Because rich was not found in the package registry and you require rich, we can conclude",
                "not_found",
            ),
            ("Because only rich==1.0 is available and you require rich>=9, we can conclude", "not_found"),
            ("ERROR: ResolutionImpossible: for help visit", "conflict"),
            (
                "we can conclude that all versions of clash and all versions of demo are incompatible.",
                "conflict",
            ),
            ("error: subprocess-exited-with-error", "build_failed"),
            ("OSError: [Errno 28] No space left on device", "disk_full"),
            ("something else", "other"),
        ] {
            assert_eq!(FailureReason::classify(output, exited, false, false).as_str(), expected, "{output}");
        }
    }

    #[test]
    fn only_the_last_lines_are_shown() {
        let output = (0..100).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n\n");
        let last = last_lines(&output);
        assert_eq!((last.lines().count(), last.ends_with("line 99")), (SHOWN_LINES, true));
        assert_eq!(last_lines(&"x".repeat(9000)).len(), MAX_SHOWN);
        assert_eq!(last_lines("\n \n"), "(no output)");
    }
}
