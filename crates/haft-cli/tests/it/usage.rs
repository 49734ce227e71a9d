//! What a person reads when something is wrong before anything was done, with the exit code.

use crate::harness::Haft;

#[test]
fn an_invalid_option_is_reported() {
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
    error: invalid value 'example.com' for '--addr <HOST:PORT>': expected an IP address with a port, e.g. `127.0.0.1:18789`

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(haft.run(&["tool", "call", "x", "--mode", "prod"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: invalid value 'prod' for '--mode <MODE>': expected `debug` or `production`

    For more information, try '--help'.
    ");
}

#[test]
fn an_invalid_configuration_is_reported_with_its_line() {
    let haft = Haft::new();
    haft.write("home/haft.toml", "[server]\nmax_bdy_bytes = 1\n");
    insta::assert_snapshot!(haft.run(&["tool", "list"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: DIR/home/haft.toml:2: unknown key `server.max_bdy_bytes`

    hint: did you mean `server.max_body_bytes`?
    ");
    insta::assert_snapshot!(haft.run(&["tool", "list", "--json"]).shown(), @r#"
    exit code: 2
    ----- stdout
    ----- stderr
    {"status":"error","error":{"code":"usage","message":"DIR/home/haft.toml:2: unknown key `server.max_bdy_bytes`","hint":"did you mean `server.max_body_bytes`?"}}
    "#);
}

#[test]
fn an_unreachable_server_has_its_own_exit_code() {
    let haft = Haft::new();
    insta::assert_snapshot!(haft.run(&["tool", "list", "--server", "http://127.0.0.1:9"]).shown(), @r"
    exit code: 7
    ----- stdout
    ----- stderr
    error: no token for the server at http://127.0.0.1:9/

    hint: log in with `haft login URL`, or pass one with `--token` or `HAFT_TOKEN`
    ");
    insta::assert_snapshot!(haft.run(&["tool", "list", "--server", "127.0.0.1:9"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: invalid server URL `127.0.0.1:9`: expected a URL such as `http://127.0.0.1:18789`
    ");
    let run = haft.run(&["tool", "list", "--server", "http://127.0.0.1:9", "--token", "x"]);
    assert_eq!(run.code, 6);
    assert!(
        run.stderr.contains("cannot connect to http://127.0.0.1:9: connection refused"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_token_of_the_home_folder_stays_on_this_machine() {
    let haft = Haft::new();
    haft.write("home/tokens", "secret-token\n");
    insta::assert_snapshot!(haft.run(&["tool", "list", "--server", "https://haft.example.com"]).shown(), @r"
    exit code: 7
    ----- stdout
    ----- stderr
    error: no token for the server at https://haft.example.com/

    hint: log in with `haft login URL`, or pass one with `--token` or `HAFT_TOKEN`
    ");
}

#[test]
fn colors_are_used_only_on_request() {
    let haft = Haft::new();
    let plain = haft.run(&["tool", "show", "x", "--server", "nowhere"]);
    assert!(plain.stderr.starts_with("error: "), "{}", plain.stderr);
    let colored = haft.run(&["tool", "show", "x", "--server", "nowhere", "--color", "always"]);
    assert!(colored.stderr.starts_with("\x1b[31;1merror:\x1b[0m "), "{}", colored.stderr);
}

#[test]
fn usage_errors_can_be_json() {
    let haft = Haft::new();
    insta::assert_snapshot!(haft.run(&["--json", "tool", "list", "--bundel", "x"]).shown(), @r#"
    exit code: 2
    ----- stdout
    ----- stderr
    {"status":"error","error":{"code":"usage","message":"unexpected argument '--bundel' found; tip: a similar argument exists: '--bundle'"}}
    "#);
    let missing = haft.run(&["tool", "show", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&missing.stderr).unwrap();
    assert_eq!((missing.code, &error["error"]["code"]), (2, &serde_json::json!("usage")));
    // Requested help is not an error.
    let help = haft.run(&["--json", "--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
}

#[test]
fn a_home_folder_that_is_a_file_is_reported() {
    let haft = Haft::without_home();
    haft.write("home", "a file");
    insta::assert_snapshot!(haft.run(&["tool", "list"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: the home folder `DIR/home` is not a folder

    hint: choose another folder with `--home DIR` or `HAFT_HOME`
    ");
    for command in ["doctor", "init", "serve", "reindex", "mcp"] {
        let run = haft.run(&[command]);
        assert_eq!(run.code, 2, "{command}: {}", run.stderr);
        assert!(
            run.stderr.contains("the home folder `DIR/home` is not a folder"),
            "{command}: {}",
            run.stderr
        );
    }
}

#[test]
fn an_invalid_log_filter_is_reported() {
    let haft = Haft::new();
    // A running server must not hide the error: the client of one does not log.
    let _server = haft.serve(&[]);
    for filter in ["==", "debg", "haft_server=loud", "=debug", "info,,"] {
        let run = haft.run(&["--log", filter, "tool", "list"]);
        let expected = format!(
            "error: invalid value '{filter}' for '--log <FILTER>': expected a level (`off`, `error`, `warn`, `info`, \
             `debug`, `trace`), or a list of `MODULE=LEVEL` and levels such as `haft_server=debug,warn`\n"
        );
        assert!(run.code == 2 && run.stderr.starts_with(&expected), "{}", run.shown());
    }
    for filter in ["debug", "haft_server=debug,warn", "rmcp=off,haft_runtime::pipeline=trace"] {
        assert_eq!(haft.run(&["--log", filter, "tool", "list"]).code, 0, "{filter}");
    }
}

#[test]
fn an_unreachable_database_is_reported() {
    let haft = Haft::new();
    for command in [&["tool", "list"][..], &["serve", "--addr", "127.0.0.1:0"]] {
        let mut command = haft.command(command);
        command.env("HAFT_DATABASE_URL", "postgres://haft:hunter2@127.0.0.1:9/haft");
        let run = haft.finish(command.output().unwrap());
        insta::allow_duplicates! {
            insta::assert_snapshot!(run.shown(), @r"
            exit code: 6
            ----- stdout
            ----- stderr
            error: cannot connect to PostgreSQL at 127.0.0.1:9: connection refused

            hint: check that PostgreSQL is running there, and `database_url` in haft.toml or `HAFT_DATABASE_URL`
            ");
        }
    }
}

#[test]
fn https_to_an_http_port_is_reported() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    let address = server.url.strip_prefix("http://").unwrap();
    let run = haft.run(&["tool", "list", "--server", &format!("https://{address}")]);
    insta::assert_snapshot!(run.shown().replace(address, "ADDR"), @r"
    exit code: 6
    ----- stdout
    ----- stderr
    error: the server at ADDR speaks http, not https

    hint: use `http://ADDR`
    ");
}
