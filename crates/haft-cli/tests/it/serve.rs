//! `haft serve`: how it starts, how commands find it, and how it ends.

use crate::harness::{Haft, mode};

#[test]
fn commands_find_the_server_through_the_home_folder() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    let file = haft.home().join("server.json");
    assert!(file.exists());
    assert!(server.said["login"].as_str().unwrap().starts_with(&server.url), "{}", server.said);
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
fn an_interrupt_ends_it_too() {
    let haft = Haft::new();
    let server = haft.serve(&["--mode", "production"]);
    server.signal("INT");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_killed_server_leaves_a_file_that_is_ignored() {
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
fn an_address_that_is_taken_is_named() {
    let haft = Haft::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let run = haft.run(&["serve", "--addr", &addr]);
    insta::assert_snapshot!(run.shown().replace(&addr, "ADDR"), @"");
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
