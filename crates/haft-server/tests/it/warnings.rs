//! Tools that are ready with warnings, where people look: in lists and single tools, also for dropped files.

use serde_json::{Value, json};

use crate::harness::{Server, poll};

/// Writes a file into the folder of a bundle and waits until its tool is known.
async fn drop_file(server: &Server, name: &str, file: &str, text: &str) -> Value {
    let folder = server.home.path().join("skills/user-created");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(file), text).unwrap();
    poll(async || {
        let (status, answer) = server.get(&format!("/api/tools/{name}")).await;
        (status == 200).then(|| answer["data"].clone())
    })
    .await
}

fn codes(tool: &Value) -> Vec<&str> {
    let warnings = tool["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
    warnings.iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_dropped_file_shows_its_warnings() {
    let server = Server::start().await;
    let text = "---\nname: weather-check\ndescription: Check current weather for a location\nruntime: bash\nicon: sun\n\
                parameters:\n  type: object\n  properties:\n    city: {type: string}\n---\n\
                curl -s 'https://api.weather.example.com/current?city=$city' -H \"Key: ${WEATHER_KEY}\" | head -1\n";
    let shown = drop_file(&server, "weather-check", "weather-check.skill", text).await;
    assert_eq!(shown["ready"], true, "{shown}");
    let expected = ["network_disabled", "argument_in_single_quotes", "unknown_name"];
    assert_eq!(codes(&shown), [&["unknown_field"][..], &expected].concat(), "{shown}");
    let (_, listed) = server.get("/api/tools?filter=skills").await;
    assert_eq!(codes(&listed["data"]["tools"][0]), expected, "{listed}");

    let (status, _) = server.put("/api/credentials/WEATHER_KEY", json!({"value": "k-1234"})).await;
    assert!(status < 300);
    let (_, listed) = server.get("/api/tools?filter=skills").await;
    assert_eq!(codes(&listed["data"]["tools"][0]), expected[..2], "{listed}");
    // The definition can be sent back as it was returned.
    let (_, answer) = server.get("/api/tools/weather-check").await;
    let (status, answer) = server.put("/api/tools/weather-check", answer["data"].clone()).await;
    assert_eq!((status, &answer["data"]["revision"]), (200, &json!(1)), "{answer}");
}

#[tokio::test]
async fn a_module_that_is_not_installed_is_a_warning() {
    let server = Server::start().await;
    let text = "---\nname: fetch-page\ndescription: Fetches a page with a library\nruntime: python\nsandbox: true\n---\n\
                import no_such_module\nprint(1)\n";
    let shown = drop_file(&server, "fetch-page", "fetch-page.skill", text).await;
    assert_eq!((codes(&shown), &shown["ready"]), (vec!["missing_import"], &json!(true)), "{shown}");
    let (_, listed) = server.get("/api/tools?filter=skills").await;
    assert_eq!(codes(&listed["data"]["tools"][0]), ["missing_import"], "{listed}");
}

#[tokio::test]
async fn a_toolset_manifest_is_not_ignored_silently() {
    let server = Server::start().await;
    let text = "name: greet\ndescription: Greets someone by name\nparams: []\nimplementation: {type: exec, argv: [echo, hello]}\n";
    let shown = drop_file(&server, "greet", "greet.yaml", text).await;
    assert_eq!(codes(&shown), [""; 0], "{shown}");
    std::fs::write(server.home.path().join("skills/user-created/toolset.yaml"), "id: x\n").unwrap();
    let (_, listed) = server.get("/api/tools?filter=skills").await;
    assert_eq!(
        listed["data"]["tools"][0]["warnings"],
        json!([{
            "field": "", "code": "toolset_not_read",
            "message": "`skills/user-created/toolset.yaml` is ignored here: install a package with `haft toolset install DIR`",
        }])
    );
}

#[tokio::test]
async fn a_python_function_without_its_module_is_not_ready() {
    let server = Server::start().await;
    let text = "name: grep-files\ndescription: Searches files for a text\nparams: []\n\
                implementation: {type: python, entrypoint: \"library.search:run\"}\n";
    std::fs::create_dir_all(server.home.path().join("skills/user-created/library")).unwrap();
    let shown = drop_file(&server, "grep-files", "grep-files.yaml", text).await;
    assert_eq!(
        (&shown["ready"], &shown["error"]),
        (
            &json!(false),
            &json!(
                "`implementation.entrypoint`: neither `library/search.py` nor a folder `library/search` exists beside the definition"
            )
        ),
        "{shown}"
    );
}

#[tokio::test]
async fn a_misspelled_tool_has_a_suggestion() {
    let server = Server::start().await;
    server.create(crate::harness::function_tool("weather-report", "echo")).await;
    let (status, answer) = server.get("/api/tools/wether-report").await;
    assert_eq!(
        (status, &answer["error"]["message"]),
        (404, &json!("tool `wether-report` not found; did you mean `weather-report`?"))
    );
}
