//! One issuer: its metadata and keys, kept in memory, and the requests of a login.

use std::sync::Arc;
use std::time::Duration;

use haft_core::Timestamp;
use haft_core::secret::Secret;
use haft_executors::egress::{Egress, EgressRules, RulesError};
use haft_oauth::exchange::{IssuedTokens, Request};
use haft_oauth::jwks::{Jwks, MAX_JWKS_BYTES};
use haft_oauth::jwt::{self, Claims, Expected, JwtError, Purpose};
use haft_oauth::oidc::{
    self, CodeExchange, MAX_DOCUMENT_BYTES, OidcError, ProviderMetadata, TokenAnswer, TokenRequest,
};

use super::cached_document::{CachedDocument, Known};
use super::error::IssuerError;
use super::fetch;
use super::settings::IssuerSettings;

/// How long metadata is fresh.
const METADATA_LIFETIME: Duration = Duration::from_hours(1);
/// How long keys are fresh. An unknown key is looked for at once.
const KEYS_LIFETIME: Duration = Duration::from_mins(10);

/// Why a token is not verified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    #[error("the issuer of the token is not configured")]
    UnknownIssuer,
    #[error(transparent)]
    Token(#[from] JwtError),
    #[error("the issuer does not answer: {0}")]
    Issuer(#[from] IssuerError),
}

/// Whether an issuer answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerState {
    /// The number of its keys; `None` if they are unknown.
    pub keys: Option<usize>,
    /// Why its metadata or its keys could not be fetched last.
    pub error: Option<String>,
}

/// An issuer.
pub struct Issuer {
    pub settings: IssuerSettings,
    egress: Egress,
    metadata: CachedDocument<ProviderMetadata>,
    keys: CachedDocument<Jwks>,
}

