//! What belongs to one call of a guest: its bounds, and its view of the world.
//!
//! The view is made when the guest first looks: most functions never do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
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
use crate::grants::{Folder, Given};
use crate::memory::{Budget, Share};
use crate::settings::WasmNetwork;

/// The most handles (streams, pollables) that a guest may hold.
const HANDLES: usize = 1000;
/// The most handles where they may be files and sockets, of which the whole process has only so many.
const OPEN: usize = 128;
/// The most random bytes of one request.
const RANDOM: u64 = 1024 * 1024;
/// The bytes of a table's element: a pointer.
const ELEMENT: usize = size_of::<usize>();
/// The longest step of a clock that stands still.
const NANOSECOND: Duration = Duration::from_nanos(1);

/// Whether a guest sees the time and chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// The clocks of this machine, and randomness fit for secrets.
    Real,
    /// A clock that stands at 1970-01-01 and one sequence of random bytes: the same arguments, the same value.
    Still,
}

/// What a guest is given.
pub(crate) struct Grants {
    pub(crate) world: World,
    pub(crate) given: Given,
    pub(crate) stdin: Bytes,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
}

/// The data of a store.
pub(crate) struct State {
    grants: Grants,
    /// The view with its folders opened, until it is looked at.
    opened: Option<WasiCtxBuilder>,
    p2: Option<WasiCtx>,
    table: ResourceTable,
    p1: Option<WasiP1Ctx>,
    pub(crate) bounds: Bounds,
}

impl State {
    /// Opens the folders of a guest; the rest of its view is made when it looks.
    pub(crate) fn new(grants: Grants, max_memory: usize, budget: Arc<Budget>) -> Result<Self, CallError> {
        let mut table = ResourceTable::new();
        table.set_max_capacity(grants.handles());
        let folders = &grants.given.granted.folders;
        let opened = if folders.is_empty() {
            None
        } else {
            let mut builder = grants.builder();
            for folder in folders {
                open(&mut builder, folder)?;
            }
            Some(builder)
        };
        let bounds = Bounds::new(max_memory, budget);
        Ok(Self { grants, opened, p2: None, table, p1: None, bounds })
    }

    /// Returns the view of a core module.
    pub(crate) fn p1(&mut self) -> &mut WasiP1Ctx {
        self.p1.get_or_insert_with(|| {
            let mut builder = self.opened.take().unwrap_or_else(|| self.grants.builder());
            let mut view = builder.build_p1();
            view.ctx().table.set_max_capacity(self.grants.handles());
            view
        })
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let ctx = self
            .p2
            .get_or_insert_with(|| self.opened.take().unwrap_or_else(|| self.grants.builder()).build());
        WasiCtxView { ctx, table: &mut self.table }
    }
}

/// Opens a folder; what a guest looks for in it is looked for beneath this handle.
fn open(builder: &mut WasiCtxBuilder, folder: &Folder) -> Result<(), CallError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let root = &folder.root;
    if root.make && !root.path.exists() {
        // Where that fails, so does opening it.
        drop(std::fs::DirBuilder::new().mode(0o700).create(&root.path));
    }
    match builder.preopened_dir(&root.path, &folder.seen_at, folder.access) {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = format!("the sandbox `{}` cannot be opened: {error}", root.name);
            Err(CallError::new(ErrorCode::NotReady, message)
                .for_model("this tool cannot run here at present"))
        }
    }
}

impl Grants {
    fn handles(&self) -> usize {
        if self.given.granted.reaches_out() { OPEN } else { HANDLES }
    }

    /// No folder is opened here. No name is looked up and no socket connects unless the network is granted.
    fn builder(&self) -> WasiCtxBuilder {
        let mut builder = WasiCtxBuilder::new();
        builder
            .stdin(MemoryInputPipe::new(self.stdin.clone()))
            .stdout(self.stdout.clone())
            .stderr(self.stderr.clone())
            .arg("tool")
            .envs(&self.given.env)
            .max_random_size(RANDOM);
        let network = self.given.granted.network.as_ref();
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
        if self.world == World::Still {
            builder
                .wall_clock(StillClock)
                .monotonic_clock(StillClock)
                .secure_random(Deterministic::new(SEQUENCE.to_vec()))
                .insecure_random(Deterministic::new(SEQUENCE.to_vec()))
                .insecure_random_seed(0);
        }
        builder
    }
}

/// A guest connects and sends where the settings allow it; it takes no connections.
fn is_allowed(network: &WasmNetwork, address: SocketAddr, purpose: SocketAddrUse) -> bool {
    match purpose {
        SocketAddrUse::TcpConnect | SocketAddrUse::UdpSend | SocketAddrUse::UdpReceive => {
            (network.allows)(address)
        }
        // As it is without a wish: any address of this machine, any port.
        SocketAddrUse::TcpBind | SocketAddrUse::UdpBind => {
            address.ip().is_unspecified() && address.port() == 0
        }
        SocketAddrUse::TcpListen | SocketAddrUse::TcpAccept => false,
    }
}

/// What a guest without chance reads in place of random bytes.
const SEQUENCE: &[u8] = b"\x9e\x37\x79\xb9\x7f\x4a\x7c\x15\xf3\x9c\xc0\x60\x5c\xed\xc8\x34";

struct StillClock;

impl HostWallClock for StillClock {
    fn resolution(&self) -> Duration {
        NANOSECOND
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl HostMonotonicClock for StillClock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}

/// Bounds what a guest may grow to, and remembers what it was refused.
pub(crate) struct Bounds {
    max_memory: usize,
    memory: usize,
    share: Share,
    /// Why the guest was last refused more memory.
    pub(crate) refused: Option<Refused>,
}

/// Why a guest does not get more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It would have more than a guest may have.
    Own,
    /// All guests together would have more than they may have.
    Shared,
}

impl Bounds {
    const fn new(max_memory: usize, budget: Arc<Budget>) -> Self {
        Self { max_memory, memory: 0, share: Share::new(budget), refused: None }
    }

    fn take(&mut self, bytes: usize) -> bool {
        let is_left = self.share.take(bytes);
        if !is_left {
            self.refused = Some(Refused::Shared);
        }
        is_left
    }
}

impl ResourceLimiter for Bounds {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // Such a growth fails anyhow, and would be counted all the same.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let more = desired.saturating_sub(current);
        let all = self.memory.saturating_add(more);
        if all > self.max_memory {
            self.refused = Some(Refused::Own);
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
        Ok(desired <= most && self.take(desired.saturating_sub(current).saturating_mul(ELEMENT)))
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
