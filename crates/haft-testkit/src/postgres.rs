//! A PostgreSQL cluster for the tests, with one database per test: empty, or a copy of one that is migrated once.
//!
//! Test processes find the cluster through a locked file; the first one starts it. A watchdog stops the cluster and
//! removes its files when it has not been used for a while.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The watchdog script: `$1` folder, `$2` lock file, `$3` folder of the programs, `$4` port.
const WATCHDOG: &str = r#"
dir=$1 lock=$2 bin=$3 port=$4
busy() {
    [ -n "$(find "$dir/used" -newermt '-45 seconds' 2>/dev/null)" ] && return 0
    n=$("$bin/psql" -h 127.0.0.1 -p "$port" -U haft -d postgres -Atc \
        "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()" \
        2>/dev/null) || return 1
    [ "$n" != 0 ]
}
while [ -d "$dir/data" ]; do
    sleep 5
    busy && continue
    exec 9>>"$lock"
    flock 9
    if ! busy; then
        "$bin/pg_ctl" -D "$dir/data" -m immediate stop
        rm -rf "$dir/data" "$dir/port" "$dir/used"
        exit 0
    fi
    exec 9>&-
done
"#;

/// The database of one test.
#[derive(Debug)]
pub struct TestDatabase {
    /// The connection URL.
    pub url: String,
}

