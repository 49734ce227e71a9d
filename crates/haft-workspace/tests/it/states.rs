//! States of a folder are stored, compared and brought back.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft_workspace::{
    ChangeKind, Limits, Listing, LocalPacks, Packs, Workspace, WorkspaceError, diff, gc, list, read_file,
};

struct Rig {
    root: tempfile::TempDir,
    packs: Arc<LocalPacks>,
}

impl Rig {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let packs = Arc::new(LocalPacks::open(root.path().join("packs")).unwrap());
        Self { root, packs }
    }

    fn workspace(&self, name: &str) -> Workspace {
        self.limited(name, Limits::default())
    }

    fn limited(&self, name: &str, limits: Limits) -> Workspace {
        Workspace::open(&self.root.path().join(name), self.packs.clone(), limits).unwrap()
    }

    fn pack_count(&self) -> usize {
        self.packs.list().unwrap().len()
    }
}

fn write(workspace: &Workspace, path: &str, text: impl AsRef<[u8]>) {
    let path = workspace.folder().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(workspace: &Workspace, path: &str) -> String {
    fs::read_to_string(workspace.folder().join(path)).unwrap()
}

/// Stamps are used only for files that are older than a step of the clock.
fn settle() {
    std::thread::sleep(Duration::from_millis(30));
}

#[test]
fn a_folder_returns_to_every_state() {
    let rig = Rig::new();
    let workspace = rig.workspace("a");
    write(&workspace, "src/main.py", "print(1)");
    write(&workspace, ".hidden", "kept");
    fs::create_dir(workspace.folder().join("empty")).unwrap();
    symlink("src/main.py", workspace.folder().join("link")).unwrap();
    let script = workspace.folder().join("run.sh");
    fs::write(&script, "#!/bin/sh").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let first = workspace.snapshot().unwrap().manifest;
    assert_eq!((first.files, first.bytes), (3, 8 + 4 + 9));

    workspace.begin_change().unwrap();
    write(&workspace, "src/main.py", "print(2)");
    fs::remove_dir(workspace.folder().join("empty")).unwrap();
    fs::remove_file(workspace.folder().join("link")).unwrap();
    fs::create_dir(workspace.folder().join("link")).unwrap();
    write(&workspace, "link/file", "x");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    let second = workspace.snapshot().unwrap().manifest;
    assert_ne!(first.root.hash, second.root.hash);

    for _ in 0..2 {
        workspace.checkout(&first).unwrap();
        assert_eq!(read(&workspace, "src/main.py"), "print(1)");
        assert_eq!(read(&workspace, "link"), "print(1)");
        assert_eq!(read(&workspace, ".hidden"), "kept");
        assert!(workspace.folder().join("empty").is_dir());
        assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o755);
        workspace.checkout(&second).unwrap();
        assert_eq!(read(&workspace, "src/main.py"), "print(2)");
        assert_eq!(read(&workspace, "link/file"), "x");
        assert!(!workspace.folder().join("empty").exists());
        assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o644);
    }
    // Another folder, on which nothing is known.
    let other = rig.workspace("b");
    write(&other, "stranger", "removed");
    other.checkout(&first).unwrap();
    assert_eq!(other.snapshot().unwrap().manifest.root.hash, first.root.hash);
    assert!(!other.folder().join("stranger").exists());
}

#[test]
fn an_unchanged_folder_is_stored_once() {
    let rig = Rig::new();
    let workspace = rig.workspace("a");
    let empty = workspace.snapshot().unwrap().manifest;
    assert_eq!((empty.files, rig.pack_count()), (0, 1));
    for number in 0..300 {
        write(&workspace, &format!("{}/{number}", number % 7), number.to_string());
    }
    let first = workspace.snapshot().unwrap().manifest;
    assert_eq!(rig.pack_count(), 2);
    // Touched, copied back and moved: nothing new is stored but folders.
    write(&workspace, "0/0", "0");
    assert_eq!(workspace.snapshot().unwrap().manifest, first);
    assert_eq!(rig.pack_count(), 2);
    fs::rename(workspace.folder().join("0"), workspace.folder().join("moved")).unwrap();
    let moved = workspace.snapshot().unwrap().manifest;
    assert_eq!((moved.files, rig.pack_count()), (300, 3));
    let file = fs::metadata(pack_files(&rig).into_iter().max().unwrap()).unwrap();
    assert!(file.len() < 1000, "{}", file.len());
}

fn pack_files(rig: &Rig) -> Vec<std::path::PathBuf> {
    let folders = fs::read_dir(rig.root.path().join("packs")).unwrap().flatten();
    let mut files: Vec<_> = folders
        .flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten())
        .map(|file| file.path())
        .collect();
    files.sort_by_key(|path| path.file_name().unwrap().to_owned());
    // The order of their creation.
    files.iter().last().cloned().into_iter().collect()
}

