//! Browser logins: sessions and the single-use links that open them. Both are stored as hashes.

use crate::Timestamp;

/// A session of a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The SHA-256 of the cookie, in hexadecimal.
    pub hash: String,
    /// The hash of the token that opened it. The session ends with the token, also when the token is rotated.
    pub token_hash: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A link that opens a session, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginLinkRecord {
    /// The SHA-256 of the code in the link, in hexadecimal.
    pub hash: String,
    /// The hash of the token that created it.
    pub token_hash: String,
    /// When it stops working.
    pub expires_at: Timestamp,
}
