//! The state of one call of a guest: its limits and its WASI context.
//!
//! The context is created on first use: most functions never need it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::sockets::SocketAddrUse;
use wasmtime_wasi::{
    Deterministic, HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
};

use crate::capture::Capture;
use crate::engine;
use crate::grants::{CallGrants, Folder};
use crate::memory::{Budget, Share};
use crate::settings::WasmNetwork;

/// How many handles (streams, pollables) a guest can have.
const MAX_HANDLES: usize = 1000;
/// The same where handles can be files and sockets, which are limited for the whole process.
const MAX_IO_HANDLES: usize = 128;
/// How many random bytes one request can return.
const MAX_RANDOM_BYTES: u64 = 1024 * 1024;
/// The size of a table element: a pointer.
const ELEMENT_BYTES: usize = size_of::<usize>();
/// The resolution of the fixed clock.
const NANOSECOND: Duration = Duration::from_nanos(1);

/// Whether a guest sees real time and randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Determinism {
    /// The clocks of this machine and secure randomness.
    Real,
    /// A clock fixed at 1970-01-01 and a fixed sequence of random bytes, for pure tools.
    Fixed,
}

/// The inputs and outputs of a guest.
pub(crate) struct GuestIo {
    pub(crate) determinism: Determinism,
    pub(crate) grants: CallGrants,
    pub(crate) stdin: Bytes,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
}

/// The data of a store.
pub(crate) struct State {
    io: GuestIo,
    /// The builder of the context with its folders opened, until first use.
    opened: Option<WasiCtxBuilder>,
    p2: Option<WasiCtx>,
    table: ResourceTable,
    p1: Option<WasiP1Ctx>,
    pub(crate) limiter: MemoryLimiter,
}

impl State {
    /// Opens the folders of a guest; the rest of its context is created on first use.
    pub(crate) fn new(io: GuestIo, max_memory: usize, budget: Arc<Budget>) -> Result<Self, CallError> {
        let mut table = ResourceTable::new();
        table.set_max_capacity(io.handles());
        let folders = &io.grants.tool.folders;
        let opened = if folders.is_empty() {
            None
        } else {
            let mut builder = io.builder();
            for folder in folders {
                open(&mut builder, folder, &io.grants.tenant)?;
            }
            Some(builder)
        };
        let limiter = MemoryLimiter::new(max_memory, budget);
        Ok(Self { io, opened, p2: None, table, p1: None, limiter })
    }

    /// Returns the context of a core module.
    pub(crate) fn p1(&mut self) -> &mut WasiP1Ctx {
        self.p1.get_or_insert_with(|| {
            let mut builder = self.opened.take().unwrap_or_else(|| self.io.builder());
            let mut view = builder.build_p1();
            view.ctx().table.set_max_capacity(self.io.handles());
            view
        })
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let ctx =
            self.p2.get_or_insert_with(|| self.opened.take().unwrap_or_else(|| self.io.builder()).build());
        WasiCtxView { ctx, table: &mut self.table }
    }
}

/// Opens a folder of a tenant; all paths of the guest are resolved relative to this handle.
fn open(builder: &mut WasiCtxBuilder, folder: &Folder, tenant: &TenantId) -> Result<(), CallError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let root = &folder.root;
    let path = tenant.own_folder(&root.path);
    if root.make && !path.exists() {
        // If this fails, opening it fails, too.
        drop(std::fs::DirBuilder::new().mode(0o700).create(&path));
    }
    match builder.preopened_dir(&path, &folder.guest_path, folder.access) {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = format!("failed to open the folder `{}`: {error}", root.name);
            Err(CallError::new(ErrorCode::NotReady, message).for_model("this tool is unavailable"))
        }
    }
}

impl GuestIo {
    fn handles(&self) -> usize {
        if self.grants.tool.has_io() { MAX_IO_HANDLES } else { MAX_HANDLES }
    }

