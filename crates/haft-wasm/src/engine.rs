//! The wasmtime engine: compiler settings, memory pool and linkers.

use std::sync::Arc;

use wasmtime::component::Linker as ComponentLinker;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, Linker as ModuleLinker, PoolingAllocationConfig};

use crate::settings::WasmSettings;
use crate::state::State;
use crate::ticker::Ticker;

/// The stack of a guest, without the stack of host functions.
const GUEST_STACK: usize = 512 * 1024;
const HOST_STACK: usize = 512 * 1024;

/// Limits of core instances, memories and tables of one call.
pub(crate) const INSTANCES: u32 = 32;
pub(crate) const MEMORIES: u32 = 4;
pub(crate) const TABLES: u32 = 16;
/// The size limit of a table.
pub(crate) const TABLE_ELEMENTS: usize = 100_000;

/// Why the engine could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// wasmtime failed to start.
    #[error("failed to start the WebAssembly engine: {0:#}")]
    Engine(wasmtime::Error),
    /// The timer thread failed to start.
    #[error("failed to start the timer of the WebAssembly engine: {0}")]
    Ticker(std::io::Error),
}

/// The engine, its linkers and its timer.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) components: ComponentLinker<State>,
    pub(crate) modules: ModuleLinker<State>,
    pub(crate) ticker: Arc<Ticker>,
}

impl Host {
    pub(crate) fn new(settings: &WasmSettings) -> Result<Self, EngineError> {
        let engine = engine(settings).map_err(EngineError::Engine)?;
        let mut components = ComponentLinker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut components).map_err(EngineError::Engine)?;
        let mut modules = ModuleLinker::new(&engine);
        wasmtime_wasi::p1::add_to_linker_async(&mut modules, State::p1).map_err(EngineError::Engine)?;
        let ticker = Arc::new(Ticker::start(&engine).map_err(EngineError::Ticker)?);
        Ok(Self { engine, components, modules, ticker })
    }
}

/// Creates the engine with a memory pool, so that an instance starts within microseconds. If the address space is too
/// small for the pool, memory is allocated per call.
fn engine(settings: &WasmSettings) -> wasmtime::Result<Engine> {
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(settings)));
    Engine::new(&config).or_else(|error| {
        tracing::warn!(
            error = format!("{error:#}"),
            "failed to reserve memory for WebAssembly; calls are slower"
        );
        config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
        Engine::new(&config)
    })
}

fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .concurrency_support(false)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(GUEST_STACK + HOST_STACK);
    config
}

fn pool(settings: &WasmSettings) -> PoolingAllocationConfig {
    let calls = settings.limits.at_once.max(1);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_stacks(calls)
        .total_component_instances(calls)
        .max_core_instances_per_component(INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        // Most guests have one memory and few tables; those with more may have to wait.
        .total_core_instances(calls.saturating_mul(8))
        .total_memories(calls.saturating_mul(2))
        .total_tables(calls.saturating_mul(8))
        .max_memories_per_module(MEMORIES)
        .max_tables_per_module(TABLES)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(settings.limits.guest_memory())
        // Clearing a few pages is cheaper than returning and faulting them in again.
        .linear_memory_keep_resident(64 * 1024)
        .table_keep_resident(4 * 1024)
        .max_unused_warm_slots(16);
    pool
}
