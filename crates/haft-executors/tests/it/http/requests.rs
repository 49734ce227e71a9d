//! What is sent.

use serde_json::{Value, json};

use super::harness::{Upstream, World, axum, brief, echo};

#[tokio::test]
async fn the_weather_tool_of_the_first_document_runs_as_printed() {
    let answer = json!({"current": {"condition": {"text": "Sunny"}}});
    let router =
        axum::Router::new().route("/v1/current.json", axum::routing::get(|| async { axum::Json(answer) }));
    let server = Upstream::serve(router).await.unwrap();
    let world = World::new();
    let tool = world
        .tool(json!({
            "method": "GET",
            "url": server.url("/v1/current.json?q=${city}&key=${KEY}"),
            "headers": {"User-Agent": "MyApp/${version}"},
            "body": "",
            "success_codes": [200],
            "timeout_ms": 10000,
            "response": "json",
            "extract": "$.current.condition.text",
            "error_mode": "fail"
        }))
        .args(&["city!"]);
    assert_eq!(tool.run(json!({"city": "São Paulo & more"})).await, Ok(json!("Sunny")));
    let seen = server.seen();
    assert_eq!(seen[0].target, "/v1/current.json?q=S%C3%A3o%20Paulo%20%26%20more&key=k%26y%2Fsecret");
    assert_eq!(seen[0].headers["user-agent"], "MyApp/v2");
}

