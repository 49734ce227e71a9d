//! How long the tests that kill and load haft in a loop run.

/// The kills of a loop in `make test`: one without earlier kills, one after another.
const FEW_KILLS: usize = 2;

/// Returns the rounds of a loop: all of them under `make soak` (`HAFT_SOAK` is set), a tenth otherwise.
pub fn rounds(full: usize) -> usize {
    if is_soak() { full } else { full.div_ceil(10) }
}

/// Returns the rounds of a loop that starts and kills a process in each: all of them under `make soak`, two otherwise.
pub fn kills(full: usize) -> usize {
    if is_soak() { full } else { FEW_KILLS.min(full) }
}

fn is_soak() -> bool {
    #[expect(clippy::disallowed_methods, reason = "`make soak` is recognised by its environment")]
    let soak = std::env::var_os("HAFT_SOAK");
    soak.is_some()
}
