//! The `wasm` executor: WebAssembly components and WASI commands in wasmtime.
//!
//! A guest has no authority of its own: files, network and environment are what its definition names and the settings
//! have; memory (of each and of all together), time and output are bounded. Knows haft-core alone; nothing else in
//! haft knows wasmtime.

mod cache;
mod capture;
mod compile;
mod engine;
mod entry;
mod executor;
mod exports;
mod failure;
mod grants;
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
pub use settings::{CacheSettings, WasmFolder, WasmLimits, WasmNetwork, WasmSettings};
