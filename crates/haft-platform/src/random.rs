//! Random values of the operating system.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::catalog::StoreError;
use haft_core::secret::Secret;

/// Returns 256 random bits as text.
pub(crate) fn secret() -> Result<Secret, StoreError> {
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes::<32>()?)))
}

/// Returns random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::unavailable("get random bytes", error))?;
    Ok(bytes)
}