#[test]
fn a_change_that_keeps_size_and_modification_time_is_seen() {
    let rig = Rig::new();
    let workspace = rig.workspace("a");
    write(&workspace, "file", "one");
    settle();
    let first = workspace.snapshot().unwrap().manifest;
    let path = workspace.folder().join("file");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "two").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let second = workspace.snapshot().unwrap().manifest;
    assert_ne!(first.root.hash, second.root.hash);
    // And at once, within a step of the clock.
    for text in ["ab", "cd", "ef", "gh"] {
        fs::write(&path, text).unwrap();
        let manifest = workspace.snapshot().unwrap().manifest;
        let mut found = Vec::new();
        let take = |bytes: &[u8]| {
            found.extend_from_slice(bytes);
            Ok(())
        };
        read_file(&*rig.packs, &manifest, b"file", take).unwrap();
        assert_eq!(found, text.as_bytes());
    }
    // A file that was written by `checkout` and changed at once.
    workspace.checkout(&first).unwrap();
    workspace.begin_change().unwrap();
    fs::write(&path, "six").unwrap();
    workspace.checkout(&first).unwrap();
    assert_eq!(read(&workspace, "file"), "one");
}

#[test]
fn odd_names_are_kept() {
    let rig = Rig::new();
    let workspace = rig.workspace("a");
    let long = "n".repeat(255);
    let names: [&[u8]; 8] =
        [b" ", b"a\nb", b"\xff\xfe", "é".as_bytes(), "e\u{301}".as_bytes(), b"-rf", b"*", long.as_bytes()];
    for name in names {
        fs::write(workspace.folder().join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let manifest = workspace.snapshot().unwrap().manifest;
    let other = rig.workspace("b");
    other.checkout(&manifest).unwrap();
    for name in names {
        assert_eq!(fs::read(other.folder().join(std::ffi::OsStr::from_bytes(name))).unwrap(), name);
    }
    assert_eq!(list(&*rig.packs, &manifest).unwrap().len(), names.len());
}

#[test]
fn differences_are_listed() {
    let rig = Rig::new();
    let workspace = rig.workspace("a");
    for path in ["same/a", "same/b", "changed", "removed/deep/file", "kind"] {
        write(&workspace, path, path);
    }
    let first = workspace.snapshot().unwrap().manifest;
    write(&workspace, "changed", "now");
    fs::remove_dir_all(workspace.folder().join("removed")).unwrap();
    fs::remove_file(workspace.folder().join("kind")).unwrap();
    write(&workspace, "kind/of/folder", "x");
    fs::create_dir(workspace.folder().join("void")).unwrap();
    let second = workspace.snapshot().unwrap().manifest;
    let shown = |from, to| {
        let changes = diff(&*rig.packs, from, to).unwrap().into_iter();
        let shown = changes.map(|change| {
            let sign = match change.kind {
                ChangeKind::Added(_) => '+',
                ChangeKind::Changed(..) => '~',
                ChangeKind::Removed(_) => '-',
            };
            format!("{sign}{}", String::from_utf8(change.path).unwrap())
        });
        shown.collect::<Vec<_>>()
    };
    assert_eq!(
        shown(&first, &second),
        ["~changed", "-kind", "+kind/of/folder", "-removed/deep/file", "+void"]
    );
    assert_eq!(
        shown(&second, &first),
        ["~changed", "-kind/of/folder", "+kind", "+removed/deep/file", "-void"]
    );
    assert_eq!(shown(&first, &first), [""; 0]);
}

#[test]
fn a_hostile_folder_is_stored_or_rejected_as_a_whole() {
    let rig = Rig::new();
    let limits = Limits { entries: 20, bytes: 1000, depth: 5 };
    let workspace = rig.limited("a", limits);
    write(&workspace, "fine", "x");
    let first = workspace.snapshot().unwrap().manifest;
    workspace.begin_change().unwrap();
    // Deeper than any path.
    let mut folder = std::fs::File::open(workspace.folder()).unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&folder, "deep", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY;
        folder = rustix::fs::openat(&folder, "deep", flags, rustix::fs::Mode::empty()).unwrap().into();
    }
    let error = workspace.snapshot().unwrap_err();
    assert!(matches!(error, WorkspaceError::TooLarge { limit: 5, .. }), "{error}");
    workspace.checkout(&first).unwrap();
    assert_eq!(fs::read_dir(workspace.folder()).unwrap().count(), 1);

    for (name, make) in [
        ("size", (|path: &Path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap()) as fn(&Path)),
        ("number", |path| {
            fs::create_dir(path).unwrap();
            (0..50).for_each(|number| fs::write(path.join(number.to_string()), "").unwrap());
        }),
    ] {
        workspace.begin_change().unwrap();
        make(&workspace.folder().join(name));
        let error = workspace.snapshot().unwrap_err();
        assert!(matches!(error, WorkspaceError::TooLarge { .. }), "{error}");
        workspace.checkout(&first).unwrap();
        assert_eq!(fs::read_dir(workspace.folder()).unwrap().count(), 1);
    }

    // FIFOs and the like are named, not stored, not waited for; permissions do not matter.
    workspace.begin_change().unwrap();
    let fifo = workspace.folder().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    write(&workspace, "closed/file", "secret");
    fs::set_permissions(workspace.folder().join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let snapshot = workspace.snapshot().unwrap();
    assert_eq!(snapshot.skipped, std::slice::from_ref(&fifo));
    assert_eq!(snapshot.manifest.files, 2);
    workspace.begin_change().unwrap();
    workspace.checkout(&first).unwrap();
    assert!(!fifo.exists() && !workspace.folder().join("closed").exists());

    // The folder itself is replaced by a link.
    workspace.begin_change().unwrap();
    fs::remove_dir_all(workspace.folder()).unwrap();
    symlink("/etc", workspace.folder()).unwrap();
    let error = workspace.snapshot().unwrap_err();
    assert!(matches!(error, WorkspaceError::NotAFolder(_)), "{error}");
    workspace.checkout(&first).unwrap();
    assert_eq!(read(&workspace, "fine"), "x");
    assert!(!fs::symlink_metadata(workspace.folder()).unwrap().is_symlink());
}

#[test]
fn damage_is_noticed() {
    let rig = Rig::new();
    let workspace = rig.workspace("a");
    write(&workspace, "file", "x".repeat(100_000));
    let noise: Vec<u8> =
        (0..200_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    write(&workspace, "noise", noise);
    let manifest = workspace.snapshot().unwrap().manifest;
    let [pack] = pack_files(&rig).try_into().unwrap();
    let good = fs::read(&pack).unwrap();
    for position in (0..good.len()).step_by(good.len() / 50) {
        let mut bad = good.clone();
        bad[position] ^= 1;
        fs::write(&pack, bad).unwrap();
        let other = rig.workspace(&position.to_string());
        let error = other.checkout(&manifest).unwrap_err();
        assert!(matches!(error, WorkspaceError::Damaged { .. }), "{position}: {error}");
    }
    fs::write(&pack, &good[..good.len() - 5]).unwrap();
    let error = list(&*rig.packs, &manifest).unwrap_err();
    assert!(matches!(error, WorkspaceError::Damaged { .. }), "{error}");
    fs::remove_file(&pack).unwrap();
    let error = list(&*rig.packs, &manifest).unwrap_err();
    assert!(matches!(error, WorkspaceError::MissingPack(_)), "{error}");
}

#[test]
fn what_nothing_refers_to_is_collected() {
    let rig = Rig::new();
    let workspace = rig.workspace("a");
    let mut manifests = Vec::new();
    for round in 0..10_u32 {
        // More than a block each, incompressible.
        for file in 0..4_u32 {
            let noise = (0..150_000_u32).map(|number| {
                (number.wrapping_mul(2_654_435_761).wrapping_add(round * 77 + file).wrapping_pow(3) >> 11)
                    as u8
            });
            write(&workspace, &format!("{round}-{file}"), noise.collect::<Vec<u8>>());
        }
        manifests.push(workspace.snapshot().unwrap().manifest);
        for file in 0..3 {
            fs::remove_file(workspace.folder().join(format!("{round}-{file}"))).unwrap();
        }
    }
    let last = workspace.snapshot().unwrap().manifest;
    let size = || -> u64 {
        let folders = fs::read_dir(rig.root.path().join("packs")).unwrap().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten());
        files.map(|file| file.metadata().unwrap().len()).sum()
    };
    let before = size();
    let nothing = gc(&*rig.packs, manifests.iter().copied().chain([last]), Duration::ZERO).unwrap();
    assert_eq!((nothing.packs, nothing.reduced), (0, 0));
    let young = gc(&*rig.packs, [last], Duration::from_hours(1)).unwrap();
    assert_eq!((young.packs, young.reduced), (0, 0));
    let collected = gc(&*rig.packs, [last], Duration::ZERO).unwrap();
    assert!(collected.reduced >= 9, "{collected:?}");
    assert!(size() < before / 2, "{} of {before}", size());
    let other = rig.workspace("b");
    other.checkout(&last).unwrap();
    assert_eq!(other.snapshot().unwrap().manifest.root.hash, last.root.hash);
    let files = list(&*rig.packs, &last).unwrap();
    assert_eq!(files.iter().filter(|file| matches!(file.listing, Listing::File { .. })).count(), 10);
    gc(&*rig.packs, [], Duration::ZERO).unwrap();
    assert_eq!(rig.pack_count(), 0);
}
