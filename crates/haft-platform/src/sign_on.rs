//! Sign-on: logins at issuers of OpenID Connect, bearer tokens of theirs, and what a login would get.

mod bearer;
mod claims;
mod error;
mod kept_login;
mod login;
mod logout;
mod person;
mod trial;

pub(crate) use bearer::TENANT_CLAIM;
pub use bearer::{find_token, person_of_token};
pub use claims::LoginClaims;
pub use error::SignOnError;
pub use login::{Answer, BeginLogin, BegunLogin, FinishedLogin, LIFETIME, begin, finish};
pub use logout::{end_sessions, logout_url};
pub(crate) use person::choose_tenant;
pub use person::{AssignedGroups, person_of_claims};
pub use trial::{IssuerReport, Trial, TrialPerson, TrialRule, TrialTenant, issuers, trial};
