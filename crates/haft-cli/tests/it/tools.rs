//! The life of a tool by commands alone: the same with a running server and without one.

use serde_json::{Value, json};

use crate::harness::{Haft, Run, Server};
use crate::upstream;

/// A home folder whose tools may call the API of the test, with a server or without.
fn homes() -> Vec<(Haft, Option<Server>)> {
    let home = || {
        let haft = Haft::new();
        haft.write("home/haft.toml", "[egress]\nprivate_hosts = [\"127.0.0.1\"]\n");
        haft
    };
    let with_server = home();
    let server = with_server.serve(&[]);
    vec![(home(), None), (with_server, Some(server))]
}

/// Writes a definition that calls the API of the test.
fn definition(haft: &Haft) -> String {
    let api = upstream::start();
    haft.write(
        "weather.yaml",
        &format!(
            "name: weather\ndescription: Current weather of a city\nparams:\n  - name: city\n    type: string\n    \
             description: The city\n    required: true\n  - name: days\n    type: integer\n    description: How \
             many days\nimplementation:\n  type: http\n  url: http://{api}/current/{{{{city}}}}\n  query:\n    days: \
             \"{{{{days}}}}\"\n"
        ),
    )
}

#[track_caller]
fn ok(run: &Run) -> &str {
    assert_eq!(run.code, 0, "{}", run.shown());
    &run.stdout
}

#[track_caller]
fn fails(run: &Run, code: i32, text: &str) {
    assert!(run.code == code && run.stderr.contains(text), "expected {code} `{text}`: {}", run.shown());
}

