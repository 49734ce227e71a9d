//! `haft tenant`, `haft token` and `haft login-link`.

use crate::harness::Haft;

#[test]
fn a_tenant_and_its_tokens_from_the_command_line() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    let ok = |arguments: &[&str]| {
        let run = haft.run(arguments);
        assert_eq!(run.code, 0, "{}", run.shown());
        run.stdout.trim().to_owned()
    };
    ok(&["tenant", "create", "acme", "--name", "Acme"]);
    ok(&["tenant", "rename", "acme", "Acme Inc."]);
    let list = ok(&["tenant", "list"]);
    assert!(list.contains("acme") && list.contains("Acme Inc.") && list.contains("default"), "{list}");
    ok(&["tenant", "set", "acme", "--limit", "calls_per_minute=600", "--limit", "max_tools=5"]);
    ok(&["tenant", "set", "acme", "--limit", "max_tools=none", "--env", "KEY"]);
    let shown = ok(&["tenant", "show", "acme"]);
    let rows =
        |name: &str| shown.lines().find(|line| line.starts_with(name)).map(str::trim).map(str::to_owned);
    assert!(rows("limits.calls_per_minute").is_some_and(|row| row.ends_with("600")), "{shown}");
    assert!(rows("environment").is_some_and(|row| row.ends_with("KEY")), "{shown}");
    assert_eq!(rows("limits.max_tools"), None, "{shown}");
    let unknown = haft.run(&["tenant", "set", "acme", "--limit", "max_tool=5"]);
    assert!(unknown.code == 8 && unknown.stderr.contains("max_tools"), "{}", unknown.shown());
    let create = ["token", "create", "agent", "--tenant", "acme", "--role", "editor"];
    let token = ok(&[&create[..], &["--tools", "weather,web:*", "--expires-in", "90d"]].concat());
    let with = |token: &str, arguments: &[&str]| {
        haft.run(&[arguments, &["--server", &server.url, "--token", token]].concat())
    };
    assert_eq!(with(&token, &["tool", "list"]).code, 0);
    let refused = with(&token, &["tenant", "list"]);
    assert!(refused.code == 7 && refused.stderr.contains("platform admin required"), "{}", refused.shown());

    let tokens = haft.json(&["token", "list", "--tenant", "acme"]);
    let row = &tokens["tokens"][0];
    assert_eq!((row["name"].as_str(), row["tools"][1].as_str()), (Some("agent"), Some("web:*")), "{tokens}");
    assert!(row["last_used_at"].is_string() && row["expires_at"].is_string(), "{tokens}");
    let id = row["id"].as_str().unwrap();
    let rotated = ok(&["token", "rotate", id]);
    assert_ne!(rotated, token);
    assert_eq!(with(&token, &["tool", "list"]).code, 7, "the old value stops working at once");
    assert_eq!(with(&rotated, &["tool", "list"]).code, 0);

    ok(&["tenant", "disable", "acme"]);
    assert_eq!(with(&rotated, &["tool", "list"]).code, 7);
    ok(&["tenant", "enable", "acme"]);
    assert_eq!(with(&rotated, &["tool", "list"]).code, 0);
    ok(&["token", "revoke", id]);
    assert_eq!(with(&rotated, &["tool", "list"]).code, 7);

    let unconfirmed = haft.run(&["tenant", "delete", "acme"]);
    insta::assert_snapshot!(unconfirmed.shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: this deletes all tools, calls, credentials, tokens and files of `acme`; confirm it with `--confirm acme`
    ");
    ok(&["tenant", "delete", "acme", "--confirm", "acme"]);
    assert!(!ok(&["tenant", "list"]).contains("acme"));
}

#[test]
fn a_login_link_points_to_the_server() {
    let haft = Haft::new();
    let offline = haft.run(&["login-link"]);
    assert!(offline.code == 0 && offline.stderr.contains("no server is running"), "{}", offline.shown());
    assert!(offline.stdout.starts_with("http://127.0.0.1:18789/login?code="), "{}", offline.shown());
    let server = haft.serve(&[]);
    let link = haft.json(&["login-link"]);
    assert!(link["url"].as_str().unwrap().starts_with(&format!("{}/login?code=", server.url)), "{link}");
}
