//! Remote use: logins to servers, contexts, and which server commands use.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Haft, Run, Server, mode};

/// A person with a configuration folder, on a machine where haft has no home folder yet.
struct Person(Haft);

impl Person {
    fn new() -> Self {
        Self(Haft::without_home())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(arguments);
        command.env_remove("HAFT_HOME").env("HOME", self.0.path("user"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.0.finish(self.command(arguments).output().unwrap())
    }

    /// Runs a command with variables of the environment.
    fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
        let mut command = self.command(arguments);
        self.0.finish(command.envs(variables.iter().copied()).output().unwrap())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let run = self.run(&[&["--json"], arguments].concat());
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.shown());
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// Logs in with a token on standard input.
    fn login(&self, url: &str, token: &str, more: &[&str]) -> Run {
        let mut command = self.command(&[&["login", url, "--token"], more].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A login that is rejected does not read it.
        let _ = child.stdin.take().unwrap().write_all(format!("{token}\n").as_bytes());
        self.0.finish(child.wait_with_output().unwrap())
    }

    fn contexts(&self) -> std::path::PathBuf {
        self.0.path("user/.config/haft/contexts.toml")
    }
}

/// A home folder with a server.
fn host() -> (Haft, Server) {
    let host = Haft::new();
    let server = host.serve(&[]);
    (host, server)
}

/// Creates a token on a server.
fn token(host: &Haft, name: &str, more: &[&str]) -> String {
    let run = host.run(&[&["token", "create", name], more].concat());
    assert_eq!(run.code, 0, "{}", run.shown());
    run.stdout.trim().to_owned()
}

/// The bearer token in the home folder of a server.
fn local_token(host: &Haft) -> String {
    std::fs::read_to_string(host.home().join("tokens")).unwrap().trim().to_owned()
}

#[test]
fn a_token_is_checked_before_it_is_stored() {
    let (host, server) = host();
    let editor = token(&host, "ci", &["--role", "editor"]);
    let person = Person::new();
    let wrong = person.login(&server.url, "haft_wrong", &[]);
    assert!(wrong.code == 7 && wrong.stderr.contains("does not accept the token"), "{}", wrong.shown());
    assert!(!wrong.shown().contains("haft_wrong") && !person.contexts().exists(), "{}", wrong.shown());
    let empty = person.login(&server.url, "", &[]);
    assert_eq!(empty.code, 2, "{}", empty.shown());

    let login = person.login(&format!("{}/api/", server.url), &editor, &[]);
    insta::assert_snapshot!(login.shown().replace(&server.url, "URL"), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    logged in to URL as `ci`: role `editor` in tenant `default`
    commands use the context `127.0.0.1` now
    ");
    assert_eq!((mode(&person.contexts()), mode(person.contexts().parent().unwrap())), (0o600, 0o700));
    let stored = std::fs::read_to_string(person.contexts()).unwrap();
    assert!(
        stored.contains("version = 1") && stored.contains(&editor),
        "{}",
        stored.replace(&editor, "TOKEN")
    );

    // From now on, commands use the server.
    let who = person.json(&["whoami"]);
    let expected = [
        ("server", json!(server.url)),
        ("context", json!("127.0.0.1")),
        ("tenant", json!("default")),
        ("name", json!("ci")),
        ("role", json!("editor")),
        ("elevated", json!(false)),
        ("platform", json!(false)),
        ("tools", json!(null)),
        ("expires_at", json!(null)),
    ];
    for (key, value) in expected {
        assert_eq!(who.get(key), Some(&value), "{key}: {who}");
    }
    assert!(who.get("token_id").is_some_and(Value::is_string), "{who}");
    let id = who.get("token_id").and_then(Value::as_str).unwrap();
    let shown = person.run(&["whoami"]).shown().replace(&server.url, "URL").replace(id, "ID");
    insta::assert_snapshot!(shown, @r"
    exit code: 0
    ----- stdout
    server: URL (context `127.0.0.1`)
    tenant: default
    token: ci (ID)
    role: editor
    tools: all
    rate limit: none
    elevated: no
    expires: never
    ----- stderr
    ");
    let add = ["tool", "add", "--name", "remote", "--description", "Far", "--url", "https://example.com"];
    assert_eq!(person.run(&add).code, 0);
    let list = person.run(&["tool", "list", "-o", "name"]);
    assert_eq!((list.code, list.stdout.as_str()), (0, "user-created:remote@1.0.0\n"), "{}", list.shown());
    assert_eq!(host.run(&["tool", "show", "remote"]).code, 0);
    assert!(!person.0.path("user/.haft").exists(), "the home folder is not touched");
}

#[test]
fn urls_and_tokens_in_arguments_are_rejected() {
    let person = Person::new();
    let cases: &[(&[&str], &str)] = &[
        (&["login", "http://haft.example.com", "--token"], "pass `--insecure-http`"),
        (&["login", "haft.example.com"], "invalid server URL `haft.example.com`"),
        (&["login", "ftp://haft.example.com"], "invalid server URL"),
        (&["login", "https://ann:hunter2@haft.example.com"], "must not contain a user name or a password"),
        (&["login", "https://haft.example.com?token=hunter2"], "must not contain a query"),
        (&["login", "https://haft.example.com", "--token", "hunter2"], "the token is read from"),
        (&["login", "https://haft.example.com", "--token=hunter2"], "the token is read from"),
        (&["login", "--token", "haft_hunter2"], "the token is read from"),
        (&["login", "--token", "hunter2"], "the token is read from"),
        (&["login", "hunter2", "--token"], "the token is read from"),
        (&["--server", "https://ann:hunter2@a.test", "tool", "list"], "must not contain a user name"),
        (&["--server", "https://a.test/?token=hunter2", "tool", "list"], "must not contain a query"),
        (&["--token", "hunter2", "login", "https://haft.example.com"], "the token is read from"),
        (&["login"], "missing the URL of the server"),
        (&["login", "https://haft.example.com", "--name", "local"], "`local` is the home folder"),
        (&["login", "https://haft.example.com", "--name", "a/b"], "expected 1 to 64 letters"),
        (&["--server", "https://a.test", "--context", "b", "tool", "list"], "exclude each other"),
    ];
    for (arguments, expected) in cases {
        let run = person.run(arguments);
        assert!(run.code == 2 && run.stderr.contains(expected), "{arguments:?}: {}", run.shown());
        assert!(!run.stderr.contains("hunter2"), "{arguments:?}: {}", run.shown());
    }
    assert!(!person.contexts().exists());
}

#[test]
fn contexts_are_listed_selected_and_removed() {
    let ((first, server), (second, other)) = (host(), host());
    let person = Person::new();
    assert_eq!(person.login(&server.url, &local_token(&first), &[]).code, 0);
    // The host is the same, so the second one gets the port.
    let login = person.login(&other.url, &local_token(&second), &[]);
    let port = other.url.rsplit(':').next().unwrap();
    let name = format!("127.0.0.1-{port}");
    assert!(
        login.code == 0 && login.stderr.contains(&format!("the context `{name}` now")),
        "{}",
        login.shown()
    );
    let taken = person.login(&other.url, &local_token(&second), &["--name", "127.0.0.1"]);
    assert!(taken.code == 2 && taken.stderr.contains("is for http://127.0.0.1:"), "{}", taken.shown());

    let used = |arguments: &[&str]| {
        let who = person.json(&[arguments, &["whoami"]].concat());
        who.get("server").and_then(Value::as_str).map(str::to_owned)
    };
    assert_eq!(used(&[]), Some(other.url.clone()));
    assert_eq!(used(&["--context", "127.0.0.1"]), Some(server.url.clone()));
    let list = person.run(&["context", "list"]);
    let shown =
        list.shown().replace(&server.url, "FIRST").replace(&other.url, "SECOND").replace(port, "PORT");
    let shown: Vec<String> =
        shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    exit code: 0
    ----- stdout
    NAME SERVER TENANT CURRENT
    local DIR/user/.haft
    127.0.0.1 FIRST default
    127.0.0.1-PORT SECOND default yes
    ----- stderr
    ");
    assert_eq!(person.run(&["context", "list", "-o", "name"]).stdout, format!("local\n127.0.0.1\n{name}\n"));
    let json = person.json(&["context", "list"]);
    assert!(!json.to_string().contains(&local_token(&first)), "{json}");

    // Variables come before the current context, options before variables.
    let server_of = |variables: &[(&str, &str)], arguments: &[&str]| {
        let run = person.run_with(variables, &[&["--json"], arguments, &["whoami"]].concat());
        assert_eq!(run.code, 0, "{variables:?}: {}", run.shown());
        serde_json::from_str::<Value>(&run.stdout).unwrap().get("server").cloned().unwrap()
    };
    let home = first.home().display().to_string();
    assert_eq!(server_of(&[("HAFT_CONTEXT", "127.0.0.1")], &[]), json!(server.url));
    assert_eq!(server_of(&[("HAFT_CONTEXT", "127.0.0.1")], &["--context", &name]), json!(other.url));
    assert_eq!(server_of(&[("HAFT_HOME", &home)], &[]), json!(server.url));
    assert_eq!(server_of(&[("HAFT_HOME", &home), ("HAFT_CONTEXT", &name)], &[]), json!(other.url));
    let bearer = local_token(&first);
    let named = [("HAFT_SERVER", server.url.as_str()), ("HAFT_TOKEN", bearer.as_str())];
    assert_eq!(server_of(&named, &[]), json!(server.url));
    // The variable may have the token of another server: a context has its own.
    assert_eq!(server_of(&named, &["--context", &name]), json!(other.url));

    let unknown = person.run(&["context", "use", "nowhere"]);
    assert!(
        unknown.code == 3 && unknown.stderr.contains("context `nowhere` not found"),
        "{}",
        unknown.shown()
    );
    assert_eq!(person.run(&["--context", "nowhere", "tool", "list"]).code, 3);
    let select = person.run(&["context", "use", "127.0.0.1"]);
    assert_eq!((select.code, used(&[])), (0, Some(server.url.clone())), "{}", select.shown());
    let overridden = person.run_with(&[("HAFT_HOME", &home)], &["context", "use", &name]);
    assert!(overridden.stderr.contains("warning: `HAFT_HOME` comes before"), "{}", overridden.shown());
    let removed = person.run(&["context", "rm", &name]);
    assert!(
        removed.code == 0 && removed.stderr.contains("commands use the home folder"),
        "{}",
        removed.shown()
    );
    let local = person.run(&["tool", "list"]);
    assert!(local.code == 2 && local.stderr.contains("user/.haft` does not exist"), "{}", local.shown());
    assert_eq!(person.run(&["context", "use", "127.0.0.1"]).code, 0);
    assert_eq!(person.run(&["context", "use", "local"]).code, 0);
    assert_eq!(person.run(&["tool", "list"]).code, 2);
    let completed = person.run(&["__complete", "--", "context", "use", ""]);
    let words: Vec<&str> = completed.stdout.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["127.0.0.1", "local"], "{}", completed.shown());
}

#[test]
fn a_login_renews_the_context() {
    let (host, server) = host();
    let person = Person::new();
    let names = || person.run(&["context", "list", "-o", "name"]).stdout;
    assert_eq!(person.login(&server.url, &local_token(&host), &["--name", "prod"]).code, 0);
    // The same server and tenant: the name is the earlier one.
    assert_eq!(person.login(&server.url, &local_token(&host), &[]).code, 0);
    assert_eq!(names(), "local\nprod\n");
    assert_eq!(person.login(&server.url, &local_token(&host), &["--name", "test"]).code, 0);
    let ci = token(&host, "ci", &["--role", "editor"]);
    let mut command = person.command(&["--context", "prod", "login", "--token"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{ci}\n").as_bytes()).unwrap();
    let login = person.0.finish(child.wait_with_output().unwrap());
    assert!(login.code == 0 && login.stderr.contains("the context `prod` now"), "{}", login.shown());
    assert_eq!(names(), "local\nprod\ntest\n");
    assert_eq!(person.json(&["--context", "prod", "whoami"]).get("name"), Some(&json!("ci")));
    assert_eq!(person.json(&["--context", "test", "whoami"]).get("name"), Some(&json!("local")));
}

#[test]
fn a_token_without_encryption_is_warned_of() {
    let person = Person::new();
    // Nobody has this name.
    let arguments = ["--server", "http://haft.invalid", "--token", "t", "tool", "list"];
    let run = person.run(&arguments);
    assert_ne!(run.code, 0);
    assert_eq!(run.stderr.matches("`http://haft.invalid` has no encryption").count(), 1, "{}", run.shown());
    let local = person.run(&["--server", "http://127.0.0.1:1", "--token", "t", "tool", "list"]);
    assert!(local.code != 0 && !local.stderr.contains("no encryption"), "{}", local.shown());
}

#[test]
fn commands_of_the_home_folder_say_so() {
    let (host, server) = host();
    let person = Person::new();
    assert_eq!(person.login(&server.url, &local_token(&host), &[]).code, 0);
    let reindex = person.run(&["reindex"]);
    insta::assert_snapshot!(reindex.shown().replace(&server.url, "URL"), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: `haft reindex` works on the home folder of this machine, not on the current context `127.0.0.1` (URL)

    hint: run it on the machine of that server, or pass `--context local` for the home folder here
    ");
    let doctor = person.run(&["doctor"]);
    assert!(doctor.stdout.contains("configured: the current context `127.0.0.1`"), "{}", doctor.shown());
    assert_eq!(person.run(&["init"]).code, 0);
    assert_eq!(person.run(&["--context", "local", "reindex"]).code, 0);
    let whoami = person.run(&["--context", "local", "whoami"]);
    assert!(whoami.stdout.contains("server: none; commands open the home folder"), "{}", whoami.shown());
    let program = person.run(&["mcp-server", "add", "echo", "--", "/nowhere/program"]);
    let expected = format!("the program runs on the machine of the server at {}", server.url);
    assert!(program.stderr.contains(&expected), "{}", program.shown());
    assert_eq!(person.run(&["tenant", "create", "acme"]).code, 0);
    let root = person.run(&["tenant", "set", "acme", "--file-root", "reports=/srv/acme"]);
    assert!(root.stderr.contains("the folders are on the machine of the server at "), "{}", root.shown());
    // A server is one of the home folder, whatever the current context is.
    let mut serve = person.command(&["serve", "--addr", "127.0.0.1:0"]);
    let mut child = serve.spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    while !line.contains("other commands do not use this server") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "the server ended");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains("the current context `127.0.0.1`"), "{line}");
}

#[test]
fn a_logout_revokes_the_token() {
    let (host, server) = host();
    let person = Person::new();
    let caller = token(&host, "caller", &["--role", "caller"]);
    let works = |token: &str| {
        let arguments = ["--server", &server.url, "--token", token, "whoami"];
        person.run(&arguments).code == 0
    };
    assert_eq!(person.login(&server.url, &caller, &[]).code, 0);
    let kept = person.run(&["logout", "--keep-token"]);
    assert!(kept.code == 0 && kept.stderr.contains("the token stays valid"), "{}", kept.shown());
    assert!(works(&caller));
    assert_eq!(person.login(&server.url, &caller, &["--name", "prod"]).code, 0);
    let logout = person.run(&["logout", "prod"]);
    insta::assert_snapshot!(logout.shown().replace(&server.url, "URL"), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    logged out of URL; removed the context `prod`
    ");
    assert!(!works(&caller));
    assert!(!std::fs::read_to_string(person.contexts()).unwrap().contains(&caller));
    let nobody = person.run(&["logout"]);
    assert!(nobody.code == 2 && nobody.stderr.contains("no context is selected"), "{}", nobody.shown());
    // The admin token of the home folder is not a stored one.
    let local = local_token(&host);
    assert_eq!(person.login(&server.url, &local, &[]).code, 0);
    let logout = person.run(&["logout"]);
    assert!(logout.code == 0 && logout.stderr.contains("it is the admin token"), "{}", logout.shown());
    assert!(works(&local));
    // A server that is gone does not keep its context.
    assert_eq!(person.login(&server.url, &local, &[]).code, 0);
    drop(server);
    let logout = person.run(&["logout"]);
    assert!(logout.code == 0 && logout.stderr.contains("the token stays valid"), "{}", logout.shown());
    assert_eq!(person.run(&["context", "list", "-o", "name"]).stdout, "local\n");
}

/// A `haft login` that waits for a person.
struct Login {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    code: String,
    page: String,
}

impl Login {
    fn start(person: &Person, url: &str) -> Self {
        let mut child = person.command(&["login", url]).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (mut code, mut page) = (String::new(), String::new());
        while code.is_empty() {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "the login ended");
            let line = line.trim();
            if let Some(found) = line.strip_prefix("Code: ") {
                found.split(' ').next().unwrap().clone_into(&mut code);
            } else if line.starts_with("http") {
                line.clone_into(&mut page);
            }
        }
        Self { child, stderr, code, page }
    }

    /// Waits for the end; returns the exit code and what it printed after the code.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

/// Decides a login on the page of a server, with a token; returns the status.
fn decide(server: &Server, token: &str, code: &str, decision: &str) -> u16 {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let form = format!("user_code={code}&decision={decision}");
        let request = http.post(format!("{}/device", server.url)).bearer_auth(token).body(form);
        request.timeout(Duration::from_secs(30)).send().await.unwrap().status().as_u16()
    })
}

#[test]
fn a_login_is_approved_in_a_browser() {
    let (host, server) = host();
    let person = Person::new();
    let login = Login::start(&person, &server.url);
    assert_eq!(login.page, format!("{}/device?user_code={}", server.url, login.code));
    assert_eq!(decide(&server, &local_token(&host), &login.code, "approve"), 200);
    let (code, text) = login.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("as `local`") && text.contains("role `admin` in tenant `default`"), "{text}");
    let who = person.json(&["whoami"]);
    assert!(who.get("expires_at").is_some_and(Value::is_string), "{who}");
    assert_eq!(
        (who.get("platform"), who.get("elevated")),
        (Some(&json!(false)), Some(&json!(false))),
        "{who}"
    );
    assert_eq!(person.run(&["tool", "list"]).code, 0);
    let tokens = host.json(&["token", "list"]);
    assert_eq!(tokens.get("total"), Some(&json!(1)), "{tokens}");
    assert_eq!(person.run(&["logout"]).code, 0);
    assert_eq!(host.json(&["token", "list"]).get("total"), Some(&json!(0)));
}

#[test]
fn a_login_is_for_the_tenant_of_the_person() {
    let (host, server) = host();
    assert_eq!(host.run(&["tenant", "create", "acme"]).code, 0);
    let more = ["--tenant", "acme", "--role", "caller", "--tools", "weather,web:*", "--expires-in", "2h"];
    let ann = token(&host, "ann", &more);
    let person = Person::new();
    let login = Login::start(&person, &server.url);
    assert_eq!(decide(&server, &ann, &login.code, "approve"), 200);
    let (code, text) = login.end();
    assert!(code == Some(0) && text.contains("role `caller` in tenant `acme`"), "{text}");
    let who = person.json(&["whoami"]);
    assert_eq!(who.get("tools"), Some(&json!(["weather", "web:*"])), "{who}");
    assert_eq!(person.run(&["tenant", "list"]).code, 7);
}

#[test]
fn a_denied_login_stores_nothing() {
    let (host, server) = host();
    let person = Person::new();
    let login = Login::start(&person, &server.url);
    assert_eq!(decide(&server, &local_token(&host), &login.code, "deny"), 200);
    let (code, text) = login.end();
    assert_eq!(code, Some(7), "{text}");
    assert!(text.contains("error: the login was denied in the browser"), "{text}");
    assert!(!person.contexts().exists());
}

/// A server that has started a login and answers with an error when its token is fetched; before that, with what a proxy
/// answers whose server restarts.
fn refusing_server(error: &'static str, page: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let page = page.map_or_else(|| format!("{url}/device"), str::to_owned);
    std::thread::spawn(move || {
        let mut fetches = 0;
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream, (error, page.as_str()), &mut fetches);
        }
    });
    url
}

