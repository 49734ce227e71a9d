//! Scripts and commands through the API, in the real sandbox.

use axum::Router;
use axum::routing::post;
use haft_testkit::upstream::{Upstream, axum};
use serde_json::{Value, json};

use crate::harness::{Server, code};

/// A bash tool with text arguments, all optional.
fn bash(name: &str, arguments: &[&str], body: &str) -> Value {
    let properties: serde_json::Map<_, _> =
        arguments.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({
        "name": name, "description": "Runs a script of the tests", "runtime": "bash", "body": body,
        "parameters": {"type": "object", "properties": properties}, "sandbox": true,
    })
}

/// Calls a tool that is created for it and returns the outcome.
async fn call(server: &Server, body: &str, args: Value) -> Value {
    let names: Vec<String> = args.as_object().unwrap().keys().cloned().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    server.create(bash("script", &names, body)).await;
    let (status, answer) = server.invoke("script", args).await;
    assert_eq!(status, 200, "{answer}");
    server.delete("/api/tools/script?keep_backup=false").await;
    answer
}

#[tokio::test]
async fn seed_1_scripts_run_as_printed() {
    let server = Server::start().await;
    let calculator = json!({
        "name": "calculator", "description": "Perform math calculations", "runtime": "bash",
        "body": "python3 -c \"import sys; print(eval(sys.argv[1]))\" \"$expression\"",
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
        "policy": "allow", "sandbox": true, "timeout_secs": 5,
    });
    server.create(calculator).await;
    let (_, answer) =
        server.post("/api/tools/calculator/test", json!({"parameters": {"expression": "2+2"}})).await;
    assert_eq!(
        (&answer["data"]["output"], &answer["data"]["status"]),
        (&json!(4), &json!("success")),
        "{answer}"
    );

    let formatter = json!({
        "name": "json-formatter", "description": "Format and validate JSON", "runtime": "bash",
        "body": "python3 -m json.tool <<< \"${json}\"",
        "parameters": {"type": "object", "properties": {"json": {"type": "string"}}, "required": ["json"]},
        "policy": "allow", "timeout_secs": 5,
    });
    server.create(formatter).await;
    let parameters = json!({"json": "{\"hello\":\"world\",\"test\":123}"});
    let (_, answer) = server.post("/api/tools/json-formatter/test", json!({"parameters": parameters})).await;
    assert_eq!(answer["data"]["output"], json!({"hello": "world", "test": 123}), "{answer}");
}

#[tokio::test]
async fn seed_1_a_script_reads_a_credential_and_the_network() {
    let slack = Upstream::serve(Router::new().route("/hook", post(|| async { "ok" }))).await.unwrap();
    let server = Server::start().await;
    let notify = json!({
        "name": "slack-notify", "description": "Send a message to Slack channel", "runtime": "bash",
        "body": "curl -X POST ${SLACK_WEBHOOK} -H \"Content-Type: application/json\" -d \"{\\\"text\\\":\\\"${message}\\\"}\"",
        "parameters": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
        "policy": "elevated", "sandbox": false, "network": true, "timeout_secs": 10,
    });
    server.create(notify).await;
    let (_, answer) = server.invoke("slack-notify", json!({"message": "hello"})).await;
    assert_eq!(answer["ok"], false, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message
            .contains("secret `SLACK_WEBHOOK` is not stored; store it with `haft secret set SLACK_WEBHOOK`"),
        "{message}"
    );

    let (status, answer) =
        server.put("/api/credentials/SLACK_WEBHOOK", json!({"value": slack.url("/hook")})).await;
    assert!(status < 300, "{answer}");
    let (_, answer) = server.invoke("slack-notify", json!({"message": "hello"})).await;
    assert_eq!((&answer["ok"], &answer["value"]), (&json!(true), &json!("ok")), "{answer}");
    let seen = slack.seen();
    assert_eq!(seen.iter().map(|seen| seen.body.as_str()).collect::<Vec<_>>(), ["{\"text\":\"hello\"}"]);
}

#[tokio::test]
async fn arguments_are_variables_and_one_json() {
    let server = Server::start().await;
    let args = json!({"text": "a\nb 'c' \"d\" $(e) `f` \\ ä", "number": 1.5, "list": [1, "x"], "map": {"k": null}, "yes": true});
    let body = r#"printf '%s|' "$text" "$number" "$list" "$map" "$yes"; printf '%s' "$HAFT_ARGS" | sha256sum >/dev/null
        [ "$HAFT_ARGS" = "$(cat "$HAFT_ARGS_FILE")" ] && echo same"#;
    let answer = call(&server, body, args.clone()).await;
    let expected = "a\nb 'c' \"d\" $(e) `f` \\ ä|1.5|[1,\"x\"]|{\"k\":null}|true|same";
    assert_eq!(answer["value"], expected, "{answer}");
    let answer = call(&server, "printf %s \"$HAFT_ARGS\"", args.clone()).await;
    assert_eq!(answer["value"], args);
}

