//! Search over the tools of a set.

use haft::{ToolDef, Tools};
use serde_json::Value;

fn names(tools: &Tools, query: &str) -> Vec<String> {
    tools.search(query, 10).into_iter().map(|hit| hit.name).collect()
}

fn register(tools: &Tools, name: &str, description: &str) {
    tools.register(ToolDef::new(name, |_: Value| async {}).description(description)).unwrap();
}

#[test]
fn a_search_follows_the_set_and_stays_in_its_view() {
    let tools = Tools::new();
    assert_eq!(names(&tools, "weather"), Vec::<String>::new());
    register(&tools, "forecast", "The weather of tomorrow");
    register(&tools, "stock_price", "The price of a share");
    assert_eq!(names(&tools, "will the weather be nice tomorrow")[0], "forecast");
    assert_eq!(names(&tools, "stockPrice")[0], "stock_price");
    register(&tools, "radar", "Shows rain on a map of the weather");
    assert_eq!(names(&tools, "rain on the weather map")[0], "radar");

    let view = tools.filter(["stock_price", "forecast"]).unwrap();
    assert!(!names(&view, "rain on the weather map").contains(&"radar".to_owned()));
    assert!(tools.remove("radar"));
    assert!(!names(&tools, "rain on the weather map").contains(&"radar".to_owned()));
    register(&tools, "radar", "Detects ships");
    assert_eq!(names(&tools, "detect a ship")[0], "radar");

    let hits = tools.search("the price of shares", 1);
    assert_eq!((hits.len(), hits[0].description.as_str()), (1, "The price of a share"));
    assert!(hits[0].score > 0.0);
}

#[test]
fn what_cannot_be_called_is_not_found() {
    let tools = Tools::builder().deny_elevated().build().unwrap();
    tools
        .register(ToolDef::new("launch", |_: Value| async {}).description("Launches a rocket").elevated())
        .unwrap();
    let broken =
        "name: rocket\ndescription: Buys a rocket\nimplementation: {type: builtin, function: lost}\n";
    tools.load_text(haft::FileForm::Yaml, broken).unwrap();
    assert_eq!(names(&tools, "rocket"), Vec::<String>::new());
}
