//! More than was given. Without the sandbox, each takes little more than its limit.

use haft_sandbox::EngineName;

use super::attempt::{Attempt, python};

const BUBBLEWRAP: &[EngineName] = &[EngineName::Bubblewrap];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    python(
        "start more processes",
        r"
import signal
children = []
try:
    for _ in range(400):
        pid = os.fork()
        if pid == 0:
            import time
            time.sleep(20); os._exit(0)
        children.append(pid)
finally:
    for pid in children: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)",
    )
    .also_at_host(),
    python(
        "start more processes, each by the last",
        r"
r, w = os.pipe()
def go(n):
    if n == 300: os.write(w, b'x'); os._exit(0)
    try: pid = os.fork()
    except OSError: os.write(w, b'-'); os._exit(0)
    if pid == 0: go(n + 1)
    os.waitpid(pid, 0); os._exit(0)
pid = os.fork()
if pid == 0: go(0)
os.waitpid(pid, 0)
check(os.read(r, 1) == b'x')",
    )
    .also_at_host(),
    python(
        "start more threads",
        r"
import threading
tree = threading.Event()
try:
    for _ in range(400): threading.Thread(target=tree.wait, daemon=True).start()
except RuntimeError as e: raise OSError(0, str(e))",
    )
    .also_at_host(),
    python("take more memory", "x = b'x' * (256 << 20)").also_at_host(),
    python(
        "take more shared memory",
        r"
import mmap
m = mmap.mmap(-1, 256 << 20)
for at in range(0, 256 << 20, 4096): m[at] = 1",
    )
    .also_at_host(),
    python(
        "write a larger file",
        r"
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open('big', 'wb') as f:
    for _ in range(4): f.write(bytes(1 << 20)); f.flush()",
    )
    .also_at_host(),
    python(
        "write a file with a hole",
        r"
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
fd = os.open('sparse', os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 1 << 40)",
    )
    .also_at_host(),
    // Landlock's folders lie on disk, where no one counts.
    python("fill the working folder", FILL).also_at_host().only(BUBBLEWRAP),
    python(
        "fill the temporary folder",
        r"
import tempfile
os.chdir(tempfile.mkdtemp(dir='/tmp'))
for n in range(16):
    with open(f'fill-{n}', 'wb') as f: f.write(bytes(1 << 20))
    if n == 15: [os.unlink(f'fill-{m}') for m in range(16)]",
    )
    .only(BUBBLEWRAP),
    python(
        "fill the folder of shared memory",
        r"
names = []
try:
    for n in range(16):
        names.append(f'/dev/shm/haft-escape-{os.getpid()}-{n}')
        with open(names[-1], 'wb') as f: f.write(bytes(1 << 20))
finally:
    for name in names:
        if os.path.exists(name): os.unlink(name)",
    )
    .also_at_host()
    .only(BUBBLEWRAP),
    python(
        "open more files",
        r"
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
files = [open('/dev/null') for _ in range(200)]",
    )
    .also_at_host(),
    python(
        "leave a dump of memory",
        r"
import resource
check(resource.getrlimit(resource.RLIMIT_CORE)[1] > 1)",
    )
    .where_there()
    .also_at_host(),
];

const FILL: &str = r"
for n in range(16):
    with open(f'fill-{n}', 'wb') as f: f.write(bytes(1 << 20))";
