//! The schemas that `#[tool]` generates.
#![expect(
    clippy::unused_async,
    clippy::too_many_arguments,
    clippy::too_many_lines,
    reason = "only the schemas of the functions matter"
)]

use haft::{Args, Context, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How to sort.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    Newest,
    Best,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Filter {
    /// The host alone
    site: Option<String>,
    tags: Vec<String>,
}

/// Finds pages.
#[tool]
#[expect(unused_variables, reason = "only its schema matters")]
async fn web_search(
    context: &Context,
    /// What to look
    /// for
    ///
    /// Quotes are understood.
    query: &str,
    /// The most results
    #[arg(default = 10, range = 1..=50)]
    limit: u32,
    #[arg(range = -1.5..2.0)] weight: f64,
    #[arg(one_of("de", "en"))] language: Option<String>,
    #[arg(default = Order::Best)] order: Order,
    filter: Option<Filter>,
    ids: Vec<u64>,
) {
}

fn schema(def: &haft::ToolDef) -> Value {
    def.schema()
}

#[test]
fn schema_of_a_signature() {
    insta::assert_json_snapshot!(schema(&web_search::tool()), @r##"
    {
      "type": "object",
      "properties": {
        "query": {
          "type": "string",
          "description": "What to look for\n\nQuotes are understood."
        },
        "limit": {
          "type": "integer",
          "default": 10,
          "minimum": 1,
          "description": "The most results",
          "maximum": 50
        },
        "weight": {
          "type": "number",
          "exclusiveMaximum": 2.0,
          "minimum": -1.5
        },
        "language": {
          "type": [
            "string",
            "null"
          ],
          "enum": [
            "de",
            "en",
            null
          ]
        },
        "order": {
          "$ref": "#/$defs/Order",
          "default": "best"
        },
        "filter": {
          "anyOf": [
            {
              "$ref": "#/$defs/Filter"
            },
            {
              "type": "null"
            }
          ]
        },
        "ids": {
          "type": "array",
          "items": {
            "type": "integer",
            "minimum": 0
          }
        }
      },
      "required": [
        "query",
        "weight",
        "ids"
      ],
      "additionalProperties": false,
      "$defs": {
        "Order": {
          "type": "string",
          "enum": [
            "newest",
            "best"
          ],
          "description": "How to sort."
        },
        "Filter": {
          "type": "object",
          "properties": {
            "site": {
              "type": [
                "string",
                "null"
              ],
              "description": "The host alone"
            },
            "tags": {
              "type": "array",
              "items": {
                "type": "string"
              }
            }
          },
          "required": [
            "tags"
          ]
        }
      }
    }
    "##);
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Search {
    /// What to look for
    query: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema matters")]
enum Action {
    Create { name: String },
    Delete { id: u64 },
}

/// Takes a struct.
#[tool]
fn with_struct(_args: Args<Search>) {}

/// Takes an enum.
#[tool]
fn with_enum(_args: Args<Action>) {}

/// Takes nothing.
#[tool]
fn with_nothing() {}

#[test]
fn schema_of_one_type_for_all_arguments() {
    insta::assert_json_snapshot!(schema(&with_struct::tool()), @r#"
    {
      "type": "object",
      "properties": {
        "query": {
          "type": "string",
          "description": "What to look for"
        }
      },
      "required": [
        "query"
      ],
      "additionalProperties": false
    }
    "#);
    insta::assert_json_snapshot!(schema(&with_enum::tool()), @r#"
    {
      "oneOf": [
        {
          "type": "object",
          "properties": {
            "action": {
              "type": "string",
              "const": "create"
            },
            "name": {
              "type": "string"
            }
          },
          "required": [
            "action",
            "name"
          ],
          "additionalProperties": false
        },
        {
          "type": "object",
          "properties": {
            "action": {
              "type": "string",
              "const": "delete"
            },
            "id": {
              "type": "integer",
              "minimum": 0
            }
          },
          "required": [
            "action",
            "id"
          ],
          "additionalProperties": false
        }
      ],
      "type": "object"
    }
    "#);
    insta::assert_json_snapshot!(schema(&with_nothing::tool()), @r#"
    {
      "type": "object",
      "properties": {},
      "additionalProperties": false
    }
    "#);
}
