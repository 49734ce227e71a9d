//! Files of the machine, of its user, and of the server itself.

use haft_sandbox::EngineName;

use super::attempt::{Attempt, Script, bash, python};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    bash("read the server's database", r#"grep -q SECRET "$DB""#).also_at_host(),
    bash("list the server's folder", r#"ls "${DB%/*}" | grep -q haft.db"#).also_at_host(),
    bash("read a private key of the user", r#"grep -q SECRET "$KEY""#),
    bash("read the database through a symbolic link", r#"ln -s "$DB" link; grep -q SECRET link"#)
        .also_at_host(),
    bash("read the database through a hard link", r#"ln "$DB" link; grep -q SECRET link"#).also_at_host(),
    bash("read the database through ..", r#"grep -q SECRET "../../../../../../../..$DB""#).also_at_host(),
    bash("read the database through /proc/1/root", r#"grep -q SECRET "/proc/1/root$DB""#)
        .where_there()
        .also_at_host(),
    bash("read the database through /proc/self/root", r#"grep -q SECRET "/proc/self/root$DB""#)
        .also_at_host(),
    bash("read the database through /proc/self/cwd", r#"cd /; grep -q SECRET "/proc/self/cwd$DB""#)
        .also_at_host(),
    bash("read the database through the server's root", r#"grep -q SECRET "/proc/$SERVER/root$DB""#)
        .also_at_host(),
    bash(
        "read the database through any process's root",
        r#"
        for process in /proc/[0-9]*; do grep -q SECRET "$process/root$DB" 2>/dev/null && found=1; done
        [ "${found-}" ]"#,
    )
    .also_at_host(),
    bash(
        "read the database through any process's folder",
        r#"
        for process in /proc/[0-9]*; do grep -qs SECRET "$process/cwd/haft.db" && found=1; done
        [ "${found-}" ]"#,
    )
    .also_at_host(),
    bash("read the database through the server's open files", r#"grep -q SECRET "/proc/$SERVER/fd/$HELD""#)
        .also_at_host(),
    bash(
        "read the database through a task of the server",
        r#"grep -q SECRET "/proc/$SERVER/task/$SERVER/root$DB""#,
    )
    .also_at_host(),
    bash("list the folders of other runs", r#"ls "$SCRATCH" | grep -q other-run"#).also_at_host(),
    bash("read the passwords of the machine", "grep -q root /etc/shadow").bare_as_root(),
    bash("learn the users of the machine", "grep -q '^root:' /etc/passwd"),
    bash("list a folder of the machine", r#"ls "$OUTSIDE" | grep -q append"#),
    bash("append to a file outside", r#"grep -q original "$OUTSIDE/append"; echo more >> "$OUTSIDE/append""#),
    python("truncate a file outside", r"os.truncate(E['OUTSIDE'] + '/truncate', 1)"),
    bash("remove a file outside", r#"rm "$OUTSIDE/remove""#),
    bash("rename a file outside", r#"mv "$OUTSIDE/rename" "$OUTSIDE/renamed""#),
    bash(
        "move a file to the outside",
        r#"grep -q original "$OUTSIDE/append"; echo x > moved; mv moved "$OUTSIDE/moved""#,
    ),
    bash(
        "write outside through a symbolic link",
        r#"ln -s "$OUTSIDE/link" l; grep -q original l; echo x >> l"#,
    ),
    python(
        "change the mode of a file outside",
        r"os.chmod(E['OUTSIDE'] + '/mode', 0o777)
check(os.stat(E['OUTSIDE'] + '/mode').st_mode & 0o777 == 0o777)",
    ),
    python(
        "change the mode of the server's database",
        r"os.chmod(E['DB'], 0o644)
check(os.stat(E['DB']).st_mode & 0o777 == 0o644)",
    )
    .also_at_host(),
    python(
        "change the mode by a descriptor that cannot be read",
        r"
p = E['OUTSIDE'] + '/mode'
fd = os.open(p, os.O_PATH)
call('fchmodat2', fd, b'', 0o751, 0x1000)
check(os.stat(p).st_mode & 0o777 == 0o751)",
    )
    .where_there(),
    python(
        "change the owner of a file outside",
        r"
p = E['OUTSIDE'] + '/owner'
os.chown(p, os.geteuid(), os.getegid())
os.chown(p, 12345, -1)
check(os.stat(p).st_uid == 12345)",
    )
    .bare_as_root(),
    python(
        "change the times of a file outside",
        r"
p = E['OUTSIDE'] + '/times'
os.utime(p, (1, 1))
check(os.stat(p).st_mtime == 1)",
    ),
    python(
        "change the times of the server's database",
        r"
os.utime(E['DB'], (1, 1))
check(os.stat(E['DB']).st_mtime == 1)",
    )
    .also_at_host(),
    python(
        "add an attribute to a file outside",
        r"
p = E['OUTSIDE'] + '/attribute'
os.setxattr(p, 'user.x', b'1')
check(os.getxattr(p, 'user.x') == b'1')",
    )
    .where_there(),
    // The mode is set to what it is.
    python(
        "change the mode of a program of the system",
        r"
p = '/usr/bin/true'
before = os.stat(p)
os.chmod(p, before.st_mode & 0o7777)
check(os.stat(p).st_ctime_ns != before.st_ctime_ns)",
    )
    .bare_as_root(),
    python(
        "change the mode of a program by its descriptor",
        r"
fd = os.open('/usr/bin/true', os.O_RDONLY)
before = os.fstat(fd)
os.fchmod(fd, before.st_mode & 0o7777)
check(os.fstat(fd).st_ctime_ns != before.st_ctime_ns)",
    )
    .bare_as_root(),
    bash("write to the folders of the system", "f=/usr/local/haft-escape-$$; echo x > $f; rm $f")
        .bare_as_root(),
    bash("write to the root folder", "f=/haft-escape-$$; echo x > $f; rm $f").bare_as_root(),
    bash("write to the settings of the system", "f=/etc/haft-escape-$$; echo x > $f; rm $f").bare_as_root(),
    bash("use the machine's temporary folder", r#"grep -q original "$TEMPORARY""#),
    python("mount a file system", r"os.mkdir('m'); call('mount', b'none', b'm', b'tmpfs', 0, None)")
        .bare_as_root()
        .also_at_host(),
    python("bind the root folder", r"os.mkdir('b'); call('mount', b'/', b'b', None, 0x1000, None)")
        .bare_as_root()
        .also_at_host(),
    python("make a read-only mount writable", r"call('mount', None, b'/', None, 0x1000 | 0x20, None)")
        .bare_as_root()
        .also_at_host(),
    python(
        "take a mount away",
        r"call('mount', b'/usr', b'/usr', None, 0x1000, None); call('umount2', b'/usr', 2)",
    )
    .bare_as_root()
    .also_at_host(),
    python(
        "unmount what hides the server's folder",
        r"
call('umount2', os.path.dirname(E['DB']).encode(), 2)",
    )
    .harmless_bare_as_root(Script::Python(
        r"
os.mkdir('m'); call('mount', b'none', b'm', b'tmpfs', 0, None); call('umount2', b'm', 2)",
    ))
    .also_at_host(),
    python("clone a mount", r"call('open_tree', -100, b'/', 1)").bare_as_root().also_at_host(),
    python("open a file system", r"call('fsopen', b'tmpfs', 0)").bare_as_root().also_at_host(),
    python("change the root folder", r"os.chroot('/')").bare_as_root().also_at_host(),
    python(
        "change the root folder twice, the classic way",
        r"
os.mkdir('c'); d = os.open('.', os.O_RDONLY); os.chroot('c'); os.fchdir(d)
for _ in range(64): os.chdir('..')
os.chroot('.')",
    )
    .bare_as_root()
    .also_at_host(),
    python(
        "open a file by its handle",
        r"
class Handle(ctypes.Structure):
    _fields_ = [('size', ctypes.c_uint), ('kind', ctypes.c_int), ('data', ctypes.c_char * 128)]
h, m = Handle(128), ctypes.c_int()
call('name_to_handle_at', -100, b'/usr/bin', ctypes.byref(h), ctypes.byref(m), 0)
call('open_by_handle_at', os.open('/usr', os.O_RDONLY), ctypes.byref(h), 0)",
    )
    .bare_as_root()
    .also_at_host(),
    python(
        "make a device",
        r"
os.mknod('log', 0o20600, os.makedev(1, 11))
os.open('log', os.O_RDONLY | os.O_NONBLOCK)",
    )
    .bare_as_root()
    .also_at_host(),
    python(
        "use a device that lies in a folder",
        r"
os.open(E['OUTSIDE'] + '/device', os.O_RDONLY | os.O_NONBLOCK)",
    )
    .bare_as_root(),
    // Landlock allows a folder with all that is in it.
    python(
        "use a device that lies in a folder of the machine",
        r"
os.open(E['OUTSIDE'] + '/device', os.O_RDONLY | os.O_NONBLOCK)",
    )
    .bare_as_root()
    .also_at_host()
    .only(&[EngineName::Bubblewrap]),
    python(
        "read the disk",
        r"
import glob
disks = [d for p in ('vd', 'sd', 'nvme', 'xvd', 'loop') for d in glob.glob('/dev/' + p + '*')]
check(disks, 'no disk')
os.read(os.open(disks[0], os.O_RDONLY), 512)",
    )
    .where_there()
    .also_at_host(),
    python("open the machine's memory", r"os.open('/dev/mem', os.O_RDONLY)").where_there().also_at_host(),
    python("write to the kernel's log", r"os.open('/dev/kmsg', os.O_WRONLY)").where_there().also_at_host(),
    python("open the fuse device", r"os.open('/dev/fuse', os.O_RDWR)").where_there().also_at_host(),
    python("open the tunnel device", r"os.open('/dev/net/tun', os.O_RDWR)").where_there().also_at_host(),
    python("gain rights by a setuid program", r"check(libc.prctl(39, 0, 0, 0, 0) == 0, 'no new privileges')")
        .also_at_host(),
    python(
        "have capabilities",
        r"
check(any(libc.prctl(23, n, 0, 0, 0) == 1 for n in range(41)), 'the bounding set is empty')
head = (ctypes.c_uint * 2)(0x20080522, 0)
sets = (ctypes.c_uint * 6)()
check(libc.capget(ctypes.byref(head), ctypes.byref(sets)) == 0)
check(any(sets), 'no capability')",
    )
    .bare_as_root()
    .also_at_host(),
];
