//! The parts of an operation on resources that differ by kind.

use haft_core::callable::CallableKind;
use haft_core::catalog::StoreError;
use haft_core::implementation::Implementation;
use haft_core::problem::Problem;
use haft_core::resource::Resource;
use haft_store::StoredKind;

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// A kind of resource that the platform serves.
pub trait ServedKind: StoredKind {
    /// The kind of its calls; `None` if only tools can use it.
    const CALLABLE: Option<CallableKind>;

    /// Returns the fields by which a tool refers to resources of the kind, each with its slug or id.
    fn references(implementation: &Implementation) -> Vec<(&'static str, &str)>;

    /// Checks a resource before it is published; returns warnings.
    fn check_published(
        _app: &Context,
        _identity: &Identity,
        _found: &Resource<Self>,
    ) -> Result<Vec<Problem>, ServiceError> {
        Ok(Vec::new())
    }

    /// Checks a new definition; returns warnings.
    fn check_saved(
        _app: &Context,
        _identity: &Identity,
        _definition: &Self,
    ) -> impl Future<Output = Result<Vec<Problem>, ServiceError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Applies a change on this node immediately.
    fn announce(app: &Context) -> impl Future<Output = Result<(), StoreError>> + Send;
}
