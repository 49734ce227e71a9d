//! Agents by commands: the same with a running server and without one.

use serde_json::json;

use crate::harness::{Haft, Run, Server};

const GREET: &str = "name: greet\ndescription: Greet someone by name\nparams:\n  - name: name\n    type: string\n    \
                     description: The person\n    required: true\nimplementation:\n  type: exec\n  argv: [echo, \
                     \"Hello, {{name}}!\"]\n  output: text\n";

/// An agent whose script greets people.
const AGENT: &str = r#"
name: Greeter
description: Greets people
model:
  name: scripted
  script:
    turns:
      - when: {user: 'greet (?<name>\w+)'}
        text: One moment.
        calls:
          - tool: greet
            arguments: {name: "{{match.name}}"}
      - when: {tool: greet, failed: false}
        text: "The tool said: {{result}}"
      - when: {tool: greet, failed: true}
        text: I may not do that.
      - when: {user: break}
        error: {kind: bad_request, message: no}
      - text: Whom shall I greet?
instructions: Greet people in {{language}}.
variables: {language: English}
tools: [greet]
"#;

/// A home folder with the tool and the agent, with a server or without.
fn homes(tool: &str) -> Vec<(Haft, Option<Server>)> {
    let home = |serves: bool| {
        let haft = Haft::new();
        let server = serves.then(|| haft.serve(&[]));
        ok(&haft.run(&["tool", "add", &haft.write("greet.yaml", tool)]));
        ok(&haft.run(&["agent", "create", &haft.write("greeter.yaml", AGENT)]));
        (haft, server)
    };
    vec![home(false), home(true)]
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
fn an_agent_is_created_shown_changed_and_deleted() {
    for (haft, _server) in homes(GREET) {
        let list = haft.run(&["agent", "list"]);
        assert!(ok(&list).contains("greeter  scripted  draft   1         Greets people"), "{}", list.shown());
        let shown = haft.run(&["agent", "show", "greeter"]);
        assert!(ok(&shown).contains("tools         1 ("), "{}", shown.shown());
        assert!(shown.stdout.contains("  user-created:greet@1.0.0"), "{}", shown.shown());

        let source = haft.run(&["agent", "show", "greeter", "--source"]);
        let file = haft.write("again.yaml", &ok(&source).replace("Greets people", "Greets everybody"));
        let updated = haft.json(&["agent", "update", &file]);
        assert_eq!((&updated["slug"], &updated["revision"]), (&json!("greeter"), &json!(2)));
        assert_eq!(updated["description"], "Greets everybody");

        fails(&haft.run(&["agent", "publish", "greeter"]), 4, "greet");
        ok(&haft.run(&["tool", "publish", "greet"]));
        let published = haft.run(&["agent", "publish", "greeter"]);
        ok(&published);
        assert_eq!(published.stderr, "published revision 2 of `greeter`\n");

        fails(&haft.run(&["agent", "create", &file]), 4, "greeter");
        ok(&haft.run(&["agent", "delete", "greeter", "--yes"]));
        fails(&haft.run(&["agent", "show", "greeter"]), 3, "greeter");
    }
}

/// The same verbs serve every kind.
#[test]
fn what_is_in_use_is_deleted_by_force_and_comes_back() {
    let haft = Haft::new();
    ok(&haft.run(&["artifact", "create", "count", &haft.write("count.sh", "wc -w\n")]));
    let tool = "name: words\ndescription: Counts words\nparams: []\nimplementation:\n  type: artifact\n  \
                artifact_id: count\n";
    ok(&haft.run(&["tool", "add", &haft.write("words.yaml", tool)]));
    let boss = "name: Boss\nmodel: scripted\ninstructions: Count.\ntools: [words]\n";
    ok(&haft.run(&["agent", "create", &haft.write("boss.yaml", boss)]));
    insta::assert_snapshot!(haft.run(&["artifact", "usage", "count"]).shown(), @r"
    exit code: 0
    ----- stdout
    KIND   NAME                      DETAIL
    tool   user-created:words@1.0.0  implementation.artifact_id
    agent  boss                      words
    ----- stderr
    ");
    insta::assert_snapshot!(haft.run(&["artifact", "delete", "count"]).shown(), @r"
    exit code: 4
    ----- stdout
    ----- stderr
    error: artifact `count` is in use by `user-created:words@1.0.0`; change these, or delete it anyway with `force=true` (`haft artifact delete --force`)
    ");
    insta::assert_snapshot!(haft.run(&["artifact", "delete", "count", "--force"]).shown(), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    deleted artifact `count`; it can be restored for 48 hours
    ");
    fails(&haft.run(&["artifact", "show", "count"]), 3, "artifact `count` not found");
    insta::assert_snapshot!(haft.run(&["artifact", "undelete", "count"]).shown(), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    restored `count`
    ");
    fails(&haft.run(&["artifact", "undelete", "count"]), 4, "the artifact `count` is not deleted");
    ok(&haft.run(&["pipeline", "create", "handbook"]));
    ok(&haft.run(&["pipeline", "delete", "handbook", "--yes"]));
    insta::assert_snapshot!(haft.run(&["pipeline", "undelete", "handbook"]).shown(), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    restored `handbook`
    ");
    ok(&haft.run(&["agent", "delete", "boss", "--yes"]));
    let deleted = haft.run(&["agent", "list", "--deleted"]);
    assert!(ok(&deleted).contains("boss"), "{}", deleted.shown());
    ok(&haft.run(&["agent", "undelete", "boss"]));
    fails(&haft.run(&["tool", "delete", "words"]), 4, "is in use by `agents:boss`");
    ok(&haft.run(&["tool", "delete", "words", "--force"]));
    let deleted = haft.run(&["tool", "list", "--deleted"]);
    assert!(ok(&deleted).contains("user-created:words@1.0.0"), "{}", deleted.shown());
    let restored = haft.run(&["tool", "undelete", "words"]);
    ok(&restored);
    assert_eq!(restored.stderr, "restored `user-created:words@1.0.0`\n");
    fails(&haft.run(&["tool", "undelete", "words"]), 4, "is not deleted");
}

#[test]
fn every_kind_is_edited_as_yaml() {
    let haft = Haft::new();
    ok(&haft.run(&["artifact", "create", "count", &haft.write("count.sh", "wc -w\n")]));
    ok(&haft.run(&["pipeline", "create", "handbook"]));
    let boss = "name: Boss\nmodel: scripted\ninstructions: Count.\ntools: []\n";
    ok(&haft.run(&["agent", "create", &haft.write("boss.yaml", boss)]));
    let text = haft.write("text.yaml", "description: Edited\n");
    let whole = haft.write("whole.yaml", &format!("{boss}description: Edited\n"));
    for (kind, slug, file) in
        [("artifact", "count", &text), ("pipeline", "handbook", &text), ("agent", "boss", &whole)]
    {
        let edited = haft.run(&[kind, "edit", slug, "--from", file]);
        ok(&edited);
        assert_eq!(edited.stderr, format!("updated `{slug}`, revision 2\n"));
        assert_eq!(haft.json(&[kind, "show", slug])["description"], "Edited", "{kind}");
    }
}

#[test]
fn a_file_with_mistakes_is_rejected_with_lines() {
    let haft = Haft::new();
    let file = haft.write("bad.yaml", "model: m\nmax_iterations: 0\n");
    fails(
        &haft.run(&["agent", "create", &file]),
        8,
        "line 2, column 1: `max_iterations`: expected a number from 1 to 1000",
    );
    let file = haft.write("odd.yaml", "model: scripted\ncolor: red\n");
    let run = haft.run(&["agent", "create", &file]);
    ok(&run);
    assert!(
        run.stderr.contains("warning: line 2, column 1: `color`: unknown field, ignored"),
        "{}",
        run.shown()
    );
}

#[test]
fn an_agent_answers_a_question() {
    for (haft, _server) in homes(GREET) {
        let run = haft.run(&["agent", "run", "greeter", "please greet Ada"]);
        assert_eq!(ok(&run), "One moment.\nThe tool said: Hello, Ada!\n", "{}", run.shown());
        assert!(run.stderr.contains("tool `greet` {\"name\":\"Ada\"}\n"), "{}", run.shown());
        assert!(run.stderr.contains("tool `greet` succeeded in "), "{}", run.shown());

        let answer = haft.json(&["agent", "run", "greeter", "hello", "--var", "language=German"]);
        assert_eq!(
            (&answer["status"], &answer["output"]),
            (&json!("success"), &json!("Whom shall I greet?"))
        );
        let run = haft.run_with(&["agent", "run", "greeter", "-"], "please greet Bob\n");
        assert!(ok(&run).ends_with("The tool said: Hello, Bob!\n"), "{}", run.shown());

        fails(&haft.run(&["agent", "run", "nobody", "hello"]), 3, "nobody");
        fails(&haft.run(&["agent", "run", "greeter", "break it"]), 5, "the run failed");
    }
}

#[test]
fn runs_are_listed_shown_watched_and_cancelled() {
    let tool = format!("{GREET}requires_confirmation: true\n");
    for (haft, _server) in homes(&tool) {
        let answered = haft.json(&["agent", "run", "greeter", "hello"]);
        let answered = answered["id"].as_str().unwrap();
        let run = haft.run(&["agent", "run", "greeter", "please greet Ada"]);
        assert!(run.code != 0, "{}", run.shown());

        let listed = haft.json(&["run", "list", "--agent", "greeter", "--status", "awaiting_approval"]);
        assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed}");
        let waiting = listed["runs"][0]["id"].as_str().unwrap();
        let table = haft.run(&["run", "list"]);
        assert!(ok(&table).contains(answered) && table.stdout.contains(waiting), "{}", table.shown());

        let shown = haft.run(&["run", "show", answered]);
        assert!(
            ok(&shown).contains("agent     greeter (revision 1)\nstatus    success\n"),
            "{}",
            shown.shown()
        );
        assert!(shown.stdout.ends_with("answer\nWhom shall I greet?\n"), "{}", shown.shown());
        let shown = haft.run(&["run", "show", waiting]);
        assert!(ok(&shown).contains("of `user-created:greet@1.0.0`\n"), "{}", shown.shown());

        // The events of the run are printed again, from the start.
        assert_eq!(ok(&haft.run(&["run", "watch", answered])), "Whom shall I greet?\n");
        assert_eq!(haft.json(&["run", "watch", answered])["output"], "Whom shall I greet?");
        let watched = haft.run(&["run", "watch", waiting]);
        assert!(watched.stderr.contains("haft approval approve "), "{}", watched.shown());

        ok(&haft.run(&["run", "cancel", waiting]));
        fails(&haft.run(&["run", "watch", waiting]), 5, "the run was cancelled");
        fails(&haft.run(&["run", "show", "nope"]), 3, "run `nope` not found");
    }
}

#[test]
fn each_line_of_the_input_is_a_message_of_the_chat() {
    for (haft, _server) in homes(GREET) {
        let chat =
            haft.run_with(&["chat", "--agent", "greeter"], "hello\n\nplease greet Ada\n/quit\nunread\n");
        assert_eq!(
            ok(&chat),
            "Whom shall I greet?\nOne moment.\nThe tool said: Hello, Ada!\n",
            "{}",
            chat.shown()
        );
        // There is only one agent.
        let chat = haft.run_with(&["chat"], "hello\n");
        assert_eq!(ok(&chat), "Whom shall I greet?\n", "{}", chat.shown());
    }
}

#[test]
fn approvals_are_asked_in_the_chat() {
    let tool = format!("{GREET}requires_confirmation: true\n");
    for (haft, _server) in homes(&tool) {
        let chat = haft
            .run_with(&["chat", "--agent", "greeter"], "please greet Ada\nperhaps\ny\nplease greet Bob\nn\n");
        assert_eq!(
            ok(&chat),
            "One moment.\nThe tool said: Hello, Ada!\nOne moment.\nI may not do that.\n",
            "{}",
            chat.shown()
        );
        assert!(
            chat.stderr.contains("`user-created:greet@1.0.0` needs approval to run with:"),
            "{}",
            chat.shown()
        );
        assert!(chat.stderr.contains("  \"name\": \"Ada\""), "{}", chat.shown());
        assert!(chat.stderr.contains("answer `y` to run it once, or `n` to deny it"), "{}", chat.shown());

        // Nobody can be asked: the run waits.
        let run = haft.run(&["agent", "run", "greeter", "please greet Ada"]);
        assert!(run.code != 0 && run.stderr.contains("haft approval approve "), "{}", run.shown());
    }
}
