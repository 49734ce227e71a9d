//! Address ranges that are not on the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the special range of an address, or `None` for a public one.
pub(super) fn special_range(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => "unspecified",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "private",
        (100, 64..=127, _) => "shared (CGNAT)",
        (127, ..) => "loopback",
        (169, 254, _) => "link-local",
        (192, 0, 0) | (240..=255, ..) => "reserved",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "documentation",
        (192, 88, 99) => "6to4 relay",
        (198, 18..=19, _) => "benchmarking",
        (224..=239, ..) => "multicast",
        _ => return None,
    })
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let parts = address.segments();
    Some(match parts {
        [0, 0, 0, 0, 0, 0, 0, 0] => "unspecified",
        [0, 0, 0, 0, 0, 0, 0, 1] => "loopback",
        [0, 0, 0, 0, 0, 0xffff, ..] => "IPv4-mapped",
        [0, 0, 0, 0, 0, 0, ..] => "IPv4-compatible",
        [0x64, 0xff9b, ..] => "NAT64",
        [0xfc00..=0xfdff, ..] => "private (unique local)",
        [0xfe80..=0xfebf, ..] => "link-local",
        [0xfec0..=0xfeff, ..] => "site-local",
        [0xff00..=0xffff, ..] => "multicast",
        [0x2001, 0, ..] => "Teredo",
        [0x2001, 0x2, 0, ..] => "benchmarking",
        [0x2001, 0..=0x1ff, ..] => "reserved",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => "documentation",
        [0x2002, ..] => "6to4",
        // Only 2000::/3 is allocated for public use.
        [0x2000..=0x3fff, ..] => return None,
        _ => "reserved",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (address, range) in [
            ("0.0.0.0", Some("unspecified")),
            ("0.1.2.3", Some("unspecified")),
            ("10.0.0.1", Some("private")),
            ("100.64.0.1", Some("shared (CGNAT)")),
            ("100.127.255.255", Some("shared (CGNAT)")),
            ("100.128.0.1", None),
            ("127.0.0.1", Some("loopback")),
            ("127.255.255.254", Some("loopback")),
            ("169.254.169.254", Some("link-local")),
            ("172.15.0.1", None),
            ("172.16.0.1", Some("private")),
            ("172.31.255.255", Some("private")),
            ("172.32.0.1", None),
            ("192.0.0.8", Some("reserved")),
            ("192.0.2.1", Some("documentation")),
            ("192.88.99.1", Some("6to4 relay")),
            ("192.168.1.1", Some("private")),
            ("198.17.0.1", None),
            ("198.19.0.1", Some("benchmarking")),
            ("198.51.100.7", Some("documentation")),
            ("203.0.113.7", Some("documentation")),
            ("224.0.0.1", Some("multicast")),
            ("255.255.255.255", Some("reserved")),
            ("8.8.8.8", None),
            ("::", Some("unspecified")),
            ("::1", Some("loopback")),
            ("::ffff:8.8.8.8", Some("IPv4-mapped")),
            ("::8.8.8.8", Some("IPv4-compatible")),
            ("64:ff9b::808:808", Some("NAT64")),
            ("64:ff9b:1::1", Some("NAT64")),
            ("100::1", Some("reserved")),
            ("2001::1", Some("Teredo")),
            ("2001:2::1", Some("benchmarking")),
            ("2001:10::1", Some("reserved")),
            ("2001:db8::1", Some("documentation")),
            ("2002:7f00:1::", Some("6to4")),
            ("3fff::1", Some("documentation")),
            ("fc00::1", Some("private (unique local)")),
            ("fd12::1", Some("private (unique local)")),
            ("fe80::1", Some("link-local")),
            ("fec0::1", Some("site-local")),
            ("ff02::1", Some("multicast")),
            ("2606:4700::1111", None),
            ("2a00:1450:4001::8a", None),
            ("4000::1", Some("reserved")),
        ] {
            assert_eq!(special_range(address.parse().unwrap()), range, "{address}");
        }
    }
}