#[test]
fn a_tool_is_added_shown_called_and_removed() {
    for (haft, _server) in homes() {
        let file = definition(&haft);
        ok(&haft.run(&["tool", "validate", &file]));
        let added = haft.json(&["tool", "add", &file]);
        assert_eq!(added["name"], "weather");
        fails(
            &haft.run(&["tool", "add", &file]),
            4,
            "hint: change it with `haft tool edit user-created:weather@1.0.0`, or delete it with `haft tool rm \
             user-created:weather@1.0.0`",
        );

        let list = haft.run(&["tool", "list", "-q", "weather"]);
        assert!(
            ok(&list).contains("user-created:weather@1.0.0  http  draft   yes    0      Current"),
            "{}",
            list.shown()
        );
        let shown = haft.run(&["tool", "show", "weather"]);
        assert!(ok(&shown).contains("days      integer  no        How many days"), "{}", shown.shown());

        let value: Value = serde_json::from_str(ok(&haft.run(&[
            "tool",
            "call",
            "weather",
            "-a",
            "city=São Paulo",
            "-a",
            "days=3",
        ])))
        .unwrap();
        assert_eq!(value["target"], "/current/S%C3%A3o%20Paulo?days=3");
        let outcome = haft.json(&["tool", "call", "weather", "--args", r#"{"city": "x"}"#]);
        assert_eq!((&outcome["ok"], outcome["call_id"].is_string()), (&json!(true), true));

        fails(
            &haft.run(&["tool", "call", "weather", "-a", "days=3"]),
            8,
            "hint: show the arguments with `haft tool show weather`",
        );
        fails(
            &haft.run(&["tool", "call", "weather", "-a", "city=x", "-a", "dayz=3"]),
            0,
            "warning: the tool does not declare the argument `dayz`; did you mean `days`?",
        );
        for command in [
            &["tool", "call", "wether"][..],
            &["tool", "show", "wether"],
            &["tool", "call", "wether", "-a", "a=b"],
        ] {
            fails(
                &haft.run(command),
                3,
                "error: tool `wether` not found; did you mean `weather`?\n\nhint: list the tools with `haft tool list`",
            );
        }
        fails(
            &haft.run(&["tool", "call", "weather", "-a", "days=many"]),
            2,
            "argument `days`: expected integer, got `many`",
        );
        fails(&haft.run(&["tool", "call", "nothing"]), 3, "nothing");
        ok(&haft.run(&["tool", "test", "weather", "-a", "city=x"]));
        ok(&haft.run(&["tool", "validate", "weather"]));

        let calls = haft.json(&["call", "list", "--tool", "weather"]);
        let call = calls["calls"][0]["id"].as_str().unwrap();
        assert!(ok(&haft.run(&["call", "show", call])).contains("user-created:weather@1.0.0"));

        let removed = haft.json(&["tool", "rm", "weather"]);
        assert!(haft.home().join(removed["backup_path"].as_str().unwrap()).exists(), "{removed}");
        fails(&haft.run(&["tool", "show", "weather"]), 3, "weather");
    }
}

#[test]
fn a_tool_that_fails_has_its_own_exit_code() {
    for (haft, _server) in homes() {
        let api = upstream::start();
        let url = format!("http://{api}/fail");
        ok(&haft.run(&["tool", "add", "--name", "broken", "--description", "Always fails", "--url", &url]));
        let failed = haft.run(&["tool", "call", "broken"]);
        fails(&failed, 5, "error: the call failed: ");
        fails(&failed, 5, "\n  response: ");
        let run = haft.run(&["tool", "call", "broken", "--json"]);
        let outcome: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            (run.code, &outcome["ok"], &outcome["error"]["code"]),
            (5, &json!(false), &json!("http_status"))
        );
    }
}

#[test]
fn a_secret_reaches_the_api_and_nobody_else() {
    for (haft, _server) in homes() {
        let api = upstream::start();
        let url = format!("http://{api}/x");
        let add = ["tool", "add", "--name", "guarded", "--description", "Sends a key", "--url", &url];
        ok(&haft.run(&[&add[..], &["-H", "X-Key: ${API_KEY}"]].concat()));
        fails(
            &haft.run(&["tool", "call", "guarded"]),
            10,
            "secret `API_KEY` is not stored; store it with `haft secret set API_KEY`",
        );
        let set = haft.run_with(&["secret", "set", "API_KEY"], "hunter2-hunter2\n");
        assert_eq!((ok(&set), set.stderr.contains("hunter2")), ("", false));
        let listed = haft.run(&["secret", "list"]);
        assert!(ok(&listed).contains("API_KEY") && !listed.stdout.contains("hunter2"), "{}", listed.shown());
        // The API echoes the key, and the echo is masked.
        let called = haft.run(&["tool", "call", "guarded"]);
        assert!(ok(&called).contains("\"key\": \"***\""), "{}", called.shown());
        fails(&haft.run(&["secret", "rm", "API_KEY"]), 4, "in use by user-created:guarded@1.0.0");
        ok(&haft.run(&["secret", "rm", "API_KEY", "--force"]));
        fails(&haft.run(&["secret", "rm", "API_KEY"]), 3, "API_KEY");
        fails(&haft.run_with(&["secret", "set", "API_KEY"], "\n"), 2, "the secret is empty");
    }
}

#[test]
fn an_edit_is_stored_or_its_text_is_kept() {
    for (haft, _server) in homes() {
        let file = definition(&haft);
        ok(&haft.run(&["tool", "add", &file]));
        let edit = |editor: &str| {
            let mut command = haft.command(&["tool", "edit", "weather"]);
            command.env("EDITOR", editor).env("TMPDIR", haft.path(""));
            haft.finish(command.output().unwrap())
        };
        fails(&edit("true"), 0, "no changes");
        let path = haft.home().join("skills/user-created/weather.yaml");
        let text = || std::fs::read_to_string(&path).unwrap();
        assert_eq!(text(), std::fs::read_to_string(&file).unwrap(), "the file is what was added");
        fails(&edit("sed -i '1i# Mind the gaps.'"), 0, "updated `user-created:weather@1.0.0`");
        assert!(text().starts_with("# Mind the gaps.\nname: weather\n"), "{}", text());
        assert_eq!(haft.json(&["tool", "show", "weather"])["revision"], 1, "a comment is no revision");
        fails(&edit("sed -i 's/Current weather/Weather/'"), 0, "updated `user-created:weather@1.0.0`");
        assert_eq!(haft.json(&["tool", "show", "weather"])["description"], "Weather of a city");
        assert!(text().starts_with("# Mind the gaps.\n"), "{}", text());

        let refused = edit("sed -i 's/type: http/type: htp/'");
        fails(&refused, 8, "hint: the text is kept in `DIR/haft-");
        let kept = refused.stderr.split('`').find(|part| part.starts_with("DIR/haft-")).unwrap();
        let kept = haft.path(kept.strip_prefix("DIR/").unwrap());
        assert!(std::fs::read_to_string(&kept).unwrap().contains("type: htp"));
        let mended = std::fs::read_to_string(&kept)
            .unwrap()
            .replace("type: htp", "type: http")
            .replace("Weather of", "Sun of");
        std::fs::write(&kept, mended).unwrap();
        ok(&haft.run(&["tool", "edit", "weather", "--from", &kept.display().to_string()]));
        assert_eq!(haft.json(&["tool", "show", "weather"])["description"], "Sun of a city");

        let meanwhile = format!("sh -c 'sed -i s/Sun/Moon/ {}; sed -i s/Sun/Rain/ $0'", path.display());
        fails(&edit(&meanwhile), 4, "was changed while you edited it");
        assert!(text().contains("Moon of a city"), "the other change is kept");
        fails(&edit("sh -c 'echo oops >> $0; exit 3'"), 1, "the text is kept in");
    }
}

#[test]
fn revisions_are_listed_compared_and_restored() {
    for (haft, _server) in homes() {
        let file = definition(&haft);
        ok(&haft.run(&["tool", "add", &file]));
        fails(&haft.run(&["tool", "diff", "weather"]), 0, "nothing to compare: both sides are revision 1");
        let text = std::fs::read_to_string(&file).unwrap();
        let changed = haft.write(
            "new.yaml",
            &text.replace("Current weather", "Weather").replace("    type: integer\n", ""),
        );
        ok(&haft.run(&["tool", "edit", "weather", "--from", &changed]));
        let diff = haft.run(&["tool", "diff", "weather", "--from", "1", "--to", "2"]);
        insta::allow_duplicates! {
                insta::assert_snapshot!(ok(&diff), @r"
        revision 1 to 2

        description
          - Current weather of a city
          + Weather of a city

        input_schema.properties.days.type
          - integer
        ");
        }
        fails(&haft.run(&["tool", "diff", "weather", "--from", "7"]), 3, "revision `7` not found");

        ok(&haft.run(&["tool", "publish", "weather"]));
        fails(
            &haft.run(&["tool", "restore", "weather", "1"]),
            0,
            "restored revision 1 of `user-created:weather@1.0.0` as revision 3",
        );
        fails(&haft.run(&["tool", "restore", "weather", "9"]), 3, "revision `9` not found");
        fails(
            &haft.run(&["tool", "version", "weather", "2.0.0"]),
            0,
            "`weather` is now `user-created:weather@2.0.0`",
        );
        fails(&haft.run(&["tool", "version", "weather", "two"]), 8, "expected X.Y.Z, for example `1.2.0`");
        let shown = ok(&haft.run(&["tool", "revisions", "weather"])).to_owned();
        let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["REVISION", "VERSION", "CREATED", "PUBLISHED", "HASH", "DESCRIPTION"]);
        let reported: Vec<_> = rows[1..].iter().map(|row| (row[0], row[1], row[4], row[6])).collect();
        assert_eq!(
            reported,
            [
                ("4", "2.0.0", "no", "Current"),
                ("3", "1.0.0", "no", "Current"),
                ("2", "1.0.0", "yes", "Weather"),
                ("1", "1.0.0", "no", "Current")
            ]
        );
        assert_eq!(haft.json(&["tool", "revisions", "weather"])["total"], 4);
        fails(&haft.run(&["tool", "revisions", "nothing"]), 3, "nothing");
    }
}

#[test]
fn an_unreadable_file_is_fixed_in_the_editor() {
    for (haft, _server) in homes() {
        let broken = "# Work in progress.\nname: later\ndescription: [\nimplementation: {type: http, url: https://api.example.com/}\n";
        haft.write("home/skills/user-created/later.yaml", broken);
        // A server needs a moment to find it.
        let start = std::time::Instant::now();
        while !haft.run(&["tool", "list"]).stdout.contains("user-created:later") {
            assert!(start.elapsed().as_secs() < 20, "the file is not listed");
        }
        assert_eq!(ok(&haft.run(&["tool", "show", "later", "--source"])).trim_end(), broken.trim_end());
        let edit = |editor: &str| {
            let mut command = haft.command(&["tool", "edit", "later"]);
            command.env("EDITOR", editor).env("TMPDIR", haft.path(""));
            haft.finish(command.output().unwrap())
        };
        fails(&edit("sed -i 's/type: http/type: htp/'"), 8, "the text is kept in");
        fails(&edit("sed -i 's/: \\[/: Comes later/'"), 0, "updated `user-created:later@1.0.0`");
        let text = std::fs::read_to_string(haft.home().join("skills/user-created/later.yaml")).unwrap();
        assert_eq!(text, broken.replace(": [", ": Comes later"));
        let shown = haft.json(&["tool", "show", "later"]);
        assert_eq!((&shown["ready"], &shown["description"]), (&json!(true), &json!("Comes later")));
        assert!(!haft.run(&["tool", "list"]).stdout.contains(" no "), "nothing is left broken");
    }
}

#[test]
fn disabled_tools_do_not_run() {
    for (haft, _server) in homes() {
        let file = definition(&haft);
        ok(&haft.run(&["bundle", "add", "web", "--description", "Things of the web"]));
        ok(&haft.run(&["tool", "add", &file, "--bundle", "web"]));
        let call = || haft.run(&["tool", "call", "web:weather", "-a", "city=x"]);
        ok(&call());
        ok(&haft.run(&["bundle", "disable", "web"]));
        assert_ne!(call().code, 0);
        let run = haft.run(&["bundle", "list"]);
        let listed = ok(&run);
        let rows: Vec<Vec<&str>> =
            listed.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
        assert!(rows.contains(&vec!["NAME", "KIND", "ENABLED"]), "{listed}");
        assert!(rows.contains(&vec!["web", "user", "no"]), "{listed}");
        ok(&haft.run(&["bundle", "enable", "web"]));
        ok(&haft.run(&["tool", "disable", "weather"]));
        assert_ne!(call().code, 0);
        ok(&haft.run(&["tool", "enable", "weather"]));

        let in_production = ["tool", "call", "weather", "-a", "city=x", "--mode", "production"];
        assert!(
            haft.run(&in_production).stderr.contains("haft tool publish"),
            "{}",
            haft.run(&in_production).shown()
        );
        ok(&haft.run(&["tool", "publish", "weather"]));
        ok(&haft.run(&in_production));
        ok(&haft.run(&["tool", "deprecate", "weather"]));
        fails(&call(), 0, "warning: this tool is deprecated");

        fails(&haft.run(&["bundle", "rm", "web"]), 4, "web");
        ok(&haft.run(&["tool", "rm", "weather", "--no-backup"]));
        ok(&haft.run(&["bundle", "rm", "web"]));
    }
}

#[test]
fn changes_are_listed() {
    for (haft, _server) in homes() {
        ok(&haft.run(&["tool", "add", &definition(&haft)]));
        ok(&haft.run(&["tool", "disable", "weather"]));
        fails(&haft.run(&["tool", "rm", "nothing"]), 3, "nothing");
        let shown = ok(&haft.run(&["audit"])).to_owned();
        let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["WHEN", "WHO", "ACTION", "TARGET", "OUTCOME", "REQUEST"]);
        let reported: Vec<String> = rows[1..].iter().map(|row| row[2..6].join(" ")).collect();
        assert_eq!(
            reported,
            [
                "local tool.delete nothing not_found",
                "local tool.disable user-created:weather@1.0.0 success",
                "local tool.create user-created:weather@1.0.0 success"
            ]
        );
        let found = haft.json(&[
            "audit",
            "--action",
            "tool.create",
            "--target",
            "weather",
            "--actor",
            "local",
            "--since",
            "1h",
        ]);
        assert_eq!(found["total"], 1);
        let lines = ok(&haft.run(&["audit", "--format", "jsonl"])).to_owned();
        let actions = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let actions: Vec<String> = actions.map(|record| record["action"].to_string()).collect();
        assert_eq!(actions, ["\"tool.delete\"", "\"tool.disable\"", "\"tool.create\""]);
        let newest = ok(&haft.run(&["audit", "--format", "jsonl", "--limit", "1"])).to_owned();
        assert_eq!(newest.lines().count(), 1);
        fails(&haft.run(&["audit", "--since", "soon"]), 8, "or a period such as `24h`");
        assert_eq!(ok(&haft.run(&["audit", "export", "--since", "1h"])), lines);
        let created =
            ok(&haft.run(&["audit", "export", "--action", "tool.create", "--limit", "5"])).to_owned();
        assert_eq!(created.lines().count(), 1, "{created}");
        assert_eq!(ok(&haft.run(&["audit", "export", "--kind", "calls"])), "");
        fails(&haft.run(&["audit", "export", "--rule", "x"]), 8, "`rule` selects calls; use `kind=calls`");
        fails(&haft.run(&["audit", "--kind", "some"]), 2, "changes, calls, all");
    }
}

