//! By which server something was left behind.
//!
//! The number of a process alone does not tell: in a container, every server is process 1, and would take what
//! its predecessor left for its own. The moment of its start does.

use std::fs;
use std::sync::LazyLock;

/// Returns the name of this server, unlike that of any earlier one.
pub(crate) fn own() -> &'static str {
    static OWN: LazyLock<String> = LazyLock::new(|| {
        let pid = std::process::id();
        format!("{pid}-{}", started(&pid.to_string()).unwrap_or_default())
    });
    &OWN
}

/// Tells whether the server whose name something begins with is no longer there.
pub(crate) fn is_gone(name: &str) -> bool {
    let mut parts = name.split('-');
    let (pid, start) = (parts.next().unwrap_or_default(), parts.next().and_then(|start| start.parse().ok()));
    // Whoever has no process of this number there, or one that started at another moment, is gone.
    pid.bytes().all(|byte| byte.is_ascii_digit()) && (start.is_none() || started(pid) != start)
}

/// Returns when a process started, in the kernel's ticks since the machine did.
fn started(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses, and may hold anything.
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
}
