//! Identifiers: one newtype per kind of object, all `UUIDv7`.
//!
//! Creating an id needs a clock and randomness, so it happens outside of this crate.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The error of parsing an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is not a UUID.
    #[error("`{0}` is not a UUID")]
    NotUuid(String),
    /// The text is a UUID of another version.
    #[error("`{0}` is not a version 7 UUID")]
    NotVersion7(String),
}

const LENGTH: usize = uuid::fmt::Hyphenated::LENGTH;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
/// The length of an id as text, in characters.
            pub const LENGTH: usize = LENGTH;
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let uuid = parse_hyphenated(text)?;
                if uuid.get_version_num() == 7 {
                    Ok(Self(uuid))
                } else {
                    Err(IdError::NotVersion7(shorten(text)))
                }
            }
        }
    };
}

id!(
    /// Identifies a person or a service account.
    ActorId
);
id!(
    /// Identifies a group of people and service accounts.
    GroupId
);
id!(
    /// Identifies an agent through all its revisions.
    AgentId
);
id!(
    /// Identifies one run of an agent.
    RunId
);
id!(
    /// Identifies a retrieval pipeline.
    PipelineId
);
id!(
    /// Identifies a document of a retrieval pipeline.
    DocumentId
);
id!(
    /// Identifies a code artifact through all its versions.
    ArtifactId
);
id!(
    /// Identifies an approval.
    ApprovalId
);
id!(
    /// Identifies a tool through all its revisions and version labels.
    ToolId
);
id!(
    /// Identifies a bundle.
    BundleId
);
id!(
    /// Identifies one recorded call.
    CallId
);
id!(
    /// Identifies a chat.
    ChatId
);
id!(
    /// Identifies a message of a chat.
    MessageId
);
id!(
    /// Identifies one state of a workspace.
    ManifestId
);
id!(
    /// Identifies an access token (never the token itself).
    TokenId
);
id!(
    /// Identifies a webhook.
    WebhookId
);
id!(
    /// Identifies the delivery of one event to one webhook.
    DeliveryId
);

/// Parses the hyphenated form only; the other forms of a UUID are ambiguous with names.
fn parse_hyphenated(text: &str) -> Result<Uuid, IdError> {
    if text.len() != LENGTH {
        return Err(IdError::NotUuid(shorten(text)));
    }
    Uuid::try_parse(text).map_err(|_| IdError::NotUuid(shorten(text)))
}

fn shorten(text: &str) -> String {
    crate::problem::excerpt(text, 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hyphenated_version_7_is_an_id() {
        assert!("018faf50-b7b6-7a01-9a05-a22a6e0af101".parse::<BundleId>().is_ok());
        assert_eq!(
            "550e8400-e29b-41d4-a716-446655440000".parse::<BundleId>(),
            Err(IdError::NotVersion7("550e8400-e29b-41d4-a716-446655440000".into()))
        );
        for bad in
            ["", "weather", "018faf50b7b67a019a05a22a6e0af101", "{018faf50-b7b6-7a01-9a05-a22a6e0af101}"]
        {
            assert!(matches!(bad.parse::<BundleId>(), Err(IdError::NotUuid(_))), "{bad}");
        }
    }
}