#[tokio::test]
async fn arguments_never_change_how_the_interpreter_runs() {
    let server = Server::start().await;
    for name in [
        "PATH",
        "LD_PRELOAD",
        "BASH_ENV",
        "PYTHONPATH",
        "IFS",
        "HAFT_ARGS",
        "HOME",
        "SHELLOPTS",
        "PS4",
        "UID",
    ] {
        let body = "echo \"$PATH|$LD_PRELOAD|$BASH_ENV|$PYTHONPATH|${#IFS}|$HOME|$PS4\"; id -u";
        let answer = call(&server, body, json!({name: "/tmp/evil"})).await;
        let value = answer["value"].as_str().unwrap_or_default();
        let usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin||||3|/work|+ \n65534";
        assert_eq!(value, usual, "{name}: {answer}");
        let answer = call(&server, "printf %s \"$HAFT_ARGS\"", json!({name: "/tmp/evil"})).await;
        assert_eq!(answer["value"], json!({name: "/tmp/evil"}), "{name}: it is still in HAFT_ARGS");
    }
}

#[tokio::test]
async fn output_of_a_script_is_recorded() {
    let server = Server::start().await;
    let answer = call(&server, "echo '{\"a\": 1}'; echo warning >&2", json!({})).await;
    assert_eq!(answer["value"], json!({"a": 1}));
    let id = answer["call_id"].as_str().unwrap();
    let (_, shown) = server.get(&format!("/api/calls/{id}")).await;
    assert_eq!(shown["data"]["process"], json!({"exit_code": 0, "stderr": "warning\n"}), "{shown}");

    let answer = call(&server, "echo one >&2; echo two >&2; exit 3", json!({})).await;
    let error = &answer["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!("execution_failed"), &json!("exit code 3: one\ntwo"))
    );
    assert_eq!(error["details"], json!({"exit_code": 3, "stderr": "one\ntwo"}));

    let answer = call(&server, r"printf '\e[31mred\n\a' >&2; exit 1", json!({})).await;
    assert_eq!(answer["error"]["message"], "exit code 1: \u{fffd}[31mred\n\u{fffd}");

    let answer = call(&server, "echo it failed; exit 4", json!({})).await;
    let error = &answer["error"];
    assert_eq!(error["message"], "exit code 4: it failed", "{answer}");
    assert_eq!(error["details"], json!({"exit_code": 4, "stderr": "", "stdout": "it failed"}));
    let (_, shown) = server.get(&format!("/api/calls/{}", answer["call_id"].as_str().unwrap())).await;
    assert_eq!(shown["data"]["process"], json!({"exit_code": 4, "stdout": "it failed\n"}), "{shown}");

    let answer = call(&server, "nosuchcommand", json!({})).await;
    let expected = "exit code 127: script: line 1: nosuchcommand: command not found";
    assert_eq!(answer["error"]["message"], expected);
}

#[tokio::test]
async fn values_that_a_process_cannot_receive_are_rejected() {
    let server = Server::start().await;
    let answer = call(&server, "true", json!({"x": "a\u{0}b"})).await;
    let expected = "`x` contains a NUL character, which cannot be passed to a process";
    assert_eq!((code(&answer), &answer["error"]["message"]), ("invalid_arguments", &json!(expected)));
    let long = "x".repeat(200_000);
    let answer = call(&server, "true", json!({"x": long})).await;
    let expected = "`x` exceeds the limit of 128 KiB for an environment variable; read it from the file in HAFT_ARGS_FILE";
    assert_eq!((code(&answer), &answer["error"]["message"]), ("too_large", &json!(expected)));
    let answer = call(&server, "wc -c < \"$HAFT_ARGS_FILE\"", json!({"x": long})).await;
    assert_eq!(answer["value"], json!(200_008), "{}", answer["error"]);

    let two = json!({"x": "x".repeat(100_000), "y": "y".repeat(100_000)});
    let answer = call(&server, "echo ${#HAFT_ARGS}", two.clone()).await;
    let expected = "the arguments exceed the limit of 128 KiB for an environment variable, \
        and the tool reads HAFT_ARGS; read the file in HAFT_ARGS_FILE instead";
    assert_eq!((code(&answer), &answer["error"]["message"]), ("too_large", &json!(expected)));
    let answer = call(&server, "wc -c < \"$HAFT_ARGS_FILE\"", two.clone()).await;
    assert_eq!(answer["value"], json!(200_015), "{}", answer["error"]);
    let answer = call(&server, "echo ${#x} ${#y}", two).await;
    assert_eq!(answer["value"], "100000 100000", "{}", answer["error"]);
}

