//! Keys by which the nodes of an installation recognise what they signed themselves.

use haft_core::catalog::StoreError;

use crate::store::Store;
use crate::vault::NewKey;

impl Store {
    /// Returns the key for a purpose, the same on all nodes; it is created when it is first needed.
    pub async fn signing_key(&self, purpose: &str) -> Result<Vec<u8>, StoreError> {
        self.vault().signing_key(purpose).await
    }

    /// Encrypts the signing keys that are still in clear. Called before something is issued that only they protect: a home
    /// without stored credentials gets its key file then.
    pub async fn protect_signing_keys(&self) -> Result<(), StoreError> {
        self.vault().seal_signing_keys(NewKey::OfOwnHome).await
    }
}
