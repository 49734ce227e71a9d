//! Bearer credentials: who the value of an `Authorization` header gives access to, whatever its kind.

use std::sync::Arc;

use haft_oauth::access_token::AccessToken;

use crate::access::Token;
use crate::applications;
use crate::context::Context;
use crate::error::ServiceError;

/// Finds the token with a value. Unknown, expired and revoked ones are `None`; an error is one of this server.
pub async fn find_token(app: &Context, value: &str) -> Result<Option<Arc<Token>>, ServiceError> {
    if AccessToken::is_claimed(value) {
        return applications::find_access_token(app, value).await;
    }
    Ok(app.access().token(value, app.now()))
}
