//! Definitions keep the words of their author.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, send};

const YAML: &str = "# Asked for by the pilots.\nname: weather\ndescription: Current weather of a city   # short\n\
                    params:\n  - {name: city, type: string, required: true}\nimplementation:\n  type: http\n  url: \
                    https://api.example.com/{{city}}\n";

async fn send_text(server: &Server, method: Method, path: &str, kind: &str, text: &str) -> Value {
    let request = server.request(method, path).header("content-type", kind).body(text.to_owned());
    let (status, answer) = send(request).await;
    assert!(status < 300, "{answer}");
    answer["data"].clone()
}

fn file(server: &Server, tool: &Value) -> String {
    std::fs::read_to_string(server.home.path().join(tool["path"].as_str().unwrap())).unwrap()
}

#[tokio::test]
async fn yaml_keeps_its_text_and_json_of_another_dialect_is_converted() {
    let server = Server::start().await;
    let tool = send_text(&server, Method::POST, "/api/tools", "application/yaml", YAML).await;
    assert_eq!((file(&server, &tool).as_str(), &tool["revision"]), (YAML, &json!(1)));

    let path = "/api/tools/weather";
    let commented = YAML.replace("# short", "# still short");
    let tool = send_text(&server, Method::PUT, path, "text/yaml; charset=utf-8", &commented).await;
    assert_eq!((file(&server, &tool), &tool["revision"]), (commented.clone(), &json!(1)));
    let (_, answer) = server.get("/api/tools/weather/source").await;
    assert_eq!(answer["data"]["text"], commented);

    let edited = commented.replace("Current weather", "Weather");
    let tool = send_text(&server, Method::PUT, path, "application/yaml", &edited).await;
    assert_eq!((file(&server, &tool), &tool["revision"]), (edited.clone(), &json!(2)));

    // Writing back an unchanged definition keeps the text.
    let shown = server.get(path).await.1["data"].clone();
    let (status, answer) = server.put(path, shown.clone()).await;
    assert_eq!((status, file(&server, &answer["data"])), (200, edited));
    // A change in JSON has no words for a YAML file.
    let mut changed = shown;
    changed["description"] = json!("Weather of tomorrow in a city");
    let (_, answer) = server.put(path, changed).await;
    let text = file(&server, &answer["data"]);
    assert!(text.contains("description: Weather of tomorrow") && !text.contains('#'), "{text}");
}

#[tokio::test]
async fn json_keeps_its_layout_but_not_what_only_the_store_knows() {
    let server = Server::start().await;
    let text = "{\n    \"name\": \"lister\", \"description\": \"Lists the files of a folder\",\n    \
                \"implementation\": {\"type\": \"exec\", \"command\": \"ls\"}\n}\n";
    let tool = send_text(&server, Method::POST, "/api/tools", "application/json", text).await;
    assert_eq!(file(&server, &tool), text);
    // What the API answered, laid out by a program.
    let mut shown = server.get("/api/tools/lister").await.1["data"].clone();
    shown["description"] = json!("Lists the files of one folder");
    let tool = send_text(&server, Method::PUT, "/api/tools/lister", "", &format!("{shown:#}")).await;
    let text = file(&server, &tool);
    assert!(text.contains("one folder") && !text.contains("created_at"), "{text}");
    // One line has no layout.
    let one = json!({"name": "one", "description": "Lists the files of a folder", "implementation": {"type": "exec", "command": "ls"}});
    let tool = server.create(one).await;
    assert!(file(&server, &tool).lines().count() > 3);
}

#[tokio::test]
async fn a_restored_mask_is_never_written_to_the_file() {
    let server = Server::start().await;
    let secret = format!("{YAML}  headers:\n    X-Api-Key: hunter2-hunter2\n");
    let tool = send_text(&server, Method::POST, "/api/tools", "application/yaml", &secret).await;
    assert_eq!(file(&server, &tool), secret);
    let masked = secret.replace("hunter2-hunter2", "'***'").replace("# short", "# longer");
    let tool = send_text(&server, Method::PUT, "/api/tools/weather", "application/yaml", &masked).await;
    let text = file(&server, &tool);
    assert!(text.contains("hunter2-hunter2") && !text.contains("***"), "{text}");
}

#[tokio::test]
async fn status_and_enabled_change_in_one_update() {
    let server = Server::start().await;
    let tool = send_text(&server, Method::POST, "/api/tools", "application/yaml", YAML).await;
    let text = format!("{}status: deprecated\nenabled: false\n", YAML.replace("Current weather", "Weather"));
    let after = send_text(&server, Method::PUT, "/api/tools/weather", "application/yaml", &text).await;
    assert_eq!(
        (&after["id"], &after["revision"], &after["status"], &after["enabled"]),
        (&tool["id"], &json!(2), &json!("deprecated"), &json!(false))
    );
    assert_eq!(file(&server, &after), text);
    let history = std::fs::read_dir(server.home.path().join("tool-history")).unwrap().count();
    assert_eq!(history, 1, "the file was written once");
    let server = server.restart().await;
    let again = server.get("/api/tools/weather").await.1["data"].clone();
    assert_eq!(again["modified_at"], after["modified_at"]);
}

#[tokio::test]
async fn an_unreadable_file_is_shown_to_editors_and_fixed_by_put() {
    let server = Server::start().await;
    let path = server.home.path().join("skills/user-created/later.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "name: later\ntoken: hunter2\ndescription: [\n").unwrap();
    let server = server.restart().await;
    let (status, answer) = server.get("/api/tools/later").await;
    assert_eq!((status, code(&answer)), (409, "not_ready"));
    let (_, answer) = server.get("/api/tools/user-created:later/source").await;
    assert_eq!(
        answer["data"],
        json!({"text": "name: later\ntoken: hunter2\ndescription: [\n", "form": "yaml",
               "path": "skills/user-created/later.yaml"})
    );
    let (_, answer) = server.post("/api/tokens", json!({"name": "reader", "role": "viewer"})).await;
    let viewer = answer["data"]["token"].as_str().unwrap().to_owned();
    for (method, path) in [(Method::GET, "/api/tools/later/source"), (Method::PUT, "/api/tools/later")] {
        let (status, answer) = send(server.bare(method, path).bearer_auth(&viewer).body("{}")).await;
        assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
        assert!(!answer.to_string().contains("hunter2"));
    }
    let text = YAML.replace("name: weather\n", "");
    let tool = send_text(&server, Method::PUT, "/api/tools/later", "application/yaml", &text).await;
    assert_eq!(
        (&tool["name"], &tool["ready"], &tool["revision"]),
        (&json!("later"), &json!(true), &json!(1))
    );
    assert_eq!(file(&server, &tool), text);
    let (_, answer) = server.get("/api/tools?filter=skills").await;
    assert_eq!((&answer["data"]["total"], &answer["data"]["failed"]), (&json!(1), &json!(0)));
}
