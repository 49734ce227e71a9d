//! Bearer credentials: who the value of an `Authorization` header gives access to, whatever its kind.

use std::sync::Arc;

use haft_oauth::access_token::AccessToken;
use haft_oauth::jwt::is_jwt;

use crate::access::Token;
use crate::applications;
use crate::context::Context;
use crate::error::ServiceError;
use crate::sign_on;

/// Finds the token with a value. Unknown, expired and revoked ones are `None`; an error is one of this server.
pub async fn find_token(app: &Arc<Context>, value: &str) -> Result<Option<Arc<Token>>, ServiceError> {
    if AccessToken::is_claimed(value) {
        return applications::find_access_token(app, value).await;
    }
    match app.access().token(value, app.now()) {
        None if is_jwt(value) => sign_on::find_token(app, value).await,
        found => Ok(found),
    }
}
