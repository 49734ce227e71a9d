//! What the executor is told when it is made.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

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
    /// The folders that definitions may name.
    pub folders: Vec<WasmFolder>,
    /// The network of tools with `network: true`; `None` refuses these.
    pub network: Option<WasmNetwork>,
}

/// A folder that definitions may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WasmFolder {
    /// The name.
    pub name: String,
    /// Where it is; an absolute path.
    pub path: PathBuf,
    /// Whether nothing in it may be changed.
    pub read_only: bool,
    /// Whether the folder is made when it is first used.
    pub make: bool,
}

/// How guests reach others: they connect and send, and nobody connects to them.
#[derive(Clone)]
pub struct WasmNetwork {
    /// Decides about each address at the moment of its use.
    pub allows: Arc<dyn Fn(SocketAddr) -> bool + Send + Sync>,
    /// Whether names are looked up.
    pub names: bool,
}

impl fmt::Debug for WasmNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmNetwork").field("names", &self.names).finish_non_exhaustive()
    }
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
        Self {
            home: None,
            cache: None,
            max_module_bytes: 32 * 1024 * 1024,
            limits: WasmLimits::default(),
            folders: Vec::new(),
            network: None,
        }
    }
}
