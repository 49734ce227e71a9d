//! The `steps` executor: runs other tools in sequence or as a graph.
//!
//! Every step is a call of its own through the pipeline, with the rights of the caller and within the same deadline; its
//! record names this call as its parent. Nothing is known here about what a step does.

mod executor;
mod run;
mod state;
mod values;

pub use executor::StepsExecutor;
