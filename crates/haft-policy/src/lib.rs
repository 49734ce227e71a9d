//! Policy rules: compiled once, evaluated for every call and every list.
//!
//! Of the rules that match a call, the strongest effect wins: deny, then approve, then allow. A condition that fails, or
//! whose arguments are too large, counts as a match for deny and approve, and not for allow. A rule that denies or asks for
//! approval also holds for what is done on behalf of the surface or agent that it names; a rule that allows does not. The
//! `cel` crate is used in `condition`, `bounds` and `evaluator` only. `claims` has the conditions of sign-on rules.

mod attributes;
mod bounds;
mod claims;
mod condition;
mod decide;
mod evaluator;
mod handle;
mod matcher;
mod rules;
mod views;

pub use attributes::{Subject, acting_agent, agents_above};
pub use claims::{ClaimCondition, InvalidClaimCondition};
pub use decide::{CallAncestors, Considered, Explanation, Policy, PolicyError, PolicyRequest};
pub use handle::PolicyHandle;

#[cfg(test)]
mod condition_tests;
#[cfg(test)]
mod policy_tests;
