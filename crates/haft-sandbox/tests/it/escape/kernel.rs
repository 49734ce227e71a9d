//! The kernel: its settings, its log, its programs. Settings are opened for writing, never written.

use super::attempt::{Attempt, python};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    python("set what runs when a process crashes", "os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)").bare_as_root().also_at_host(),
    python("set what loads modules", "os.open('/proc/sys/kernel/modprobe', os.O_WRONLY)").where_there().also_at_host(),
    python("set the machine's memory", "os.open('/proc/sys/vm/overcommit_memory', os.O_WRONLY)").bare_as_root().also_at_host(),
    python("set the machine's network", "os.open('/proc/sys/net/ipv4/ip_forward', os.O_WRONLY)").bare_as_root().also_at_host(),
    python("restart the machine by a key", "os.open('/proc/sysrq-trigger', os.O_WRONLY)").where_there().also_at_host(),
    python("read the kernel's memory", "os.read(os.open('/proc/kcore', os.O_RDONLY), 1)").where_there().also_at_host(),
    python("learn addresses of the kernel", r"
check(any(int(l.split()[0], 16) for l in open('/proc/kallsyms').readlines()[:100]))").where_there().also_at_host(),
    python("read the kernel's log", "b = ctypes.create_string_buffer(4096); call('syslog', 3, b, 4096)").bare_as_root().also_at_host(),
    python("be the last to be killed for memory", "open('/proc/self/oom_score_adj', 'w').write('-500')").bare_as_root().also_at_host(),
    python("have another killed for memory", "open('/proc/' + E['VICTIM'] + '/oom_score_adj', 'w').write('500')").also_at_host(),
    python("set the machine's devices", r"
os.open('/sys/kernel/mm/transparent_hugepage/enabled', os.O_WRONLY)").where_there().also_at_host(),
    python("leave the control group", "os.open(E['CGROUP'] + '/cgroup.procs', os.O_WRONLY)").where_there().also_at_host(),
    python("set what runs when a control group ends", r"
import glob
os.open(sorted(glob.glob('/sys/fs/cgroup/*/release_agent'))[0] if glob.glob('/sys/fs/cgroup/*/release_agent') else '/none', os.O_WRONLY)
").where_there().also_at_host(),
    // Nothing is loaded: an empty module is none.
    python("load a module", r"
import errno
try: call('init_module', b'', 0, b'')
except OSError as e: check(e.errno != errno.EPERM, 'not permitted')").bare_as_root().also_at_host(),
    // The magic number is wrong, so the machine stays up.
    python("restart the machine", r"
import errno
try: call('reboot', 1, 2, 3, None)
except OSError as e: check(e.errno != errno.EPERM, 'not permitted')").bare_as_root().also_at_host(),
    python("add swap space", r"
import errno
try: call('swapon', b'/none', 0)
except OSError as e: check(e.errno not in (errno.EPERM, errno.ENOSYS), 'not permitted')").where_there().also_at_host(),
    python("switch accounting on", r"
import errno
try: call('acct', b'/none')
except OSError as e: check(e.errno not in (errno.EPERM, errno.ENOSYS), 'not permitted')").where_there().also_at_host(),
    python("load a program into the kernel", r"
a = (ctypes.c_uint * 32)()
a[0], a[1], a[2], a[3] = 2, 4, 4, 1
call('bpf', 0, ctypes.byref(a), 128)").where_there().also_at_host(),
    python("measure the machine", r"
a = (ctypes.c_uint * 32)()
a[0], a[1] = 1, 128
call('perf_event_open', ctypes.byref(a), 0, -1, -1, 0)").where_there().also_at_host(),
    python("handle page faults", "call('userfaultfd', 0)").where_there().also_at_host(),
    python("watch all files", "call('fanotify_init', 0, 0)").bare_as_root().also_at_host(),
    python("run without random addresses", "call('personality', 0x0040000)").also_at_host(),
    python("call the kernel as a program of 32 bits", r"
import mmap
check(os.uname().machine == 'x86_64', 'another processor')
m = mmap.mmap(-1, 4096, prot=7)
m.write(b'\xb8\x14\x00\x00\x00\xcd\x80\xc3')
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
check(f() == os.getpid())").where_there().also_at_host(),
    python("call the kernel by its other table", r"
check(os.uname().machine == 'x86_64', 'another processor')
NR['x32'] = 0x40000000 + NR['getpid']
call('x32')").where_there().also_at_host(),
];
