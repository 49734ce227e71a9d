//! What a process inherits.

use super::attempt::{Attempt, bash, python};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    bash("find the server's variables", "env | grep -q CARGO_PKG_NAME=").also_at_host(),
    python(
        "use a descriptor of the server",
        r"
def read(n):
    try: return os.pread(n, 100, 0)
    except OSError: return b''
check(any(b'SECRET' in read(n) for n in range(3, 1024)))",
    )
    .also_at_host(),
    python(
        "have any descriptor but the standard ones",
        r"
import stat
def there(n):
    try: os.fstat(n); return True
    except OSError: return False
check(any(there(n) for n in range(3, 1024)))",
    )
    .also_at_host(),
    python(
        "reach the server's folder by a descriptor",
        r"
for n in range(3, 1024):
    try: fd = os.open('haft.db', os.O_RDONLY, dir_fd=n)
    except OSError: continue
    check(b'SECRET' in os.read(fd, 100)); break
else: check(False)",
    )
    .also_at_host(),
    python("start in the server's folder", "open('haft.db').read()")
        .harmless_bare(super::attempt::Script::Bash(r#"cd "${DB%/*}"; grep -q SECRET haft.db"#))
        .also_at_host(),
];
