//! Blocks system calls that no tool needs and that an escape would use.
//!
//! A deny list, not an allow list: tools are programs of every kind, and an allow list would break programs whenever libc
//! uses a new harmless call. Blocked are calls that change namespaces, mounts, other processes, keys or the kernel, or
//! that have a history of vulnerabilities.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// The differences between engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FilterOptions {
    /// The allowed sockets.
    pub(crate) sockets: Sockets,
    /// For engines without a PID namespace: a process cannot leave its process group, by which its tree is killed, nor
    /// change other processes.
    pub(crate) sees_processes: bool,
    /// For engines that cannot confine signals: blocks them.
    pub(crate) no_signals: bool,
    /// Changes of file metadata.
    pub(crate) metadata: Metadata,
}

/// The sockets that a process can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sockets {
    /// Network and Unix sockets.
    #[default]
    All,
    /// Network sockets, for processes that could reach Unix sockets of the machine.
    NoUnix,
    /// None, for engines without a network namespace.
    None,
}

/// Changes of mode, owner, times and attributes of files, which Landlock does not control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Metadata {
    /// Allowed.
    #[default]
    Free,
    /// Allowed by descriptor, blocked by path.
    ByDescriptor,
    /// Ignored, but reported as successful: too many programs fail otherwise.
    Ignored,
}

/// Returns the filters in load order.
pub(crate) fn filters(filter_options: FilterOptions) -> Result<Vec<BpfProgram>, seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let answer = |rules, errno: i32| {
        let action = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch)
            .and_then(BpfProgram::try_from)
            .map_err(seccompiler::Error::from)
    };
    let any = |calls: &[i64]| calls.iter().map(|call| (*call, Vec::new())).collect::<Vec<_>>();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = any(REFUSED).into_iter().collect();
    rules.insert(libc::SYS_clone, new_namespaces()?);
    rules.insert(libc::SYS_ioctl, terminal_injection()?);
    rules.insert(libc::SYS_personality, vec![none_of(0, &[0, 0xffff_ffff])?]);
    rules.insert(libc::SYS_socket, socket_rules(filter_options.sockets)?);
    rules.extend(only_itself()?);
    if filter_options.sees_processes {
        rules.extend(any(&[libc::SYS_setsid, libc::SYS_setpgid]));
    }
    if filter_options.no_signals {
        rules.extend(any(&SIGNALS));
    }
    if filter_options.metadata == Metadata::ByDescriptor {
        rules.extend(any(CHANGES_BY_PATH));
        // Without a path the call applies to the descriptor.
        rules.insert(libc::SYS_utimensat, vec![none_of_long(1, 0)?]);
    }
    // A filter cannot read the flags of clone3 in memory; libc falls back to clone.
    let absent = any(&[libc::SYS_clone3]).into_iter().collect();
    let mut filters = vec![answer(rules, libc::EPERM)?, answer(absent, libc::ENOSYS)?];
    if filter_options.metadata == Metadata::Ignored {
        let ignored = [CHANGES_BY_PATH, CHANGES_BY_DESCRIPTOR, &[libc::SYS_utimensat]].concat();
        filters.push(answer(any(&ignored).into_iter().collect(), 0)?);
    }
    if cfg!(target_arch = "x86_64") {
        filters.push(other_table());
    }
    Ok(filters)
}

/// This bit marks system call numbers of the x32 ABI, which no other rule would match.
const OTHER_TABLE: u32 = 0x4000_0000;

fn other_table() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        // The system call number is the first word of the filter input.
        step(LOAD, 0, 0),
        step(JUMP_IF_SET, 1, OTHER_TABLE),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}

/// Returns a filter in the binary format of the kernel and bubblewrap.
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

/// Changes of files by path, or by a descriptor that need not be readable. libc has no names for the newest calls.
const CHANGES_BY_PATH: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Changes of open files, which need only read access.
const CHANGES_BY_DESCRIPTOR: &[i64] =
    &[libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_fsetxattr, libc::SYS_fremovexattr];

/// Blocked with any arguments.
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
    // File handles bypass every root.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
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
    // Objects that outlive their process could carry data from one call to the next.
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

/// `clone` with a namespace flag.
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

/// Writing to the input of a terminal.
fn terminal_injection() -> Rules {
    [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|request| rule(vec![SeccompCondition::new(1, Length::Dword, Op::Eq, request)?]))
        .collect()
}

/// Unusual socket families, or all of them.
fn socket_rules(sockets: Sockets) -> Rules {
    let mut allowed = vec![libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    match sockets {
        Sockets::None => return Ok(Vec::new()),
        Sockets::NoUnix => {}
        Sockets::All => allowed.push(libc::AF_UNIX),
    }
    let allowed: Vec<u64> = allowed.into_iter().map(|family| u64::from(family.unsigned_abs())).collect();
    Ok(vec![none_of(0, &allowed)?])
}

/// Limits, priorities and CPU affinity of other processes of the same user. 0 is the process itself.
fn only_itself() -> Result<Vec<(i64, Vec<SeccompRule>)>, seccompiler::Error> {
    const IO_PROCESS: u64 = 1;
    let mut rules = Vec::new();
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        rules.push((call, vec![none_of(0, &[0])?]));
    }
    // The first argument is the kind of target; only a process can be the caller itself.
    rules.push((libc::SYS_setpriority, vec![none_of(0, &[libc::PRIO_PROCESS.into()])?, none_of(1, &[0])?]));
    rules.push((libc::SYS_ioprio_set, vec![none_of(0, &[IO_PROCESS])?, none_of(1, &[0])?]));
    Ok(rules)
}

fn none_of(argument: u8, allowed: &[u64]) -> Result<SeccompRule, seccompiler::Error> {
    let differs = |value: &u64| SeccompCondition::new(argument, Length::Dword, Op::Ne, *value);
    rule(allowed.iter().map(differs).collect::<Result<_, _>>()?)
}

fn none_of_long(argument: u8, allowed: u64) -> Result<SeccompRule, seccompiler::Error> {
    rule(vec![SeccompCondition::new(argument, Length::Qword, Op::Ne, allowed)?])
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(conditions)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_by_the_other_table_are_unknown() {
        let steps: Vec<_> = other_table().iter().map(|step| (step.code, step.jt, step.jf, step.k)).collect();
        assert_eq!(
            steps,
            [
                (0x20, 0, 0, 0),
                (0x45, 1, 0, 0x4000_0000),
                (0x06, 0, 0, 0x7fff_0000),
                (0x06, 0, 0, 0x0005_0026)
            ]
        );
    }

    #[test]
    fn every_combination_of_wishes_makes_filters() {
        for sockets in [Sockets::All, Sockets::NoUnix, Sockets::None] {
            for metadata in [Metadata::Free, Metadata::ByDescriptor, Metadata::Ignored] {
                for yes in [false, true] {
                    let filter_options =
                        FilterOptions { sockets, sees_processes: yes, no_signals: yes, metadata };
                    let filters = filters(filter_options).unwrap();
                    // The limit of the kernel.
                    assert!(filters.iter().all(|filter| filter.len() <= 4096), "{filter_options:?}");
                }
            }
        }
    }
}
