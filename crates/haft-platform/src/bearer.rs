//! Bearer credentials: who the value of an `Authorization` header gives access to, whatever its kind.

use std::sync::Arc;

use crate::access::Token;
use crate::context::Context;
use crate::error::ServiceError;

/// Finds the token with a value. Unknown, expired and revoked ones are `None`; an error is one of this server.
pub async fn find_token(app: &Context, value: &str) -> Result<Option<Arc<Token>>, ServiceError> {
    Ok(app.access().token(value, app.now()))
}
