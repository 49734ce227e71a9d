//! Hostile archives are rejected with a problem that names the file and the fix.

use haft_core::problem::Problem;
use haft_package::files::PackageFiles;
use haft_package::path::PackagePath;
use haft_package::zip;

use crate::raw_zip::{Raw, archive, nested, overlapping, zip64};

fn codes(bytes: &[u8]) -> Vec<String> {
    match zip::read(bytes) {
        Ok(files) => panic!("accepted: {:?}", files.iter().map(|(path, _)| path).collect::<Vec<_>>()),
        Err(problems) => problems.into_iter().map(|problem| problem.code).collect(),
    }
}

fn names(files: &PackageFiles) -> Vec<&str> {
    files.iter().map(|(path, _)| path.as_str()).collect()
}

#[test]
fn ordinary_archives_are_read() {
    let members = [
        Raw::file("toolset.yaml", "id: x"),
        Raw { mode: 0o040_755, ..Raw::file("tools/", "") },
        Raw { mode: 0o100_755, ..Raw::deflated("tools/a.py", b"print(1)\nprint(1)\nprint(1)\n") },
        // Python's `writestr` writes no type of file.
        Raw { mode: 0o600, ..Raw::file("tools/b.py", "x") },
        Raw::file("__MACOSX/tools/._a.py", "junk"),
        Raw::file("tools/__pycache__/a.cpython-313.pyc", "junk"),
        Raw::file(".git/config", "junk"),
        // A nested archive is just a file.
        Raw::file("wheels/x.whl", archive(&[Raw::file("../evil", "x")])),
    ];
    for bytes in [archive(&members), zip64(&members, members.len() as u64)] {
        let files = zip::read(&bytes).unwrap();
        assert_eq!(names(&files), ["tools/a.py", "tools/b.py", "toolset.yaml", "wheels/x.whl"]);
        assert!(files.get("tools/a.py").unwrap().executable);
        assert!(!files.get("tools/b.py").unwrap().executable);
        assert_eq!(files.text("tools/a.py").unwrap().len(), 27);
    }
}

#[test]
fn names_that_leave_the_package_are_rejected() {
    for name in [
        "../evil",
        "a/../../evil",
        "/etc/passwd",
        "\\windows\\x",
        "C:\\x",
        "C:x",
        "a\\..\\b",
        "..\\evil",
        "a\0b",
        "a//b",
        "./a",
        "a/./b",
        "",
        "../folder/",
        "/",
        "\\\\host\\share\\x",
        "a\nb",
    ] {
        assert_eq!(codes(&archive(&[Raw::file(name, "x")])), ["unsafe_path"], "{name:?}");
    }
    assert_eq!(codes(&archive(&[Raw::file([0x61, 0xff], "x")])), ["unsafe_path"]);
}

#[test]
fn links_devices_and_pipes_are_rejected() {
    for (mode, code) in [
        (0o120_777, "symbolic_link"),
        (0o020_600, "special_file"),
        (0o060_600, "special_file"),
        (0o010_600, "special_file"),
        (0o140_600, "special_file"),
        (0o040_755, "special_file"),
    ] {
        assert_eq!(codes(&archive(&[Raw { mode, ..Raw::file("a", "/etc/passwd") }])), [code]);
    }
    let link = Raw { mode: 0o120_777, ..Raw::file("tools", "/etc") };
    assert_eq!(codes(&archive(&[link, Raw::file("tools/a.py", "x")])), ["symbolic_link"]);
}

#[test]
fn names_that_collide_are_rejected() {
    for (one, other, code) in [
        ("a", "a", "duplicate_file"),
        ("a.py", "A.py", "case_collision"),
        ("Tools/a", "tools/b", "case_collision"),
        ("é", "e\u{301}", "case_collision"),
        ("a", "a/b", "file_and_folder"),
        ("a/b", "a", "file_and_folder"),
    ] {
        let found = codes(&archive(&[Raw::file(one, "1"), Raw::file(other, "2")]));
        assert_eq!(found, [code], "{one} {other}");
    }
}

#[test]
fn a_duplicate_is_named() {
    let bytes = archive(&[Raw::file("a", "1"), Raw::file("tools/x.py", "1"), Raw::file("tools/x.py", "2")]);
    assert_eq!(zip::read(&bytes).unwrap_err()[0].field, "tools/x.py");
}

#[test]
fn two_readers_cannot_see_different_archives() {
    let good = Raw::file("toolset.yaml", "id: x");
    let other_name = Raw { local_name: Some(b"tools/evil".to_vec()), ..Raw::file("tools/good", "x") };
    assert_eq!(codes(&archive(&[good.clone(), other_name])), ["damaged_archive"]);
    let mut trailing = archive(std::slice::from_ref(&good));
    trailing.extend(b"more");
    assert_eq!(codes(&trailing), ["extra_data"]);
    let mut leading = b"PK--------".to_vec();
    leading.extend(archive(std::slice::from_ref(&good)));
    assert_eq!(codes(&leading).len(), 1);
    // A member that the directory does not list.
    let hidden = archive(&[Raw::file("hidden", "x")]);
    let mut both = hidden[..hidden.len() - 22 - 46 - 6].to_vec();
    let (start, second) = (both.len(), archive(std::slice::from_ref(&good)));
    both.extend(second);
    assert!(start > 0);
    assert_eq!(codes(&both).len(), 1);
}

