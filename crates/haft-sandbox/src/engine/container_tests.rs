use insta::assert_snapshot;

use super::*;
use crate::command::{Bind, SandboxLayout};

fn command() -> Command {
    let place = SandboxLayout {
        engine: EngineName::Docker,
        level: Level::Isolated,
        work: mounts::WORK.into(),
        files: mounts::FILES.into(),
        folder: None,
    };
    Command::new(place, ["sh", "-c", "true"])
}

fn arguments(command: &Command, user: User) -> (Process, String) {
    let mut process = new_process(Path::new("/usr/bin/docker"));
    confine(&mut process, command, Path::new("/run-1/files"), user);
    let arguments: Vec<_> =
        process.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
    (process, arguments.join(" ").replace(" --", "\n--"))
}

#[test]
fn a_container_is_confined_and_limited() {
    let mut command = command().env("PATH", "/bin").env("TOKEN", "secret").env("LD_PRELOAD", "/work/x.so");
    command.binds = vec![Bind::writable("/srv/w", "/workspace"), Bind::read_only("/srv/r", "/models")];
    let (process, arguments) = arguments(&command, User::Nobody);
    assert_snapshot!(arguments, @r"
    --network none
    --cap-drop ALL
    --security-opt no-new-privileges
    --read-only
    --user 65534:65534
    --hostname sandbox
    --memory 536870912
    --memory-swap 536870912
    --pids-limit 128
    --cpus 2
    --ulimit cpu=30:31
    --ulimit core=0
    --ulimit fsize=67108864:67108864
    --ulimit nofile=1024:1024
    --ulimit nproc=16384:16384
    --tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777,size=134217728
    --tmpfs /work:rw,exec,nosuid,nodev,mode=1777,size=134217728
    --mount type=bind,source=/run-1/files,target=/run/haft,readonly
    --mount type=bind,source=/srv/w,target=/workspace
    --mount type=bind,source=/srv/r,target=/models,readonly
    --workdir /work
    --env PATH=/bin
    --env TOKEN
    --env LD_PRELOAD=/work/x.so
    ");
    let own: Vec<_> =
        process.get_envs().filter(|(name, _)| *name == "TOKEN" || *name == "LD_PRELOAD").collect();
    let expected = [(OsStr::new("TOKEN"), Some(OsStr::new("secret")))];
    assert_eq!(own, expected, "secrets are not arguments, and code is not loaded");
}

#[test]
fn a_container_runs_as_the_owner_of_its_folders() {
    for (user, expected) in [
        (User::Nobody, "--user 65534:65534"),
        (User::Server { user: 7, group: 8 }, "--user 7:8"),
        (User::RootlessServer { user: 7, group: 8 }, "--userns keep-id\n--user 7:8"),
    ] {
        assert!(arguments(&command(), user).1.contains(expected), "{user:?}");
    }
}

#[test]
fn variables_of_the_engine_are_recognized() {
    for (name, read) in [
        ("PATH", true),
        ("LD_LIBRARY_PATH", true),
        ("CONTAINERS_CONF", true),
        ("DOCKER_CONFIG", true),
        ("https_proxy", true),
        ("GODEBUG", true),
        ("TOKEN", false),
        ("HAFT_ARGS", false),
        ("name", false),
    ] {
        assert_eq!(is_read_by_engine(OsStr::new(name)), read, "{name}");
    }
}

#[test]
fn a_path_with_separators_is_not_mounted() {
    for (path, expected) in [
        ("/srv/a b", true),
        ("/srv/a=b:c", true),
        ("/srv/a,readonly=false", false),
        ("/srv/\"a", false),
        ("/srv/a\nb", false),
    ] {
        assert_eq!(is_mountable(Path::new(path)), expected, "{path}");
    }
}
