//! Other processes of the machine, and what a process may be.

use haft_sandbox::EngineName;

use super::attempt::{Attempt, bash, python};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    python("kill a process", "os.kill(int(E['KILLED']), 9)").also_at_host(),
    python("signal a process", "os.kill(int(E['VICTIM']), 18)").also_at_host(),
    python("signal the server", "os.kill(int(E['SERVER']), 18)").also_at_host(),
    python("signal the group of a process", "os.kill(-int(E['VICTIM']), 18)").also_at_host(),
    // In the engine `bubblewrap` the parent is the first process of the sandbox itself, and cannot be killed.
    python("signal the parent", "os.kill(os.getppid(), 18)").also_at_host().only(&[EngineName::Landlock]),
    python("signal a thread", "v = int(E['VICTIM']); call('tgkill', v, v, 18)").also_at_host(),
    python("signal by a handle", r"
fd = call('pidfd_open', int(E['VICTIM']), 0)
call('pidfd_send_signal', fd, 18, None, 0)").also_at_host(),
    python("have the kernel signal a process", r"
import fcntl, time
victim = int(E['OWNED'])
os.kill(victim, 0)
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETSIG if hasattr(fcntl, 'F_SETSIG') else 10, 9)
fcntl.fcntl(r, fcntl.F_SETOWN, victim)
fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC)
os.write(w, b'x')
time.sleep(0.2)
check(open(f'/proc/{victim}/stat').read().split()[2] == 'Z')").also_at_host(),
    python("trace a process", "call('ptrace', 0x4206, int(E['VICTIM']), 0, 0)").also_at_host(),
    python("read a process's memory", r"
class V(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
page = int(open('/proc/' + E['VICTIM'] + '/maps').readline().split('-')[0], 16)
b = ctypes.create_string_buffer(64)
call('process_vm_readv', int(E['VICTIM']), ctypes.byref(V(ctypes.addressof(b), 64)), 1, ctypes.byref(V(page, 64)), 1, 0)
").also_at_host(),
    python("open a process's memory", "open(f'/proc/{E[\"VICTIM\"]}/mem', 'rb')").also_at_host(),
    python("read a process's variables", r"
check(b'SECRET' in open('/proc/' + E['VICTIM'] + '/environ', 'rb').read())").also_at_host(),
    python("read the server's variables", r"
check(b'CARGO_PKG_NAME' in open('/proc/' + E['SERVER'] + '/environ', 'rb').read())").also_at_host(),
    python("read the variables of any process", r"
import glob
def read(p):
    try: return open(p, 'rb').read()
    except OSError: return b''
check(any(b'HAFT_ESCAPE_SECRET=' in read(p) for p in glob.glob('/proc/[0-9]*/environ')))").also_at_host(),
    python("take a descriptor of the server", r"
fd = call('pidfd_open', int(E['SERVER']), 0)
got = call('pidfd_getfd', fd, int(E['HELD']), 0)
check(b'SECRET' in os.pread(got, 100, 0))").bare_as_root().also_at_host(),
    python("read the command of a process", "open('/proc/' + E['VICTIM'] + '/cmdline').read()"),
    python("list the machine's processes", "check(E['VICTIM'] in os.listdir('/proc'))"),
    // Landlock has no process namespace: whether there is a file can be learned, and `Host` shows the list.
    python("learn whether there is a process", "os.stat('/proc/' + E['VICTIM'])")
        .also_at_host().only(&[EngineName::Bubblewrap]),
    python("slow a process down", "os.setpriority(os.PRIO_PROCESS, int(E['VICTIM']), 5)").also_at_host(),
    python("slow a group of processes down", "os.setpriority(os.PRIO_PGRP, int(E['VICTIM']), 5)").also_at_host(),
    python("go before others", "os.setpriority(os.PRIO_PROCESS, 0, -5)").bare_as_root().also_at_host(),
    python("slow a process's disk down", "call('ioprio_set', 1, int(E['VICTIM']), 3 << 13)").also_at_host(),
    python("have the disk before others", "call('ioprio_set', 1, 0, 1 << 13)").bare_as_root().also_at_host(),
    python("change a process's scheduling", r"
os.sched_setscheduler(int(E['VICTIM']), os.SCHED_BATCH, os.sched_param(0))").also_at_host(),
    python("be scheduled in real time", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))").bare_as_root().also_at_host(),
    python("bind a process to a processor", "os.sched_setaffinity(int(E['VICTIM']), {0})").also_at_host(),
    python("change a process's limits", r"
import resource
resource.prlimit(int(E['VICTIM']), resource.RLIMIT_NOFILE, (50, 60))").also_at_host(),
    python("change the server's limits", r"
import resource
resource.prlimit(int(E['SERVER']), resource.RLIMIT_NOFILE, resource.prlimit(int(E['SERVER']), resource.RLIMIT_NOFILE))
").also_at_host(),
    python("raise its own limits", r"
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))").where_there().also_at_host(),
    python("make a user namespace", "call('unshare', 0x10000000)").where_there().also_at_host(),
    python("make a mount namespace", "call('unshare', 0x00020000)").bare_as_root().also_at_host(),
    python("make a network namespace", "call('unshare', 0x40000000)").bare_as_root().also_at_host(),
    python("make a process namespace", "call('unshare', 0x20000000)").bare_as_root().also_at_host(),
    bash("make namespaces by the program for it", "unshare --user --map-root-user --mount true").where_there().also_at_host(),
    python("make a user namespace by clone", r"
pid = call('clone', 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)
os.waitpid(pid, 0)").where_there().also_at_host(),
    python("make a user namespace by clone3", r"
a = (ctypes.c_ulong * 11)()
a[0], a[4] = 0x10000000, 17
pid = call('clone3', ctypes.byref(a), 88)
if pid == 0: os._exit(0)
os.waitpid(pid, 0)").where_there().also_at_host(),
    python("join a namespace", "call('setns', os.open('/proc/self/ns/uts', os.O_RDONLY), 0)").bare_as_root().also_at_host(),
    python("join a namespace of the first process", r"
call('setns', os.open('/proc/1/ns/net', os.O_RDONLY), 0)").where_there().also_at_host(),
    python("join a namespace by a handle of a process", r"
call('setns', call('pidfd_open', int(E['VICTIM']), 0), 0x40000000)").bare_as_root().also_at_host(),
    python("leave a key behind", "call('add_key', b'user', b'haft-escape', b'x', 1, -1)").where_there().also_at_host(),
    python("find the user's keys", "call('keyctl', 0, -4, 0)").where_there().also_at_host(),
    python("leave shared memory behind", r"
n = call('shmget', 0, 4096, 0o1600)
libc.shmctl(n, 0, None)").where_there().also_at_host(),
    python("leave a message queue behind", r"
n = call('msgget', 0, 0o1600)
libc.msgctl(n, 0, None)").where_there().also_at_host(),
    python("compare processes", "call('kcmp', os.getpid(), os.getpid(), 1, 0, 0)").where_there().also_at_host(),
    // A terminal of its own: the call is what must not work.
    python("type into a terminal", r"
import fcntl, termios
master, slave = os.openpty()
os.setsid()
fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
fcntl.ioctl(slave, termios.TIOCSTI, b'x')").where_there().also_at_host(),
    python("have a terminal", r"
import fcntl
check(any(os.isatty(n) for n in range(3)) or os.open('/dev/tty', os.O_RDWR))")
        .harmless_bare(super::attempt::Script::Python(r"
master, slave = os.openpty()
check(os.isatty(slave))")).also_at_host(),
    python("change the name of the machine", r"
import socket
name = socket.gethostname().encode()
check(libc.sethostname(name, len(name)) == 0)").bare_as_root().also_at_host(),
    python("learn the name of the machine", r"
check(os.uname().nodename == E['MACHINE'])").only(&[EngineName::Bubblewrap]),
];
