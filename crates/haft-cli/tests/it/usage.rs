//! What a person reads when something is wrong before anything was done, with the exit code.

use crate::harness::Haft;

#[test]
fn a_wrong_flag_is_named() {
    let haft = Haft::new();
    insta::assert_snapshot!(haft.run(&["tool", "list", "--bundel", "x"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: unexpected argument '--bundel' found

      tip: a similar argument exists: '--bundle'

    Usage: haft tool list --bundle <BUNDLE>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(haft.run(&["serve", "--addr", "example.com"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: invalid value 'example.com' for '--addr <HOST:PORT>': write an address with a port, as in `127.0.0.1:18789`

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(haft.run(&["tool", "call", "x", "--mode", "prod"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: invalid value 'prod' for '--mode <MODE>': the modes are `debug` and `production`

    For more information, try '--help'.
    ");
}

#[test]
fn a_wrong_configuration_is_named_with_its_line() {
    let haft = Haft::new();
    haft.write("home/haft.toml", "[server]\nmax_bdy_bytes = 1\n");
    insta::assert_snapshot!(haft.run(&["tool", "list"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: `DIR/home/haft.toml` line 2: unknown key `server.max_bdy_bytes`

    hint: the nearest known key is `server.max_body_bytes`
    ");
    insta::assert_snapshot!(haft.run(&["tool", "list", "--json"]).shown(), @r#"
    exit code: 2
    ----- stdout
    ----- stderr
    {"status":"error","error":{"code":"usage","message":"`DIR/home/haft.toml` line 2: unknown key `server.max_bdy_bytes`","hint":"the nearest known key is `server.max_body_bytes`"}}
    "#);
}

#[test]
fn a_server_that_is_not_there_has_its_own_exit_code() {
    let haft = Haft::new();
    insta::assert_snapshot!(haft.run(&["tool", "list", "--server", "http://127.0.0.1:9"]).shown(), @r"
    exit code: 7
    ----- stdout
    ----- stderr
    error: there is no token for the server at `http://127.0.0.1:9/`

    hint: give one with `--token` or `HAFT_TOKEN`
    ");
    insta::assert_snapshot!(haft.run(&["tool", "list", "--server", "127.0.0.1:9"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: `127.0.0.1:9` is no address of a server; write it like `http://127.0.0.1:18789`
    ");
    let run = haft.run(&["tool", "list", "--server", "http://127.0.0.1:9", "--token", "x"]);
    assert_eq!(run.code, 6);
    assert!(run.stderr.contains("reach the server at `http://127.0.0.1:9`"), "{}", run.stderr);
}

#[test]
fn the_token_of_the_home_folder_stays_on_this_machine() {
    let haft = Haft::new();
    haft.write("home/tokens", "secret-token\n");
    insta::assert_snapshot!(haft.run(&["tool", "list", "--server", "https://haft.example.com"]).shown(), @r"
    exit code: 7
    ----- stdout
    ----- stderr
    error: there is no token for the server at `https://haft.example.com/`

    hint: give one with `--token` or `HAFT_TOKEN`
    ");
}

#[test]
fn colors_are_asked_for_or_absent() {
    let haft = Haft::new();
    let plain = haft.run(&["tool", "show", "x", "--server", "nowhere"]);
    assert!(plain.stderr.starts_with("error: "), "{}", plain.stderr);
    let colored = haft.run(&["tool", "show", "x", "--server", "nowhere", "--color", "always"]);
    assert!(colored.stderr.starts_with("\x1b[31;1merror:\x1b[0m "), "{}", colored.stderr);
}

#[test]
fn programs_read_a_wrong_command_line_as_json() {
    let haft = Haft::new();
    insta::assert_snapshot!(haft.run(&["--json", "tool", "list", "--bundel", "x"]).shown(), @r#"
    exit code: 2
    ----- stdout
    ----- stderr
    {"status":"error","error":{"code":"usage","message":"unexpected argument '--bundel' found; tip: a similar argument exists: '--bundle'"}}
    "#);
    let missing = haft.run(&["tool", "show", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&missing.stderr).unwrap();
    assert_eq!((missing.code, &said["error"]["code"]), (2, &serde_json::json!("usage")));
    // What was asked for is no error.
    let help = haft.run(&["--json", "--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
}

#[test]
fn a_home_folder_that_is_a_file_is_named() {
    let haft = Haft::new();
    haft.write("home", "a file");
    insta::assert_snapshot!(haft.run(&["tool", "list"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: the home folder `DIR/home` is a file

    hint: name a folder with `--home DIR` or `HAFT_HOME`, or move the file away
    ");
    for command in ["doctor", "init", "serve", "reindex", "mcp"] {
        let run = haft.run(&[command]);
        assert_eq!(run.code, 2, "{command}: {}", run.stderr);
        assert!(run.stderr.contains("the home folder `DIR/home` is a file"), "{command}: {}", run.stderr);
    }
}
