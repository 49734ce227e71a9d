//! The token with which haft reads from Vault: configured, or from a login that is repeated when the token expires.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::Clock;
use haft_core::secret::{ExternalSecretError, Secret};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::cache::{millis, now};
use super::settings::{SourceSettingsError, VaultAuth, VaultSettings};
use super::vault_client::{VaultClient, read_credential};

/// A login is not repeated earlier: a token that is newer was not rejected because of its age.
const MIN_LOGIN_INTERVAL: Duration = Duration::from_secs(5);
/// How long haft does not log in because of a rejected request, after a login that changed nothing.
const USELESS_LOGIN_PAUSE: Duration = Duration::from_mins(1);
/// How old a valid token is that haft replaces when Vault denies a path, and how often it does so: a token has the
/// policies that its role had at the login.
const POLICY_LOGIN_INTERVAL: Duration = Duration::from_mins(5);
/// How long an older token is used before the next attempt to log in.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// The path at which Vault describes a token to its owner.
pub(super) const LOOKUP: [&str; 3] = ["auth", "token", "lookup-self"];

/// The token of haft, and how to get another one.
pub(super) struct VaultSession {
    login: Login,
    clock: Arc<dyn Clock>,
    state: Mutex<SessionState>,
}

/// The state of a session. The holder of the lock may log in.
#[derive(Default)]
struct SessionState {
    held: Option<Held>,
    /// The last failure; callers that waited for that login share it.
    failure: Option<(Instant, ExternalSecretError)>,
    /// When a token of a new login was rejected like the one before, by the clock.
    useless_at: Option<i64>,
    /// When a login began because Vault denied a path to a valid token, by the clock.
    policy_login_at: Option<i64>,
    /// Until when the held token is used without another attempt to log in, because the last one failed.
    retry_at: i64,
}

enum Login {
    /// The token itself.
    Token(Credential),
    /// A login by an auth method.
    Method { method: AuthMethod, mount: String },
}

enum AuthMethod {
    AppRole { role_id: String, secret_id: Credential },
    Kubernetes { role: String, jwt: PathBuf },
}

/// A credential of haft.
enum Credential {
    Literal(Secret),
    /// Read at each use, because other programs replace it.
    File(PathBuf),
}

/// The token of a login.
struct Held {
    token: Secret,
    obtained_at: i64,
    /// From when on haft asks for another one; `None` if it does not expire.
    renew_at: Option<i64>,
    /// When Vault rejects it; `None` if it does not expire.
    expires_at: Option<i64>,
}

impl Held {
    /// If the clock was set back, the age is unknown.
    fn is_before(&self, end: Option<i64>, now: i64) -> bool {
        self.obtained_at <= now && end.is_none_or(|end| now < end)
    }

    fn is_fresh(&self, now: i64) -> bool {
        self.is_before(self.renew_at, now)
    }

    fn is_usable(&self, now: i64) -> bool {
        self.is_before(self.expires_at, now)
    }
}

impl SessionState {
    /// Returns the token that another caller has obtained instead of a rejected one.
    fn other_than(&self, rejected: &Secret) -> Option<Secret> {
        self.held.as_ref().filter(|held| held.token != *rejected).map(|held| held.token.clone())
    }

    /// Returns whether a login cannot help against a rejected request: the token is new, or the last login did not help.
    fn is_paused(&self, now: i64) -> bool {
        let is_new =
            self.held.as_ref().is_some_and(|held| is_within(MIN_LOGIN_INTERVAL, held.obtained_at, now));
        is_new || self.useless_at.is_some_and(|since| is_within(USELESS_LOGIN_PAUSE, since, now))
    }

    /// Returns whether a valid token is so old that the role may have got further policies since its login.
    fn is_policy_login_due(&self, now: i64) -> bool {
        let is_due = |since: i64| !is_within(POLICY_LOGIN_INTERVAL, since, now);
        self.held.as_ref().is_some_and(|held| is_due(held.obtained_at))
            && self.policy_login_at.is_none_or(is_due)
    }

    /// Returns the failure of a login that ended while a caller waited for it.
    fn failure_since(&self, started: Instant) -> Option<ExternalSecretError> {
        self.failure.as_ref().filter(|(when, _)| *when > started).map(|(_, error)| error.clone())
    }
}

/// Returns whether less than a time span has passed. If the clock was set back, nobody knows how much has.
fn is_within(span: Duration, since: i64, now: i64) -> bool {
    (0..millis(span)).contains(&now.saturating_sub(since))
}

impl Credential {
    /// Returns the credential of a setting: a value, or the file beside it.
    fn new(
        name: &'static str,
        literal: Option<&Secret>,
        file: Option<&PathBuf>,
    ) -> Result<Option<Self>, SourceSettingsError> {
        match (literal, file) {
            (Some(_), Some(_)) => Err(SourceSettingsError::Twice(name)),
            (Some(literal), None) => Ok(Some(Self::Literal(literal.clone()))),
            (None, Some(file)) => Ok(Some(Self::File(file.clone()))),
            (None, None) => Ok(None),
        }
    }

