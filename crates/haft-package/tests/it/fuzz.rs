//! Random and mutated input never panics, and what is accepted stays within the limits.

use haft_package::files::{MAX_FILES, MAX_TOTAL, PackageFiles};
use haft_package::package::Package;
use haft_package::path::PackagePath;
use haft_package::{manifest, requirements, zip};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::raw_zip::{Raw, archive};

fn valid() -> Vec<u8> {
    archive(&[
        Raw::file("toolset.yaml", "manifest_version: '1'\nid: x\nversion: 1.0.0\ntools: []\n"),
        Raw::deflated("tools/a.py", &b"def run(workspace): pass\n".repeat(20)),
        Raw { mode: 0o040_755, ..Raw::file("assets/", "") },
    ])
}

fn check(bytes: &[u8]) {
    match zip::read(bytes) {
        Ok(files) => {
            assert!(files.len() <= MAX_FILES && files.total() <= MAX_TOTAL);
            for (path, _) in files.iter() {
                assert_eq!(PackagePath::new(path.as_str()).as_ref(), Ok(path));
            }
            let _ = Package::open(files);
        }
        Err(problems) => assert!(!problems.is_empty() && problems.len() <= 51),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..300)) {
        check(&bytes);
        check(&[b"PK\x03\x04".as_slice(), &bytes].concat());
        check(&[b"PK\x05\x06".as_slice(), &bytes].concat());
    }

    #[test]
    fn mutated_archives(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in any::<prop::sample::Index>()) {
        let mut bytes = valid();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        check(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        check(&bytes);
    }

    #[test]
    fn texts(text in ".{0,200}") {
        let _ = manifest::parse(&text);
        let _ = requirements::read(&text);
        let mut files = PackageFiles::new();
        files.put_text("SKILL.md", format!("---\n{text}\n---\n{text}")).unwrap();
        files.put_text("scripts/a.py", text.as_str()).unwrap();
        let _ = Package::open(files);
    }

    #[test]
    fn mutated_manifests(at in any::<prop::sample::Index>(), junk in "[-:{}\\[\\]\"'#&*!|>%@` \n\ta-z0-9]{1,6}") {
        let text = include_str!("../../../../examples/toolsets/my-toolset/toolset.yaml");
        let mut at = at.index(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        if let Err(problems) = manifest::parse(&format!("{}{junk}{}", &text[..at], &text[at..])) {
            prop_assert!(!problems.is_empty());
        }
    }
}
