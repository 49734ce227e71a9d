//! An issuer of OpenID Connect on loopback, with keys of its own, which can misbehave in every way that a test needs.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests may fail loudly"
)]

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::upstream::Upstream;

/// The client that the issuer knows, and its secret.
pub const CLIENT_ID: &str = "haft";
/// The secret of the client.
pub const CLIENT_SECRET: &str = "stub-client-secret";

/// A key that signs tokens.
pub struct SigningKey {
    /// Its name.
    pub kid: String,
    pair: Pair,
}

enum Pair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl SigningKey {
    /// Creates a key for ES256.
    pub fn p256(kid: &str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
            .expect("key");
        Self { kid: kid.to_owned(), pair: Pair::P256(pair) }
    }

    /// Creates a key for `EdDSA`.
    pub fn ed25519(kid: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("key");
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("key");
        Self { kid: kid.to_owned(), pair: Pair::Ed25519(pair) }
    }

    /// Returns a fixed key for RS256 and PS256, which was made for these tests.
    pub fn rsa(kid: &str) -> Self {
        let pair = RsaKeyPair::from_pkcs8(include_bytes!("issuer_rsa_key.der")).expect("key");
        Self { kid: kid.to_owned(), pair: Pair::Rsa(Box::new(pair)) }
    }

    /// Returns its algorithm; an RSA key also signs PS256.
    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::P256(_) => "ES256",
            Pair::Ed25519(_) => "EdDSA",
            Pair::Rsa(_) => "RS256",
        }
    }

    /// Returns the public key as a JSON Web Key.
    pub fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.pair {
            Pair::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": self.kid, "use": "sig", "x": text(x), "y": text(y)})
            }
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": text(pair.public_key().as_ref())})
            }
            Pair::Rsa(pair) => {
                let public: RsaPublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({"kty": "RSA", "kid": self.kid, "n": text(&public.n), "e": text(&public.e)})
            }
        }
    }

    /// Signs a token with a header of the caller's choice.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let bytes = message.as_bytes();
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::P256(pair) => pair.sign(&random, bytes).expect("signature").as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(bytes).as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let is_pss = header["alg"] == "PS256";
                let encoding: &dyn ring::signature::RsaEncoding =
                    if is_pss { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                pair.sign(encoding, &random, bytes, &mut signature).expect("signature");
                signature
            }
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Signs a token with its usual header.
    pub fn token(&self, claims: &Value) -> String {
        self.sign(&json!({"alg": self.algorithm(), "kid": self.kid, "typ": "JWT"}), claims)
    }
}

/// Makes another token of a key and the claims of an ID token.
pub type ReplaceToken = Box<dyn Fn(&SigningKey, &Value) -> String + Send>;

/// What an issuer does; a test changes it at any time.
pub struct Behavior {
    /// The claims of whoever logs in, besides the protocol's own.
    pub claims: Map<String, Value>,
    /// Changes an ID token before it is signed.
    pub change: fn(&mut Value),
    /// Replaces a signed ID token.
    pub replace: Option<ReplaceToken>,
    /// Answers every request with status 503.
    pub is_down: bool,
    /// The `iss` of callbacks instead of the right one; an empty one is left out.
    pub callback_issuer: Option<String>,
    /// The error with which it sends browsers back.
    pub error: Option<String>,
    /// Members of the metadata that replace the right ones.
    pub metadata: Map<String, Value>,
    /// The claims of the userinfo endpoint, if it has one.
    pub userinfo: Option<Value>,
    /// The keys; the first one signs.
    pub keys: Vec<SigningKey>,
    /// Whether it issues refresh tokens; the first access tokens expire at once then.
    pub refreshes: bool,
    /// The error of the token endpoint for refresh tokens and exchanges.
    pub token_error: Option<&'static str>,
}

/// A code that was issued.
struct Code {
    nonce: Option<String>,
    challenge: Option<String>,
    redirect_uri: String,
}

struct World {
    issuer: String,
    behavior: Behavior,
    codes: HashMap<String, Code>,
    issued: usize,
    /// The refresh tokens that were used.
    used: HashSet<String>,
}

type Shared = Arc<Mutex<World>>;

/// A running issuer; it ends when this is dropped.
pub struct StubIssuer {
    upstream: Upstream,
    world: Shared,
}

fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StubIssuer {
    /// Starts an issuer that behaves well; everybody who comes is logged in at once.
    pub async fn start() -> std::io::Result<Self> {
        let behavior = Behavior {
            claims: Map::new(),
            change: |_| {},
            replace: None,
            is_down: false,
            callback_issuer: None,
            error: None,
            metadata: Map::new(),
            userinfo: None,
            keys: vec![SigningKey::p256("first")],
            refreshes: false,
            token_error: None,
        };
        let world =
            World { issuer: String::new(), behavior, codes: HashMap::new(), issued: 0, used: HashSet::new() };
        let world = Arc::new(Mutex::new(world));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/jwks", get(jwks))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/userinfo", get(userinfo))
            .layer(middleware::from_fn_with_state(Arc::clone(&world), unless_down))
            .with_state(Arc::clone(&world));
        let upstream = Upstream::serve(router).await?;
        lock(&world).issuer = format!("http://{}", upstream.address);
        Ok(Self { upstream, world })
    }

    /// Returns the issuer identifier.
    pub fn url(&self) -> String {
        lock(&self.world).issuer.clone()
    }

    /// Changes what it does from now on.
    pub fn change(&self, change: impl FnOnce(&mut Behavior)) {
        change(&mut lock(&self.world).behavior);
    }

    /// Sets the claims of whoever logs in next.
    pub fn log_in_as(&self, claims: &Value) {
        self.change(|behavior| behavior.claims = claims.as_object().cloned().unwrap_or_default());
    }

    /// Returns a token that its key signs; `claims` are added to the usual ones.
    pub fn token(&self, audience: &str, claims: &Value) -> String {
        let world = lock(&self.world);
        let mut all = json!({"iss": world.issuer, "aud": audience, "iat": now(), "exp": now() + 600});
        merge(&mut all, claims.as_object());
        world.behavior.keys[0].token(&all)
    }

    /// Returns a token of a type that its key signs, with these claims only.
    pub fn sign(&self, typ: &str, claims: &Value) -> String {
        let world = lock(&self.world);
        let key = &world.behavior.keys[0];
        key.sign(&json!({"alg": key.algorithm(), "kid": key.kid, "typ": typ}), claims)
    }

    /// Returns the number of requests for a path.
    pub fn requests(&self, path: &str) -> usize {
        let seen = self.upstream.seen();
        seen.iter().filter(|request| request.target.split('?').next() == Some(path)).count()
    }
}

#[expect(clippy::disallowed_methods, reason = "tokens have real times")]
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or_default())
}

