//! Access tokens: creating, rotating and revoking them, and who may do it.

mod grants;
mod manage;

pub use grants::find;
pub(crate) use manage::like_own;
pub use manage::{
    IssuedToken, RateText, TokenFields, create, delete, lifetime, list, rotate, set_rate, unmatched_rules,
};