    async fn read(&self) -> Result<Secret, ExternalSecretError> {
        match self {
            Self::Literal(secret) => Ok(secret.clone()),
            Self::File(file) => read_credential(file).await,
        }
    }
}

impl Login {
    fn new(settings: &VaultSettings) -> Result<Self, SourceSettingsError> {
        let auth = settings.auth.as_str();
        let missing = |missing| SourceSettingsError::Missing { auth, missing };
        let method = match settings.auth {
            VaultAuth::Token => {
                let token = Credential::new("token", settings.token.as_ref(), settings.token_file.as_ref())?;
                return Ok(Self::Token(token.ok_or_else(|| missing("`token` or `token_file`"))?));
            }
            VaultAuth::AppRole => {
                let (literal, file) = (settings.secret_id.as_ref(), settings.secret_id_file.as_ref());
                let secret_id = Credential::new("secret_id", literal, file)?;
                let secret_id = secret_id.filter(|_| !settings.role_id.is_empty());
                let needed = "`role_id`, and `secret_id` or `secret_id_file`";
                let secret_id = secret_id.ok_or_else(|| missing(needed))?;
                AuthMethod::AppRole { role_id: settings.role_id.clone(), secret_id }
            }
            VaultAuth::Kubernetes if settings.role.is_empty() => return Err(missing("`role`")),
            VaultAuth::Kubernetes => {
                AuthMethod::Kubernetes { role: settings.role.clone(), jwt: settings.jwt_file.clone() }
            }
        };
        let mount = Some(settings.auth_mount.as_str()).filter(|mount| !mount.is_empty()).unwrap_or(auth);
        Ok(Self::Method { method, mount: mount.to_owned() })
    }
}

impl AuthMethod {
    fn name(&self) -> &'static str {
        match self {
            Self::AppRole { .. } => VaultAuth::AppRole.as_str(),
            Self::Kubernetes { .. } => VaultAuth::Kubernetes.as_str(),
        }
    }

    /// Returns the body of the login.
    async fn body(&self) -> Result<Value, ExternalSecretError> {
        match self {
            Self::AppRole { role_id, secret_id } => {
                let secret_id = secret_id.read().await?;
                Ok(json!({"role_id": role_id, "secret_id": secret_id.expose()}))
            }
            Self::Kubernetes { role, jwt } => {
                let jwt = read_credential(jwt).await?;
                Ok(json!({"role": role, "jwt": jwt.expose()}))
            }
        }
    }
}

impl VaultSession {
    pub(super) fn new(settings: &VaultSettings, clock: &Arc<dyn Clock>) -> Result<Self, SourceSettingsError> {
        Ok(Self { login: Login::new(settings)?, clock: Arc::clone(clock), state: Mutex::default() })
    }

