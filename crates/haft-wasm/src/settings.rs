//! Settings of the executor.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use haft_core::name::TenantId;
use haft_core::secret::Secret;

/// Settings of the executor.
#[derive(Debug, Clone)]
pub struct WasmSettings {
    /// The home folder with the folders of bundles; `None` allows only base64 modules.
    pub home: Option<PathBuf>,
    /// The cache of compiled code; `None` compiles at each start.
    pub cache: Option<CacheSettings>,
    /// The size limit of a module or component in bytes.
    pub max_module_bytes: u64,
    /// Resource limits of guests.
    pub limits: WasmLimits,
    /// The folders that definitions can use, unless `tenants` decides.
    pub folders: Vec<WasmFolder>,
    /// The folders of each tenant; `None` gives all tenants the same ones.
    pub tenants: Option<Arc<dyn TenantFolders>>,
    /// The network of tools with `network: true`; `None` rejects them.
    pub network: Option<WasmNetwork>,
}

/// A folder that definitions can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WasmFolder {
    /// The name.
    pub name: String,
    /// The absolute path.
    pub path: PathBuf,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Whether the folder is created on first use.
    pub make: bool,
}

/// The folders of tenants, which can change while tools are prepared.
pub trait TenantFolders: fmt::Debug + Send + Sync {
    /// Returns the folders of a tenant.
    fn folders(&self, tenant: &TenantId) -> Vec<WasmFolder>;

    /// Returns whether some tenant has a folder with this name.
    fn contains(&self, name: &str) -> bool;
}

/// The network of guests: outgoing connections only.
#[derive(Clone)]
pub struct WasmNetwork {
    /// Decides whether an address is allowed, at each use.
    pub allows: Arc<dyn Fn(SocketAddr) -> bool + Send + Sync>,
    /// Whether host names are resolved.
    pub names: bool,
}

impl fmt::Debug for WasmNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmNetwork").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Resource limits of guests, which run in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WasmLimits {
    /// Linear memory of one call in bytes.
    pub memory_bytes: u64,
    /// Memory of all calls together in bytes; a call that exceeds it fails.
    pub total_memory_bytes: u64,
    /// Concurrent calls; further ones wait.
    pub at_once: u32,
}

impl WasmLimits {
    /// Returns the effective memory limit of one guest.
    pub(crate) fn guest_memory(&self) -> usize {
        usize::try_from(self.memory_bytes.min(self.total_memory_bytes)).unwrap_or(usize::MAX)
    }
}

impl Default for WasmLimits {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, total_memory_bytes: 1 << 30, at_once: 256 }
    }
}

/// The cache of compiled code.
#[derive(Debug, Clone)]
pub struct CacheSettings {
    /// The folder; created with access for its owner only.
    pub folder: PathBuf,
    /// The secret that authenticates cached code; no tool must know it.
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
            tenants: None,
            network: None,
        }
    }
}
