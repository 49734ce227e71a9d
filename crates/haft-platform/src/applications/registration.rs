//! Applications that register themselves (RFC 7591), for clients without a document of their own.

use std::net::IpAddr;

use haft_core::application::ClientRecord;
use haft_core::catalog::StoreError;
use haft_core::secret::Secret;
use haft_core::{Timestamp, hash};
use haft_oauth::client_metadata::{AuthMethod, ClientMetadata, InvalidMetadata};
use haft_store::{ClientInsert, ClientLimits};
use uuid::Uuid;

use crate::context::Context;
use crate::error::ServiceError;
use crate::random;
use crate::stream_limit::network;

/// Behind a proxy, all clients have its address.
const LIMITS: ClientLimits = ClientLimits { per_address: 100, unused: 5000 };
/// What the id of an application starts with.
const ID_PREFIX: &str = "haft_client_";

/// An application that was registered.
pub struct Registered {
    pub id: String,
    pub secret: Option<Secret>,
    pub created_at: Timestamp,
    pub metadata: ClientMetadata,
}

/// An application cannot register.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The configuration does not allow it.
    #[error(
        "applications cannot register themselves at this server; use a client with a metadata document, or ask an \
         admin to create the application (`haft application create`)"
    )]
    Disabled,
    /// Its metadata is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidMetadata),
    /// Its address has registered too many.
    #[error("your address has registered {} applications within an hour; retry later", LIMITS.per_address)]
    TooManyOfAddress,
    /// All addresses together have registered too many.
    #[error("{} applications wait for somebody to connect them, which is the limit; retry later", LIMITS.unused)]
    TooMany,
    /// An error of this server.
    #[error("{}", .0.message)]
    Service(ServiceError),
}

impl From<StoreError> for RegisterError {
    fn from(error: StoreError) -> Self {
        Self::Service(error.into())
    }
}

/// Registers an application.
pub async fn register(
    app: &Context,
    body: &[u8],
    address: Option<IpAddr>,
) -> Result<Registered, RegisterError> {
    if !app.settings().oauth.dynamic_registration {
        return Err(RegisterError::Disabled);
    }
    let metadata = ClientMetadata::from_registration(body)?;
    let (record, secret) = new_record(app, &metadata).map_err(RegisterError::Service)?;
    let address = address.map(|address| network(address).to_string()).unwrap_or_default();
    let (id, created_at) = (record.id.clone(), record.created_at);
    let record = ClientRecord { address, ..record };
    match app.store().access().insert_registered_client(record, LIMITS).await? {
        ClientInsert::Stored => Ok(Registered { id, secret, created_at, metadata }),
        ClientInsert::TooManyOfAddress => Err(RegisterError::TooManyOfAddress),
        ClientInsert::TooMany => Err(RegisterError::TooMany),
    }
}

/// Returns the record of a new application with its secret, if it has one.
pub(super) fn new_record(
    app: &Context,
    metadata: &ClientMetadata,
) -> Result<(ClientRecord, Option<Secret>), ServiceError> {
    let secret = if metadata.auth_method == AuthMethod::None { None } else { Some(random::secret()?) };
    let record = ClientRecord {
        id: format!("{ID_PREFIX}{}", Uuid::now_v7().simple()),
        tenant: None,
        name: metadata.name.clone(),
        redirect_uris: metadata.redirect_uris.iter().map(|uri| uri.as_str().to_owned()).collect(),
        auth_method: metadata.auth_method.as_str().to_owned(),
        secret_hash: secret.as_ref().map(|secret| hash::of_bytes(secret.expose().as_bytes())),
        refreshes: metadata.refreshes,
        address: String::new(),
        created_at: app.now(),
        used_at: None,
    };
    Ok((record, secret))
}
