//! Views of a set.

use haft::middleware::{Call, Next, Stage};
use haft::{ErrorCode, Format, Tools};
use serde_json::json;

use crate::support::named;

fn all() -> Tools {
    named(&["read_file", "write_file", "delete_file", "web_search", "send_email"])
}

#[tokio::test]
async fn a_filter_limits_listing_and_calls() {
    let all = all();
    let researcher = all.filter(["read_file", "web_search"]).unwrap();
    assert_eq!(researcher.names(), ["read_file", "web_search"]);
    let names: Vec<_> = researcher.schema(Format::Mcp).iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["read_file", "web_search"]);
    assert_eq!(researcher.execute("read_file", ()).await.unwrap(), "read_file");
    for form in ["write_file", "user-created:write_file", "write_file@1.0.0", "user-created:write_file@1.0.0"]
    {
        assert_eq!(all.execute(form, ()).await.unwrap(), "write_file", "{form}");
        let error = researcher.execute(form, ()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
        assert!(error.message.starts_with(&format!("tool `{form}` not found")), "{error}");
    }
    assert!(!researcher.is_ready("write_file") && !researcher.remove("write_file"));
    assert!(all.is_ready("write_file"));
}

#[tokio::test]
async fn a_filter_applies_to_model_names() {
    let all = named(&["天気", "wetter"]);
    let of_model = all.schema(Format::OpenAi)[1]["function"]["name"].as_str().unwrap().to_owned();
    assert_ne!(of_model, "天気");
    assert_eq!(all.execute(&of_model, ()).await.unwrap(), "天気");
    let rest = all.filter(["wetter"]).unwrap();
    assert_eq!(rest.execute(&of_model, ()).await.unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(all.filter([&of_model]).unwrap().names(), ["天気"]);
}

#[test]
fn unknown_names_suggest_similar_ones() {
    let error = all().filter(["read_file", "read_flie", "x", "websearch"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tool not found: `read_flie` (did you mean `read_file`?), `x`, `websearch` (did you mean `web_search`?)"
    );
}

#[test]
fn a_filter_of_a_filter_only_narrows() {
    let few = all().filter(["read_file", "write_file"]).unwrap();
    assert_eq!(few.filter(["write_file"]).unwrap().names(), ["write_file"]);
    let error = few.filter(["send_email"]).unwrap_err();
    assert_eq!(error.unknown, [("send_email".to_owned(), None)]);
    assert_eq!(few.filter(Vec::<String>::new()).unwrap().names(), Vec::<String>::new());
}

struct Tag(&'static str);

impl Stage for Tag {
    fn call<'a>(
        &'a self,
        call: &'a mut Call,
        next: Next<'a>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<serde_json::Value, haft::CallError>> + Send + 'a>> {
        Box::pin(async move {
            let value = next.run(call).await?;
            Ok(json!([self.0, value]))
        })
    }
}

#[tokio::test]
async fn the_last_layer_is_the_outermost() {
    let tools = Tools::builder().layer(Tag("first")).layer(Tag("second")).build().unwrap();
    tools.register(haft::ToolDef::new("x", |_: serde_json::Value| async { "x" })).unwrap();
    assert_eq!(tools.execute("x", ()).await.unwrap(), json!(["second", ["first", "x"]]));
    let view = tools.layer(Tag("third"));
    assert_eq!(view.execute("x", ()).await.unwrap(), json!(["third", ["second", ["first", "x"]]]));
    assert_eq!(tools.execute("x", ()).await.unwrap(), json!(["second", ["first", "x"]]));
    let narrow = view.filter(["x"]).unwrap().layer(Tag("fourth"));
    assert_eq!(narrow.execute("x", ()).await.unwrap()[0], "fourth");
}
