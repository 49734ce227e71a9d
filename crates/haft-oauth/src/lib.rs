//! OAuth 2.1 and `OpenID` Connect, in both roles: what arrives is parsed and checked here, without I/O and without a clock.

pub mod access_token;
pub mod client_metadata;
pub mod exchange;
pub mod id_jag;
pub mod jwks;
pub mod jwt;
pub mod mac;
pub mod oidc;
pub mod pkce;
pub mod redirect_uri;
pub mod refresh_token;
pub mod resource;
pub mod scope;
