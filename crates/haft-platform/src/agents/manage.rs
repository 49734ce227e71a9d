//! Reading the definitions of agents in requests.

use haft_core::agent::Agent;
use haft_definition::agent::{ReadAgent, from_json};
use serde_json::Value;

use crate::error::ServiceError;

/// Reads a definition in every accepted spelling. Without a slug, it gets the slug of the earlier definition.
pub fn read_definition(mut value: Value, earlier: Option<&Agent>) -> Result<ReadAgent, ServiceError> {
    if let (Some(fields), Some(agent)) = (value.as_object_mut(), earlier)
        && !fields.contains_key("slug")
    {
        fields.insert("slug".to_owned(), agent.definition.slug.as_str().into());
    }
    from_json(value).map_err(|problems| ServiceError::invalid_definition(&problems))
}
