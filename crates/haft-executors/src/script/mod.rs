//! The `script` executor: bash and python scripts in the sandbox.

mod bash;
mod executor;

pub use executor::ScriptExecutor;
