//! The configured issuers of OpenID Connect: their settings, metadata and keys, and what their rules assign. This module
//! knows no people: `sign_on` does.

mod cached_document;
mod error;
mod fetch;
mod issuer;
mod rules;
mod settings;

use std::sync::Arc;

use haft_core::Timestamp;
use haft_executors::egress::RulesError;
use haft_oauth::jwt;

pub use error::IssuerError;
pub use issuer::{Issuer, IssuerState, VerifyError};
pub use rules::{RuleOutcome, TenantAssignment, assignments, evaluate};
pub use settings::{IssuerSettings, RuleSettings, SignOnSettings, declared};

use crate::verified_tokens::VerifiedTokens;

/// All issuers, and the bearer tokens of theirs that were verified recently.
pub struct Issuers {
    issuers: Vec<Arc<Issuer>>,
    pub(crate) verified: VerifiedTokens,
}

impl Issuers {
    /// Creates the issuers. Nothing is fetched before the first login.
    pub fn new(settings: &SignOnSettings) -> Result<Self, RulesError> {
        let issuers = settings.issuers.iter().map(|one| Issuer::new(one).map(Arc::new));
        Ok(Self { issuers: issuers.collect::<Result<_, _>>()?, verified: VerifiedTokens::default() })
    }

    /// Returns all issuers, in the order of the configuration.
    pub fn all(&self) -> &[Arc<Issuer>] {
        &self.issuers
    }

    /// Finds an issuer by its id in the configuration.
    pub fn find(&self, id: &str) -> Option<&Arc<Issuer>> {
        self.issuers.iter().find(|issuer| issuer.settings.id == id)
    }

    /// Finds the issuer that a token names. Only its keys decide whether that is true.
    pub fn of_token(&self, token: &str) -> Option<&Arc<Issuer>> {
        let named = jwt::unverified_issuer(token)?;
        self.issuers.iter().find(|issuer| issuer.settings.issuer == named)
    }

    /// Verifies a token of any configured issuer, such as an assertion of the JWT-bearer grant: `typ` is the type in its header. Returns its issuer and its claims.
    pub async fn verify_typed(
        &self,
        token: &str,
        typ: &str,
        audiences: &[String],
        now: Timestamp,
    ) -> Result<(Arc<Issuer>, jwt::Claims), VerifyError> {
        let issuer = self.of_token(token).ok_or(VerifyError::UnknownIssuer)?;
        let claims = issuer.verify(token, jwt::Purpose::Typed { typ, audiences }, now).await?;
        Ok((Arc::clone(issuer), claims))
    }
}
