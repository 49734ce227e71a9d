//! Showing the results of calls: render plans, and the pages of the `html` renderer.

mod address;
mod page;
mod plan;

pub use address::RenderKey;
pub use page::with_data;
pub use plan::{complete_plan, plan};