#[test]
fn limits_are_shown_and_the_rate_of_a_token_is_changed() {
    for (haft, _server) in homes() {
        ok(&haft.run(&["token", "create", "ci", "--rate-limit", "60/1m"]));
        let shown = ok(&haft.run(&["limits"])).to_owned();
        let row = |shown: &str| {
            let line = shown.lines().find(|line| line.starts_with("token.rate_limit")).map(str::to_owned);
            line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(row(&shown).as_deref(), Some("token.rate_limit ci 60 per 1m 0"), "{shown}");
        let tokens = haft.json(&["token", "list"]);
        let id = tokens["tokens"][0]["id"].as_str().unwrap().to_owned();
        ok(&haft.run(&["token", "update", &id, "--rate-limit", "5/1h"]));
        assert!(ok(&haft.run(&["token", "list"])).contains("5/1h"));
        fails(&haft.run(&["token", "update", &id, "--rate-limit", "0/1h"]), 8, "`rate_limit.calls`");
        fails(&haft.run(&["token", "update", &id, "--rate-limit", "often"]), 2, "e.g. `60/1m`");
        fails(&haft.run(&["token", "update", &id]), 2, "--rate-limit");
        ok(&haft.run(&["token", "update", &id, "--no-rate-limit"]));
        assert_eq!(row(ok(&haft.run(&["limits"]))), None);
    }
}

#[test]
fn tokens_permit_what_their_role_allows() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    let created = haft.run(&["token", "create", "reader", "--role", "viewer"]);
    let token = ok(&created).trim().to_owned();
    let run =
        |arguments: &[&str]| haft.run(&[arguments, &["--server", &server.url, "--token", &token]].concat());
    ok(&run(&["tool", "list"]));
    fails(&run(&["token", "list"]), 7, "error: ");
    fails(&run(&["secret", "list"]), 7, "error: ");

    let tokens = haft.json(&["token", "list"]);
    let row = tokens["tokens"].as_array().unwrap().iter().find(|row| row["name"] == "reader").unwrap();
    assert!(!tokens.to_string().contains(&token), "a token is shown again");
    ok(&haft.run(&["token", "rm", row["id"].as_str().unwrap()]));
    fails(&run(&["tool", "list"]), 7, "hint: pass a valid token");
}

