//! The sample file that `haft init` writes: every key, commented out, with its default.

use std::fmt::Write as _;

use super::keys::KEYS;

/// Returns the sample file.
pub(crate) fn sample() -> String {
    let mut out = String::from(
        "# The configuration of haft. Every key is optional; the commented values are the defaults.\n\
         # Environment variables (`HAFT_<SECTION>_<KEY>`) override this file, and options override both.\n",
    );
    let mut section = "";
    for key in KEYS {
        if key.section() != section {
            section = key.section();
            let _ = write!(out, "\n[{section}]\n");
        }
        let _ = write!(out, "\n# {}\n# {} = {}\n", key.help, key.name(), key.default);
    }
    out
}