#[tokio::test]
async fn limit_errors_name_the_limit() {
    let server = Server::start_with(|settings| settings.sandbox.processes.limits.memory = 64 << 20).await;
    let mut slow = bash("slow", &[], "echo begun >&2; sleep 100");
    slow["timeout_secs"] = json!(1);
    server.create(slow).await;
    let (_, answer) = server.invoke("slow", json!({})).await;
    assert_eq!(answer["error"]["message"], "the process timed out after 1s", "{answer}");
    let (_, shown) = server.get(&format!("/api/calls/{}", answer["call_id"].as_str().unwrap())).await;
    assert_eq!(shown["data"]["process"], json!({"limit": "wall_time", "stderr": "begun\n"}));
    let sent = json!({"args": {}, "timeout_ms": 300});
    let (_, answer) = server.post("/api/tools/slow/invoke", sent).await;
    // Either limit may be detected first.
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("timed out after 300ms"), "{answer}");
    let answer = call(&server, "exec dd if=/dev/zero of=/dev/null bs=256M count=1", json!({})).await;
    assert_eq!(answer["error"]["details"], json!({"limit": "memory"}), "{answer}");
}

#[tokio::test]
async fn a_script_that_does_not_parse_is_rejected() {
    let server = Server::start().await;
    let (status, answer) = server.post("/api/tools", bash("broken", &[], "echo\nif true; then\n")).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    let problem = &answer["error"]["details"]["problems"][0];
    assert_eq!(
        (&problem["field"], &problem["code"]),
        (&json!("implementation.body"), &json!("syntax")),
        "{answer}"
    );
    assert!(
        problem["message"].as_str().unwrap().starts_with("bash: syntax error: unexpected end of file"),
        "{answer}"
    );
    server.create(bash("whole", &[], "echo")).await;
    let sent = json!({"definition": bash("whole", &[], "echo 'x")});
    let (_, answer) = server.post("/api/tools/whole/validate", sent).await;
    assert_eq!(answer["data"]["valid"], false, "{answer}");
}

#[tokio::test]
async fn a_command_that_does_not_parse_is_rejected() {
    let server = Server::start().await;
    let exec = |command: &str| {
        json!({
            "name": "broken", "description": "Runs a command of the tests",
            "parameters": {"type": "object", "properties": {"x": {"type": "string"}}},
            "implementation": {"type": "exec", "command": command},
        })
    };
    let (status, answer) = server.post("/api/tools", exec("echo begun; if true; then")).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    let problem = &answer["error"]["details"]["problems"][0];
    assert_eq!(problem["field"], "implementation.command", "{answer}");
    assert!(problem["message"].as_str().unwrap().ends_with("of the command)"), "{answer}");
    let (status, answer) = server.post("/api/tools", exec("for f in {{x}}; do echo")).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    server.create(exec("echo whole")).await;
}

