//! `haft person`, `haft service-account` and `haft group`, and the tokens that belong to them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Haft, Run, Server};

/// Runs a command that must succeed; returns its data.
fn ok(haft: &Haft, arguments: &[&str]) -> String {
    let run = haft.run(arguments);
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.shown());
    run.stdout.trim().to_owned()
}

/// Runs a command with a token.
fn run_as(haft: &Haft, server: &Server, token: &str, arguments: &[&str]) -> Run {
    haft.run(&[arguments, &["--server", &server.url, "--token", token]].concat())
}

/// Logs a person in with the link of an invitation, and creates a token of their own.
fn own_token(server: &Server, link: &str, new: &Value) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let redirects = reqwest::redirect::Policy::none();
        let http = reqwest::Client::builder().no_proxy().redirect(redirects).build().unwrap();
        let code = link.rsplit('=').next().unwrap_or_default();
        let login = http.post(format!("{}/login", server.url)).body(format!("code={code}"));
        let response = login.timeout(Duration::from_secs(30)).send().await.unwrap();
        let cookie = response.headers().get("set-cookie").unwrap().to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap_or_default();
        let create = http.post(format!("{}/api/tokens", server.url)).header("cookie", cookie);
        let create = create.header("x-haft-session", "1").body(new.to_string());
        let response = create.timeout(Duration::from_secs(30)).send().await.unwrap();
        let created: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        created.pointer("/data/token").and_then(Value::as_str).unwrap().to_owned()
    })
}

/// Returns whether a token stops working within a few seconds.
fn ends(haft: &Haft, server: &Server, token: &str) -> bool {
    (0..30).any(|_| {
        let has_ended = run_as(haft, server, token, &["whoami"]).code == 7;
        if !has_ended {
            std::thread::sleep(Duration::from_millis(100));
        }
        has_ended
    })
}

/// Returns the text of the line with a label.
fn field<'a>(shown: &'a str, label: &str) -> Option<&'a str> {
    shown.lines().find_map(|line| line.strip_prefix(label)).map(str::trim)
}

/// Adds Ann, an editor, and Bob, a caller.
fn invite_ann_and_bob(haft: &Haft) {
    ok(haft, &["person", "invite", "Ann Smith", "--email", "ann@example.com", "--role", "editor"]);
    ok(haft, &["person", "create", "Bob", "--email", "bob@example.com"]);
}

