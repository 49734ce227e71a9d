//! Showing the results of calls: render plans, and the pages of the `html` renderer.

mod address;
mod page;
mod plan;

pub(crate) use address::RenderKey;
pub(crate) use page::with_data;
pub(crate) use plan::{complete_plan, plan};
