//! GraphQL schemas.

use serde_json::{Value, json};

use super::read;
use crate::api::{ApiImport, ImportOptions, OperationFilter};
use haft_core::implementation::{Http, Implementation, ResponseEncoding};
use haft_core::schema::Schema;
use haft_definition::check;

fn options() -> ImportOptions {
    ImportOptions { base_url: Some("https://pets.example/graphql".to_owned()), ..ImportOptions::default() }
}

fn import(text: &str) -> ApiImport {
    let import = read(text, &options()).unwrap();
    for tool in &import.tools {
        assert_eq!(check::definition(&tool.spec).errors, [], "{:#?}", tool.spec);
    }
    import
}

fn http<'i>(import: &'i ApiImport, name: &str) -> &'i Http {
    let tool = import.tools.iter().find(|tool| tool.spec.name.as_str() == name).unwrap();
    let Implementation::Http(http) = &tool.spec.implementation else { panic!("not http") };
    http
}

fn query(import: &ApiImport, name: &str) -> String {
    http(import, name).request.body.as_ref().unwrap()["query"].as_str().unwrap().to_owned()
}

const SDL: &str = r#"
"""The roots"""
schema @link(url: "x", import: ["@key"]) { query: Root mutation: Changes }
directive @key(fields: String = "id") repeatable on OBJECT | INTERFACE
scalar Date
enum Kind { CAT "A dog" DOG @deprecated(reason: "x") }
interface Node { id: ID! }
type Pet implements Node & Named @key(fields: "id") {
  id: ID!
  name: String
  kind: Kind!
  born: Date
  old: Int @deprecated
  owner: Owner
  photo(size: Int!): String
  friends(first: Int = 10): [Pet!]!
}
type Owner { name: String! pets: [Pet] address: Address }
type Address { street: String country: Country }
type Country { code: String }
union Found = | Pet | Owner
input Filter { kind: Kind = CAT, and: [Filter!], name: String! }
type Root {
  "Finds a pet"
  pet(id: ID!): Pet
  pets(filter: Filter, first: Int = 10): [Pet!]!
  search(text: String!): [Found]
  node: Node
  version: String
}
type Changes { rename(id: ID!, name: String): Pet }
extend type Root { extra: Boolean }
"#;

#[test]
fn a_schema_becomes_tools() {
    let import = import(SDL);
    let names: Vec<&str> = import.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!(names, ["pet", "pets", "search", "node", "version", "extra", "rename"]);
    insta::assert_snapshot!(
        ["pet", "search", "node", "version", "rename"].map(|name| query(&import, name)).join("\n"),
        @r"
    query pet($id: ID!) { pet(id: $id) { id name kind born owner { name address { street } } } }
    query search($text: String!) { search(text: $text) { __typename ... on Pet { id name kind born } } }
    query node { node { __typename id } }
    query version { version }
    mutation rename($id: ID!, $name: String) { rename(id: $id, name: $name) { id name kind born owner { name address { street } } } }
    "
    );
    let request = &http(&import, "pets").request;
    assert_eq!(request.response, Some(ResponseEncoding::Graphql));
    assert_eq!(
        request.body.as_ref().unwrap()["variables"],
        json!({"filter": "${filter}", "first": "${first}"})
    );
    let pets = import.tools.iter().find(|tool| tool.spec.name.as_str() == "pets").unwrap();
    let schema = Schema::compile("", &pets.spec.input_schema.value()).unwrap();
    for (arguments, is_valid) in [
        (json!({}), true),
        (json!({"filter": {"name": "a", "kind": "CAT", "and": [{"name": "b"}]}}), true),
        (json!({"filter": {"name": "a", "and": [{"kind": "CAT"}]}}), false),
        (json!({"filter": {"name": "a", "kind": "FISH"}}), false),
        (json!({"first": "x"}), false),
    ] {
        assert_eq!(schema.check(&arguments).is_ok(), is_valid, "{arguments}");
    }
    assert_eq!(import.tools[0].spec.description, "Finds a pet");
    assert!(import.tools[0].warnings.iter().any(|warning| warning.code == "selection_cut"));
}

#[test]
fn an_introspection_result_becomes_the_same_tools() {
    let named = |kind: &str, name: &str| json!({"kind": kind, "name": name, "ofType": null});
    let required = |inner: Value| json!({"kind": "NON_NULL", "name": null, "ofType": inner});
    let document = json!({"data": {"__schema": {
        "queryType": {"name": "Query"}, "mutationType": null,
        "types": [
            {"kind": "OBJECT", "name": "Query", "fields": [{"name": "pet", "description": "Finds a pet", "isDeprecated": false,
                "args": [{"name": "id", "type": required(named("SCALAR", "ID")), "defaultValue": null}],
                "type": named("OBJECT", "Pet")},
                {"name": "bad ${SECRET}", "args": [], "type": named("OBJECT", "Pet")}]},
            {"kind": "OBJECT", "name": "Pet", "fields": [{"name": "name", "args": [], "type": named("SCALAR", "String")}]},
        ],
    }}});
    let import = import(&document.to_string());
    assert_eq!(import.tools.len(), 1);
    assert_eq!(query(&import, "pet"), "query pet($id: ID!) { pet(id: $id) { name } }");
    assert_eq!(import.tools[0].spec.input_schema.value()["required"], json!(["id"]));
}

#[test]
fn filters_select_operations() {
    let selection = OperationFilter { tags: vec!["mutation".to_owned()], ..OperationFilter::default() };
    let import = read(SDL, &ImportOptions { selection, ..options() }).unwrap();
    assert_eq!((import.tools.len(), import.operations.len()), (1, 7));
}

#[test]
fn a_schema_without_a_server_is_rejected() {
    let error = read(SDL, &ImportOptions::default()).unwrap_err();
    assert_eq!(error.code, "no_server");
    let error = read(r#"{"errors": [{"message": "introspection is disabled"}]}"#, &options()).unwrap_err();
    assert_eq!(error.message, "the server rejected the introspection: introspection is disabled");
}

#[test]
fn hostile_schemas_are_bounded() {
    // Every type contains every other one.
    let types: Vec<String> = (0..60)
        .map(|n| {
            let fields = (0..60).map(|m| format!("f{m}: T{m} ")).collect::<Vec<_>>().concat();
            format!("type T{n} {{ id: ID {fields} }} input I{n} {{ {} }}\n", fields.replace(": T", ": I"))
        })
        .collect();
    let types = types.concat();
    let import = import(&format!("{types} type Query {{ all(input: I0!): T0 }}"));
    assert!(query(&import, "all").len() < 4000);
    assert!(import.tools[0].spec.input_schema.as_str().len() < 300_000);
    for text in [
        "type Query { a: [".repeat(2000),
        format!("type Query {{ a(b: Int = {}): Int }}", "[".repeat(100_000)),
        format!("type Query {{ a: {}Int }}", "[".repeat(100_000)),
        "type Query { a: \"\"\"".to_owned(),
        "type Query { a(".to_owned(),
        "type Query { a ${HOME}: Int }".to_owned(),
        "\"".repeat(10_000),
        "type".to_owned(),
        "union".to_owned(),
        "extend".to_owned(),
    ] {
        assert!(read(&text, &options()).is_err());
    }
}
