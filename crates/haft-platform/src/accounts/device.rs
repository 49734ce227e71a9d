//! Logins at providers that a person completes with a code on any device (RFC 8628). Any node asks the provider for the
//! result, one at a time, until the person has decided or the code expires.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use haft_core::Timestamp;
use haft_core::account::{AccountKind, AccountUser};
use haft_core::outcome::ErrorCode;
use haft_core::secret::{Secret, SecretSource as _};
use haft_core::token::Role;
use haft_mcp::client::{BegunDeviceLogin, DevicePoll, OAuthError, poll_device_login};
use haft_store::{DeviceConnection, DeviceConnectionState, PendingLogin};
use uuid::Uuid;

use super::connect::{connected, own_account};
use super::provider_login::login_at;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// How often to look for logins that other nodes have begun or left behind.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);
/// The shortest wait between two looks, and the longest between two requests to a provider, in seconds.
const MIN_WAIT: Duration = Duration::from_millis(100);
const MAX_POLL_SECONDS: i64 = 60;
/// By how much to slow down (RFC 8628, section 3.5).
const SLOW_DOWN_SECONDS: i64 = 5;
/// How many providers a node asks at once.
const MAX_POLLS: usize = 16;

/// A login that has begun.
pub struct BegunDevice {
    /// Its id.
    pub id: String,
    pub login: BegunDeviceLogin,
    pub expires_at: Timestamp,
}

/// Begins the login of the caller at a provider with a code.
pub async fn begin_device(
    app: &Context,
    identity: &Identity,
    provider: &str,
) -> Result<BegunDevice, ServiceError> {
    identity.require(Role::Caller)?;
    let (account, login) = login_at(app, identity, provider).await?;
    let login = login.begin_device().await?;
    let expires_at = app.now() + login.lifetime;
    let connection = DeviceConnection {
        id: Uuid::now_v7().to_string(),
        tenant: account.tenant,
        actor: account.actor,
        provider: account.provider,
        requested_by: identity.name.to_string(),
        state: DeviceConnectionState::Pending,
        poll_seconds: i64::try_from(login.interval.as_secs()).unwrap_or(MAX_POLL_SECONDS),
        expires_at,
    };
    let id = connection.id.clone();
    audit::note(identity, "account.login", provider);
    if !app.store().accounts().begin_device_connection(connection, login.data.clone()).await? {
        let message = "too many logins have begun; finish one of them, or retry when they have expired";
        return Err(ServiceError::new(ErrorCode::RateLimited, message));
    }
    app.device_polls().notify_one();
    Ok(BegunDevice { id, login, expires_at })
}

/// Returns how far a login of the caller is.
pub async fn device_connection(
    app: &Context,
    identity: &Identity,
    provider: &str,
    id: &str,
) -> Result<DeviceConnection, ServiceError> {
    identity.require(Role::Viewer)?;
    let account = own_account(identity, provider)?;
    let found = app.store().accounts().device_connection(&account.tenant, account.actor, id).await?;
    let found = found.filter(|found| found.provider == provider);
    found.ok_or_else(|| ServiceError::not_found("login", id))
}

/// Asks providers for the results of logins, until dropped.
pub(crate) async fn poll_devices(app: Arc<Context>) {
    loop {
        let wait = match poll_due(&app).await {
            Ok(Some(next)) => {
                let wait = Duration::try_from(next.duration_since(app.now())).unwrap_or_default();
                wait.clamp(MIN_WAIT, IDLE_INTERVAL)
            }
            Ok(None) => IDLE_INTERVAL,
            Err(error) => {
                tracing::warn!(error = error.message, "cannot ask for the results of logins at providers");
                IDLE_INTERVAL
            }
        };
        tokio::select! {
            () = app.device_polls().notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Asks for the results that are due; returns when the next one is.
async fn poll_due(app: &Arc<Context>) -> Result<Option<Timestamp>, ServiceError> {
    let mut claimed = Vec::new();
    while claimed.len() < MAX_POLLS {
        let Some(next) = app.store().accounts().claim_device_connection().await? else { break };
        claimed.push(next);
    }
    let polls = claimed.into_iter().map(|(connection, data)| {
        // In a task of its own: the provider gives its tokens once, so they must be stored even if the server stops.
        let app = Arc::clone(app);
        tokio::spawn(async move {
            if let Err(error) = poll(&app, &connection, data).await {
                tracing::warn!(provider = connection.provider, error = error.message, "a login failed");
            }
        })
    });
    join_all(polls).await;
    Ok(app.store().accounts().next_device_poll().await?)
}

async fn poll(
    app: &Context,
    connection: &DeviceConnection,
    data: Option<Secret>,
) -> Result<(), ServiceError> {
    let Some(data) = data else {
        return fail(app, connection, "the encryption key was replaced; connect again").await;
    };
    if app.now() >= connection.expires_at {
        return fail(app, connection, "the code has expired").await;
    }
    // The person may have been disabled since.
    if !app.access().tenants_of_person(connection.actor).contains(&connection.tenant) {
        return fail(app, connection, "the person no longer has access").await;
    }
    let user = AccountUser { tenant: connection.tenant.clone(), actor: Some(connection.actor) };
    let Some(account) = user.account(&connection.provider) else {
        return fail(app, connection, "no such provider").await;
    };
    let tokens = app.secrets().refresh_tokens();
    match poll_device_login(app.egress(), &account, tokens, &data).await {
        Ok(DevicePoll::Pending) => postpone(app, connection, connection.poll_seconds).await,
        Ok(DevicePoll::SlowDown) => {
            postpone(app, connection, connection.poll_seconds + SLOW_DOWN_SECONDS).await
        }
        Ok(DevicePoll::Completed(scope)) => {
            connected(app, &account, AccountKind::Oauth, scope).await?;
            if !app.store().accounts().end_device_connection(&connection.id, None).await? {
                // Person or provider were deleted meanwhile, and the tokens must not outlive them.
                return Ok(app.store().accounts().revoke(&account).await.map(drop)?);
            }
            let login = PendingLogin {
                tenant: connection.tenant.clone(),
                actor: Some(connection.actor),
                provider: connection.provider.clone(),
                requested_by: connection.requested_by.clone(),
                data,
                expires_at: connection.expires_at,
            };
            audit::record_login(app, &login, None).await;
            Ok(())
        }
        // The provider may be back before the code expires.
        Err(error @ (OAuthError::Unreachable { .. } | OAuthError::Refused { .. } | OAuthError::Store(_))) => {
            tracing::info!(provider = connection.provider, %error, "no result of a login; retrying");
            postpone(app, connection, connection.poll_seconds.saturating_mul(2)).await
        }
        Err(error) => fail(app, connection, &error.to_string()).await,
    }
}

/// Ends a login that has failed, with the reason for the person.
async fn fail(app: &Context, connection: &DeviceConnection, why: &str) -> Result<(), ServiceError> {
    tracing::info!(provider = connection.provider, why, "a login with a code has failed");
    app.store().accounts().end_device_connection(&connection.id, Some(why)).await?;
    Ok(())
}

/// Asks again after a while.
async fn postpone(app: &Context, connection: &DeviceConnection, seconds: i64) -> Result<(), ServiceError> {
    let seconds = seconds.clamp(1, MAX_POLL_SECONDS);
    Ok(app.store().accounts().postpone_device_poll(&connection.id, seconds).await?)
}
