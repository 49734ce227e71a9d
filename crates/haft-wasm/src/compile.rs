//! From bytes to code: scanned, found in the cache or compiled, one at a time.

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

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error("cannot be compiled: {0}")]
    Compiler(String),
}

/// Compiles modules.
pub(crate) struct Compiler {
    pub(crate) engine: Engine,
    pub(crate) cache: Option<Cache>,
    turn: Mutex<()>,
}

impl Compiler {
    pub(crate) fn new(engine: Engine, cache: Option<Cache>) -> Self {
        Self { engine, cache, turn: Mutex::new(()) }
    }

    /// Returns the code of a module. Slow where nobody has compiled it yet: not for threads that serve others.
    pub(crate) fn code(&self, bytes: &[u8]) -> Result<Code, CompileError> {
        let format = scan::scan(bytes)?;
        let kept = self.cache.as_ref().map(|cache| (cache, cache.name(bytes)));
        let find = || kept.as_ref().and_then(|(cache, name)| cache.load(&self.engine, name, format));
        if let Some(code) = find() {
            return Ok(code);
        }
        // One at a time: the compiler needs much memory, and the other cores have calls to serve.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever waited for the same module finds it now.
        if let Some(code) = find() {
            return Ok(code);
        }
        let code = self.compile(bytes, format).map_err(|error| CompileError::Compiler(reason(&error)))?;
        if let Some((cache, name)) = &kept {
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

/// Spells an error of wasmtime in one line, its causes included.
pub(crate) fn reason(error: &wasmtime::Error) -> String {
    let text = format!("{error:#}");
    haft_core::problem::excerpt(text.lines().next().unwrap_or_default(), 400)
}
