//! Compiles modules, one at a time, with a cache.

use std::sync::{Mutex, PoisonError};

use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::cache::Cache;
use crate::scan::{self, Format, ScanError};

/// Compiled code.
#[derive(Clone)]
pub(crate) enum Code {
    Component(Component),
    Module(Module),
}

impl Code {
    pub(crate) fn serialize(&self) -> wasmtime::Result<Vec<u8>> {
        match self {
            Self::Component(component) => component.serialize(),
            Self::Module(module) => module.serialize(),
        }
    }
}

/// Why a module could not be compiled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error("invalid module: {0}")]
    Compiler(String),
}

/// Compiles modules.
pub(crate) struct Compiler {
    pub(crate) engine: Engine,
    pub(crate) cache: Option<Cache>,
    compile_lock: Mutex<()>,
}

impl Compiler {
    pub(crate) fn new(engine: Engine, cache: Option<Cache>) -> Self {
        Self { engine, cache, compile_lock: Mutex::new(()) }
    }

    /// Returns the code of a module. Blocks while it is compiled, so do not call this on an async worker.
    pub(crate) fn code(&self, bytes: &[u8]) -> Result<Code, CompileError> {
        let format = scan::scan(bytes)?;
        let cached = self.cache.as_ref().map(|cache| (cache, cache.name(bytes)));
        let find = || cached.as_ref().and_then(|(cache, name)| cache.load(&self.engine, name, format));
        if let Some(code) = find() {
            return Ok(code);
        }
        // One at a time: the compiler needs much memory, and calls need the other cores.
        let _guard = self.compile_lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have compiled the same module in the meantime.
        if let Some(code) = find() {
            return Ok(code);
        }
        let code = self.compile(bytes, format).map_err(|error| CompileError::Compiler(reason(&error)))?;
        if let Some((cache, name)) = &cached {
            cache.store(name, &code);
        }
        Ok(code)
    }

    fn compile(&self, bytes: &[u8], format: Format) -> wasmtime::Result<Code> {
        match format {
            Format::Component => Component::from_binary(&self.engine, bytes).map(Code::Component),
            Format::Module => Module::from_binary(&self.engine, bytes).map(Code::Module),
        }
    }
}

/// Writes an error of wasmtime in one line, with its causes.
pub(crate) fn reason(error: &wasmtime::Error) -> String {
    let text = format!("{error:#}");
    haft_core::problem::excerpt(text.lines().next().unwrap_or_default(), 400)
}
