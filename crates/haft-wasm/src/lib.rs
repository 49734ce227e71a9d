//! The `wasm` executor: WebAssembly components and WASI commands in wasmtime.
//!
//! A guest has no ambient authority: its definition names the files, network and environment that it gets, as far as the
//! settings allow. Memory (of each guest and of all together), time and output are limited. The only crate that depends
//! on wasmtime.

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
pub use settings::{CacheSettings, TenantFolders, WasmFolder, WasmLimits, WasmNetwork, WasmSettings};
