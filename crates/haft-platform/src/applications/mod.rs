//! Applications that people connect: haft as authorization server (OAuth 2.1) for hosted clients. What a person allows an
//! application is a grant: a token of the person, whose values are short-lived access tokens.

mod assertion;
mod clients;
mod consent;
mod exchange;
mod grants;
mod manage;
mod refresh;
mod registration;
mod request;

pub use assertion::{AssertionRequest, assertion_audience, exchange_assertion};
pub use clients::{
    Client, ClientCredentials, ClientError, Origin, authenticate, authenticate_confidential, may_exist,
};
pub use consent::{Choice, allow, earlier_choice, form_token, is_form_token};
pub use exchange::{CodeRequest, exchange};
pub use grants::{Introspected, IssuedTokens, TokenError, find_access_token, introspect, revoke};
pub(crate) use manage::reject_application;
pub use manage::{Application, NewClient, create_client, delete, delete_client, find, list, list_clients};
pub use refresh::{RefreshRequest, refresh};
pub use registration::{RegisterError, Registered, register};
pub use request::{AuthorizationRequest, RequestError, check};
