//! OAuth 2.1 and OpenID Connect, in both roles: what arrives is parsed and checked here, without I/O and without a clock.

pub mod jwks;
pub mod jwt;
pub mod oidc;
