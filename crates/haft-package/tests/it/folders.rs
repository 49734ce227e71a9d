//! Packages as folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use haft_package::files::PackageFiles;
use haft_package::folder::{self, UnpackError};
use haft_package::path::PackagePath;

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn codes(root: &Path) -> Vec<(String, String)> {
    let problems = folder::read(root).unwrap_err();
    problems.into_iter().map(|problem| (problem.field, problem.code)).collect()
}

#[test]
fn a_folder_is_read_without_what_is_left_behind() {
    let home = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("toolset.yaml", "id: x"),
        ("tools/a.py", "x"),
        ("tools/__pycache__/a.pyc", "junk"),
        (".git/HEAD", "junk"),
        (".venv/bin/python", "junk"),
        (".env", "SECRET=1"),
    ] {
        put(home.path(), path, text);
    }
    fs::create_dir(home.path().join("empty")).unwrap();
    fs::set_permissions(home.path().join("tools/a.py"), fs::Permissions::from_mode(0o755)).unwrap();
    let files = folder::read(home.path()).unwrap();
    let found: Vec<_> = files.iter().map(|(path, file)| (path.as_str(), file.executable)).collect();
    assert_eq!(found, [("tools/a.py", true), ("toolset.yaml", false)]);
}

#[test]
fn links_and_special_files_are_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("package");
    put(&root, "toolset.yaml", "id: x");
    put(home.path(), "outside/secret", "x");
    symlink(home.path().join("outside"), root.join("folder")).unwrap();
    symlink(home.path().join("outside/secret"), root.join("file")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let expected = [("file", "symbolic_link"), ("folder", "symbolic_link"), ("socket", "special_file")];
    assert_eq!(codes(&root), expected.map(|(field, code)| (field.to_owned(), code.to_owned())));
}

#[test]
fn a_missing_folder_is_a_problem() {
    assert_eq!(codes(Path::new("/nonexistent/folder"))[0].1, "unreadable");
    let file = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(codes(file.path())[0].1, "unreadable");
}

#[test]
fn names_that_are_unsafe_elsewhere_are_problems() {
    let home = tempfile::tempdir().unwrap();
    for name in ["a:b", "c\\d", "line\nbreak"] {
        put(home.path(), name, "x");
    }
    assert_eq!(codes(home.path()).len(), 3);
}

fn package(count: usize) -> PackageFiles {
    let mut files = PackageFiles::new();
    for number in 0..count {
        let path = PackagePath::new(&format!("folder-{}/file-{number}", number % 7)).unwrap();
        files.add(path, format!("{number}"), number % 2 == 0).unwrap();
    }
    files
}

#[test]
fn unpacking_and_reading_gives_the_same_files() {
    let home = tempfile::tempdir().unwrap();
    // One that is synchronised file by file, and one that is not.
    for count in [0, 10, 200] {
        let target = home.path().join(format!("deep/er/{count}"));
        folder::unpack(&package(count), &target).unwrap();
        assert_eq!(folder::read(&target).unwrap(), package(count));
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o755);
    }
    let left: Vec<_> =
        fs::read_dir(home.path().join("deep/er")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn nothing_is_replaced_and_nothing_is_left_behind() {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("x");
    folder::unpack(&package(1), &target).unwrap();
    assert!(matches!(folder::unpack(&package(2), &target), Err(UnpackError::Exists(_))));
    assert_eq!(folder::read(&target).unwrap(), package(1));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    // A crash leaves a temporary folder, which the next start removes.
    put(home.path(), ".unpacking-abc/file", "x");
    assert_eq!(folder::remove_leftovers(home.path()).unwrap(), 1);
    assert_eq!(folder::remove_leftovers(&home.path().join("missing")).unwrap(), 0);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn of_two_that_unpack_at_once_one_wins() {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("x");
    let results: Vec<bool> = std::thread::scope(|scope| {
        let run = |_| scope.spawn(|| folder::unpack(&package(50), &target).is_ok());
        let threads: Vec<_> = (0..4).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|won| **won).count(), 1);
    assert_eq!(folder::read(&target).unwrap(), package(50));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}
