//! One way out of a sandbox, written down.

use haft_sandbox::{EngineName, Level, Limits};

use crate::rig::small;

/// A script that tries one way out.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    /// Completes when it got through; raises `OSError` (Python) or fails (bash) when it was refused.
    pub(crate) script: Script,
    /// What runs without the sandbox, to show that the attempt can succeed.
    pub(crate) bare: Bare,
    /// Whether being refused at level `Host` is expected, too.
    pub(crate) host: bool,
    /// Whether the process is given the network.
    pub(crate) network: bool,
    /// The engines that can stop it; what the others cannot do is said in `docs/sandbox.md`.
    pub(crate) engines: &'static [EngineName],
}

#[derive(Clone, Copy)]
pub(crate) enum Script {
    Bash(&'static str),
    Python(&'static str),
}

/// How an attempt is shown to succeed without the sandbox.
#[derive(Clone, Copy)]
pub(crate) enum Bare {
    /// The same script gets through.
    Same,
    /// The same script gets through if it is root who runs it.
    AsRoot,
    /// The same script gets through where the machine has what it asks for; else nothing is shown.
    WhereThere,
    /// The same script would harm the machine, or has nothing to aim at there: this one shows the same access.
    Harmless(Script),
    /// So, and it is root who runs it.
    HarmlessAsRoot(Script),
}

const BOTH: &[EngineName] = &[EngineName::Bubblewrap, EngineName::Landlock];

/// An attempt in Python at level `Isolated`.
pub(crate) const fn python(name: &'static str, script: &'static str) -> Attempt {
    attempt(name, Script::Python(script))
}

/// An attempt in bash at level `Isolated`.
pub(crate) const fn bash(name: &'static str, script: &'static str) -> Attempt {
    attempt(name, Script::Bash(script))
}

const fn attempt(name: &'static str, script: Script) -> Attempt {
    Attempt { name, script, bare: Bare::Same, host: false, network: false, engines: BOTH }
}

impl Attempt {
    /// It must fail at level `Host`, too.
    pub(crate) const fn also_at_host(mut self) -> Self {
        self.host = true;
        self
    }

    pub(crate) const fn bare_as_root(mut self) -> Self {
        self.bare = Bare::AsRoot;
        self
    }

    pub(crate) const fn where_there(mut self) -> Self {
        self.bare = Bare::WhereThere;
        self
    }

    pub(crate) const fn harmless_bare(mut self, script: Script) -> Self {
        self.bare = Bare::Harmless(script);
        self
    }

    pub(crate) const fn harmless_bare_as_root(mut self, script: Script) -> Self {
        self.bare = Bare::HarmlessAsRoot(script);
        self
    }

    pub(crate) const fn with_network(mut self) -> Self {
        self.network = true;
        self
    }

    pub(crate) const fn only(mut self, engines: &'static [EngineName]) -> Self {
        self.engines = engines;
        self
    }

    pub(crate) fn applies(&self, engine: EngineName, level: Level) -> bool {
        self.engines.contains(&engine) && (level == Level::Isolated || self.host)
    }

    /// The limits that attempts on resources try to pass.
    pub(crate) fn limits() -> Limits {
        Limits { open_files: 64, ..small() }
    }
}

impl Script {
    /// Returns what is started. The names of system calls come first, so that scripts know their numbers.
    pub(crate) fn argv(self) -> Vec<String> {
        match self {
            Script::Bash(script) => {
                ["bash", "-c", &format!("set -eu\n{script}\necho '{THROUGH}'")].map(str::to_owned).to_vec()
            }
            Script::Python(script) => {
                ["python3", "-ISc", PRELUDE, &numbers(), script].map(str::to_owned).to_vec()
            }
        }
    }
}

/// What a script prints that got through.
pub(crate) const THROUGH: &str = "GOT THROUGH";
/// What a Python script prints that was refused; a bash script then fails.
pub(crate) const REFUSED: &str = "REFUSED";

const PRELUDE: &str = r"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
NR = dict((k, int(v)) for k, v in (p.split('=') for p in sys.argv[1].split()))
E = os.environ
def call(name, *args):
    r = libc.syscall(*[a if isinstance(a, (bytes, type(None))) or hasattr(a, '_type_') or hasattr(a, '_obj')
                       or hasattr(a, '_fields_') else ctypes.c_long(a) for a in (NR[name],) + args])
    if r == -1:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return r
def check(truth, why='the condition does not tree'):
    if not truth:
        raise OSError(0, why)
try:
    exec(compile(sys.argv[2], 'attempt', 'exec'))
except (OSError, MemoryError, ValueError) as e:
    print('REFUSED', type(e).__name__, e, flush=True)
else:
    print('GOT THROUGH', flush=True)
os._exit(0)
";

fn numbers() -> String {
    let calls = [
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("pivot_root", libc::SYS_pivot_root),
        ("open_tree", libc::SYS_open_tree),
        ("fsopen", libc::SYS_fsopen),
        ("name_to_handle_at", libc::SYS_name_to_handle_at),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("ptrace", libc::SYS_ptrace),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("pidfd_open", libc::SYS_pidfd_open),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("pidfd_send_signal", libc::SYS_pidfd_send_signal),
        ("tgkill", libc::SYS_tgkill),
        ("ioprio_set", libc::SYS_ioprio_set),
        ("unshare", libc::SYS_unshare),
        ("setns", libc::SYS_setns),
        ("clone", libc::SYS_clone),
        ("clone3", libc::SYS_clone3),
        ("add_key", libc::SYS_add_key),
        ("keyctl", libc::SYS_keyctl),
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("init_module", libc::SYS_init_module),
        ("reboot", libc::SYS_reboot),
        ("swapon", libc::SYS_swapon),
        ("acct", libc::SYS_acct),
        ("syslog", libc::SYS_syslog),
        ("personality", libc::SYS_personality),
        ("kcmp", libc::SYS_kcmp),
        ("shmget", libc::SYS_shmget),
        ("msgget", libc::SYS_msgget),
        ("mq_open", libc::SYS_mq_open),
        ("quotactl", libc::SYS_quotactl),
        ("fanotify_init", libc::SYS_fanotify_init),
        ("fchmodat2", 452),
        ("getpid", libc::SYS_getpid),
        ("chroot", libc::SYS_chroot),
    ];
    calls.map(|(name, number)| format!("{name}={number}")).join(" ")
}