    /// Returns the name of the auth method.
    pub(super) fn method(&self) -> &'static str {
        match &self.login {
            Login::Token(_) => VaultAuth::Token.as_str(),
            Login::Method { method, .. } => method.name(),
        }
    }

    /// Returns the token; logs in if there is none, or if it is about to expire.
    pub(super) async fn token(&self, client: &VaultClient) -> Result<Secret, ExternalSecretError> {
        let login = match &self.login {
            Login::Token(token) => return token.read().await,
            Login::Method { method, mount } => (method, mount.as_str()),
        };
        let started = Instant::now();
        let mut state = self.state.lock().await;
        let now = now(&*self.clock);
        let is_retry_due = now >= state.retry_at;
        let held = state.held.as_ref();
        let is_enough = |held: &&Held| held.is_fresh(now) || (!is_retry_due && held.is_usable(now));
        if let Some(held) = held.filter(is_enough) {
            return Ok(held.token.clone());
        }
        let older = held.filter(|held| held.is_usable(now)).map(|held| held.token.clone());
        let done = if let Some(shared) = state.failure_since(started) {
            Err(shared)
        } else {
            if older.is_some() {
                // Set before the login, because the caller may give up before it ends.
                state.retry_at = now.saturating_add(millis(RETRY_PAUSE));
            }
            self.log_in(client, login, &mut state).await
        };
        match (done, older) {
            (Err(error), Some(older)) if error.is_unavailable() => {
                tracing::warn!(%error, "the login to Vault failed; the older token is used");
                Ok(older)
            }
            (done, _) => done,
        }
    }

    /// Returns another token than a rejected one, if there is one: Vault may have revoked it, or a file has a newer one.
    pub(super) async fn replace(
        &self,
        client: &VaultClient,
        rejected: &Secret,
    ) -> Result<Option<Secret>, ExternalSecretError> {
        let login = match &self.login {
            Login::Token(Credential::Literal(_)) => return Ok(None),
            Login::Token(file @ Credential::File(_)) => {
                let token = file.read().await?;
                return Ok((token != *rejected).then_some(token));
            }
            Login::Method { method, mount } => (method, mount.as_str()),
        };
        {
            let state = self.state.lock().await;
            if let Some(token) = state.other_than(rejected) {
                return Ok(Some(token));
            }
            if state.is_paused(now(&*self.clock)) {
                return Ok(None);
            }
        }
        // A policy that denies a path is no reason to log in, unless the role may have got further ones.
        let is_valid = (200..300).contains(&client.get(&LOOKUP, rejected).await?.status);
        let started = Instant::now();
        let mut state = self.state.lock().await;
        if let Some(token) = state.other_than(rejected) {
            return Ok(Some(token));
        }
        let now = now(&*self.clock);
        if state.is_paused(now) || (is_valid && !state.is_policy_login_due(now)) {
            return Ok(None);
        }
        let done = if let Some(shared) = state.failure_since(started) {
            Err(shared)
        } else {
            if is_valid {
                // Set before the login, because the caller may give up before it ends.
                state.policy_login_at = Some(now);
            }
            self.log_in(client, login, &mut state).await
        };
        match done {
            // The path is denied, and the token stays good for others.
            Err(error) if is_valid => {
                tracing::warn!(%error, "the login to Vault for further policies failed; the older token is used");
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// Notes that Vault rejected the token of a new login, too.
    pub(super) async fn note_useless_login(&self) {
        let mut state = self.state.lock().await;
        state.useless_at = Some(now(&*self.clock));
    }

    /// Logs in and keeps the token.
    async fn log_in(
        &self,
        client: &VaultClient,
        (method, mount): (&AuthMethod, &str),
        state: &mut SessionState,
    ) -> Result<Secret, ExternalSecretError> {
        match log_in(client, method, mount, now(&*self.clock)).await {
            Ok(new) => {
                let token = new.token.clone();
                (state.held, state.failure, state.retry_at) = (Some(new), None, 0);
                Ok(token)
            }
            Err(error) => {
                if !error.is_unavailable() {
                    state.retry_at = 0;
                }
                state.failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

async fn log_in(
    client: &VaultClient,
    method: &AuthMethod,
    mount: &str,
    now: i64,
) -> Result<Held, ExternalSecretError> {
    let reply = client.post(&["auth", mount, "login"], &method.body().await?).await?;
    if !(200..300).contains(&reply.status) {
        return Err(ExternalSecretError::LoginRejected { method: method.name(), status: reply.status });
    }
    let token = reply.body.pointer("/auth/client_token").and_then(Value::as_str);
    let token = token
        .filter(|token| !token.is_empty())
        .ok_or(ExternalSecretError::InvalidResponse("the login has no `auth.client_token`"))?;
    let lease = reply.body.pointer("/auth/lease_duration").and_then(Value::as_u64).unwrap_or(0);
    let lease = (lease > 0).then(|| millis(Duration::from_secs(lease)));
    // A tenth earlier, so that it does not expire on its way, and a login that fails can be repeated.
    let renew_at = lease.map(|lease| now.saturating_add(lease / 10 * 9));
    let expires_at = lease.map(|lease| now.saturating_add(lease));
    Ok(Held { token: Secret::new(token.to_owned()), obtained_at: now, renew_at, expires_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_auth_method_requires_its_settings() {
        let secret = || Some(Secret::new("s".to_owned()));
        let base = |auth| VaultSettings { auth, ..VaultSettings::default() };
        let (token, role, pod) = (VaultAuth::Token, VaultAuth::AppRole, VaultAuth::Kubernetes);
        let needed = "`secrets.vault.auth` is `approle`, which requires `role_id`, and `secret_id` or `secret_id_file`";
        for (settings, expected) in [
            (base(token), "`secrets.vault.auth` is `token`, which requires `token` or `token_file`"),
            (VaultSettings { token: secret(), ..base(token) }, ""),
            (VaultSettings { token_file: Some("/t".into()), ..base(token) }, ""),
            (
                VaultSettings { token: secret(), token_file: Some("/t".into()), ..base(token) },
                "`secrets.vault.token` and `secrets.vault.token_file` exclude each other",
            ),
            (VaultSettings { role_id: "r".to_owned(), ..base(role) }, needed),
            (VaultSettings { secret_id: secret(), ..base(role) }, needed),
            (VaultSettings { role_id: "r".to_owned(), secret_id: secret(), ..base(role) }, ""),
            (base(pod), "`secrets.vault.auth` is `kubernetes`, which requires `role`"),
            (VaultSettings { role: "r".to_owned(), ..base(pod) }, ""),
        ] {
            let found = Login::new(&settings).err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(found, expected);
        }
    }
}
