//! The system calls that no tool needs, and that a way out of a sandbox would use.
//!
//! A list of what is refused, not of what is allowed: tools are programs of every kind, and a program that dies
//! for a harmless call that a new libc makes is worse than the narrow gain. What is refused is what changes
//! namespaces, mounts, other processes, keys, the kernel, or has a history of holes.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// What differs between engines.
#[expect(clippy::struct_excessive_bools, reason = "each names one thing that is refused or not")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wishes {
    /// No sockets at all: for engines that have no network namespace.
    pub(crate) no_sockets: bool,
    /// No Unix sockets: for engines that cannot keep those of the machine out of reach.
    pub(crate) no_unix_sockets: bool,
    /// Processes stay in their group: for engines that end a tree by its process group.
    pub(crate) no_new_groups: bool,
    /// No signals: for engines that cannot keep them within the sandbox.
    pub(crate) no_signals: bool,
}

/// Returns the filters, to be loaded in this order.
pub(crate) fn filters(wishes: Wishes) -> Result<Vec<BpfProgram>, seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = |rules, errno: i32| {
        let action = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch)
            .and_then(BpfProgram::try_from)
            .map_err(seccompiler::Error::from)
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, new_namespaces()?);
    rules.insert(libc::SYS_ioctl, terminal_injection()?);
    rules.insert(libc::SYS_personality, vec![none_of(0, &[0, 0xffff_ffff])?]);
    rules.insert(libc::SYS_socket, sockets(wishes)?);
    if wishes.no_new_groups {
        rules.extend([libc::SYS_setsid, libc::SYS_setpgid].map(|call| (call, Vec::new())));
    }
    if wishes.no_signals {
        rules.extend(SIGNALS.map(|call| (call, Vec::new())));
    }
    // The flags of clone3 lie in memory, where a filter cannot look; libc then falls back to clone.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![refuse(rules, libc::EPERM)?, refuse(absent, libc::ENOSYS)?])
}

/// Returns a filter in the form in which the kernel and bubblewrap take it.
pub(crate) fn bytes(program: &BpfProgram) -> Vec<u8> {
    program
        .iter()
        .flat_map(|step| {
            let [c0, c1] = step.code.to_ne_bytes();
            let [k0, k1, k2, k3] = step.k.to_ne_bytes();
            [c0, c1, step.jt, step.jf, k0, k1, k2, k3]
        })
        .collect()
}

const SIGNALS: [i64; 6] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Refused whatever their arguments.
const REFUSED: &[i64] = &[
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Files by handle reach beyond every root.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Keys are shared by all processes of a user.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The kernel itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // What stays when its maker is gone, and so could carry something from one call to the next.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];

type Rules = Result<Vec<SeccompRule>, seccompiler::Error>;

/// `clone` with a flag that asks for a namespace.
fn new_namespaces() -> Rules {
    [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ]
    .map(|flag| u64::from(flag.unsigned_abs()))
    .into_iter()
    .map(|flag| rule(vec![SeccompCondition::new(0, Length::Qword, Op::MaskedEq(flag), flag)?]))
    .collect()
}

/// Writing to a terminal as if its user had typed it.
fn terminal_injection() -> Rules {
    [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|request| rule(vec![SeccompCondition::new(1, Length::Dword, Op::Eq, request)?]))
        .collect()
}

/// All families of sockets but those that programs use; or all.
fn sockets(wishes: Wishes) -> Rules {
    if wishes.no_sockets {
        return Ok(Vec::new());
    }
    let mut allowed = vec![libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    if !wishes.no_unix_sockets {
        allowed.push(libc::AF_UNIX);
    }
    let allowed: Vec<u64> = allowed.into_iter().map(|family| u64::from(family.unsigned_abs())).collect();
    Ok(vec![none_of(0, &allowed)?])
}

fn none_of(argument: u8, allowed: &[u64]) -> Result<SeccompRule, seccompiler::Error> {
    let differs = |value: &u64| SeccompCondition::new(argument, Length::Dword, Op::Ne, *value);
    rule(allowed.iter().map(differs).collect::<Result<_, _>>()?)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(conditions)?)
}
