//! OAuth 2.1 and OpenID Connect, in both roles: what arrives is parsed and checked here, without I/O and without a clock.
