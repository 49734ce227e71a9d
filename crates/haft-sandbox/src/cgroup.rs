//! Limits all processes of a sandbox together, with control groups.
//!
//! Uses version 2 if this process can create subgroups, otherwise version 1. Without either, the caller falls back to
//! limits of each process.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::command::Limits;
use crate::owner;

/// The control groups of this machine; located on first use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Control {
    roots: Arc<OnceLock<CgroupRoots>>,
}

/// The parent folders of groups, by controller.
#[derive(Debug, Default)]
struct CgroupRoots {
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
    cpu: Option<PathBuf>,
    unified: bool,
}

impl Control {
    fn roots(&self) -> &CgroupRoots {
        self.roots.get_or_init(probe)
    }

    /// Returns whether the memory of a whole sandbox can be limited.
    pub(crate) fn limits_memory(&self) -> bool {
        self.roots().memory.is_some()
    }

    /// Returns whether the number of processes of a whole sandbox can be limited.
    pub(crate) fn limits_processes(&self) -> bool {
        self.roots().pids.is_some()
    }

    /// Returns what limits sandboxes on this machine.
    pub(crate) fn describe(&self) -> &'static str {
        let roots = self.roots();
        match (&roots.memory, &roots.pids, roots.unified) {
            (Some(_), Some(_), true) => "cgroup v2",
            (Some(_), Some(_), false) => "cgroup v1",
            (None, None, _) => "rlimits",
            _ => "cgroup v1 and rlimits",
        }
    }

    /// Creates a group with these limits.
    pub(crate) fn group(&self, limits: &Limits) -> io::Result<Group> {
        // A program may have several sandboxes.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", owner::own());
        let roots = self.roots();
        let at = |root: &Option<PathBuf>| root.as_ref().map(|root| root.join(&name));
        let mut group = Group { memory: at(&roots.memory), pids: at(&roots.pids), cpu: at(&roots.cpu) };
        let set = if roots.unified { set_unified } else { set_separate };
        if let Err(error) = group.create().and_then(|()| set(&group, limits)) {
            group.remove();
            return Err(error);
        }
        Ok(group)
    }
}

/// Finds out where groups can be created, by creating one, and removes groups left by a killed server.
fn probe() -> CgroupRoots {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let roots = unified(&groups, &mounts).unwrap_or_else(|| separate(&groups, &mounts));
    for root in roots.folders() {
        sweep(root);
    }
    roots
}

/// The prefix of group folders, followed by the server and a number.
const PREFIX: &str = "haft-sandbox-";

impl CgroupRoots {
    fn folders(&self) -> Vec<&Path> {
        distinct([&self.memory, &self.pids, &self.cpu])
    }
}

fn distinct(folders: [&Option<PathBuf>; 3]) -> Vec<&Path> {
    let mut distinct: Vec<&Path> = Vec::new();
    for folder in folders.into_iter().flatten() {
        if !distinct.contains(&folder.as_path()) {
            distinct.push(folder);
        }
    }
    distinct
}

/// The groups of one sandbox; removed on drop, when they have no processes.
#[derive(Debug)]
pub(crate) struct Group {
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
    cpu: Option<PathBuf>,
}

impl Group {
    fn folders(&self) -> Vec<&Path> {
        distinct([&self.memory, &self.pids, &self.cpu])
    }

    fn create(&self) -> io::Result<()> {
        self.folders().into_iter().try_for_each(fs::create_dir)
    }

    /// Adds a process and its future children to the group.
    pub(crate) fn add(&self, pid: u32) -> io::Result<()> {
        self.folders()
            .into_iter()
            .try_for_each(|folder| fs::write(folder.join("cgroup.procs"), pid.to_string()))
    }

    /// Opens the files with which a process joins the group, by writing `0`.
    pub(crate) fn join_files(&self) -> io::Result<Vec<OwnedFd>> {
        let open = |folder: &Path| OpenOptions::new().write(true).open(folder.join("cgroup.procs"));
        self.folders().into_iter().map(|folder| open(folder).map(OwnedFd::from)).collect()
    }

    /// Returns whether the kernel killed a process of the group for its memory.
    pub(crate) fn memory_met(&self) -> bool {
        let Some(folder) = &self.memory else { return false };
        counter(&folder.join("memory.events"), "oom_kill")
            .or_else(|| counter(&folder.join("memory.oom_control"), "oom_kill"))
            .is_some_and(|times| times > 0)
    }

    /// Returns whether the group reached its process limit.
    pub(crate) fn processes_met(&self) -> bool {
        let Some(folder) = &self.pids else { return false };
        counter(&folder.join("pids.events"), "max").is_some_and(|times| times > 0)
    }

    fn remove(&mut self) {
        self.folders().into_iter().for_each(remove);
    }
}

/// Removes the folder of a group and kills remaining processes. The kernel releases ended processes with a delay.
fn remove(folder: &Path) {
    const ATTEMPTS: u32 = 200;
    for attempt in 1..=ATTEMPTS {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && attempt < ATTEMPTS => {
                // After this delay, a process must still be running.
                if attempt % 20 == 0 {
                    kill_all(folder);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(folder = %folder.display(), %error, "failed to remove a control group");
                return;
            }
            _ => return,
        }
    }
}

