//! The `script` executor: bash and python bodies, confined.

mod bash;
mod executor;

pub use executor::ScriptExecutor;
