//! Which application a `client_id` names, and whether a request comes from it.

use std::sync::Arc;

use haft_core::application::ClientRecord;
use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::name::TenantId;
use haft_core::secret::Secret;
use haft_oauth::client_metadata::{AuthMethod, ClientMetadata, document_url};
use haft_oauth::redirect_uri::RedirectUri;
use url::Url;

use crate::client_documents::DocumentError;
use crate::context::Context;

/// Where the description of an application comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The host of the document that its `client_id` names.
    Document(String),
    /// The application registered itself: nobody has checked its name.
    Registered,
    /// An admin of a tenant created it.
    Created(TenantId),
}

/// An application.
#[derive(Debug, Clone)]
pub struct Client {
    /// The `client_id`.
    pub id: String,
    pub name: String,
    pub origin: Origin,
    pub redirect_uris: Vec<RedirectUri>,
    /// Whether it uses refresh tokens.
    pub refreshes: bool,
    auth_method: AuthMethod,
    secret_hash: Option<String>,
}

/// There is no such application, or it does not authenticate.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No application has the id.
    #[error("unknown application `{0}`; it may have been removed, so let the client register again")]
    Unknown(String),
    /// The id is not valid.
    #[error("{0}")]
    Invalid(String),
    /// Its description cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A secret is missing or wrong.
    #[error("the secret of the application is missing or wrong")]
    WrongSecret,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a client sends to show who it is.
#[derive(Debug, Default)]
pub struct ClientCredentials {
    pub id: Option<String>,
    pub secret: Option<Secret>,
}

impl Client {
    /// Returns the host that describes it.
    pub fn host(&self) -> Option<&str> {
        match &self.origin {
            Origin::Document(host) => Some(host),
            Origin::Registered | Origin::Created(_) => None,
        }
    }

    /// Returns whether answers may go to a redirect URI.
    pub fn covers(&self, sent: &RedirectUri) -> bool {
        self.redirect_uris.iter().any(|uri| uri.covers(sent))
    }

    fn from_document(url: &Url, metadata: &ClientMetadata) -> Self {
        Self {
            id: url.to_string(),
            name: metadata.name.clone(),
            origin: Origin::Document(url.host_str().unwrap_or_default().to_owned()),
            redirect_uris: metadata.redirect_uris.clone(),
            refreshes: metadata.refreshes,
            auth_method: AuthMethod::None,
            secret_hash: None,
        }
    }

    fn from_record(record: ClientRecord) -> Self {
        Self {
            id: record.id,
            name: record.name,
            origin: record.tenant.map_or(Origin::Registered, Origin::Created),
            // Both were checked when the application was stored.
            redirect_uris: record
                .redirect_uris
                .iter()
                .filter_map(|uri| RedirectUri::parse(uri).ok())
                .collect(),
            refreshes: record.refreshes,
            auth_method: AuthMethod::parse(&record.auth_method).unwrap_or(AuthMethod::Basic),
            secret_hash: record.secret_hash,
        }
    }

    fn has_secret(&self, secret: Option<&Secret>) -> bool {
        match (&self.secret_hash, self.auth_method) {
            (None, AuthMethod::None) => true,
            (None, _) => false,
            (Some(hash), _) => {
                secret.is_some_and(|secret| hash::of_bytes(secret.expose().as_bytes()) == *hash)
            }
        }
    }
}

/// Finds an application; the description of one with a document is fetched if it is not kept.
pub(super) async fn find(app: &Context, id: &str) -> Result<Client, ClientError> {
    match document_url(id, !app.settings().egress.private_hosts.is_empty()) {
        None => find_stored(app, id).await,
        Some(Err(error)) => Err(ClientError::Invalid(error.to_string())),
        Some(Ok(url)) => {
            let now = app.now();
            let metadata = match app.client_documents().kept(&url, now) {
                Some(metadata) => metadata,
                None => app.client_documents().fetch(app.egress(), &url, now).await?,
            };
            Ok(Client::from_document(&url, &metadata))
        }
    }
}

/// Returns whether an application may exist: one with a document may, others are looked up.
pub async fn may_exist(app: &Context, id: &str) -> Result<bool, StoreError> {
    if document_url(id, true).is_some() {
        return Ok(true);
    }
    Ok(app.store().access().find_client(id).await?.is_some())
}

/// Returns the URL of the document of an application that has to be fetched.
pub(super) fn missing_document(app: &Context, id: &str) -> Option<Url> {
    let url = document_url(id, !app.settings().egress.private_hosts.is_empty())?.ok()?;
    app.client_documents().kept(&url, app.now()).is_none().then_some(url)
}

async fn find_stored(app: &Context, id: &str) -> Result<Client, ClientError> {
    let found = app.store().access().find_client(id).await?;
    let record = found.ok_or_else(|| ClientError::Unknown(haft_core::problem::excerpt(id, 120)))?;
    Ok(Client::from_record(record))
}

/// Finds the application that sends a request to the token endpoint, and checks its secret if it has one.
pub async fn authenticate(
    app: &Arc<Context>,
    credentials: &ClientCredentials,
) -> Result<Client, ClientError> {
    let id =
        credentials.id.as_deref().ok_or_else(|| ClientError::Invalid("missing `client_id`".to_owned()))?;
    let client = find(app, id).await?;
    if client.has_secret(credentials.secret.as_ref()) { Ok(client) } else { Err(ClientError::WrongSecret) }
}

/// Finds the application that sends a request that only one with a secret may send.
pub async fn authenticate_confidential(
    app: &Context,
    credentials: &ClientCredentials,
) -> Result<Client, ClientError> {
    let (Some(id), Some(_)) = (credentials.id.as_deref(), &credentials.secret) else {
        return Err(ClientError::WrongSecret);
    };
    let client = find_stored(app, id).await?;
    let is_confidential = client.secret_hash.is_some() && client.has_secret(credentials.secret.as_ref());
    if is_confidential { Ok(client) } else { Err(ClientError::WrongSecret) }
}

/// Checks that a request about a grant comes from its application. A description is not fetched: an application without a
/// secret has nothing more to show than its id.
pub(super) async fn authenticate_owner(
    app: &Context,
    credentials: &ClientCredentials,
    client_id: &str,
) -> Result<(), ClientError> {
    if credentials.id.as_deref() != Some(client_id) {
        return Err(ClientError::Invalid(
            "the token belongs to another application, or `client_id` is missing".to_owned(),
        ));
    }
    if document_url(client_id, true).is_some() {
        return Ok(());
    }
    let client = find_stored(app, client_id).await?;
    if client.has_secret(credentials.secret.as_ref()) { Ok(()) } else { Err(ClientError::WrongSecret) }
}