fn merge(into: &mut Value, from: Option<&Map<String, Value>>) {
    if let (Some(into), Some(from)) = (into.as_object_mut(), from) {
        into.extend(from.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

async fn unless_down(State(world): State<Shared>, request: Request, next: Next) -> Response {
    let is_down = lock(&world).behavior.is_down;
    if is_down { StatusCode::SERVICE_UNAVAILABLE.into_response() } else { next.run(request).await }
}

async fn metadata(State(world): State<Shared>) -> Response {
    let world = lock(&world);
    let issuer = &world.issuer;
    let mut document = json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/jwks"),
        "end_session_endpoint": format!("{issuer}/logout"),
        "authorization_response_iss_parameter_supported": true,
    });
    if world.behavior.userinfo.is_some() {
        document["userinfo_endpoint"] = json!(format!("{issuer}/userinfo"));
    }
    merge(&mut document, Some(&world.behavior.metadata));
    Json(document).into_response()
}

async fn jwks(State(world): State<Shared>) -> Response {
    let keys: Vec<Value> = lock(&world).behavior.keys.iter().map(SigningKey::jwk).collect();
    Json(json!({"keys": keys})).into_response()
}

async fn userinfo(State(world): State<Shared>, headers: HeaderMap) -> Response {
    let is_known = headers.get(header::AUTHORIZATION).is_some_and(|value| value == "Bearer stub-access");
    match lock(&world).behavior.userinfo.clone().filter(|_| is_known) {
        Some(claims) => Json(claims).into_response(),
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn authorize(State(world): State<Shared>, Query(query): Query<HashMap<String, String>>) -> Response {
    let mut world = lock(&world);
    let value = |name: &str| query.get(name).cloned();
    let (Some(redirect_uri), Some(state)) = (value("redirect_uri"), value("state")) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if value("client_id").as_deref() != Some(CLIENT_ID) || value("response_type").as_deref() != Some("code") {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let Ok(mut url) = url::Url::parse(&redirect_uri) else { return StatusCode::BAD_REQUEST.into_response() };
    url.query_pairs_mut().append_pair("state", &state);
    let issuer = world.behavior.callback_issuer.clone().unwrap_or_else(|| world.issuer.clone());
    if !issuer.is_empty() {
        url.query_pairs_mut().append_pair("iss", &issuer);
    }
    if let Some(error) = &world.behavior.error {
        url.query_pairs_mut()
            .append_pair("error", error)
            .append_pair("error_description", "<b>not today</b>");
        return Redirect::to(url.as_str()).into_response();
    }
    world.issued += 1;
    let code = format!("code-{}", world.issued);
    url.query_pairs_mut().append_pair("code", &code);
    let issued = Code { nonce: value("nonce"), challenge: value("code_challenge"), redirect_uri };
    world.codes.insert(code, issued);
    Redirect::to(url.as_str()).into_response()
}

async fn token(State(world): State<Shared>, headers: HeaderMap, body: String) -> Response {
    let mut world = lock(&world);
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response();
    let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}")));
    if headers.get(header::AUTHORIZATION).is_none_or(|value| value != basic.as_str()) {
        return refused("invalid_client");
    }
    let form: HashMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let value = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    match (value("grant_type"), world.behavior.token_error) {
        ("authorization_code", _) => {}
        (_, Some(error)) => return refused(error),
        ("refresh_token", None) => return refreshed(&mut world, value("refresh_token")),
        (_, None) => return exchanged(&form),
    }
    let Some(code) = world.codes.remove(value("code")) else { return refused("invalid_grant") };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(value("code_verifier").as_bytes()));
    if code.challenge != Some(challenge) || code.redirect_uri != value("redirect_uri") {
        return refused("invalid_grant");
    }
    let mut claims = json!({
        "iss": world.issuer, "aud": CLIENT_ID, "iat": now(), "exp": now() + 300, "nonce": code.nonce,
    });
    merge(&mut claims, Some(&world.behavior.claims));
    (world.behavior.change)(&mut claims);
    let key = &world.behavior.keys[0];
    let id_token = match &world.behavior.replace {
        Some(replace) => replace(key, &claims),
        None => key.token(&claims),
    };
    let mut answer = json!({"token_type": "Bearer", "access_token": "stub-access", "id_token": id_token});
    if world.behavior.refreshes {
        let subject = claims["sub"].as_str().unwrap_or_default();
        answer["access_token"] = json!(format!("access-1-{subject}"));
        answer["refresh_token"] = json!(format!("refresh-1-{subject}"));
        answer["expires_in"] = json!(0);
    }
    Json(answer).into_response()
}

/// Answers a refresh token of the form `refresh-N-SUBJECT` with the next ones. Each works once.
fn refreshed(world: &mut World, token: &str) -> Response {
    let parts = token.strip_prefix("refresh-").and_then(|rest| rest.split_once('-'));
    let number = parts.and_then(|(number, _)| number.parse::<u32>().ok());
    let (Some((_, subject)), Some(number)) = (parts, number) else {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response();
    };
    if !world.used.insert(token.to_owned()) {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response();
    }
    let next = number + 1;
    Json(json!({
        "token_type": "Bearer", "access_token": format!("access-{next}-{subject}"), "expires_in": 3600,
        "refresh_token": format!("refresh-{next}-{subject}"),
    }))
    .into_response()
}

/// Exchanges an access token of the form `access-N-SUBJECT` (RFC 8693).
fn exchanged(form: &HashMap<String, String>) -> Response {
    let value = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let subject = value("subject_token").strip_prefix("access-").and_then(|rest| rest.split_once('-'));
    let is_exchange = value("grant_type") == "urn:ietf:params:oauth:grant-type:token-exchange"
        && value("subject_token_type") == "urn:ietf:params:oauth:token-type:access_token";
    match subject.filter(|_| is_exchange) {
        Some((_, subject)) => Json(json!({
            "token_type": "Bearer", "expires_in": 3600,
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "access_token": format!("{}-of-{subject}", value("audience")),
        }))
        .into_response(),
        None => (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_request"}))).into_response(),
    }
}