    /// Creates the builder, without folders. Names are resolved and sockets connect only if the network is granted.
    fn builder(&self) -> WasiCtxBuilder {
        let mut builder = WasiCtxBuilder::new();
        builder
            .stdin(MemoryInputPipe::new(self.stdin.clone()))
            .stdout(self.stdout.clone())
            .stderr(self.stderr.clone())
            .arg("tool")
            .envs(&self.grants.env)
            .max_random_size(MAX_RANDOM_BYTES);
        let network = self.grants.tool.network.as_ref();
        builder
            .allow_tcp(network.is_some())
            .allow_udp(network.is_some())
            .allow_ip_name_lookup(network.is_some_and(|network| network.names));
        if let Some(network) = network.cloned() {
            builder.socket_addr_check(move |address, purpose| {
                let allowed = is_allowed(&network, address, purpose);
                Box::pin(std::future::ready(allowed))
            });
        }
        if self.determinism == Determinism::Fixed {
            builder
                .wall_clock(FixedClock)
                .monotonic_clock(FixedClock)
                .secure_random(Deterministic::new(SEQUENCE.to_vec()))
                .insecure_random(Deterministic::new(SEQUENCE.to_vec()))
                .insecure_random_seed(0);
        }
        builder
    }
}

/// A guest can connect and send as the settings allow; it cannot accept connections.
fn is_allowed(network: &WasmNetwork, address: SocketAddr, purpose: SocketAddrUse) -> bool {
    match purpose {
        SocketAddrUse::TcpConnect | SocketAddrUse::UdpSend | SocketAddrUse::UdpReceive => {
            (network.allows)(address)
        }
        // The default: any local address, any port.
        SocketAddrUse::TcpBind | SocketAddrUse::UdpBind => {
            address.ip().is_unspecified() && address.port() == 0
        }
        SocketAddrUse::TcpListen | SocketAddrUse::TcpAccept => false,
    }
}

/// The fixed sequence of random bytes.
const SEQUENCE: &[u8] = b"\x9e\x37\x79\xb9\x7f\x4a\x7c\x15\xf3\x9c\xc0\x60\x5c\xed\xc8\x34";

struct FixedClock;

impl HostWallClock for FixedClock {
    fn resolution(&self) -> Duration {
        NANOSECOND
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl HostMonotonicClock for FixedClock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}

/// Limits the memory of a guest, and records why more was denied.
pub(crate) struct MemoryLimiter {
    max_memory: usize,
    memory: usize,
    share: Share,
    /// Why more memory was last denied.
    pub(crate) denied: Option<MemoryDenied>,
}

/// Why more memory was denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryDenied {
    /// The limit of one guest.
    Own,
    /// The limit of all guests together.
    Shared,
}

impl MemoryLimiter {
    const fn new(max_memory: usize, budget: Arc<Budget>) -> Self {
        Self { max_memory, memory: 0, share: Share::new(budget), denied: None }
    }

    fn take(&mut self, bytes: usize) -> bool {
        let is_left = self.share.take(bytes);
        if !is_left {
            self.denied = Some(MemoryDenied::Shared);
        }
        is_left
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // Such a growth fails anyway, but would be counted.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let more = desired.saturating_sub(current);
        let all = self.memory.saturating_add(more);
        if all > self.max_memory {
            self.denied = Some(MemoryDenied::Own);
            return Ok(false);
        }
        if !self.take(more) {
            return Ok(false);
        }
        self.memory = all;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let most = maximum.unwrap_or(usize::MAX).min(engine::TABLE_ELEMENTS);
        Ok(desired <= most && self.take(desired.saturating_sub(current).saturating_mul(ELEMENT_BYTES)))
    }

    fn instances(&self) -> usize {
        engine::INSTANCES as usize
    }

    fn tables(&self) -> usize {
        engine::TABLES as usize
    }

    fn memories(&self) -> usize {
        engine::MEMORIES as usize
    }
}
