//! Whether a resource may be used.

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::resource::Resource;
use haft_store::StoredKind;

/// Rejects a resource that is disabled, or whose file is invalid.
pub fn require_in_service<S: StoredKind>(found: &Resource<S>) -> Result<(), CallError> {
    let (kind, slug) = (S::KIND, found.definition.slug());
    if found.is_disabled() {
        return Err(CallError::new(ErrorCode::Disabled, format!("{kind} `{slug}` is disabled")));
    }
    match &found.error {
        Some(error) => {
            Err(CallError::new(ErrorCode::NotReady, format!("{kind} `{slug}` is not ready: {error}")))
        }
        None => Ok(()),
    }
}