#[tokio::test]
async fn the_yaml_examples_run_as_printed() {
    let server = echo().await;
    let world = World::new();
    let slack = world
        .tool(json!({
            "method": "POST",
            "url": server.url("/api/chat.postMessage"),
            "headers": {"Authorization": "Bearer ${TOKEN}", "Content-Type": "application/json"},
            "body": {"channel": "{{channel}}", "text": "{{message}}"},
            "templates": "braces"
        }))
        .args(&["channel!", "message!"]);
    let seen = slack.run(json!({"channel": "ops", "message": "a \"b\" {{x}} ${KEY}"})).await.unwrap();
    assert_eq!(seen["headers"]["authorization"], "Bearer tok-12345");
    assert_eq!(seen["body"], r#"{"channel":"ops","text":"a \"b\" {{x}} ${KEY}"}"#);

    let general = world
        .tool(json!({
            "method": "POST",
            "url": server.url("/endpoint"),
            "headers": {"Authorization": "Bearer ${KEY}", "Content-Type": "application/json"},
            "query": {"format": "json"},
            "body": {"field1": "{{param1}}", "field2": "{{param2}}"},
            "timeout_ms": 30000,
            "templates": "braces"
        }))
        .args(&["param1!", "param2"])
        .execution(json!({"retry": {"attempts": 3, "backoff_ms": 1000}}));
    let seen = general.run(json!({"param1": "x", "param2": 10})).await.unwrap();
    assert_eq!(
        (&seen["target"], &seen["body"]),
        (&json!("/endpoint?format=json"), &json!(r#"{"field1":"x","field2":10}"#))
    );
    let seen = general.run(json!({"param1": "x"})).await.unwrap();
    assert_eq!(seen["body"], r#"{"field1":"x"}"#);
}

/// Checks what a definition sends for some arguments, as `METHOD TARGET|CONTENT-TYPE|BODY`.
async fn sends(definition: Value, args: Value, expected: &str) {
    let server = echo().await;
    let mut http = definition;
    let path = http["url"].as_str().unwrap().to_owned();
    http["url"] = json!(server.url(&path));
    let outcome = World::new().tool(http.clone()).args(&["a", "b", "c"]).run(args).await;
    let sent = match outcome {
        Ok(seen) => format!(
            "{} {}|{}|{}",
            seen["method"].as_str().unwrap(),
            seen["target"].as_str().unwrap(),
            seen["headers"]["content-type"].as_str().unwrap_or("-"),
            seen["body"].as_str().unwrap()
        ),
        Err(error) => error.to_string(),
    };
    assert_eq!(sent, expected, "{http}");
}

#[tokio::test]
async fn urls_queries_and_bodies() {
    let hostile = json!({"a": "x/../?#&=%\"<\\", "b": ["1", 2, {"k": null}], "c": null});
    let encoded = "x%2F..%2F%3F%23%26%3D%25%22%3C%5C";
    sends(json!({"url": "/"}), json!({}), "GET /|-|").await;
    sends(json!({"url": "/p/${a}/q"}), hostile.clone(), &format!("GET /p/{encoded}/q|-|")).await;
    sends(
        json!({"url": "/p?z=1", "query": {"a b": "${a}", "list": "${b}", "null": "${c}", "gone": "${nope.x}"}}),
        json!({"a": "x", "b": ["1", 2, {"k": null}], "c": null}),
        "secret_missing: secret `nope.x` is not stored; store it with `haft secret set nope.x`",
    )
    .await;
    sends(
        json!({"url": "/p?z=1", "query": {"a b": "${a}", "list": "${b}", "null": "${c}", "n": 5, "t": true, "x": "${a.x}"}}),
        hostile.clone(),
        &format!("GET /p?z=1&a%20b={encoded}&list=1&list=2&list=%7B%22k%22%3Anull%7D&n=5&t=true|-|"),
    )
    .await;
    sends(
        json!({"url": "/", "method": "post", "body": {"v": "${a}", "l": "${b}", "n": "${c}"}}),
        hostile.clone(),
        r#"POST /|application/json|{"v":"x/../?#&=%\"<\\","l":["1",2,{"k":null}],"n":null}"#,
    )
    .await;
    sends(
        json!({"url": "/", "method": "PUT", "body": r#"{"v": "${a}", "l": ${b}}"#}),
        hostile.clone(),
        r#"PUT /|application/json|{"v": "x/../?#&=%\"<\\", "l": ["1",2,{"k":null}]}"#,
    )
    .await;
    sends(
        json!({"url": "/", "method": "PATCH", "body": "v=${a}&w=1", "headers": {"content-type": "application/x-www-form-urlencoded"}}),
        hostile.clone(),
        &format!("PATCH /|application/x-www-form-urlencoded|v={encoded}&w=1"),
    )
    .await;
    sends(
        json!({"url": "/", "method": "POST", "body": {"v": "${a}", "l": "${b}", "n": "${c}"},
               "headers": {"Content-Type": "application/x-www-form-urlencoded"}}),
        hostile.clone(),
        &format!("POST /|application/x-www-form-urlencoded|v={encoded}&l=1&l=2&l=%7B%22k%22%3Anull%7D"),
    )
    .await;
    sends(
        json!({"url": "/", "method": "POST", "body": "<v>${a}</v>", "headers": {"Content-Type": "application/soap+xml"}}),
        hostile.clone(),
        "POST /|application/soap+xml|<v>x/../?#&amp;=%&quot;&lt;\\</v>",
    )
    .await;
    for content_type in ["application/x-ndjson", "text/plain"] {
        sends(
            json!({"url": "/", "method": "POST", "body": r#"{"v":"${a}"}"#, "headers": {"Content-Type": content_type}}),
            hostile.clone(),
            &format!(r#"POST /|{content_type}|{{"v":"x/../?#&=%\"<\\"}}"#),
        )
        .await;
    }
    sends(
        json!({"url": "/", "method": "DELETE", "body": "say ${a}"}),
        hostile.clone(),
        "DELETE /|text/plain; charset=utf-8|say x/../?#&=%\"<\\",
    )
    .await;
    sends(
        json!({"url": "/", "headers": {"X-A": "${a}"}}),
        json!({"a": "x\r\nX-Evil: 1"}),
        "template: value of `a` is not valid in the header `x-a`: line breaks and NUL are not allowed",
    )
    .await;
    sends(
        json!({"url": "/", "headers": {"X-A": "${BAD}"}}),
        json!({}),
        "template: value of `BAD` is not valid in the header `x-a`: line breaks and NUL are not allowed",
    )
    .await;
    sends(
        json!({"url": "/${a}"}),
        json!({"a": ".."}),
        "template: value of `a` is not valid in the URL: path segments `.` and `..` are not allowed",
    )
    .await;
}

#[tokio::test]
async fn lists_and_maps_in_a_path_follow_their_style() {
    let (list, map) = (json!({"a": ["x y", 2, "p;q,/"]}), json!({"a": {"R": 100, "g b": "/"}}));
    let item = "p%3Bq%2C%2F";
    for (url, style, args, expected) in [
        ("/p/${a}", "comma", &list, format!("/p/x%20y,2,{item}")),
        ("/p/${a}", "comma", &map, "/p/R,100,g%20b,%2F".to_owned()),
        ("/p/${a}/e", "pairs", &list, format!("/p/x%20y,2,{item}/e")),
        ("/p/${a}", "pairs", &map, "/p/R=100,g%20b=%2F".to_owned()),
        ("/p/.${a}", "comma", &list, format!("/p/.x%20y,2,{item}")),
        ("/p/.${a}", "dot", &list, format!("/p/.x%20y.2.{item}")),
        ("/p/.${a}", "dot", &map, "/p/.R=100.g%20b=%2F".to_owned()),
        ("/p/;a=${a}", "comma", &list, format!("/p/;a=x%20y,2,{item}")),
        ("/p/;a=${a}", "semicolon", &list, format!("/p/;a=x%20y;a=2;a={item}")),
        ("/p/;${a}", "semicolon", &map, "/p/;R=100;g%20b=%2F".to_owned()),
        ("/p/${a}", "semicolon", &json!({"a": "one"}), "/p/one".to_owned()),
    ] {
        let definition = json!({"url": url, "text_styles": {"a": style}});
        sends(definition, args.clone(), &format!("GET {expected}|-|")).await;
    }
    let dots = "template: value of `a` is not valid in the URL: path segments `.` and `..` are not allowed";
    for args in [json!({"a": ["", ""]}), json!({"a": ["."]})] {
        sends(json!({"url": "/p/.${a}/q", "text_styles": {"a": "dot"}}), args, dots).await;
    }
}

#[tokio::test]
async fn an_optional_body_without_values_is_not_sent() {
    let json_type = json!({"Content-Type": "application/json"});
    let form = json!({"Content-Type": "application/x-www-form-urlencoded"});
    for (body, headers, args, expected) in [
        (json!({"v": "${a}"}), json!({}), json!({}), "POST /|-|"),
        (json!({"v": "${a}"}), json!({}), json!({"a": null}), r#"POST /|application/json|{"v":null}"#),
        (json!("${a}"), json_type.clone(), json!({}), "POST /|-|"),
        (json!("${a}"), json_type.clone(), json!({"a": null}), "POST /|application/json|null"),
        (json!("${a}"), json_type, json!({"a": {}}), "POST /|application/json|{}"),
        (json!({"v": "${a}"}), form.clone(), json!({}), "POST /|-|"),
        (json!({"v": "${a}"}), form, json!({"a": 1}), "POST /|application/x-www-form-urlencoded|v=1"),
    ] {
        let mut definition = json!({"url": "/", "method": "POST", "body": body, "headers": headers});
        definition["optional_body"] = json!(true);
        sends(definition, args, expected).await;
    }
    sends(
        json!({"url": "/", "method": "POST", "body": {"v": "${a}"}}),
        json!({}),
        "POST /|application/json|{}",
    )
    .await;
}

#[tokio::test]
async fn reserved_characters_stay_where_the_definition_allows_them() {
    sends(
        json!({"url": "/", "query": {"q": "${a}", "r": "${a}"}, "allow_reserved": ["q"]}),
        json!({"a": "a/b:c,d&e=f"}),
        "GET /?q=a/b:c,d%26e=f&r=a%2Fb%3Ac%2Cd%26e%3Df|-|",
    )
    .await;
}

#[tokio::test]
async fn cookies_and_headers_of_missing_arguments_are_omitted() {
    let server = echo().await;
    let http = json!({
        "url": server.url("/"), "headers": {"Cookie": "s=1; a=${a}; b=${b}", "X-C": "${c}"},
        "text_styles": {"b": "comma", "c": "pairs"},
    });
    for (args, cookie, header) in [
        (json!({}), json!("s=1"), Value::Null),
        (json!({"a": "x=="}), json!("s=1; a=x=="), Value::Null),
        (json!({"b": [1, "two"], "c": {"k": "v", "l": 2}}), json!("s=1; b=1,two"), json!("k=v,l=2")),
    ] {
        let world = World::new();
        let seen = world.tool(http.clone()).args(&["a", "b", "c"]).run(args).await.unwrap();
        let headers = &seen["headers"];
        assert_eq!((headers["cookie"].clone(), headers["x-c"].clone()), (cookie, header));
    }
    let refused = World::new().tool(http).args(&["a", "b", "c"]).run(json!({"b": ["x; admin=1"]})).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "template: value of `b` is not valid in the header `cookie`: `;` would start another cookie"
    );
}

#[tokio::test]
async fn a_missing_optional_header_is_omitted() {
    let server = echo().await;
    let world = World::new();
    let tool = world
        .tool(json!({"url": server.url("/"), "headers": {"X-A": "${a}", "X-B": "b${a}", "X-C": ""}}))
        .args(&["a"]);
    let seen = tool.run(json!({})).await.unwrap();
    let headers = seen["headers"].as_object().unwrap();
    let own: Vec<_> = headers.iter().filter(|(name, _)| name.starts_with("x-")).collect();
    assert_eq!(own, [(&"x-b".to_owned(), &json!("b")), (&"x-c".to_owned(), &json!(""))]);
}

#[tokio::test]
async fn steps_read_the_results_of_earlier_steps() {
    let router = axum::Router::new()
        .route(
            "/login",
            axum::routing::post(|| async { axum::Json(json!({"session": {"id": "s/1"}, "n": [4, 5]})) }),
        )
        .fallback(|uri: axum::http::Uri, headers: axum::http::HeaderMap| async move {
            axum::Json(json!({"target": uri.to_string(), "session": headers["x-session"].to_str().unwrap()}))
        });
    let server = Upstream::serve(router).await.unwrap();
    let world = World::new();
    let tool = world
        .tool(json!({
            "url": server.url("/login"),
            "steps": [
                {"name": "login", "method": "POST", "body": {"user": "${USER}"}},
                {"name": "list", "url": server.url("/list/${steps.login.session.id}"),
                 "query": {"n": "${steps.login.n}", "who": "${a}"},
                 "headers": {"X-Session": "${steps.login.session.id}"}}
            ]
        }))
        .args(&["a"]);
    let value = tool.run(json!({"a": "me"})).await;
    assert_eq!(value, Ok(json!({"target": "/list/s%2F1?n=4&n=5&who=me", "session": "s/1"})));
    assert_eq!(server.seen()[0].body, r#"{"user":"ann"}"#);
}

#[tokio::test]
async fn the_size_of_a_request_is_limited() {
    let server = echo().await;
    let world = World::new();
    let tool = world
        .tool(json!({"method": "POST", "url": server.url("/"), "body": {"a": "${a}"}}))
        .args(&["a"])
        .execution(json!({"limits": {"max_request_bytes": 1000}}));
    assert!(tool.run(json!({"a": "x".repeat(800)})).await.is_ok());
    let error = tool.fail(json!({"a": "x".repeat(1000)})).await;
    assert!(error.message.ends_with("raise `execution.limits.max_request_bytes`"), "{error}");
    assert_eq!(error.code.as_str(), "too_large");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn json_that_starts_with_a_condition_is_escaped() {
    let server = echo().await;
    let world = World::new();
    let tool = world.tool(json!({
        "method": "POST", "url": server.url("/"), "templates": "braces",
        "body": "{{if a}}{\"a\": \"{{a}}\"}{{else}}[]{{end}}",
    }));
    let seen = tool.args(&["a"]).run(json!({"a": "x\", \"admin\": \"1"})).await.unwrap();
    assert_eq!(seen["body"], r#"{"a": "x\", \"admin\": \"1"}"#);
    assert_eq!(seen["headers"]["content-type"], "application/json");
}

#[tokio::test]
async fn connections_are_reused() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::AsyncWriteExt;
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    let server = Upstream::raw(move |mut stream| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            loop {
                haft_testkit::upstream::read_head(&mut stream).await;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";
                if stream.write_all(answer).await.is_err() {
                    break;
                }
            }
        }
    })
    .await
    .unwrap();
    let world = World::new();
    for _ in 0..5 {
        assert_eq!(world.tool(json!({"url": server.url("/")})).run(json!({})).await, Ok(json!("ok")));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_post_without_a_body_sends_its_length() {
    use std::sync::{Arc, Mutex};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let heads = Arc::new(Mutex::new(Vec::<String>::new()));
    let noted = Arc::clone(&heads);
    let server = Upstream::raw(move |mut stream| {
        let noted = Arc::clone(&noted);
        async move {
            let (mut head, mut buffer) = (Vec::new(), [0_u8; 1024]);
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(count) => head.extend_from_slice(&buffer[..count]),
                }
            }
            noted.lock().unwrap().push(String::from_utf8_lossy(&head).to_ascii_lowercase());
            let answer =
                b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
            let _ = stream.write_all(answer).await;
        }
    })
    .await
    .unwrap();
    let world = World::new();
    for (method, expected) in [("POST", 1), ("PUT", 1), ("PATCH", 1), ("DELETE", 0), ("GET", 0)] {
        let tool = world.tool(json!({"method": method, "url": server.url("/")}));
        assert_eq!(tool.run(json!({})).await, Ok(json!("ok")), "{method}");
        let head = heads.lock().unwrap().pop().unwrap();
        assert_eq!(head.matches("\r\ncontent-length: 0\r\n").count(), expected, "{head}");
    }
}

#[tokio::test]
async fn a_missing_secret_is_reported_to_the_operator_only() {
    let world = World::new();
    let error = world.tool(json!({"url": "http://127.0.0.1:1/${NOT_SET}"})).fail(json!({})).await;
    assert_eq!(brief(&error), "secret_missing final: a credential of this tool is not configured");
    assert!(error.message.contains("`NOT_SET`"));
}
