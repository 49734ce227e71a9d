//! The signed, short-lived address of a rendered result. Its page has an origin of its own and sends no credentials, so
//! the address itself shows that its reader may see the call.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::Timestamp;
use haft_core::id::CallId;
use haft_core::name::TenantId;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// How long an address is valid.
const LIFETIME: Duration = Duration::from_mins(10);

/// The key that addresses are signed with.
pub struct RenderKey(Vec<u8>);

/// What an address says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RenderAddress {
    #[serde(rename = "t")]
    pub tenant: TenantId,
    #[serde(rename = "c")]
    pub call: CallId,
    /// Until when it is valid, in seconds.
    #[serde(rename = "e")]
    pub expires: i64,
}

impl RenderKey {
    pub fn new(key: Vec<u8>) -> Self {
        Self(key)
    }

    /// Returns the address of a call's result from now on.
    pub fn sign(&self, tenant: &TenantId, call: CallId, now: Timestamp) -> (String, RenderAddress) {
        let seconds = i64::try_from(LIFETIME.as_secs()).unwrap_or_default();
        let address = RenderAddress { tenant: tenant.clone(), call, expires: now.as_second() + seconds };
        let payload = serde_json::to_vec(&address).unwrap_or_default();
        let mac = self.mac(&payload).map(|mac| mac.finalize().into_bytes());
        let mac = mac.map(|mac| URL_SAFE_NO_PAD.encode(mac)).unwrap_or_default();
        (format!("{}.{mac}", URL_SAFE_NO_PAD.encode(&payload)), address)
    }

    /// Returns what a valid address says.
    pub fn verify(&self, text: &str, now: Timestamp) -> Option<RenderAddress> {
        let (payload, mac) = text.split_once('.')?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        self.mac(&payload)?.verify_slice(&mac).ok()?;
        let address: RenderAddress = serde_json::from_slice(&payload).ok()?;
        (address.expires > now.as_second()).then_some(address)
    }

    fn mac(&self, payload: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(payload);
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_valid_for_a_while_and_cannot_be_changed() {
        let key = RenderKey::new(vec![7; 32]);
        let now = Timestamp::from_second(1_000_000).unwrap();
        let call = CallId("018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap());
        let (text, address) = key.sign(&TenantId::default_tenant(), call, now);
        assert_eq!(key.verify(&text, now), Some(address));
        assert_eq!(key.verify(&text, Timestamp::from_second(1_000_000 + 11 * 60).unwrap()), None);
        assert_eq!(RenderKey::new(vec![8; 32]).verify(&text, now), None);
        let (payload, mac) = text.split_once('.').unwrap();
        assert_eq!(key.verify(&format!("{payload}x.{mac}"), now), None);
        assert_eq!(key.verify(payload, now), None);
        assert_eq!(key.verify("", now), None);
    }
}
