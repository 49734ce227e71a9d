//! Logins of command lines in the manner of RFC 8628: a command line gets two codes, a person enters one of them in a
//! browser and approves, and the command line fetches a token with the other one. The token never does more than that of
//! the person.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::login::{DeviceLoginRecord, DeviceLoginState};
use haft_core::outcome::ErrorCode;
use haft_core::secret::Secret;
use haft_core::token::TokenRecord;
use haft_store::{
    DeviceLoginDecision, DeviceLoginLimits, DeviceLoginPoll, DeviceLoginStart, DeviceTokenInsert,
};

use crate::access::Token;
use crate::applications::reject_application;
use crate::attempt_limit::AttemptLimit;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::random;
use crate::stream_limit::network;
use crate::tokens::{self, IssuedToken};

/// How long the codes work.
pub const LIFETIME: Duration = Duration::from_mins(10);
/// How long a command line waits between two requests for its token.
pub const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How long the token of a command line works.
pub const TOKEN_LIFETIME: Duration = Duration::from_hours(90 * 24);

/// Behind a proxy, all clients have its address.
const LIMITS: DeviceLoginLimits = DeviceLoginLimits { per_address: 60, total: 1000 };
/// The most tokens of command lines that a tenant may have. Expired ones do not count.
const MAX_TOKENS: usize = 1000;
/// What the names of these tokens start with.
const NAME_PREFIX: &str = "haft-cli on ";
/// The longest name of a computer: the name of a token has at most 64 characters.
const MAX_DEVICE_LENGTH: usize = 48;
/// The letters of user codes: without vowels, so that they spell no words (RFC 8628, section 6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// The number of letters of a user code.
const USER_CODE_LENGTH: usize = 8;

/// The code that a person enters: eight letters, shown as `XXXX-XXXX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCode(String);

/// A login that was started.
pub struct StartedDeviceLogin {
    /// The code of the command line.
    pub device_code: Secret,
    pub user_code: UserCode,
}

/// A login cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartDeviceLoginError {
    /// The address has started too many.
    #[error(
        "your address has started {} logins within ten minutes; finish one of them, or retry later",
        LIMITS.per_address
    )]
    TooManyOfAddress,
    /// All addresses together have started too many.
    #[error("{} logins wait for a decision, which is the limit; retry later", LIMITS.total)]
    TooMany,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the command line gets when it asks for its token.
pub enum DeviceToken {
    /// Nobody has decided.
    Pending,
    /// Nobody has decided, and the last request was too recent.
    TooFast,
    /// A person has denied it, or the token of that person no longer gives access.
    Denied,
    /// The codes have expired.
    Expired,
    /// No login has this code, or its token was issued.
    Unknown,
    /// The token.
    Issued(Box<IssuedToken>),
}

impl UserCode {
    /// Reads a code in any spelling: lower case, with or without `-` and spaces.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > 4 * USER_CODE_LENGTH {
            return None;
        }
        let letters: String =
            text.chars().filter(|c| !matches!(c, '-' | ' ')).map(|c| c.to_ascii_uppercase()).collect();
        let is_code = letters.len() == USER_CODE_LENGTH && letters.bytes().all(|c| LETTERS.contains(&c));
        is_code.then_some(Self(letters))
    }

    /// Returns the code as it is shown.
    pub fn shown(&self) -> String {
        let code = self.0.as_str();
        let (first, second) = code.split_at_checked(USER_CODE_LENGTH / 2).unwrap_or((code, ""));
        format!("{first}-{second}")
    }

    fn generate() -> Result<Self, StoreError> {
        let mut letters = String::with_capacity(USER_CODE_LENGTH);
        while letters.len() < USER_CODE_LENGTH {
            for byte in random::bytes::<32>()? {
                // Larger bytes would make some letters more frequent.
                let letter = LETTERS.get(usize::from(byte) % LETTERS.len());
                if let Some(letter) = letter.filter(|_| byte < 240 && letters.len() < USER_CODE_LENGTH) {
                    letters.push(char::from(*letter));
                }
            }
        }
        Ok(Self(letters))
    }

    fn hash(&self) -> String {
        hash::of_bytes(self.0.as_bytes())
    }
}

