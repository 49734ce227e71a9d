//! The call pipeline of haft: registry, stages, and one executor per module.

pub mod egress;
pub mod http;