#[test]
fn files_on_disk_are_found_and_a_broken_one_is_named() {
    let haft = Haft::new();
    ok(&haft.run(&["init"]));
    assert!(ok(&haft.run(&["tool", "list"])).contains("examples:current-weather@1.0.0"));
    ok(&haft.run(&["doctor"]));
    haft.write("home/skills/examples/broken.yaml", "name: broken\ndescription: [\n");
    let run = haft.run(&["doctor"]);
    assert_eq!(run.code, 1, "{}", run.shown());
    assert!(run.stdout.contains("skills/examples/broken.yaml"), "{}", run.shown());
    ok(&haft.run(&["tool", "show", "current-weather"]));
    ok(&haft.run(&["reindex"]));
}

#[test]
fn tools_are_searched_with_filters_and_highlights() {
    for (haft, _server) in homes() {
        let file = definition(&haft);
        ok(&haft.run(&["tool", "add", &file]));
        let found = haft.run(&["tool", "search", "weather", "--bundle", "user-created"]);
        assert_eq!(ok(&found), "user-created:weather@1.0.0\n    Current weather of a city\n");
        let marked =
            haft.run(&["tool", "search", "weather", "--color", "always", "--type", "http", "--limit", "1"]);
        assert_eq!(
            ok(&marked),
            "user-created:\x1b[1mweather\x1b[0m@1.0.0\n    Current \x1b[1mweather\x1b[0m of a city\n"
        );
        let sentence = ["will", "it", "rain", "in", "this", "city"];
        let data = haft.json(&[["tool", "search"].as_slice(), &sentence, &["--limit", "3"]].concat());
        assert_eq!(
            (&data["tools"][0]["name"], data["tools"].as_array().unwrap().len()),
            (&json!("weather"), 1)
        );
        assert_eq!(data["tools"][0]["matched_words"], json!(["city"]));

        ok(&haft.run(&["tool", "disable", "weather"]));
        let nothing = haft.run(&["tool", "search", "weather", "--bundle", "user-created"]);
        assert!(ok(&nothing).is_empty() && nothing.stderr.contains("no tool found"), "{}", nothing.shown());
        let found = haft.run(&["tool", "search", "weather", "--bundle", "user-created", "--all"]);
        assert!(ok(&found).starts_with("user-created:weather@1.0.0\n"), "{}", found.shown());
        fails(&haft.run(&["tool", "search", "weather", "--status", "lost"]), 2, "draft");
    }
}

