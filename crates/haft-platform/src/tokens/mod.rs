//! Access tokens: creating, rotating and revoking them, and who may do it.

mod grants;
mod manage;
mod owner;

pub(crate) use grants::own_expiry;
pub use grants::{find, require_token_owner};
pub(crate) use manage::like_own;
pub use manage::{
    IssuedToken, TokenFields, assign, create, delete, lifetime, list, rotate, set_rate, unmatched_rules,
};