#[test]
fn a_person_is_invited_changed_disabled_and_deleted() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    let invite = ["person", "invite", "Ann Smith", "--email", "ann@example.com", "--role", "editor"];
    let invited = haft.run(&invite);
    let start = format!("{}/login?invitation=", server.url);
    assert!(invited.code == 0 && invited.stdout.starts_with(&start), "{}", invited.shown());
    assert!(invited.stderr.starts_with("invited `Ann Smith`\n"), "{}", invited.shown());
    assert!(invited.stderr.contains("it works once, until 20"), "{}", invited.shown());
    assert_eq!(haft.run(&invite).code, 4, "no two people have the same e-mail address");

    assert_eq!(haft.json(&["person", "list"])["total"], 2, "Ann and the local owner");
    let list = haft.json(&["person", "list", "-q", "ann"]);
    let ann = &list["people"][0];
    assert_eq!(
        (&list["total"], &ann["name"], &ann["status"]),
        (&json!(1), &json!("Ann Smith"), &json!("invited"))
    );
    let id = ann["id"].as_str().unwrap();
    assert_eq!(haft.run(&["person", "ls", "-q", "ann", "-o", "name"]).stdout, format!("{id}\n"));
    let table = ok(&haft, &["person", "list", "-q", "ann"]);
    let cells = ["Ann Smith", "ann@example.com", "invited", "editor", "never"];
    assert!(cells.iter().all(|cell| table.contains(cell)), "{table}");
    assert_eq!(haft.json(&["person", "list", "--status", "disabled"])["total"], 0);
    for reference in [id, "ann@example.com", "Ann Smith"] {
        let shown = ok(&haft, &["person", "show", reference]);
        assert_eq!(field(&shown, "person"), Some(format!("Ann Smith ({id})").as_str()), "{shown}");
        assert_eq!(field(&shown, "rights"), Some("editor; tools: all"), "{shown}");
        assert_eq!(field(&shown, "groups"), None, "{shown}");
    }

    let link = ok(&haft, &["person", "link", "ann@example.com"]);
    assert!(link.starts_with(&start) && link != invited.stdout.trim(), "{link}");
    ok(
        &haft,
        &[
            "person",
            "edit",
            "Ann Smith",
            "--name",
            "Ann Jones",
            "--role",
            "caller",
            "--tools",
            "weather,web:*",
        ],
    );
    let shown = ok(&haft, &["person", "show", "Ann Jones"]);
    assert_eq!(field(&shown, "membership"), Some("caller; tools: weather,web:*"), "{shown}");
    ok(&haft, &["person", "edit", "Ann Jones", "--all-tools", "--elevated"]);
    let shown = ok(&haft, &["person", "show", "Ann Jones"]);
    assert_eq!(field(&shown, "membership"), Some("caller; tools: all; elevated"), "{shown}");
    insta::assert_snapshot!(haft.run(&["person", "edit", "Ann Jones"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: nothing to change: pass at least one option; see `--help`
    ");

    insta::assert_snapshot!(haft.run(&["person", "disable", "ann@example.com"]).shown(), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    disabled person `ann@example.com`
    ");
    assert_eq!(haft.json(&["person", "show", id])["status"], "disabled");
    assert_eq!(haft.run(&["person", "link", "ann@example.com"]).code, 4, "a disabled person does not log in");
    ok(&haft, &["person", "enable", "ann@example.com"]);
    assert_eq!(haft.json(&["person", "show", id])["status"], "active");
    ok(&haft, &["person", "delete", "ann@example.com", "--yes"]);
    assert_eq!(haft.run(&["person", "show", id]).code, 3);
    assert_eq!(haft.json(&["person", "list", "-q", "ann"])["total"], 0);
}

#[test]
fn a_token_of_a_person_is_limited_by_the_rights_of_the_person() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    invite_ann_and_bob(&haft);
    ok(&haft, &["group", "create", "finance", "--tools", "bank:*", "--member", "ann@example.com"]);
    let refused = haft.run(&["token", "create", "laptop", "--owner", "ann@example.com"]);
    assert_eq!(refused.code, 7, "it would act in the name of Ann: {}", refused.shown());
    let link = ok(&haft, &["person", "link", "ann@example.com"]);
    let token = own_token(&server, &link, &json!({"name": "laptop", "owner": "me"}));
    assert_eq!(haft.json(&["person", "show", "ann@example.com"])["status"], "active", "she has logged in");
    let who = haft.json(&["whoami", "--server", &server.url, "--token", &token]);
    assert_eq!(
        (&who["name"], &who["actor"]["email"]),
        (&json!("Ann Smith"), &json!("ann@example.com")),
        "{who}"
    );
    let (person, id) = (who["actor"]["id"].as_str().unwrap(), who["token_id"].as_str().unwrap());
    let shown = run_as(&haft, &server, &token, &["whoami"]).shown();
    let shown = shown.replace(&server.url, "URL").replace(person, "PERSON").replace(id, "TOKEN");
    insta::assert_snapshot!(shown.split("expires: ").next().unwrap_or_default(), @r"
    exit code: 0
    ----- stdout
    server: URL
    tenant: default
    person: Ann Smith (PERSON)
    e-mail: ann@example.com
    groups: finance
    token: TOKEN
    role: editor
    tools: all
    rate limit: none
    elevated: no
    ");

    // The owner is shown, and selects tokens.
    ok(&haft, &["token", "create", "ci"]);
    assert_eq!(haft.json(&["token", "list"])["total"], 2);
    for owner in [person, "ann@example.com", "Ann Smith"] {
        assert_eq!(
            haft.run(&["token", "list", "--owner", owner, "-o", "name"]).stdout,
            format!("{id}\n"),
            "{owner}"
        );
    }
    assert_eq!(haft.json(&["token", "list", "--owner", "Bob"])["total"], 0);
    assert_eq!(haft.run(&["token", "list", "--owner", "nobody"]).code, 3);
    let shown = ok(&haft, &["token", "show", id]);
    assert_eq!(
        (field(&shown, "token"), field(&shown, "owner")),
        (Some(format!("laptop ({id})").as_str()), Some("Ann Smith")),
        "{shown}"
    );
    assert_eq!(haft.json(&["token", "list", "--owner", "me"])["total"], 0);
    let ops = ok(&haft, &["token", "create", "ops", "--role", "admin"]);
    let own = haft.run(&["token", "list", "--owner", "me", "--server", &server.url, "--token", ops.trim()]);
    insta::assert_snapshot!(own.shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: `--owner me`: the token of this command has no owner
    ");

    // The rights of the person count, whatever the token was created with.
    ok(&haft, &["person", "edit", "Ann Smith", "--role", "viewer", "--no-tools"]);
    let who = haft.json(&["whoami", "--server", &server.url, "--token", &token]);
    assert_eq!((&who["role"], &who["tools"]), (&json!("viewer"), &json!(["bank:*"])), "{who}");
    ok(&haft, &["person", "disable", "Ann Smith"]);
    assert!(ends(&haft, &server, &token));
}

#[test]
fn a_service_account_has_tokens_and_a_responsible_person() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    invite_ann_and_bob(&haft);
    let create = ["service-account", "create", "nightly-report", "--description", "Sends the report"];
    let created =
        haft.run(&[&create[..], &["--responsible", "ann@example.com", "--tools", "report"]].concat());
    insta::assert_snapshot!(created.shown(), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    created service account `nightly-report`
    ");
    assert_eq!(haft.json(&["person", "list", "-q", "nightly"])["total"], 0, "it is no person");
    let list = ok(&haft, &["service-account", "list"]);
    assert!(
        ["nightly-report", "active", "caller", "Ann Smith"].iter().all(|cell| list.contains(cell)),
        "{list}"
    );
    let shown = ok(&haft, &["service-account", "show", "nightly-report"]);
    assert_eq!(field(&shown, "responsible"), Some("Ann Smith"), "{shown}");
    assert_eq!(field(&shown, "rights"), Some("caller; tools: report"), "{shown}");

    let token = ok(&haft, &["token", "create", "ci", "--owner", "nightly-report"]);
    let who = haft.json(&["whoami", "--server", &server.url, "--token", &token]);
    assert_eq!((&who["name"], &who["tools"]), (&json!("nightly-report"), &json!(["report"])), "{who}");
    assert_eq!(who["actor"]["kind"], "service_account", "{who}");
    let shown = run_as(&haft, &server, &token, &["whoami"]);
    assert!(shown.stdout.contains("\nservice account: nightly-report ("), "{}", shown.shown());

    let handed_over = haft.run(&["person", "hand-over", "ann@example.com", "--to", "bob@example.com"]);
    insta::assert_snapshot!(handed_over.shown(), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    handed over from `ann@example.com` to `bob@example.com`: chats: 0, service accounts: 1
    ");
    let account = haft.json(&["service-account", "show", "nightly-report"]);
    assert_eq!(
        (&account["responsible"]["name"], &account["tokens"]),
        (&json!("Bob"), &json!(1)),
        "{account}"
    );
    ok(&haft, &["service-account", "edit", "nightly-report", "--responsible", "", "--role", "editor"]);
    let account = haft.json(&["service-account", "show", "nightly-report"]);
    assert_eq!(
        (&account["responsible"], &account["membership"]["role"]),
        (&json!(null), &json!("editor")),
        "{account}"
    );

    ok(&haft, &["service-account", "disable", "nightly-report"]);
    assert!(ends(&haft, &server, &token));
    ok(&haft, &["service-account", "rm", "nightly-report"]);
    assert_eq!(haft.json(&["service-account", "list"])["total"], 0);
    assert_eq!(haft.json(&["token", "list"])["total"], 0);
}

#[test]
fn a_group_gives_its_members_rights() {
    let haft = Haft::new();
    let _server = haft.serve(&[]);
    invite_ann_and_bob(&haft);
    ok(&haft, &["person", "edit", "Bob", "--role", "viewer", "--no-tools"]);
    ok(&haft, &["service-account", "create", "nightly-report"]);
    let create = ["group", "create", "finance", "--description", "Pays the bills", "--role", "caller"];
    ok(&haft, &[&create[..], &["--tools", "bank:*", "--member", "ann@example.com"]].concat());
    assert_eq!(haft.run(&["group", "list", "-o", "name"]).stdout, "finance\n");
    let table = ok(&haft, &["group", "list"]);
    assert!(["caller", "bank:*", " 1 ", "Pays the bills"].iter().all(|cell| table.contains(cell)), "{table}");

    insta::assert_snapshot!(haft.run(&["group", "add-member", "finance", "Bob", "nightly-report"]).shown(), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    added `Bob`, `nightly-report` to group `finance`
    ");
    // A member is added once.
    ok(&haft, &["group", "add-member", "finance", "bob@example.com"]);
    let shown = ok(&haft, &["group", "show", "finance"]);
    assert_eq!(field(&shown, "members"), Some("3"), "{shown}");
    let members = ["  Ann Smith, person (", "  Bob, person (", "  nightly-report, service account ("];
    assert!(members.iter().all(|member| shown.contains(member)), "{shown}");
    let bob = ok(&haft, &["person", "show", "Bob"]);
    assert_eq!(field(&bob, "groups"), Some("finance"), "{bob}");
    assert_eq!(field(&bob, "membership"), Some("viewer; tools: none"), "{bob}");
    assert_eq!(field(&bob, "rights"), Some("caller; tools: bank:*"), "{bob}");

    ok(&haft, &["group", "edit", "finance", "--name", "accounting", "--role", "editor", "--no-tools"]);
    let bob = ok(&haft, &["person", "show", "Bob"]);
    assert_eq!(
        (field(&bob, "groups"), field(&bob, "rights")),
        (Some("accounting"), Some("editor; tools: none")),
        "{bob}"
    );
    ok(&haft, &["group", "remove-member", "accounting", "Bob", "ann@example.com"]);
    let group = haft.json(&["group", "show", "accounting"]);
    assert_eq!(group["members"].as_array().map(Vec::len), Some(1), "{group}");
    insta::assert_snapshot!(haft.run(&["group", "remove-member", "accounting", "Bob"]).shown(), @r"
    exit code: 3
    ----- stdout
    ----- stderr
    error: `Bob` is not a member of group `accounting`
    ");
    let unknown = haft.run(&["group", "add-member", "accounting", "nobody"]);
    assert!(unknown.code == 3 && unknown.stderr.contains("`nobody`"), "{}", unknown.shown());

    ok(&haft, &["person", "edit", "Bob", "--group", "accounting"]);
    assert_eq!(field(&ok(&haft, &["person", "show", "Bob"]), "groups"), Some("accounting"));
    ok(&haft, &["person", "edit", "Bob", "--no-groups"]);
    assert_eq!(field(&ok(&haft, &["person", "show", "Bob"]), "groups"), None);
    ok(&haft, &["group", "delete", "accounting", "--yes"]);
    assert_eq!(haft.json(&["group", "list"])["total"], 0);
}

#[test]
fn names_of_people_are_completed() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    invite_ann_and_bob(&haft);
    ok(&haft, &["group", "create", "finance"]);
    for (line, expected) in
        [(["person", "show", "an"], "ann@example.com\tAnn Smith\n"), (["group", "show", ""], "finance\t\n")]
    {
        // On a busy machine the server may not respond in the time that a person waits.
        let complete = || haft.run(&[&["__complete", "--"], &line[..]].concat()).stdout;
        let found = (0..20).map(|_| complete()).find(|words| !words.is_empty());
        assert_eq!(found.unwrap_or_default(), expected, "{line:?}");
    }
    drop(server);
}