/// Starts a login of the command line on a computer.
pub async fn start(
    app: &Context,
    device: &str,
    address: Option<IpAddr>,
) -> Result<StartedDeviceLogin, StartDeviceLoginError> {
    let device_code = random::secret()?;
    let user_code = UserCode::generate()?;
    let now = app.now();
    let record = DeviceLoginRecord {
        hash: hash::of_bytes(device_code.expose().as_bytes()),
        user_code_hash: user_code.hash(),
        device: device_name(device),
        address: address.map(|address| network(address).to_string()).unwrap_or_default(),
        state: DeviceLoginState::Pending,
        created_at: now,
        expires_at: now + LIFETIME,
    };
    match app.store().access().insert_device_login(record, LIMITS).await? {
        DeviceLoginStart::Stored => Ok(StartedDeviceLogin { device_code, user_code }),
        DeviceLoginStart::TooManyOfAddress => Err(StartDeviceLoginError::TooManyOfAddress),
        DeviceLoginStart::TooMany => Err(StartDeviceLoginError::TooMany),
    }
}

/// Finds a login that waits for a decision. Who enters many wrong codes has to wait.
pub async fn find(
    app: &Context,
    wrong_codes: &AttemptLimit,
    identity: &Identity,
    code: &UserCode,
) -> Result<Option<DeviceLoginRecord>, ServiceError> {
    let principal = format!("{}/{}", identity.tenant, identity.id());
    // Counted before the lookup, so that many requests at the same time do not get more attempts.
    if !wrong_codes.try_acquire(&principal, app.now()) {
        return Err(ServiceError::new(
            ErrorCode::RateLimited,
            "too many wrong codes; retry in ten minutes, or run `haft login` again",
        ));
    }
    let found = app.store().access().find_device_login(&code.hash()).await;
    let waiting = found.map(|found| found.filter(|login| login.state == DeviceLoginState::Pending));
    // Neither a right code nor a failure of the store is a wrong code.
    if !matches!(waiting, Ok(None)) {
        wrong_codes.release(&principal);
    }
    Ok(waiting?)
}

/// Approves a login: the command line gets a token with the rights of the person.
pub async fn approve(
    app: &Arc<Context>,
    identity: &Identity,
    code: &UserCode,
    login: &DeviceLoginRecord,
) -> Result<(), ServiceError> {
    reject_application(identity)?;
    let Some(token) = identity.token() else {
        return Err(ServiceError::new(ErrorCode::Forbidden, "a login is approved with a token or a session"));
    };
    let tokens = app.store().access().tokens().await?;
    let is_of_command_line = |name: &str| name.starts_with(NAME_PREFIX);
    let now = app.now();
    let counts = |token: &&TokenRecord| {
        token.tenant == identity.tenant
            && is_of_command_line(&token.name)
            && token.expires_at.is_none_or(|end| now < end)
    };
    let of_tenant = tokens.iter().filter(counts);
    if of_tenant.count() >= MAX_TOKENS {
        let message = format!(
            "the tenant has {MAX_TOKENS} tokens of command lines, which is the limit; an admin can revoke old ones"
        );
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    let decision = DeviceLoginDecision::Approve { token_hash: token.hash.clone() };
    decide(app, identity, code, (decision, "device_login.approve", login.device.as_str())).await
}

/// Denies a login: the command line gets no token.
pub async fn deny(
    app: &Arc<Context>,
    identity: &Identity,
    code: &UserCode,
    login: &DeviceLoginRecord,
) -> Result<(), ServiceError> {
    let change = (DeviceLoginDecision::Deny, "device_login.deny", login.device.as_str());
    decide(app, identity, code, change).await
}

async fn decide(
    app: &Arc<Context>,
    identity: &Identity,
    code: &UserCode,
    (decision, action, device): (DeviceLoginDecision, &str, &str),
) -> Result<(), ServiceError> {
    let deciding = {
        let (app, code) = (Arc::clone(app), code.clone());
        async move {
            let is_decided = app.store().access().decide_device_login(&code.hash(), decision).await?;
            // Somebody else was faster, or it has just expired.
            if is_decided { Ok(()) } else { Err(ServiceError::not_found("login", &code.shown())) }
        }
    };
    Box::pin(audit::run_change(app, identity, (action, device), deciding)).await
}

/// Returns the token of a login whose code the command line sends, once, if a person has approved it.
pub async fn fetch_token(app: &Arc<Context>, device_code: &str) -> Result<DeviceToken, ServiceError> {
    let hash = hash::of_bytes(device_code.as_bytes());
    let (token_hash, device) = match app.store().access().poll_device_login(&hash, POLL_INTERVAL).await? {
        DeviceLoginPoll::Approved { token_hash, device } => (token_hash, device),
        DeviceLoginPoll::Pending => return Ok(DeviceToken::Pending),
        DeviceLoginPoll::TooFast => return Ok(DeviceToken::TooFast),
        DeviceLoginPoll::Denied => return Ok(DeviceToken::Denied),
        DeviceLoginPoll::Expired => return Ok(DeviceToken::Expired),
        DeviceLoginPoll::Unknown => return Ok(DeviceToken::Unknown),
    };
    let Some(token) = token_of_person(app, &token_hash).await? else { return denied(app, &hash).await };
    let identity = Identity::from_token(token);
    let name = format!("{NAME_PREFIX}{device}");
    let issuing = {
        let (app, identity) = (Arc::clone(app), identity.clone());
        let approved = ApprovedLogin { hash, token_hash, name: name.clone() };
        async move { issue(&app, &identity, approved).await }
    };
    let outcome = |token: &Result<DeviceToken, ServiceError>| match token {
        Ok(DeviceToken::Issued(_)) => audit::SUCCESS,
        // Another request was faster.
        Ok(DeviceToken::Unknown) => ErrorCode::Conflict.as_str(),
        Ok(_) => ErrorCode::Forbidden.as_str(),
        Err(error) => error.code.as_str(),
    };
    // To its end, even if the command line disconnects: otherwise it could use the login up without a token.
    audit::run_recorded(app, &identity, ("token.create", &name), issuing, outcome).await?
}

/// A login whose token is about to be issued.
struct ApprovedLogin {
    /// The hash of the device code.
    hash: String,
    /// The hash of the token of the person.
    token_hash: String,
    /// The name of the new token.
    name: String,
}

/// Stores the token of a login and uses the login up.
async fn issue(
    app: &Context,
    identity: &Identity,
    approved: ApprovedLogin,
) -> Result<DeviceToken, ServiceError> {
    let ApprovedLogin { hash, token_hash, name } = approved;
    let issued = match tokens::like_own(app, identity, name, TOKEN_LIFETIME).await {
        // Another node has just revoked the token of the person.
        Err(error) if matches!(error.code, ErrorCode::Forbidden) => return denied(app, &hash).await,
        issued => issued?,
    };
    let inserted = app.store().access().insert_device_token(&hash, &token_hash, &issued.record).await?;
    match inserted {
        DeviceTokenInsert::LoginGone => return Ok(DeviceToken::Unknown),
        DeviceTokenInsert::ApproverGone => return denied(app, &hash).await,
        DeviceTokenInsert::Stored => {}
    }
    // The token is stored, and its value must not be lost because this node cannot load it yet.
    if let Err(error) = app.reload_access().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot load a new token; retrying later");
    }
    audit::note(identity, "token.create", &issued.record.name);
    Ok(DeviceToken::Issued(Box::new(issued)))
}