impl TestDatabase {
    /// Runs a script.
    pub fn execute(&self, script: &str) -> io::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), script)?;
        let programs = Programs::find()?;
        let mut psql = command(&programs.path("psql"));
        run(psql.args([&self.url, "-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(file.path()))
    }
}

/// Creates an empty database; starts the cluster if necessary.
pub fn database() -> io::Result<TestDatabase> {
    Cluster::lock()?.create("template1")
}

/// Creates a copy of a database that `prepare` fills, which is called with its URL when this test program needs it first.
///
/// `prepare` has to close its connections: PostgreSQL copies no database that is in use.
pub fn database_from(prepare: impl FnOnce(&str) -> io::Result<()>) -> io::Result<TestDatabase> {
    let cluster = Cluster::lock()?;
    let template = format!("template_{}", program_id()?);
    // In the folder of the data: it is gone when the template is.
    let is_prepared = cluster.folder.join("data").join(&template);
    if !is_prepared.exists() {
        cluster.replace(&template, "template1")?;
        prepare(&cluster.url(&template))?;
        File::create(is_prepared)?;
    }
    cluster.create(&template)
}

/// Returns a name for the file of the running test program, which changes when it is built anew.
fn program_id() -> io::Result<String> {
    let program = std::env::current_exe()?;
    let mut hasher = DefaultHasher::new();
    program.hash(&mut hasher);
    fs::metadata(&program)?.modified()?.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// The running cluster. Other test processes wait until it is dropped.
struct Cluster {
    folder: PathBuf,
    programs: Programs,
    port: u16,
    _lock: File,
}

impl Cluster {
    /// Waits for its turn; starts the cluster if necessary.
    fn lock() -> io::Result<Self> {
        let programs = Programs::find()?;
        let user = User::choose()?;
        let folder = std::env::temp_dir().join(format!("haft-test-postgres-{}", user.name));
        fs::create_dir_all(&folder)?;
        user.chown(&folder)?;
        let lock_path = folder.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path)?;
        // The watchdog, which does not run as root, takes this lock, too.
        user.chown(&lock_path)?;
        lock.lock()?;
        let port = match running_port(&folder) {
            Some(port) => port,
            None => start(&folder, &lock_path, &programs, &user)?,
        };
        File::create(folder.join("used"))?;
        user.chown(&folder.join("used"))?;
        Ok(Self { folder, programs, port, _lock: lock })
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://haft@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates the database of a test as a copy of another one.
    fn create(&self, template: &str) -> io::Result<TestDatabase> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        // An earlier process with the same id may have left a database behind.
        self.replace(&name, template)?;
        Ok(TestDatabase { url: self.url(&name) })
    }

    /// Creates a database as a copy of another one, in the place of an old one of its name.
    fn replace(&self, name: &str, template: &str) -> io::Result<()> {
        run(command(&self.programs.path("psql")).args([
            &self.url("postgres"),
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
            "-c",
            &format!("CREATE DATABASE {name} TEMPLATE {template}"),
        ]))
    }
}

/// Returns the port of the running cluster.
fn running_port(folder: &Path) -> Option<u16> {
    let port = fs::read_to_string(folder.join("port")).ok()?.trim().parse().ok()?;
    TcpStream::connect(("127.0.0.1", port)).ok().map(|_| port)
}

fn start(folder: &Path, lock: &Path, programs: &Programs, user: &User) -> io::Result<u16> {
    let data = folder.join("data");
    let _ = fs::remove_dir_all(&data);
    let text = |path: &Path| path.display().to_string();
    run(user.command(&programs.path("initdb")).args([
        "-D",
        &text(&data),
        "-U",
        "haft",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-locale",
        "-N",
    ]))?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    // Test data need not survive a crash. Without statistics that appear at some moment, the plans of statements are the
    // same in every run.
    let options = format!(
        "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c autovacuum=off \
         -c synchronous_commit=off -c full_page_writes=off -c max_connections=400 -c shared_buffers=64MB"
    );
    let log = folder.join("log");
    run(user.command(&programs.path("pg_ctl")).args([
        "-D",
        &text(&data),
        "-l",
        &text(&log),
        "-w",
        "-o",
        &options,
        "start",
    ]))?;
    fs::write(folder.join("port"), port.to_string())?;
    let mut watchdog = user.command(Path::new("setsid"));
    watchdog.args(["sh", "-c", WATCHDOG, "haft-test-postgres"]);
    watchdog.args([text(folder), text(lock), text(&programs.folder), port.to_string()]);
    watchdog.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok(port)
}

/// The folder of the PostgreSQL programs.
struct Programs {
    folder: PathBuf,
}

impl Programs {
    fn find() -> io::Result<Self> {
        let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
            .collect();
        folders.sort();
        folders.reverse();
        folders.extend(["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"].map(PathBuf::from));
        let is_complete = |folder: &PathBuf| {
            ["initdb", "pg_ctl", "postgres", "psql"].iter().all(|name| folder.join(name).exists())
        };
        folders.into_iter().find(is_complete).map(|folder| Self { folder }).ok_or_else(|| {
            io::Error::other(
                "PostgreSQL is not installed; on Debian and Ubuntu: `apt-get install postgresql`",
            )
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The user that runs the cluster; PostgreSQL does not run as root.
struct User {
    name: String,
    /// The user and group to switch to, if this process runs as root.
    ids: Option<(u32, u32)>,
}

impl User {
    fn choose() -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let uid = fs::metadata("/proc/self")?.uid();
        if uid != 0 {
            return Ok(Self { name: uid.to_string(), ids: None });
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let ids = |user: &str| {
            users.lines().find_map(|line| {
                let mut parts = line.split(':');
                let name = parts.next()?;
                let (uid, gid) = (parts.nth(1)?.parse().ok()?, parts.next()?.parse().ok()?);
                (name == user).then_some((uid, gid))
            })
        };
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| Some(Self { name: name.to_owned(), ids: Some(ids(name)?) }))
            .ok_or_else(|| {
                io::Error::other("cannot run PostgreSQL as root: neither user `postgres` nor `nobody` exists")
            })
    }

    fn chown(&self, path: &Path) -> io::Result<()> {
        match self.ids {
            Some((uid, gid)) => std::os::unix::fs::chown(path, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }

    fn command(&self, program: &Path) -> Command {
        if self.ids.is_none() {
            return command(program);
        }
        let mut command = command(Path::new("runuser"));
        command.args(["-u", &self.name, "--"]).arg(program);
        command
    }
}

#[expect(clippy::disallowed_methods, reason = "a test server needs no sandbox")]
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    // The other user may have no access to the current folder.
    command.current_dir("/");
    command
}

/// Runs a program; the error contains its output.
fn run(command: &mut Command) -> io::Result<()> {
    // A file, because a server would keep a pipe open.
    let log = tempfile::tempfile()?;
    let status = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?).status()?;
    if status.success() {
        return Ok(());
    }
    let mut text = String::new();
    let mut log = log;
    io::Seek::rewind(&mut log)?;
    io::Read::read_to_string(&mut log, &mut text)?;
    Err(io::Error::other(format!("{command:?} failed with {status}: {text}")))
}
