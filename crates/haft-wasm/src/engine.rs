//! The one engine: how guests are compiled, where their memory comes from, and what they may link to.

use std::sync::Arc;

use wasmtime::component::Linker as ComponentLinker;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, Linker as ModuleLinker, PoolingAllocationConfig};

use crate::settings::WasmSettings;
use crate::state::State;
use crate::ticker::Ticker;

/// The stack of a guest. What host functions need of the thread's stack comes on top.
const GUEST_STACK: usize = 512 * 1024;
const HOST_STACK: usize = 512 * 1024;

/// The most core instances, memories and tables of one call.
pub(crate) const INSTANCES: u32 = 32;
pub(crate) const MEMORIES: u32 = 4;
pub(crate) const TABLES: u32 = 16;
/// The most elements of one table.
pub(crate) const TABLE_ELEMENTS: usize = 100_000;

/// Why the executor cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// This machine cannot run WebAssembly.
    #[error("start the WebAssembly engine: {0:#}")]
    Engine(wasmtime::Error),
    /// The thread that keeps the time cannot be started.
    #[error("start the clock of the WebAssembly engine: {0}")]
    Ticker(std::io::Error),
}

/// The engine and what belongs to it.
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

/// Makes the engine with its memory reserved in advance, which makes an instance a matter of microseconds. Where
/// the address space does not allow that, memory is reserved per call.
fn engine(settings: &WasmSettings) -> wasmtime::Result<Engine> {
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(settings)));
    Engine::new(&config).or_else(|error| {
        tracing::warn!(
            error = format!("{error:#}"),
            "memory for WebAssembly cannot be reserved in advance; calls are slower"
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
        // Most guests have one memory and few tables; those that have more wait for their turn like others.
        .total_core_instances(calls.saturating_mul(8))
        .total_memories(calls.saturating_mul(2))
        .total_tables(calls.saturating_mul(8))
        .max_memories_per_module(MEMORIES)
        .max_tables_per_module(TABLES)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(settings.limits.guest_memory())
        // What a small guest touches is cleared by hand: cheaper than to give pages back and fault them in again.
        .linear_memory_keep_resident(64 * 1024)
        .table_keep_resident(4 * 1024)
        .max_unused_warm_slots(16);
    pool
}
