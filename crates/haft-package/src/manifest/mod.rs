//! Reads `toolset.yaml`. All errors are reported at once, with their lines.

mod entry;
mod entrypoint;
mod examples;
mod header;
mod read;
mod renderers;
mod servers;

pub(crate) use self::entry::starts_process;
pub use self::read::{LIMITS, MAX_TOOLS, ManifestReading, parse, read};
pub use self::renderers::RENDERERS;
