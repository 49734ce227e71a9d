//! Identifies the server that left something behind.
//!
//! A pid alone is not enough: in a container every server is process 1. The start time makes it unique.

use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Returns the unique name of this server.
pub(crate) fn own() -> &'static str {
    static OWN: LazyLock<String> = LazyLock::new(|| {
        let pid = std::process::id();
        format!("{pid}-{}", started(&pid.to_string()).unwrap_or_default())
    });
    &OWN
}

/// Returns whether the server whose name something begins with has ended.
pub(crate) fn is_gone(name: &str) -> bool {
    let mut parts = name.split('-');
    let (pid, start) = (parts.next().unwrap_or_default(), parts.next().and_then(|start| start.parse().ok()));
    // It has ended if there is no process with this pid, or one with another start time.
    pid.bytes().all(|byte| byte.is_ascii_digit()) && (start.is_none() || started(pid) != start)
}

/// The variable by which a sandbox's first processes are known. The program does not get it.
pub(crate) const VARIABLE: &str = "HAFT_SANDBOX_OF";

/// Returns the value of that variable: this server, in its namespace of processes. The numbers of another
/// namespace, such as a container's, mean other processes.
pub(crate) fn mark() -> &'static str {
    static MARK: LazyLock<String> = LazyLock::new(|| format!("{}/{}", namespace(), own()));
    &MARK
}

fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// How often the processes are searched for sandboxes of servers that are gone.
const SEARCHES: usize = 100;

/// Ends the sandboxes of servers that are no longer there: bubblewrap lets nothing end a sandbox that it has not
/// started yet, and so one that was held back when its server was killed would wait for ever.
///
/// A process may be listed alive and have started another one, which is not listed, and ended when it is looked at.
/// So the search ends when nothing is found twice in a row.
pub(crate) fn end_left_processes() {
    let mut nothing_found = 0;
    for _ in 0..SEARCHES {
        if kill_left_processes() {
            nothing_found = 0;
            // A killed process is listed until the kernel has ended it.
            std::thread::sleep(Duration::from_millis(2));
        } else {
            nothing_found += 1;
        }
        if nothing_found == 2 {
            return;
        }
    }
}

/// Kills the processes of servers that are gone, and returns whether there were any.
fn kill_left_processes() -> bool {
    let mut found = false;
    for folder in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let number = folder.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(process) = number.and_then(Pid::from_raw) else { continue };
        // What belongs to another user cannot be read.
        let variables = fs::read(folder.path().join("environ")).unwrap_or_default();
        if variables.split(|byte| *byte == 0).any(is_left) {
            found |= kill_process(process, Signal::KILL).is_ok();
        }
    }
    found
}

/// Tells whether a variable names a server that is no longer there.
fn is_left(variable: &[u8]) -> bool {
    let value =
        std::str::from_utf8(variable).ok().and_then(|text| text.strip_prefix(VARIABLE)?.strip_prefix('='));
    let Some((namespace_of, server)) = value.and_then(|value| value.split_once('/')) else { return false };
    namespace_of == namespace() && is_gone(server)
}

/// Returns the start time of a process, in kernel ticks since boot.
fn started(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses and may contain anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_number_and_its_start() {
        let pid = std::process::id();
        for (name, gone) in [
            (format!("{}-0", own()), false),
            (format!("{pid}-1-0"), true),
            (format!("{pid}-0"), true),
            ("4194305-77-0".to_owned(), true),
            ("notes".to_owned(), false),
        ] {
            assert_eq!(is_gone(&name), gone, "{name}");
        }
    }

    #[test]
    fn only_servers_of_this_namespace_can_be_gone() {
        let here = namespace();
        for (variable, left) in [
            (format!("{VARIABLE}={}", mark()), false),
            (format!("{VARIABLE}={here}/4194305-77"), true),
            (format!("{VARIABLE}={here}/{}-1", std::process::id()), true),
            (format!("{VARIABLE}=1/4194305-77"), false),
            (format!("{VARIABLE}="), false),
            ("PATH=/usr/bin".to_owned(), false),
        ] {
            assert_eq!(is_left(variable.as_bytes()), left, "{variable}");
        }
    }
}
