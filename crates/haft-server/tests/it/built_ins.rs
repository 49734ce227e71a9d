//! The built-in tools of a server: in the catalog, read-only, and under the rules of everyone.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

async fn token_of(server: &Server, body: Value) -> String {
    let (status, answer) = server.post("/api/tokens", body).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"]["token"].as_str().unwrap().to_owned()
}

async fn invoke_as(server: &Server, token: &str, tool: &str, args: Value) -> (u16, Value) {
    let path = format!("/api/tools/{tool}/invoke");
    send(server.bare(Method::POST, &path).bearer_auth(token).body(json!({"args": args}).to_string())).await
}

fn names(list: &Value) -> Vec<&str> {
    list["data"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn built_in_tools_are_listed_ready_and_read_only() {
    let server = Server::start_whole(|_| {}).await;
    let (_, catalog) = server.get("/tools/builtins/templates").await;
    assert_eq!(
        names(&catalog),
        [
            "append_file",
            "bash",
            "clock",
            "create_tool",
            "datetime_utils",
            "delete_tool",
            "describe_tool",
            "exec",
            "function_call",
            "hello",
            "http_request",
            "json_transform",
            "list_files",
            "mcp_call",
            "read_file",
            "retrieval_pipeline",
            "search_tools",
            "send_email",
            "send_whatsapp",
            "web_fetch",
            "web_search",
            "write_file"
        ]
    );
    assert_eq!((&catalog["data"]["total"], &catalog["data"]["failed"]), (&json!(22), &json!(0)), "{catalog}");
    let (_, listed) = server.get("/api/tools?filter=built-in&page_size=100").await;
    assert_eq!(names(&listed), names(&catalog));
    let (_, tool) = server.get("/api/tools/web_search").await;
    assert_eq!(
        json!([
            tool["data"]["tool_type"],
            tool["data"]["built_in"],
            tool["data"]["status"],
            tool["data"]["policy"]
        ]),
        json!(["built_in", true, "published", "allow"])
    );
    let (status, answer) = server.put("/api/tools/web_search", function_tool("web_search", "echo")).await;
    assert_eq!((status, code(&answer)), (403, "read_only"), "{answer}");
    assert_eq!(server.delete("/api/tools/web_search").await.0, 403);
    assert_eq!(server.patch("/api/tools/datetime_utils", json!({"enabled": false})).await.0, 200);
    let (status, answer) = server.invoke("datetime_utils", json!({"operation": "now"})).await;
    assert_eq!((status, code(&answer)), (409, "disabled"), "{answer}");
}

#[tokio::test]
async fn files_are_written_grown_listed_and_read() {
    let server = Server::start_whole(|_| {}).await;
    let value = async |tool: &str, args: Value| {
        let (status, answer) = server.invoke(tool, args).await;
        assert_eq!((status, &answer["ok"]), (200, &json!(true)), "{tool}: {answer}");
        answer["value"].clone()
    };
    value("write_file", json!({"path": "notes/a.md", "content": "one\n"})).await;
    value("append_file", json!({"path": "notes/a.md", "content": "two {{x}} ${HOME}\n"})).await;
    assert_eq!(value("read_file", json!({"path": "notes/a.md"})).await, "one\ntwo {{x}} ${HOME}\n");
    let listed = value("list_files", json!({"path": "notes"})).await;
    assert_eq!((&listed[0]["name"], &listed[0]["size"]), (&json!("a.md"), &json!(22)));
    for (tool, args) in [
        ("read_file", json!({"path": "../haft.db"})),
        ("write_file", json!({"path": "../x", "content": ""})),
        ("append_file", json!({"path": "../tokens", "content": ""})),
        ("list_files", json!({"path": ".."})),
    ] {
        let (_, answer) = server.invoke(tool, args).await;
        assert_eq!(code(&answer), "path_escapes", "{tool}: {answer}");
    }
}

#[tokio::test]
async fn commands_run_confined_and_only_for_elevated_callers() {
    let server = Server::start_whole(|_| {}).await;
    let (_, answer) =
        server.invoke("exec", json!({"command": "printf '3 1 2' | tr ' ' '\\n' | sort | paste -sd,"})).await;
    assert_eq!(answer["value"], "1,2,3", "{answer}");
    let script = "set -u\nfor i in 1 2; do echo \"$i\"; done | wc -l";
    assert_eq!(server.invoke("bash", json!({"script": script})).await.1["value"], 2);
    let (_, answer) = server.invoke("bash", json!({"script": "false\necho never"})).await;
    assert_eq!((code(&answer), &answer["error"]["details"]["exit_code"]), ("execution_failed", &json!(1)));
    let (_, answer) =
        server.invoke("exec", json!({"command": "exec 3<>/dev/tcp/127.0.0.1/1 || echo shut"})).await;
    assert_eq!(answer["value"], "shut", "no network: {answer}");
    let home = server.home.path().to_str().unwrap();
    let (_, answer) =
        server.invoke("exec", json!({"command": format!("ls {home} 2>/dev/null || echo hidden")})).await;
    assert_eq!(answer["value"], "hidden", "no files of the host: {answer}");
    let caller = token_of(&server, json!({"name": "plain", "role": "caller"})).await;
    for tool in ["exec", "bash"] {
        let args = if tool == "exec" { json!({"command": "true"}) } else { json!({"script": "true"}) };
        let (status, answer) = invoke_as(&server, &caller, tool, args).await;
        assert_eq!((status, code(&answer)), (202, "approval_required"), "{answer}");
    }
}

#[tokio::test]
async fn a_model_creates_finds_and_deletes_tools() {
    let server = Server::start_whole(|_| {}).await;
    let definition = json!({
        "name": "weather_now", "description": "Current weather for a city",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
        "implementation": {"type": "function", "function": "echo"}, "policy": "allow",
    });
    let (_, answer) = server.invoke("create_tool", json!({"definition": definition})).await;
    let made = &answer["value"];
    assert_eq!(
        json!([answer["ok"], made["name"], made["tool"], made["policy"]]),
        json!([true, "weather_now", "user-created:weather_now@1.0.0", "elevated"]),
        "{answer}"
    );
    let (_, tool) = server.get("/api/tools/weather_now").await;
    assert_eq!(tool["data"]["policy"], "elevated", "also in what is stored");
    let (_, answer) = server.invoke("create_tool", json!({"definition": definition})).await;
    assert_eq!(code(&answer), "conflict", "{answer}");

    let (_, answer) = server.invoke("search_tools", json!({"query": "weather"})).await;
    assert_eq!(
        answer["value"][0],
        json!({
            "name": "weather_now", "tool": "user-created:weather_now@1.0.0", "description": "Current weather for a city",
            "arguments": "city?: string",
        })
    );

    let (_, answer) = server.invoke("delete_tool", json!({"tool": "weather_now"})).await;
    assert_eq!(answer["value"]["deleted"], "user-created:weather_now@1.0.0", "{answer}");
    let backup = answer["value"]["backup_path"].as_str().unwrap();
    assert!(server.home.path().join(backup).is_file(), "{backup}");
    let (_, answer) = server.invoke("delete_tool", json!({"tool": "weather_now"})).await;
    assert_eq!(code(&answer), "not_found", "{answer}");
    let (_, answer) = server.invoke("delete_tool", json!({"tool": "read_file"})).await;
    assert_eq!(code(&answer), "read_only", "{answer}");

    let (_, audit) = server.get("/api/audit").await;
    let reported: Vec<String> = audit["data"]["records"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|record| {
            ["action", "target", "outcome"].map(|key| record[key].as_str().unwrap().to_owned()).join(" ")
        })
        .collect();
    assert_eq!(
        reported,
        [
            "tool.create user-created:weather_now@1.0.0 success",
            "tool.create  conflict",
            "tool.delete user-created:weather_now@1.0.0 success",
            "tool.delete weather_now not_found",
            "tool.delete read_file read_only",
        ]
    );
}

#[tokio::test]
async fn definitions_from_models_are_checked() {
    let server = Server::start_whole(|_| {}).await;
    let skill = "---\nname: up\ndescription: Upper case\nruntime: bash\nparameters:\n  type: object\n  properties:\n    text: {type: string}\n---\nprintf %s \"$text\" | tr a-z A-Z\n";
    let (_, answer) = server.invoke("create_tool", json!({"definition": skill, "policy": "allow"})).await;
    assert_eq!(
        (&answer["value"]["name"], &answer["value"]["policy"]),
        (&json!("up"), &json!("allow")),
        "{answer}"
    );
    assert_eq!(server.invoke("up", json!({"text": "abc"})).await.1["value"], "ABC");
    for (definition, expected) in [
        (
            json!({"name": "bad name", "implementation": {"type": "function", "function": "echo"}}),
            "invalid_definition",
        ),
        (json!({"name": "x", "implementation": {"type": "magic"}}), "invalid_definition"),
        (json!("name: x\n\timplementation: y"), "invalid_definition"),
        (json!("{"), "invalid_definition"),
        (
            json!({"name": "x", "status": "published", "implementation": {"type": "function", "function": "echo"}}),
            "invalid_request",
        ),
        (
            json!({"name": "x", "bundle": "builtin", "implementation": {"type": "function", "function": "echo"}}),
            "read_only",
        ),
    ] {
        let (status, answer) = server.invoke("create_tool", json!({"definition": definition})).await;
        assert_eq!((status, code(&answer)), (200, expected), "{definition}: {answer}");
    }
}

#[tokio::test]
async fn tools_that_change_the_catalog_need_the_role_for_it() {
    let server = Server::start_whole(|_| {}).await;
    let caller = token_of(&server, json!({"name": "agent", "role": "caller", "elevated": true})).await;
    let editor = token_of(&server, json!({"name": "kim", "role": "editor"})).await;
    let tool = function_tool("made", "echo");
    let (_, answer) = invoke_as(&server, &caller, "create_tool", json!({"definition": tool})).await;
    assert_eq!(code(&answer), "forbidden", "{answer}");
    let (_, answer) =
        invoke_as(&server, &editor, "create_tool", json!({"definition": tool, "policy": "allow"})).await;
    assert_eq!(code(&answer), "forbidden", "only an admin says otherwise: {answer}");
    let (_, answer) = invoke_as(&server, &editor, "create_tool", json!({"definition": tool})).await;
    assert_eq!(answer["value"]["policy"], "elevated", "{answer}");
    let (_, answer) = invoke_as(&server, &editor, "made", json!({})).await;
    assert_eq!(code(&answer), "approval_required");
    let (_, answer) = invoke_as(&server, &caller, "delete_tool", json!({"tool": "made"})).await;
    assert_eq!(code(&answer), "forbidden", "{answer}");
    let (_, audit) = server.get("/api/audit?action=tool.create").await;
    assert_eq!(audit["data"]["records"][0]["actor"], "kim", "{audit}");
}

#[tokio::test]
async fn a_function_is_called_under_the_rules_of_its_tool() {
    let server = Server::start_whole(|_| {}).await;
    let mut strict = function_tool("doubler", "double");
    strict["input_schema"] =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    strict["policy"] = json!("elevated");
    server.create(strict).await;
    let call = |name: &str, args: Value| json!({"function_name": name, "args": args});
    let (_, answer) = server.invoke("function_call", call("double", json!({"n": 21}))).await;
    assert_eq!(answer["value"], 42, "{answer}");
    let (_, calls) = server.get("/api/calls").await;
    let reported: Vec<Value> = calls["data"]["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| json!([call["tool"], call["surface"]]))
        .collect();
    assert_eq!(
        reported,
        [
            json!(["user-created:doubler@1.0.0", "function_call"]),
            json!(["builtin:function_call@1.0.0", "rest"])
        ],
        "both are recorded"
    );
    let caller = token_of(&server, json!({"name": "plain", "role": "caller"})).await;
    for (name, args, expected) in [
        ("double", json!({"n": 1}), "approval_required"),
        ("fail", json!({}), "approval_required"),
        ("none", json!({}), "not_found"),
        ("function_call", json!({"function_name": "double"}), "invalid_arguments"),
        ("create_tool", json!({"definition": function_tool("x", "echo")}), "forbidden"),
    ] {
        let (_, answer) = invoke_as(&server, &caller, "function_call", call(name, args)).await;
        assert_eq!(code(&answer), expected, "{name}: {answer}");
    }
    for (name, args, expected) in [
        ("double", json!({"n": "x"}), "invalid_arguments"),
        ("fail", json!({}), "execution_failed"),
        ("panic", json!({}), "panicked"),
        ("echo", json!({}), "ambiguous_name"),
    ] {
        let (_, answer) = server.invoke("function_call", call(name, args)).await;
        assert_eq!(code(&answer), expected, "{name}: {answer}");
    }
}

#[tokio::test]
async fn a_user_tool_with_the_name_of_a_built_in_one_gets_a_warning() {
    let server = Server::start_whole(|_| {}).await;
    let made = server.create(function_tool("read_file", "echo")).await;
    insta::assert_snapshot!(made["warnings"][0]["message"].as_str().unwrap(), @"a built-in tool is also named `read_file`, and `read_file` calls that one; call this tool as `bundle:read_file`, or rename it");
    let (_, answer) = server.invoke("read_file", json!({"path": "missing"})).await;
    assert_eq!(code(&answer), "execution_failed", "the bare name is the built-in tool");
    let (_, answer) = server.invoke("user-created:read_file", json!({"path": "missing"})).await;
    assert_eq!(answer["value"], json!({"path": "missing"}));
    let (_, answer) = server.post("/api/tools/builtin:read_file/validate", json!({})).await;
    assert_eq!(answer["data"]["warnings"], json!([]), "{answer}");
}

#[tokio::test]
async fn built_in_tools_can_be_disabled() {
    let server = Server::start().await;
    assert_eq!(names(&server.get("/tools/builtins/templates").await.1), ["clock", "hello"]);
}