#[test]
fn bombs_are_rejected_before_they_are_unpacked() {
    let zeros = vec![0; 60 << 20];
    let bomb = Raw::deflated("a", &zeros);
    assert_eq!(codes(&archive(std::slice::from_ref(&bomb))), ["ratio_exceeded"]);
    let named = |number: usize| Raw { name: format!("{number}").into_bytes(), ..bomb.clone() };
    let many: Vec<Raw> = (0..5).map(named).collect();
    assert_eq!(codes(&archive(&many)), ["package_too_large"]);
    assert_eq!(codes(&archive(&[Raw { size: 65 << 20, ..bomb.clone() }])), ["file_too_large"]);
    // The declared size is a lie.
    let found = codes(&archive(&[Raw { size: 10, ..bomb.clone() }]));
    assert_eq!(found, ["damaged_archive"]);
    assert_eq!(codes(&overlapping(&Raw::deflated("a", &zeros[..1000]), 100)), ["overlapping_entries"]);
    assert_eq!(codes(&nested("a", &Raw::file("b", "y"))), ["overlapping_entries"]);
    let small: Vec<Raw> = (0..10_001).map(|number| Raw::file(format!("{number}"), "")).collect();
    assert_eq!(codes(&archive(&small)), ["too_many_files"]);
    assert_eq!(codes(&zip64(&[Raw::file("a", "x")], u64::MAX)).len(), 1);
    let signatures = b"PK\x01\x02".repeat(200_001);
    assert_eq!(codes(&signatures), ["too_many_files"]);
}

#[test]
fn a_folder_is_no_signature() {
    let manifest = Raw::file("toolset.yaml", "id: x");
    for name in ["toolset.sig/", "x/toolset.sig/"] {
        let folder = Raw { mode: 0o040_755, ..Raw::file(name, "") };
        assert_eq!(codes(&archive(&[manifest.clone(), folder])), ["special_file"], "{name}");
    }
    let inner = Raw::file("toolset.sig/a", "x");
    assert_eq!(codes(&archive(&[manifest.clone(), inner])), ["special_file"]);
}

#[test]
fn archives_that_cannot_be_unpacked_are_rejected() {
    let good = Raw::file("toolset.yaml", "id: x");
    assert_eq!(codes(b""), ["not_a_zip"]);
    assert_eq!(codes(b"<html>"), ["not_a_zip"]);
    assert_eq!(codes(&archive(&[Raw { flags: 1, ..good.clone() }])), ["encrypted"]);
    for method in [1, 9, 12, 14, 93, 99, 77] {
        let found = codes(&archive(&[Raw { method, ..good.clone() }]));
        assert!(
            matches!(found[0].as_str(), "unsupported_compression" | "unsupported_archive"),
            "{method}: {found:?}"
        );
    }
    assert_eq!(codes(&archive(&[Raw { crc: 1, ..good.clone() }])), ["damaged_archive"]);
    assert_eq!(codes(&archive(&[Raw { method: 8, ..good.clone() }])), ["damaged_archive"]);
    let whole = archive(&[Raw::deflated("toolset.yaml", b"id: x"), good]);
    for length in 1..whole.len() {
        assert_eq!(codes(&whole[..length]).len(), 1, "truncated to {length} bytes");
    }
}

#[test]
fn every_problem_is_reported_with_its_fix() {
    let bytes = archive(&[
        Raw::file("../evil", "x"),
        Raw { mode: 0o120_777, ..Raw::file("link", "x") },
        Raw { flags: 1, ..Raw::file("secret", "x") },
        Raw::file("good", "x"),
    ]);
    let problems = zip::read(&bytes).unwrap_err();
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    `../evil`: the path contains `..`, which could leave the package; remove it
    `link`: symbolic links are not allowed in packages; replace it by a copy of the file
    `secret`: the file is encrypted; pack it without a password
    ");
    let many: Vec<Raw> = (0..80).map(|number| Raw::file(format!("../{number}"), "x")).collect();
    let problems = zip::read(&archive(&many)).unwrap_err();
    assert_eq!(problems.len(), 51);
    assert_eq!(problems[50].message, "30 more problems are not listed");
}

#[test]
fn a_folder_around_the_package_is_removed() {
    let bytes = archive(&[
        Raw { mode: 0o040_755, ..Raw::file("repo-main/", "") },
        Raw::file("repo-main/toolset.yaml", "id: x"),
        Raw::file("repo-main/tools/a.py", "x"),
    ]);
    assert_eq!(names(&zip::read(&bytes).unwrap()), ["tools/a.py", "toolset.yaml"]);
    // Archives from GitHub have the commit as their comment.
    let mut commented = bytes;
    let length = commented.len();
    commented[length - 2] = 40;
    commented.extend([b'a'; 40]);
    assert_eq!(names(&zip::read(&commented).unwrap()), ["tools/a.py", "toolset.yaml"]);
}

#[test]
fn written_archives_are_reproducible() {
    let build = |order: &[&str]| {
        let mut files = PackageFiles::new();
        for path in order {
            files.add(PackagePath::new(path).unwrap(), path.repeat(500), path.contains("sh")).unwrap();
        }
        files
    };
    let files = build(&["toolset.yaml", "tools/a.py", "b.sh", "ä/ü.txt"]);
    let bytes = zip::write(&files).unwrap();
    assert_eq!(bytes, zip::write(&build(&["ä/ü.txt", "b.sh", "tools/a.py", "toolset.yaml"])).unwrap());
    assert_eq!(zip::read(&bytes).unwrap(), files);
    // The bytes are a promise: they change only with the format.
    let file = |text: &str| {
        let mut files = PackageFiles::new();
        files.put_text("a", text).unwrap();
        haft_core::hash::of_bytes(&zip::write(&files).unwrap())
    };
    insta::assert_snapshot!(file("hello hello hello"), @"7c2604c66fdd7d04b58cebef88276ff009cd2e37e2045b77d410b8aaaba8e921");
}
