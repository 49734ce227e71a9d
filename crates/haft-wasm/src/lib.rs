//! The `wasm` executor: WebAssembly components and WASI commands in wasmtime.
//!
//! A guest has no authority of its own: no files, no network, no environment, and bounds on memory (of each and of
//! all together), time and output. Knows haft-core alone; nothing else in haft knows wasmtime.

mod cache;
mod capture;
mod compile;
mod engine;
mod entry;
mod executor;
mod exports;
mod failure;
mod guest;
mod lift;
mod lower;
mod memory;
mod scan;
mod settings;
mod shape;
mod source;
mod state;
mod threads;
mod ticker;

pub use executor::WasmExecutor;
pub use settings::{CacheSettings, WasmLimits, WasmSettings};
