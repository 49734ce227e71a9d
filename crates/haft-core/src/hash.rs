//! Content hashes that do not depend on the order of keys.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of bytes, in hexadecimal.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the hash of a value's canonical JSON (keys sorted).
pub fn of_value<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let mut value = serde_json::to_value(value)?;
    value.sort_all_objects();
    Ok(of_bytes(&serde_json::to_vec(&value)?))
}

/// Returns the hash of arguments, for idempotency.
pub fn of_args(args: &Value) -> String {
    // A `Value` always serialises; the fallback keeps the function total.
    of_value(args).unwrap_or_default()
}

/// Encodes bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for half in [byte >> 4, byte & 15] {
            out.push(DIGITS.get(usize::from(half)).copied().unwrap_or(b'0').into());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_does_not_matter() {
        let a: Value = serde_json::from_str(r#"{"a":{"x":1,"y":[1,2]},"b":2}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"b":2,"a":{"y":[1,2],"x":1}}"#).unwrap();
        assert_eq!(of_args(&a), of_args(&b));
        assert_ne!(of_args(&a), of_args(&serde_json::json!({"a": {"x": 1, "y": [2, 1]}, "b": 2})));
        assert_eq!(of_bytes(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