#[test]
fn each_error_of_a_definition_has_its_own_line() {
    let haft = Haft::new();
    let file = haft.write(
        "bad.yaml",
        "name: bad one\ndescription: Lists a folder\npolicy: maybe\nparams:\n  - {name: a, type: integer, default: x, defalt: 1}\n\
         implementation:\n  type: exec\n  command: ls {{nope}}\n",
    );
    insta::assert_snapshot!(haft.run(&["tool", "add", &file]).shown(), @r#"
    exit code: 8
    ----- stdout
    ----- stderr
    error: 4 problems:
      line 1, column 1: `name`: tool name `bad one` contains ' '; allowed: letters, digits, `-` and `_`; keep it as the `display_name`, or add a `slug`
      line 3, column 1: `policy`: unknown value `maybe`; expected one of `allow`, `deny`, `elevated`
      line 5, column 30: `params[0].default`: the default does not match the argument's schema: expected an integer, got "x"
      line 8, column 3: `implementation.command`: at character 4: `nope` is not a declared argument; declare it, or write `${nope}` for a secret
      warning: line 5, column 42: `params[0].defalt`: unknown field, ignored; did you mean `default`?
    "#);
    let checked = haft.run(&["tool", "validate", &file]);
    let rows: Vec<Vec<&str>> =
        checked.stdout.lines().skip(1).map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(
        rows,
        [
            ["error", "1", "name"],
            ["error", "3", "policy"],
            ["error", "5", "params[0].default"],
            ["error", "8", "implementation.command"],
            ["warning", "5", "params[0].defalt"],
        ]
    );
}

#[test]
fn calls_that_are_rejected_have_their_own_exit_codes() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    let tool = |name: &str, more: &str| {
        let text = format!(
            "name: {name}\ndescription: Prints a word\n{more}implementation: {{type: exec, command: echo hi}}\n"
        );
        ok(&haft.run(&["tool", "add", &haft.write(&format!("{name}.yaml"), &text)]));
    };
    tool("limited", "execution: {rate_limit: {calls: 1, per: 1h}}\n");
    tool("guarded", "policy: elevated\n");
    let call = |name: &str| haft.run(&["tool", "call", name]);
    assert_eq!(ok(&call("limited")), "hi\n");
    fails(&call("limited"), 9, "rate limit");
    ok(&call("guarded"));
    let token = ok(&haft.run(&["token", "create", "plain", "--role", "caller"])).trim().to_owned();
    let mut command = haft.command(&["tool", "call", "guarded", "--server", &server.url]);
    let refused = haft.finish(command.env("HAFT_TOKEN", &token).output().unwrap());
    fails(
        &refused,
        7,
        "error: the call needs approval: `user-created:guarded@1.0.0` has `policy: elevated`; approve it with `haft approval approve ",
    );
    let listed = haft.run(&["approval", "list", "--json"]);
    let waiting: Value = serde_json::from_str(ok(&listed)).unwrap();
    let id = waiting["approvals"][0]["id"].as_str().unwrap();
    ok(&haft.run(&["approval", "show", id]));
    ok(&haft.run(&["approval", "approve", id]));
    fails(&haft.run(&["approval", "deny", id, "--reason", "too late"]), 4, "already decided");
    let mut command = haft.command(&["tool", "call", "guarded", "--server", &server.url]);
    let picked_up = haft.finish(command.env("HAFT_TOKEN", &token).output().unwrap());
    assert_eq!(ok(&picked_up), "hi\n");
    insta::assert_snapshot!(haft.run(&["tool", "call", "limited", "--mode", "production"]).shown(), @r"
    exit code: 4
    ----- stdout
    ----- stderr
    error: `user-created:limited@1.0.0` has no published revision, and production mode runs nothing else

    hint: publish it with `haft tool publish limited`, or call it with `--mode debug`
    ");
}

#[test]
fn a_broken_pipe_is_explained() {
    let haft = Haft::new();
    let file = haft.write(
        "pipe.skill",
        "---\nname: pipe\ndescription: Ends early\nruntime: bash\n---\nset -e\nkill -PIPE $$\n",
    );
    ok(&haft.run(&["tool", "add", &file]));
    fails(
        &haft.run(&["tool", "call", "pipe"]),
        5,
        "the process was killed by signal 13 (SIGPIPE): it wrote to a pipe whose reader had ended",
    );
}

#[test]
fn a_tool_is_deprecated_and_its_users_are_shown() {
    for (haft, _server) in homes() {
        let file = definition(&haft);
        ok(&haft.run(&["tool", "add", &file, "--bundle", "web"]));
        let newer = std::fs::read_to_string(&file).unwrap().replace("name: weather", "name: forecast");
        let newer = haft.write("forecast.yaml", &newer);
        ok(&haft.run(&["tool", "add", &newer, "--bundle", "web"]));
        ok(&haft.run(&["tool", "call", "weather", "-a", "city=x"]));

        let dry = haft.run(&["bundle", "publish", "web", "--dry-run"]);
        assert!(ok(&dry).contains("published"), "{}", dry.shown());
        assert!(dry.stderr.contains("dry run: would publish 2 tools of bundle `web`"), "{}", dry.shown());
        assert!(haft.run(&["bundle", "publish", "web"]).stderr.contains("published 2 tools of bundle `web`"));
        assert_eq!(haft.json(&["tool", "show", "weather"])["published_by"], "local");

        let used = haft.run(&["tool", "usage", "weather"]);
        assert!(ok(&used).contains("caller") && used.stdout.contains("1 calls"), "{}", used.shown());
        let deprecated = haft.run(&[
            "tool",
            "deprecate",
            "weather",
            "--replaced-by",
            "forecast",
            "--removal-date",
            "2100-01-31",
        ]);
        ok(&deprecated);
        let notice = "`web:weather@1.0.0` is in use: called by `local`";
        assert!(deprecated.stderr.contains(notice), "{}", deprecated.shown());
        fails(
            &haft.run(&["tool", "call", "weather", "-a", "city=x"]),
            0,
            "warning: this tool is deprecated and will be removed on 2100-01-31; use `web:forecast` instead",
        );
        fails(
            &haft.run(&["tool", "deprecate", "weather", "--removal-date", "2001-01-01"]),
            8,
            "is in the past",
        );
        let removed = haft.run(&["tool", "rm", "weather"]);
        ok(&removed);
        assert!(removed.stderr.contains(notice), "{}", removed.shown());
    }
}

#[test]
fn rows_of_a_registry_are_imported() {
    for (haft, _server) in homes() {
        let row = |slug: &str| {
            json!({"id": slug, "slug": slug, "name": slug, "description": "d", "implementation_type": "http",
                "config_schema": {"implementation": {"url": "https://a.example/"}}})
            .to_string()
        };
        let file = haft.write("rows.jsonl", &format!("{}\n{}\n", row("one"), row("two")));
        let run = haft.run(&["import", "registry", &file, "--bundle", "legacy", "--dry-run"]);
        assert!(ok(&run).contains("legacy:one@1.0.0  published  created"), "{}", run.shown());
        assert!(run.stderr.contains("dry run: 2 created in bundle `legacy`"), "{}", run.shown());
        ok(&haft.run(&["import", "registry", &file, "--bundle", "legacy"]));
        let again = haft.run(&["import", "registry", &file, "--bundle", "legacy"]);
        assert!(ok(&again).contains("unchanged"), "{}", again.shown());
        let bad = haft.write("bad.jsonl", &format!("{}\n[1]\n", row("three")));
        fails(&haft.run(&["import", "registry", &bad]), 8, "1 of 2 rows are invalid");
        fails(&haft.run(&["tool", "show", "three"]), 3, "three");
    }
}

#[test]
fn a_secret_with_fields_is_shown_without_its_values() {
    for (haft, _server) in homes() {
        let fields = r#"{"token": "hunter2-hunter2", "username": "ada"}"#;
        let set = ["secret", "set", "github", "--fields", "--provider", "git", "--variant", "hub"];
        ok(&haft.run_with(&set, fields));
        fails(&haft.run_with(&set, "hunter2-hunter2"), 2, "not valid JSON");
        let list = haft.run(&["secret", "list"]);
        assert!(ok(&list).contains("github  custom    git/hub"), "{}", list.shown());
        let definition = "name: gh\ndescription: Reads an issue\nimplementation:\n  type: http\n  url: https://a.example/\n  \
                          auth: {type: bearer, credential: github}\n";
        let file = haft.write("gh.yaml", definition);
        ok(&haft.run(&["tool", "add", &file]));
        let shown = haft.run(&["secret", "show", "github"]);
        assert!(
            ok(&shown).contains("fields: token, username\nused by: user-created:gh@1.0.0"),
            "{}",
            shown.shown()
        );
        assert!(!shown.stdout.contains("hunter2"));
        fails(&haft.run(&["secret", "rm", "github"]), 4, "is in use by user-created:gh@1.0.0");
        ok(&haft.run(&["secret", "rm", "github", "--force"]));
    }
}

#[test]
fn publishing_says_what_is_missing_and_the_address_of_the_api_is_that_of_the_server() {
    let haft = Haft::new();
    let server = haft.serve(&[]);
    let file = haft.write(
        "needs.yaml",
        "name: needs\ndescription: Needs a secret\nparams: []\nimplementation:\n  type: http\n  method: GET\n  url: \
         https://example.com/\n  headers: {x-key: \"${MISSING_KEY}\"}\n",
    );
    ok(&haft.run(&["tool", "add", &file]));
    for address in ["/api", "/api/", "/ui/", ""] {
        let url = format!("{}{address}", server.url.trim_end_matches('/'));
        let run = haft.run(&["tool", "publish", "needs", "--server", &url]);
        ok(&run);
        assert!(run.stderr.contains("secret `MISSING_KEY` is not stored"), "{address}: {}", run.shown());
    }
}
