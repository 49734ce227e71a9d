//! What belongs to one call of a guest: its bounds, and its view of the world.
//!
//! The view is made when the guest first looks: most functions never do.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{
    Deterministic, HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
};

use crate::capture::Capture;
use crate::engine;
use crate::memory::{Budget, Share};

/// The most handles (streams, pollables) that a guest may hold.
const HANDLES: usize = 1000;
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
    pub(crate) stdin: Bytes,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
}

/// The data of a store.
pub(crate) struct State {
    grants: Grants,
    p2: Option<WasiCtx>,
    table: ResourceTable,
    p1: Option<WasiP1Ctx>,
    pub(crate) bounds: Bounds,
}

impl State {
    pub(crate) fn new(grants: Grants, max_memory: usize, budget: Arc<Budget>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        Self { grants, p2: None, table, p1: None, bounds: Bounds::new(max_memory, budget) }
    }

    /// Returns the view of a core module.
    pub(crate) fn p1(&mut self) -> &mut WasiP1Ctx {
        self.p1.get_or_insert_with(|| self.grants.builder().build_p1())
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let ctx = self.p2.get_or_insert_with(|| self.grants.builder().build());
        WasiCtxView { ctx, table: &mut self.table }
    }
}

impl Grants {
    /// No folder is opened, no name is looked up, no socket connects: the builder's defaults refuse all of it.
    fn builder(&self) -> WasiCtxBuilder {
        let mut builder = WasiCtxBuilder::new();
        builder
            .stdin(MemoryInputPipe::new(self.stdin.clone()))
            .stdout(self.stdout.clone())
            .stderr(self.stderr.clone())
            .arg("tool")
            .max_random_size(RANDOM)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
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