fn kill_all(folder: &Path) {
    if fs::write(folder.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for process in processes.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
        // It may have ended already.
        drop(kill_process(process, Signal::KILL).map_err(io::Error::from));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.remove();
    }
}

fn counter(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

fn set_unified(group: &Group, limits: &Limits) -> io::Result<()> {
    let Some(folder) = &group.memory else { return Ok(()) };
    fs::write(folder.join("memory.max"), limits.memory.to_string())?;
    // Missing if the kernel has no swap.
    drop(fs::write(folder.join("memory.swap.max"), "0"));
    fs::write(folder.join("pids.max"), limits.processes.to_string())?;
    if group.cpu.is_some() {
        fs::write(folder.join("cpu.max"), format!("{} {PERIOD}", quota(limits)))?;
    }
    Ok(())
}

fn set_separate(group: &Group, limits: &Limits) -> io::Result<()> {
    if let Some(folder) = &group.memory {
        fs::write(folder.join("memory.limit_in_bytes"), limits.memory.to_string())?;
        // Missing if swap is not accounted.
        drop(fs::write(folder.join("memory.memsw.limit_in_bytes"), limits.memory.to_string()));
    }
    if let Some(folder) = &group.pids {
        fs::write(folder.join("pids.max"), limits.processes.to_string())?;
    }
    if let Some(folder) = &group.cpu {
        fs::write(folder.join("cpu.cfs_quota_us"), quota(limits).to_string())?;
    }
    Ok(())
}

/// The period of the CPU quota, in microseconds: the default of the kernel.
const PERIOD: u32 = 100_000;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a range that fits")]
fn quota(limits: &Limits) -> u32 {
    (limits.cpus * f64::from(PERIOD)).clamp(1_000.0, f64::from(PERIOD) * 1024.0) as u32
}

/// Version 2: moves this process to a subgroup, so that its present group can have further subgroups.
fn unified(groups: &str, mounts: &str) -> Option<CgroupRoots> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mount_of(mounts, "cgroup2", None)?;
    let base = mount.join(own.trim_start_matches('/'));
    // Set up by an earlier start of the same service.
    let base = if base.ends_with(SERVER) { base.parent()?.to_owned() } else { base };
    let offered = fs::read_to_string(base.join("cgroup.controllers")).ok()?;
    if !["memory", "pids"].iter().all(|need| offered.split_whitespace().any(|name| name == *need)) {
        return None;
    }
    let server = base.join(SERVER);
    fs::create_dir(&server).or_else(|error| ok_if_exists(&error)).ok()?;
    fs::write(server.join("cgroup.procs"), std::process::id().to_string()).ok()?;
    // Fails while other processes are in the group.
    if fs::write(base.join("cgroup.subtree_control"), "+memory +pids").is_err() {
        drop(fs::write(base.join("cgroup.procs"), std::process::id().to_string()));
        drop(fs::remove_dir(&server));
        return None;
    }
    let cpu = fs::write(base.join("cgroup.subtree_control"), "+cpu").is_ok().then(|| base.clone());
    Some(CgroupRoots { memory: Some(base.clone()), pids: Some(base), cpu, unified: true })
}

/// The subgroup of the server itself.
const SERVER: &str = "haft-server";

fn ok_if_exists(error: &io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(io::Error::from(error.kind())) }
}

/// Version 1: each controller has its own tree.
fn separate(groups: &str, mounts: &str) -> CgroupRoots {
    let root = |controller: &str| {
        let own = groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|name| name == controller).then_some(path)
        })?;
        let base = mount_of(mounts, "cgroup", Some(controller))?.join(own.trim_start_matches('/'));
        // Only creating a group shows whether it is possible.
        let probe = base.join(format!("{PREFIX}{}-probe", owner::own()));
        fs::create_dir(&probe).ok()?;
        fs::remove_dir(&probe).ok()?;
        Some(base)
    };
    CgroupRoots { memory: root("memory"), pids: root("pids"), cpu: root("cpu"), unified: false }
}

fn mount_of(mounts: &str, kind: &str, option: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (path, this_kind, options) = (words.next()?, words.next()?, words.next()?);
        let fits = option.is_none_or(|expected| options.split(',').any(|option| option == expected));
        (this_kind == kind && fits).then(|| PathBuf::from(path))
    })
}

/// Removes groups of servers that have ended.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if owner::is_gone(rest) {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
        cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";

    #[test]
    fn mounts_are_found_by_kind_and_controller() {
        for (kind, option, expected) in [
            ("cgroup", Some("cpu"), Some("/sys/fs/cgroup/cpu,cpuacct")),
            ("cgroup", Some("memory"), Some("/sys/fs/cgroup/memory")),
            ("cgroup", Some("pids"), None),
            ("cgroup2", None, Some("/sys/fs/cgroup/unified")),
        ] {
            assert_eq!(mount_of(MOUNTS, kind, option), expected.map(PathBuf::from), "{kind} {option:?}");
        }
    }

    #[test]
    fn a_quota_is_a_share_of_the_period() {
        let quota_of = |cpus| quota(&Limits { cpus, ..Limits::default() });
        assert_eq!([0.0, 0.5, 2.0].map(quota_of), [1_000, 50_000, 200_000]);
    }
}