fn answer(mut stream: &TcpStream, (error, page): (&str, &str), fetches: &mut u32) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    reader.read_exact(&mut vec![0; length.unwrap_or(0)])?;
    let (status, body) = if head.starts_with("POST /oauth/device_authorization ") {
        let started = json!({
            "device_code": "d", "user_code": "BCDF-GHJK", "verification_uri": page, "expires_in": 60,
            "interval": 1,
        });
        ("200 OK", started.to_string())
    } else {
        *fetches += 1;
        match *fetches {
            1 => ("502 Bad Gateway", "<html>The server restarts</html>".to_owned()),
            _ => ("400 Bad Request", json!({"error": error}).to_string()),
        }
    };
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n{body}").as_bytes())
}

#[test]
fn a_login_that_expires_or_is_used_already_stores_nothing() {
    for (error, expected) in [
        ("expired_token", "the login has expired"),
        ("invalid_grant", "the server does not know the login any more"),
    ] {
        let person = Person::new();
        let login = Login::start(&person, &refusing_server(error, None));
        assert_eq!(login.code, "BCDF-GHJK");
        let (code, text) = login.end();
        assert!(code == Some(7) && text.contains(expected), "{error}: {text}");
        assert!(!person.contexts().exists());
    }
}

#[test]
fn only_a_page_that_can_be_opened_is_shown() {
    let person = Person::new();
    let run = person.run(&["login", &refusing_server("expired_token", Some("javascript:alert(1)"))]);
    assert!(run.code != 0 && !run.stderr.contains("javascript"), "{}", run.shown());
    let server = refusing_server("expired_token", Some("https://evil.example/device"));
    let run = person.run(&["login", &server]);
    let expected = "warning: the page is on `evil.example`, but you log in to `127.0.0.1`";
    assert!(run.stderr.contains(expected), "{}", run.shown());
}

#[test]
fn a_login_that_cannot_be_stored_is_not_started() {
    let (_host, server) = host();
    let person = Person::new();
    // A file is where the folder would be.
    std::fs::create_dir_all(person.0.path("user")).unwrap();
    std::fs::write(person.0.path("user/.config"), "").unwrap();
    let run = person.run(&["login", &server.url]);
    assert!(run.code != 0 && !run.stderr.contains("Code: "), "{}", run.shown());
}

#[test]
fn a_token_that_cannot_be_stored_is_revoked() {
    let (host, server) = host();
    let person = Person::new();
    let login = Login::start(&person, &server.url);
    // The file becomes unreadable while the login waits.
    std::fs::write(person.contexts(), "version = 2\n").unwrap();
    assert_eq!(decide(&server, &local_token(&host), &login.code, "approve"), 200);
    let (code, text) = login.end();
    assert!(code != Some(0) && text.contains("its token was revoked"), "{text}");
    assert_eq!(host.json(&["token", "list"]).get("total"), Some(&json!(0)));
}
