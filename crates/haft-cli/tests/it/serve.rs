//! `haft serve`: how it starts, how commands find it, and how it ends.

use std::io::{BufRead as _, BufReader};

use crate::harness::{Haft, mode};
use crate::upstream;

#[test]
fn commands_find_the_server_through_the_home_folder() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    let file = haft.home().join("server.json");
    assert!(file.exists());
    assert!(server.startup["login"].as_str().unwrap().starts_with(&server.url), "{}", server.startup);
    // The key is made with the first secret.
    assert_eq!(haft.run_with(&["secret", "set", "API_KEY"], "hunter2").code, 0);
    for private in ["tokens", "key"] {
        assert_eq!(mode(&haft.home().join(private)), 0o600, "{private}");
    }
    let doctor = haft.run(&["doctor"]);
    assert!(doctor.code == 0 && doctor.stdout.contains("running at http://127.0.0.1:"), "{}", doctor.shown());
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(!file.exists(), "the file is removed with the server");
}

#[test]
fn an_interrupt_stops_the_server() {
    let haft = Haft::new();
    let server = haft.serve(&["--mode", "production"]);
    server.signal("INT");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn the_server_file_of_a_killed_server_is_ignored() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    server.signal("KILL");
    assert_eq!(server.wait(), None);
    assert!(haft.home().join("server.json").exists());
    let list = haft.run(&["tool", "list"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""), "{}", list.shown());
    haft.serve(&[]);
}

#[test]
fn an_address_in_use_is_reported() {
    let haft = Haft::without_home();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let run = haft.run(&["serve", "--addr", &addr]);
    insta::assert_snapshot!(run.shown().replace(&addr, "ADDR"), @r"
    exit code: 1
    ----- stdout
    ----- stderr
    error: cannot listen on `ADDR`: Address already in use (os error 98)

    hint: the address is in use; choose another one with `--addr HOST:PORT`
    ");
    assert!(!haft.home().exists(), "nothing was made");
}

#[test]
fn the_token_of_the_environment_opens_the_server() {
    let haft = Haft::new();
    let mut command = haft.command(&["tool", "list"]);
    command.env("HAFT_TOKEN", "my-own-token-my-own-token");
    let run = haft.finish(command.output().unwrap());
    assert_eq!(run.code, 0, "{}", run.shown());
}

#[test]
fn a_short_token_does_not_guard_a_server_for_other_machines() {
    let haft = Haft::new();
    let mut command = haft.command(&["serve", "--addr", "0.0.0.0:0"]);
    let run = haft.finish(command.env("HAFT_TOKEN", "short").output().unwrap());
    insta::assert_snapshot!(run.shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: `HAFT_TOKEN` has 5 characters; a server that other machines can reach needs at least 32

    hint: make one with `openssl rand -hex 32`, or listen on 127.0.0.1
    ");
}

#[test]
fn a_second_signal_stops_the_server_immediately() {
    let haft = Haft::new();
    haft.write("home/haft.toml", "[egress]\nprivate_hosts = [\"127.0.0.1\"]\n");
    let server = haft.serve(&[]);
    let url = format!("http://{}/never", upstream::start());
    assert_eq!(
        haft.run(&["tool", "add", "--name", "endless", "--description", "Waits", "--url", &url]).code,
        0
    );
    let call = haft.run(&["tool", "call", "endless", "--async"]);
    assert_eq!(call.code, 0, "{}", call.shown());
    // The first signal waits for the call; how soon it is taken cannot be seen from outside, so the second one
    // comes when the server no longer accepts connections.
    server.signal("TERM");
    let addr = server.url.strip_prefix("http://").unwrap();
    while std::net::TcpStream::connect(addr).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    server.signal("TERM");
    assert_eq!(server.wait(), Some(143));
    assert!(!haft.home().join("server.json").exists());
}

#[test]
fn a_server_for_other_machines_warns_and_prints_a_usable_address() {
    let haft = Haft::new();
    let mut command = haft.command(&["serve", "--addr", "0.0.0.0:0"]);
    let mut child = command.spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("  home ") {
        assert!(reader.read_line(&mut text).unwrap() > 0, "the server ended: {text}");
    }
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut warning = String::new();
    while !warning.contains("warning: ") {
        warning.clear();
        assert!(log.read_line(&mut warning).unwrap() > 0, "the server ended");
    }
    let url = text.lines().find_map(|line| line.trim().strip_prefix("address  ")).unwrap();
    let port = url.strip_prefix("http://127.0.0.1:").unwrap();
    assert!(text.contains(&format!("login    {url}/login with the token in ")), "{text}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_ok(), "{url}");
    assert!(
        warning.contains(&format!("other machines can reach this server at 0.0.0.0:{port}")),
        "{warning}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}