impl From<OidcError> for IssuerError {
    fn from(error: OidcError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl Issuer {
    /// Creates an issuer. Its guard is not that of tools: the configuration names it, and its hosts.
    pub fn new(settings: &IssuerSettings) -> Result<Self, RulesError> {
        let rules = EgressRules { allowed_hosts: Vec::new(), private_hosts: settings.private_hosts.clone() };
        Ok(Self {
            settings: settings.clone(),
            egress: Egress::new(&rules)?,
            metadata: CachedDocument::default(),
            keys: CachedDocument::default(),
        })
    }

    /// Returns the metadata.
    pub async fn metadata(self: &Arc<Self>, now: Timestamp) -> Result<Arc<ProviderMetadata>, IssuerError> {
        match self.metadata.known(now, METADATA_LIFETIME) {
            Known::Fresh(metadata) => Ok(metadata),
            Known::Stale(metadata) => {
                if self.metadata.may_fetch(now) {
                    let this = Arc::clone(self);
                    // An error is kept with the document.
                    tokio::spawn(async move { this.refresh_metadata(now).await.map(drop) });
                }
                Ok(metadata)
            }
            Known::Missing => self.refresh_metadata(now).await,
        }
    }

    async fn refresh_metadata(&self, now: Timestamp) -> Result<Arc<ProviderMetadata>, IssuerError> {
        let fetch = async {
            let url = oidc::discovery_url(&self.settings.url);
            let document = fetch::get(&self.egress, &url, None, MAX_DOCUMENT_BYTES).await?;
            Ok(ProviderMetadata::parse(&document, &self.settings.issuer)?)
        };
        self.metadata.refresh(now, fetch).await
    }

    async fn keys(self: &Arc<Self>, now: Timestamp) -> Result<Arc<Jwks>, IssuerError> {
        match self.keys.known(now, KEYS_LIFETIME) {
            Known::Fresh(keys) => Ok(keys),
            Known::Stale(keys) => {
                if self.keys.may_fetch(now) {
                    let this = Arc::clone(self);
                    tokio::spawn(async move { this.refresh_keys(now).await.map(drop) });
                }
                Ok(keys)
            }
            Known::Missing => self.refresh_keys(now).await,
        }
    }

    async fn refresh_keys(self: &Arc<Self>, now: Timestamp) -> Result<Arc<Jwks>, IssuerError> {
        let fetch = async {
            let metadata = self.metadata(now).await?;
            let document = fetch::get(&self.egress, &metadata.jwks_uri, None, MAX_JWKS_BYTES).await?;
            Jwks::parse(&document).map_err(|error| IssuerError::Invalid(error.to_string()))
        };
        self.keys.refresh(now, fetch).await
    }

    /// Verifies a token. A key that is unknown is looked for once in a while, whatever arrives.
    pub async fn verify(
        self: &Arc<Self>,
        token: &str,
        purpose: Purpose<'_>,
        now: Timestamp,
    ) -> Result<Claims, VerifyError> {
        let expected = Expected { issuer: &self.settings.issuer, purpose, now: now.as_second() };
        let keys = self.keys(now).await?;
        match jwt::verify(token, &keys, &expected) {
            Err(JwtError::UnknownKey(_)) if self.keys.try_force(now) => {
                let keys = self.refresh_keys(now).await?;
                Ok(jwt::verify(token, &keys, &expected)?)
            }
            verified => Ok(verified?),
        }
    }

    /// Exchanges a code for an ID token.
    pub async fn exchange(
        &self,
        metadata: &ProviderMetadata,
        exchange: &CodeExchange<'_>,
        now: Timestamp,
    ) -> Result<TokenAnswer, IssuerError> {
        let answer = self.post(metadata, exchange.request(metadata)).await?;
        Ok(TokenAnswer::parse(&answer, now.as_second())?)
    }

    /// Requests tokens of the person of a login.
    pub(crate) async fn request(
        self: &Arc<Self>,
        request: &Request<'_>,
        client_secret: Option<&Secret>,
        now: Timestamp,
    ) -> Result<IssuedTokens, IssuerError> {
        let metadata = self.metadata(now).await?;
        let form = request.form(&metadata, &self.settings.client_id, client_secret);
        let answer = self.post(&metadata, form).await?;
        let invalid = |why| IssuerError::Invalid(format!("the answer of the token endpoint: {why}"));
        IssuedTokens::parse(&answer, now.as_second()).map_err(invalid)
    }

    /// Sends a request to the token endpoint; returns the body of its answer.
    async fn post(&self, metadata: &ProviderMetadata, request: TokenRequest) -> Result<Vec<u8>, IssuerError> {
        let (endpoint, authorization) = (&metadata.token_endpoint, request.authorization.as_ref());
        let answer =
            fetch::post_form(&self.egress, endpoint, request.form, authorization, MAX_DOCUMENT_BYTES).await?;
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        let status = answer.status.as_u16();
        match oidc::rejection(&answer.body).filter(|_| answer.status.is_client_error()) {
            Some(error) => Err(IssuerError::Rejected { error, status }),
            None => Err(IssuerError::Status { path: endpoint.path().to_owned(), status }),
        }
    }

    /// Adds the claims of the userinfo endpoint, if the issuer has one.
    pub async fn add_userinfo(
        &self,
        metadata: &ProviderMetadata,
        access_token: Option<&Secret>,
        claims: &mut Claims,
    ) -> Result<(), IssuerError> {
        let (true, Some(url), Some(token)) =
            (self.settings.userinfo, &metadata.userinfo_endpoint, access_token)
        else {
            return Ok(());
        };
        let document = fetch::get(&self.egress, url, Some(token), MAX_DOCUMENT_BYTES).await?;
        Ok(oidc::merge_userinfo(claims, &document)?)
    }

    /// Returns whether the issuer answers, and asks it if that is unknown.
    pub async fn state(self: &Arc<Self>, now: Timestamp) -> IssuerState {
        let keys = self.keys(now).await;
        let error = self.metadata.error().or_else(|| self.keys.error());
        let error = error.or_else(|| keys.as_ref().err().cloned()).map(|error| error.to_string());
        IssuerState { keys: keys.ok().map(|keys| keys.len()), error }
    }
}
