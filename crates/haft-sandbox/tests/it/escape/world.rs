//! A small machine to break out to: a server with secrets, a user's files, services, and other processes.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use rustix::io::{FdFlags, fcntl_setfd};
use tempfile::TempDir;

/// Everything that attempts aim at. Names and numbers reach them as variables.
pub(crate) struct World {
    /// The server's folder, hidden from every sandbox.
    pub(crate) home: TempDir,
    /// Files of a user, which isolated processes do not see.
    pub(crate) outside: TempDir,
    pub(crate) variables: Vec<(String, String)>,
    victims: Vec<Child>,
    held: Vec<OwnedFd>,
    _sockets: (UnixListener, UnixListener, UnixDatagram),
}

impl World {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let mut world = World {
            variables: Vec::new(),
            victims: Vec::new(),
            held: Vec::new(),
            _sockets: sockets(&outside),
            home,
            outside,
        };
        world.make_files();
        world.make_services();
        for name in ["VICTIM", "KILLED", "OWNED"] {
            let victim = victim(world.home.path());
            world.set(name, victim.id());
            world.victims.push(victim);
        }
        world.set("SERVER", std::process::id());
        let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        world.set("MACHINE", machine.trim());
        let group = fs::read_to_string("/proc/self/mounts").unwrap();
        let group =
            group.lines().find(|line| line.starts_with("cgroup")).and_then(|line| line.split(' ').nth(1));
        world.set("CGROUP", group.unwrap_or("/none"));
        world
    }

    fn set(&mut self, name: &str, value: impl std::fmt::Display) {
        self.variables.push((name.to_owned(), value.to_string()));
    }

    fn make_files(&mut self) {
        let database = self.home.path().join("haft.db");
        fs::write(&database, "SECRET").unwrap();
        fs::set_permissions(&database, fs::Permissions::from_mode(0o600)).unwrap();
        let scratch = self.home.path().join("run");
        fs::create_dir_all(scratch.join("other-run")).unwrap();
        let outside = self.outside.path().to_owned();
        for name in ["append", "truncate", "remove", "rename", "link", "mode", "owner", "times", "attribute"]
        {
            fs::write(outside.join(name), "original").unwrap();
        }
        let key = outside.join(".ssh/id");
        fs::create_dir(key.parent().unwrap()).unwrap();
        fs::write(&key, "SECRET").unwrap();
        // The kernel's log; only root may make devices.
        let device = outside.join("device");
        let _only_root = rustix::fs::mknodat(
            rustix::fs::CWD,
            &device,
            rustix::fs::FileType::CharacterDevice,
            rustix::fs::Mode::RUSR,
            rustix::fs::makedev(1, 11),
        );
        self.set("DB", database.display());
        self.set("SCRATCH", scratch.display());
        self.set("OUTSIDE", outside.display());
        self.set("TEMPORARY", outside.join("append").display());
        self.set("KEY", key.display());
        self.set("SOCKET", outside.join("socket").display());
        self.set("DATAGRAM", outside.join("datagram").display());
        self.set("ABSTRACT", abstract_name(&outside));
    }

    fn make_services(&mut self) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        self.set("PORT", listener.local_addr().unwrap().port());
        serve(listener);
        // A machine without IPv6 has no such address.
        let port = TcpListener::bind("[::1]:0").map_or(1, |listener| {
            let port = listener.local_addr().unwrap().port();
            serve(listener);
            port
        });
        self.set("PORT6", port);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        self.set("UDP", socket.local_addr().unwrap().port());
        std::thread::spawn(move || {
            let mut buffer = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                drop(socket.send_to(buffer.get(..length).unwrap(), from));
            }
        });
    }

    /// Opens descriptors of the server that a program started by it would inherit.
    pub(crate) fn leave_descriptors_open(&mut self) {
        let database = fs::File::open(self.home.path().join("haft.db")).unwrap();
        let folder = fs::File::open(self.home.path()).unwrap();
        self.set("HELD", database.as_raw_fd());
        for fd in [OwnedFd::from(database), OwnedFd::from(folder)] {
            fcntl_setfd(&fd, FdFlags::empty()).unwrap();
            self.held.push(fd);
        }
    }

    /// Tells which of the processes are gone, after attempts that must all have failed.
    pub(crate) fn dead_victims(&mut self) -> Vec<u32> {
        let dead = |victim: &mut Child| victim.try_wait().unwrap().map(|_| victim.id());
        self.victims.iter_mut().filter_map(dead).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for victim in &mut self.victims {
            drop(victim.kill());
            drop(victim.wait());
        }
    }
}

fn serve(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            drop((&stream).write_all(b"hello"));
        }
    });
}

fn sockets(outside: &TempDir) -> (UnixListener, UnixListener, UnixDatagram) {
    let name = SocketAddr::from_abstract_name(abstract_name(outside.path())).unwrap();
    (
        UnixListener::bind(outside.path().join("socket")).unwrap(),
        UnixListener::bind_addr(&name).unwrap(),
        UnixDatagram::bind(outside.path().join("datagram")).unwrap(),
    )
}

fn abstract_name(outside: &std::path::Path) -> String {
    format!("haft-escape-{}", outside.file_name().unwrap().to_string_lossy())
}

#[expect(clippy::disallowed_methods, reason = "a process outside every sandbox is what attempts aim at")]
fn victim(folder: &std::path::Path) -> Child {
    let mut process = Command::new("sleep");
    process
        .arg("1000")
        .env("HAFT_ESCAPE_SECRET", "SECRET")
        .current_dir(folder)
        .process_group(0)
        .spawn()
        .unwrap()
}
