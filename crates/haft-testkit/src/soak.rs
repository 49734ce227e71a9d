//! How long the tests that kill and load haft in a loop run.

/// Returns the rounds of a loop: all of them under `make soak` (`HAFT_SOAK` is set), a tenth otherwise.
pub fn rounds(full: usize) -> usize {
    #[expect(clippy::disallowed_methods, reason = "`make soak` is recognised by its environment")]
    let soak = std::env::var_os("HAFT_SOAK").is_some();
    if soak { full } else { full.div_ceil(10) }
}