/// Ends an approved login whose person has no access any more, so that a command line cannot go on asking.
async fn denied(app: &Context, hash: &str) -> Result<DeviceToken, ServiceError> {
    app.store().access().delete_device_login(hash).await?;
    Ok(DeviceToken::Denied)
}

/// Finds the token of the person who approved a login, also if another node has just stored it.
async fn token_of_person(app: &Context, hash: &str) -> Result<Option<Arc<Token>>, StoreError> {
    if let Some(token) = app.access().token_by_hash(hash, app.now()) {
        return Ok(Some(token));
    }
    app.reload_access().await?;
    Ok(app.access().token_by_hash(hash, app.now()))
}

/// Returns the name of a computer in the characters of host names: a person reads it, and it becomes part of a name.
fn device_name(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String =
        text.trim().chars().take(MAX_DEVICE_LENGTH).map(|c| if is_plain(c) { c } else { '-' }).collect();
    if name.is_empty() { "an unnamed computer".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_codes_are_read_in_any_spelling() {
        for text in ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk ", "BC-DF-GH-JK"] {
            assert_eq!(UserCode::parse(text).unwrap().shown(), "BCDF-GHJK", "{text}");
        }
        for text in ["", "BCDF-GHJ", "BCDF-GHJKL", "ABCD-FGHJ", "BCDF-GHJ1", "ÄCDF-GHJK", &"-".repeat(100)] {
            assert_eq!(UserCode::parse(text), None, "{text}");
        }
    }

    #[test]
    fn generated_codes_are_valid_and_differ() {
        let codes: Vec<UserCode> = (0..50).map(|_| UserCode::generate().unwrap()).collect();
        for code in &codes {
            assert_eq!(UserCode::parse(&code.shown()).as_ref(), Some(code));
        }
        assert_ne!(codes[0], codes[1]);
    }

    #[test]
    fn the_name_of_a_computer_has_plain_characters() {
        for (text, expected) in [
            ("laptop.example", "laptop.example"),
            (" <b>it's\u{202e}me</b> ", "-b-it-s-me--b-"),
            ("", "an unnamed computer"),
        ] {
            assert_eq!(device_name(text), expected);
        }
        assert!(format!("{NAME_PREFIX}{}", device_name(&"x".repeat(500))).len() <= 64);
    }
}
