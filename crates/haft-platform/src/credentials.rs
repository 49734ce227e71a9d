//! Stored secrets: what is kept when one is replaced, and who still refers to one.

use std::collections::BTreeMap;

use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::secret::{CredentialSelector, MASK, Secret, SecretSource as _};
use haft_store::{Credential, CredentialInfo, CredentialPurpose, CredentialValue};
use serde_json::json;

use crate::audit;
use crate::context::Context;
use crate::credential_references::CredentialReferences;
use crate::error::ServiceError;
use crate::identity::Identity;

async fn find(
    app: &Context,
    identity: &Identity,
    name: &str,
) -> Result<Option<CredentialInfo>, ServiceError> {
    let all = app.store().vault().list(&identity.tenant).await?;
    Ok(all.into_iter().find(|info| info.name == name))
}

/// Returns the secret to store: the new one, with masked fields as they are stored, or the stored one.
async fn value(
    app: &Context,
    identity: &Identity,
    name: &str,
    new: (Option<String>, Option<BTreeMap<String, String>>),
    is_stored: bool,
) -> Result<CredentialValue, ServiceError> {
    match new {
        (Some(_), Some(_)) => Err(ServiceError::bad_request("`value` and `payload` exclude each other")),
        (Some(value), None) if value == MASK => {
            Err(ServiceError::bad_request("`***` masks the stored value; enter the new value"))
        }
        (Some(value), None) => Ok(CredentialValue::Plain(Secret::new(value))),
        (None, Some(payload)) => {
            let stored = stored_fields(app, identity, name).await?.unwrap_or_default();
            let mut fields = BTreeMap::new();
            for (field, value) in payload {
                let value = if value == MASK {
                    stored.get(&field).cloned().ok_or_else(|| {
                        let field = excerpt(&field, 60);
                        let message = format!(
                            "`payload.{field}`: `***` masks a value that is not stored; enter the value"
                        );
                        ServiceError::bad_request(message)
                    })?
                } else {
                    Secret::new(value)
                };
                fields.insert(field, value);
            }
            Ok(CredentialValue::Fields(fields))
        }
        (None, None) if is_stored => match stored_fields(app, identity, name).await? {
            Some(fields) => Ok(CredentialValue::Fields(fields)),
            None => stored_text(app, identity, name).await.map(CredentialValue::Plain),
        },
        (None, None) => Err(ServiceError::bad_request(
            "invalid request body: expected `value` or `payload` with the secret of the new credential",
        )),
    }
}

async fn stored_text(app: &Context, identity: &Identity, name: &str) -> Result<Secret, ServiceError> {
    let found = app.store().vault().credential(&identity.tenant, CredentialSelector::Name(name)).await;
    let found = found.map_err(|error| {
        ServiceError::new(ErrorCode::Internal, format!("{error}: {}; enter the value again", error.source))
    })?;
    found.ok_or_else(|| ServiceError::not_found("credential", name))
}

async fn stored_fields(
    app: &Context,
    identity: &Identity,
    name: &str,
) -> Result<Option<BTreeMap<String, Secret>>, ServiceError> {
    let info = find(app, identity, name).await?;
    if info.is_none_or(|info| info.fields.is_none()) {
        return Ok(None);
    }
    let text = stored_text(app, identity, name).await?;
    let fields: BTreeMap<String, String> = serde_json::from_str(text.expose()).unwrap_or_default();
    Ok(Some(fields.into_iter().map(|(field, value)| (field, Secret::new(value))).collect()))
}

/// What a credential becomes; what is missing stays as it is stored.
#[derive(Default)]
pub struct CredentialFields {
    /// The secret.
    pub value: Option<String>,
    /// Several secrets by name; a masked one keeps its stored value.
    pub payload: Option<BTreeMap<String, String>>,
    pub category: Option<String>,
    pub provider_key: Option<String>,
    pub provider_variant: Option<String>,
    pub description: Option<String>,
}

/// A credential without its value, and who refers to it.
pub struct UsedCredential {
    pub info: CredentialInfo,
    /// The tools and MCP servers that refer to it.
    pub used_by: Vec<String>,
}

/// Returns a credential with those who refer to it.
pub async fn used(app: &Context, identity: &Identity, name: &str) -> Result<UsedCredential, ServiceError> {
    let info = find(app, identity, name).await?.ok_or_else(|| ServiceError::not_found("credential", name))?;
    let references = CredentialReferences::collect(app, &identity.tenant).await?;
    Ok(UsedCredential { used_by: references.of(&info.name), info })
}

/// Stores or replaces a credential.
pub async fn put(
    app: &Context,
    identity: &Identity,
    name: &str,
    fields: CredentialFields,
) -> Result<(), ServiceError> {
    let stored = find(app, identity, name).await?;
    let value = value(app, identity, name, (fields.value, fields.payload), stored.is_some()).await?;
    // What is not named stays as it is.
    let purpose = stored.map(|info| info.purpose).unwrap_or_default();
    let purpose = CredentialPurpose {
        category: fields.category.unwrap_or(purpose.category),
        provider_key: fields.provider_key.or(purpose.provider_key),
        provider_variant: fields.provider_variant.or(purpose.provider_variant),
        description: fields.description.unwrap_or(purpose.description),
    };
    let credential = Credential { value, purpose };
    app.store().vault().store(identity.tenant.clone(), name.to_owned(), credential).await?;
    audit::note(identity, "credential.put", name);
    Ok(())
}

/// Deletes a credential. One that is in use is deleted only with `force`.
pub async fn delete(app: &Context, identity: &Identity, name: &str, force: bool) -> Result<(), ServiceError> {
    let used_by = used(app, identity, name).await?.used_by;
    if !used_by.is_empty() && !force {
        let message = format!(
            "credential `{name}` is in use by {}; delete it anyway with `force=true` (`haft secret rm --force`)",
            excerpt(&used_by.join(", "), 300)
        );
        return Err(ServiceError::new(ErrorCode::Conflict, message).with_details(json!({"used_by": used_by})));
    }
    app.store().vault().delete(identity.tenant.clone(), name.to_owned()).await?;
    audit::note(identity, "credential.delete", name);
    Ok(())
}
