//! What the executor is told when it is made.

use std::path::PathBuf;

use haft_core::secret::Secret;

/// Bounds and places of the executor.
#[derive(Debug, Clone)]
pub struct WasmSettings {
    /// The home folder, beneath which the folders of bundles are; `None` where modules come as base64 alone.
    pub home: Option<PathBuf>,
    /// Where compiled code is kept between starts; `None` compiles anew each time.
    pub cache: Option<CacheSettings>,
    /// The largest module or component in bytes.
    pub max_module_bytes: u64,
    /// The most linear memory of one call in bytes, all memories together.
    pub max_memory_bytes: u64,
    /// The most calls that are inside a guest at once; others wait for their turn.
    pub max_running: u32,
}

/// Where compiled code is kept.
#[derive(Debug, Clone)]
pub struct CacheSettings {
    /// The folder; it is made, for its owner alone.
    pub folder: PathBuf,
    /// What the stored code is authenticated with: something that no tool knows.
    pub key: Secret,
}

impl Default for WasmSettings {
    fn default() -> Self {
        Self {
            home: None,
            cache: None,
            max_module_bytes: 32 * 1024 * 1024,
            max_memory_bytes: 256 * 1024 * 1024,
            max_running: 256,
        }
    }
}