#[tokio::test]
async fn a_file_that_does_not_parse_never_runs() {
    let server = Server::start().await;
    let folder = server.home.path().join("skills/user-created");
    std::fs::create_dir_all(&folder).unwrap();
    let file = |body: &str| {
        format!("---\nname: dropped\ndescription: Put into the folder\nruntime: bash\n---\n{body}")
    };
    std::fs::write(folder.join("dropped.skill"), file("echo begun >&2\nif true; then\n")).unwrap();
    let server = server.restart().await;
    for _ in 0..2 {
        let (_, answer) = server.invoke("dropped", json!({})).await;
        assert_eq!(code(&answer), "not_ready", "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("`implementation.body`: bash: syntax error"), "{message}");
        assert!(message.ends_with("of the body)"), "{message}");
    }
    // Once it is known, it is also shown.
    let (_, shown) = server.get("/api/tools/dropped").await;
    let why = shown["data"]["error"].as_str().unwrap_or_default();
    assert!(shown["data"]["ready"] == false && why.contains("bash: syntax error"), "{shown}");
}

#[tokio::test]
async fn an_output_that_is_too_long_is_cut_and_marked() {
    let server = Server::start_with(|settings| settings.results.max_inline_bytes = 1 << 24).await;
    let answer = call(&server, "head -c 5000000 /dev/zero | tr '\\0' x", json!({})).await;
    let value = answer["value"].as_str().unwrap_or_default();
    assert!(value.starts_with("xxx"), "{}", answer["error"]);
    let (_, mark) = value.rsplit_once('\n').unwrap();
    assert!(mark.starts_with("[output cut here: ") && mark.ends_with(" bytes left out]"), "{mark}");
    // What is no text keeps its bytes.
    for body in ["head -c 5000000 /dev/zero", "head -c 5000000 /dev/zero | tr '\\0' '\\377'"] {
        let answer = call(&server, body, json!({})).await;
        let (bytes, left_out) = (answer["value"]["bytes"].as_u64(), answer["value"]["left_out"].as_u64());
        let all = bytes.zip(left_out).map(|(bytes, rest)| bytes + rest);
        assert_eq!(all, Some(5_000_000), "{}", answer["error"]);
    }
}

#[tokio::test]
async fn arguments_are_bounded_as_the_definition_says() {
    let server = Server::start().await;
    let answer = call(&server, "wc -c < $HAFT_ARGS_FILE", json!({"x": "x".repeat(2 << 20)})).await;
    let expected = "the arguments have 2097160 bytes, which exceeds the limit of 1048576; raise \
                    `execution.limits.max_request_bytes`";
    assert_eq!((code(&answer), &answer["error"]["message"]), ("too_large", &json!(expected)));
}

/// The time that it takes to remove what a script left is not the script's.
#[tokio::test]
async fn output_of_a_slow_process_tree_is_kept() {
    let server = Server::start().await;
    let mut bomb = bash("bomb", &[], "echo begun; f() { f | f & }; f; sleep 100");
    bomb["timeout_secs"] = json!(1);
    server.create(bomb).await;
    let (_, answer) = server.invoke("bomb", json!({})).await;
    assert_eq!(answer["error"]["details"]["limit"], "wall_time", "{answer}");
    let (_, shown) = server.get(&format!("/api/calls/{}", answer["call_id"].as_str().unwrap())).await;
    assert_eq!(shown["data"]["process"]["stdout"], "begun\n", "{shown}");
}

#[tokio::test]
async fn a_number_is_what_was_printed() {
    let server = Server::start().await;
    for (printed, expected) in [
        ("42", json!(42)),
        ("-0.5", json!(-0.5)),
        ("1.10", json!("1.10")),
        ("98765432109876543210", json!("98765432109876543210")),
    ] {
        let answer = call(&server, &format!("echo {printed}"), json!({})).await;
        assert_eq!(answer["value"], expected, "{printed}");
    }
}

#[tokio::test]
async fn seed_1_python_runs_as_printed() {
    let server = Server::start().await;
    let mut tool = json!({
        "name": "text-analysis", "description": "Analyze text sentiment and length", "runtime": "python",
        "body": "import json; text = \"${text}\"; print(json.dumps({\"length\": len(text), \"words\": len(text.split())}))",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "policy": "allow", "sandbox": true, "timeout_secs": 10,
    });
    server.create(tool.clone()).await;
    for (text, words) in [("two words", 2), ("\"; import os; os._exit(1) #", 5)] {
        let (_, answer) =
            server.post("/api/tools/text-analysis/test", json!({"parameters": {"text": text}})).await;
        assert_eq!(answer["data"]["output"], json!({"length": text.len(), "words": words}), "{answer}");
    }
    tool["body"] = json!("if True\n    print(1)");
    let (_, answer) = server.post("/api/tools/text-analysis/validate", json!({"definition": tool})).await;
    assert_eq!(answer["data"]["valid"], false, "{answer}");
    let message = &answer["data"]["errors"][0]["message"];
    assert!(message.as_str().is_some_and(|text| text.contains("(line 1, column 8 of the body)")), "{answer}");
}

#[tokio::test]
async fn commands_take_values_without_reading_them() {
    let server = Server::start().await;
    let yaml = "name: show\ndescription: Prints its arguments as they are\nparams:\n  - name: url\n    type: string\n    \
        required: true\n  - name: filter\n    type: string\n    required: true\nimplementation:\n  type: exec\n  \
        command: \"printf '%s|' '{{url}}' | cat - <(printf '%s' \\\"{{filter}}\\\")\"\n  timeout: 60s\n  env:\n    \
        PATH: /usr/local/bin:/usr/bin:/bin\n";
    let request =
        server.request(reqwest::Method::POST, "/api/tools").header("content-type", "application/yaml");
    let (status, answer) = crate::harness::send(request.body(yaml)).await;
    assert_eq!(status, 201, "{answer}");
    let hostile = "'; touch /tmp/x; echo \"$(id)\" `id` \\ \n$HOME";
    let (_, answer) = server.invoke("show", json!({"url": hostile, "filter": hostile})).await;
    assert_eq!(answer["value"], format!("{hostile}|{hostile}"), "{answer}");
}

#[tokio::test]
async fn argument_lists_run_without_a_shell() {
    let server = Server::start().await;
    let yaml = "name: show\ndescription: Prints its arguments as they are\nparams:\n  - {name: text, type: string}\n  \
        - {name: count, type: integer, default: -3}\nimplementation:\n  type: exec\n  argv: [printf, \"%s|\", \
        \"{{count}}\", \"{{text}}\", \"a {{text}}\"]\n  timeout: 60s\n";
    let request =
        server.request(reqwest::Method::POST, "/api/tools").header("content-type", "application/yaml");
    let (status, answer) = crate::harness::send(request.body(yaml)).await;
    assert_eq!(status, 201, "{answer}");
    let hostile = "'; touch /tmp/x; echo \"$(id)\" `id` \\ \n$HOME *";
    let (_, answer) = server.invoke("show", json!({"text": hostile})).await;
    assert_eq!(answer["value"], format!("-3|{hostile}|a {hostile}|"), "{answer}");
    let (_, answer) = server.invoke("show", json!({})).await;
    assert_eq!(answer["value"], "-3|a |", "{answer}");
    let (_, answer) = server.invoke("show", json!({"text": "-v"})).await;
    assert_eq!(code(&answer), "template", "{answer}");
}

#[tokio::test]
async fn elevated_scripts_need_an_elevated_token() {
    let server = Server::start().await;
    let mut tool = bash("careful", &[], "echo ran");
    tool["policy"] = json!("elevated");
    server.create(tool).await;
    let (_, made) = server.post("/api/tokens", json!({"name": "plain", "role": "caller"})).await;
    let token = made["data"]["token"].as_str().unwrap();
    let request =
        server.bare(reqwest::Method::POST, "/api/tools/careful/invoke").bearer_auth(token).body("{}");
    let (status, answer) = crate::harness::send(request).await;
    assert_eq!((status, code(&answer)), (202, "approval_required"), "{answer}");
    let (_, answer) = server.invoke("careful", json!({})).await;
    assert_eq!(answer["value"], "ran");
}

#[tokio::test]
async fn readyz_reports_the_engine_and_never_falls_back() {
    let server = Server::start().await;
    let (_, answer) = server.get("/readyz").await;
    assert_eq!(
        (&answer["checks"]["sandbox"], &answer["sandbox"]["engine"]),
        (&json!("ok"), &json!("bubblewrap"))
    );
    let server = Server::start_with(|settings| {
        settings.sandbox.engine = haft_server::settings::EngineName::Podman;
        settings.sandbox.image = None;
    })
    .await;
    let answer = call(&server, "echo ran", json!({})).await;
    assert_eq!(code(&answer), "sandbox_unavailable", "{answer}");
    // The author gets a warning that the script was not checked.
    for runtime in ["bash", "python"] {
        let tool =
            json!({"name": "unseen", "description": "Is not looked at", "runtime": runtime, "body": "if ("});
        for (path, body) in [("/api/tools", tool.clone()), ("/api/tools/unseen/validate", json!({}))] {
            let (_, answer) = server.post(path, body).await;
            let warnings = answer["data"]["warnings"].as_array().unwrap_or_else(|| panic!("{answer}"));
            let found = warnings.iter().find(|warning| warning["code"] == "not_checked");
            let found = found.unwrap_or_else(|| panic!("{answer}"));
            assert_eq!(found["field"], "implementation.body", "{found}");
        }
        server.delete("/api/tools/unseen?keep_backup=false").await;
    }
}

#[tokio::test]
async fn output_events_name_their_stream() {
    let server = Server::start().await;
    server.create(bash("noisy", &[], "sleep 2; echo first; echo second >&2; echo third")).await;
    let (_, answer) = server.post("/api/tools/noisy/invoke?async=true", json!({})).await;
    let path = format!("/api/calls/{}/events", answer["call_id"].as_str().unwrap());
    let text = server.request(reqwest::Method::GET, &path).send().await.unwrap().text().await.unwrap();
    for (line, stream) in [("first", "stdout"), ("second", "stderr"), ("third", "stdout")] {
        let expected = format!(r#"data: {{"line":"{line}","stream":"{stream}"}}"#);
        assert!(text.contains(&expected), "{expected}\n{text}");
    }
}
