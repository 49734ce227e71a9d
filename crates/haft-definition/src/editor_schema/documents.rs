//! The schemas of pipelines, code artifacts, bundles and policy rules.

use haft_core::tool::Status;
use serde_json::{Value, json};

use super::implementation::input_definitions;
use super::object::{Object, count, flag, map, shared, text, texts, with_definitions, words};

/// The fields of resources in API responses that are not part of the definition.
const STATE: [&str; 18] = [
    "id",
    "documents",
    "chunks",
    "bytes",
    "version",
    "published_version",
    "enabled",
    "revision",
    "published_revision",
    "hash",
    "path",
    "error",
    "created_by",
    "modified_by",
    "created_at",
    "modified_at",
    "published_at",
    "warnings",
];

fn resource() -> Object {
    Object::default()
        .key("slug", text(), "The name by which tools refer to it")
        .key("name", text(), "The name that people see")
        .key("description", text(), "What it is for")
        .key(
            "status",
            words(&Status::ALL.map(Status::as_str)),
            "Without one it is published when a folder is applied",
        )
        .ignored(&STATE)
}

pub(super) fn pipeline() -> Value {
    let chunking = Object::default()
        .key("size", json!({"type": "integer", "minimum": 16, "maximum": 16000}), "The size of a chunk")
        .key("unit", words(&["tokens", "characters"]), "The unit of `size` and `overlap`")
        .key("overlap", count(), "How much of a chunk the next one repeats");
    let embedding = Object::default()
        .key("model", text(), "The name of the embedding model")
        .key("base_url", text(), "The address of an OpenAI-compatible API")
        .key("credential", text(), "The name of the stored key")
        .key("dimensions", json!({"type": "integer", "minimum": 1, "maximum": 16384}), "The size of a vector")
        .needs(&["model"]);
    resource()
        .key("chunking", chunking.closed(), "How documents are divided")
        .key(
            "embedding",
            embedding.closed(),
            "The model that compares meanings; without one words are compared",
        )
        .key("language", words(&["english", "german"]), "The language of the documents")
        .closed()
}

pub(super) fn artifact() -> Value {
    let artifact = resource()
        .key("runtime", words(&["bash", "python", "wasm"]), "The language of the source")
        .key("source", text(), "The source; of a module, base64")
        .key("source_file", text(), "The file beside this one with the source")
        .key("inputs", shared("artifactInputs"), "The inputs that it declares")
        .needs(&["runtime"])
        .needs(&["source", "source_file"]);
    with_definitions(artifact.closed(), input_definitions())
}

pub(super) fn bundle() -> Value {
    Object::default()
        .key("display_name", text(), "The name that people see")
        .key("description", text(), "What its tools are for")
        .key("enabled", flag(), "Whether its tools can be called")
        .key("id", text(), "Written by haft")
        .keys(&["created_at", "soft_deleted_at"], text(), "Written by haft")
        .closed()
}

pub(super) fn policy() -> Value {
    let matching = Object::default().keys(
        &["tenants", "roles", "tokens", "people", "groups", "agents", "tools", "tags", "surfaces"],
        texts(),
        "",
    );
    let approvers =
        Object::default().keys(&["roles", "tokens", "people", "groups"], texts(), "Who may decide");
    let example = Object::default()
        .key("tool", text(), "The tool that is called")
        .key("args", map(), "Its arguments")
        .keys(&["tenant", "role", "token", "person", "agent", "surface"], text(), "")
        .key("groups", texts(), "The groups of the caller")
        .key("tags", texts(), "The tags of the tool")
        .key("expect", words(&["match", "no_match"]), "Whether the rule matches")
        .needs(&["tool"])
        .needs(&["expect"]);
    let rule = Object::default()
        .key("name", text(), "The name of the rule")
        .key("match", matching.closed(), "Which calls it is about; without it, all of them")
        .key("when", text(), "A CEL expression, such as `args.amount > 100`")
        .key("effect", words(&["allow", "approve", "deny"]), "What happens to the call")
        .key("reason", text(), "What the caller reads")
        .key("approvers", approvers.closed(), "Who may decide, for the effect `approve`")
        .key("examples", json!({"type": "array", "items": example.closed()}), "Calls that check the rule")
        .needs(&["name"])
        .needs(&["effect"]);
    Object::default()
        .key(
            "rules",
            json!({"type": "array", "items": rule.closed()}),
            "The rules; the first one that matches decides",
        )
        .needs(&["rules"])
        .closed()
}
