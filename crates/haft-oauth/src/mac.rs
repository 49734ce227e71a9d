//! The key by which the nodes of an installation recognise the values that they issued themselves.

use ring::hmac;

/// The length of a MAC in bytes.
pub const MAC_BYTES: usize = 32;

/// A key for message authentication codes. Values of different kinds have different labels, so that none is mistaken for
/// another.
#[derive(Clone)]
pub struct MacKey(hmac::Key);

impl MacKey {
    /// Creates the key from its stored bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Returns the MAC of a value.
    pub fn sign(&self, label: &str, parts: &[&[u8]]) -> [u8; MAC_BYTES] {
        let mut mac = [0; MAC_BYTES];
        let tag = hmac::sign(&self.0, &message(label, parts));
        for (to, from) in mac.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        mac
    }

    /// Returns whether a MAC is that of a value, in constant time.
    pub fn verify(&self, label: &str, parts: &[&[u8]], mac: &[u8]) -> bool {
        hmac::verify(&self.0, &message(label, parts), mac).is_ok()
    }
}

/// Joins the parts with their lengths, so that no two lists of parts give the same text.
fn message(label: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut message = Vec::new();
    for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
        message.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        message.extend_from_slice(part);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_is_of_one_label_and_one_list_of_parts() {
        let key = MacKey::new(&[7; 32]);
        let mac = key.sign("a", &[b"bc", b"d"]);
        assert!(key.verify("a", &[b"bc", b"d"], &mac));
        let others: [(&str, &[&[u8]]); 4] =
            [("b", &[b"bc", b"d"]), ("a", &[b"b", b"cd"]), ("a", &[b"bcd"]), ("ab", &[b"c", b"d"])];
        for (label, parts) in others {
            assert!(!key.verify(label, parts, &mac), "{label} {parts:?}");
        }
        assert!(!MacKey::new(&[8; 32]).verify("a", &[b"bc", b"d"], &mac));
        assert!(!key.verify("a", &[b"bc", b"d"], &mac[..31]));
    }
}
