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
    /// What guests may use, each of them and all together.
    pub limits: WasmLimits,
}

/// What guests may use: they live in the memory of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WasmLimits {
    /// The most linear memory of one call in bytes, all its memories together.
    pub memory_bytes: u64,
    /// The most memory of all calls together in bytes; a call that needs more than is left fails.
    pub total_memory_bytes: u64,
    /// The most calls that are inside a guest at once; others wait for their turn.
    pub at_once: u32,
}

impl WasmLimits {
    /// Returns the memory that one guest may really have: never more than all of them.
    pub(crate) fn guest_memory(&self) -> usize {
        usize::try_from(self.memory_bytes.min(self.total_memory_bytes)).unwrap_or(usize::MAX)
    }
}

impl Default for WasmLimits {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, total_memory_bytes: 1 << 30, at_once: 256 }
    }
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
        Self { home: None, cache: None, max_module_bytes: 32 * 1024 * 1024, limits: WasmLimits::default() }
    }
}
