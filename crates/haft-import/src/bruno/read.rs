//! Reads the files of a collection.

use std::collections::BTreeMap;

use haft_core::problem::{Problem, excerpt};
use serde_json::Value;

use super::bru::{self, Block};
use crate::api::{ApiImport, ImportOptions};
use crate::requests::{self, Collection, Field, SavedAuth, SavedBody, SavedRequest, Variable};

/// The maximum number of files.
const MAX_FILES: usize = 20_000;
/// The blocks that are requests.
const METHODS: [&str; 8] = ["get", "post", "put", "patch", "delete", "head", "options", "query"];
/// The maximum number of skipped files that are reported.
const MAX_WARNINGS: usize = 20;

/// Imports a Bruno collection, given as the paths and texts of its files: each request becomes a tool. Scripts are not
/// run.
///
/// ```
/// use std::collections::BTreeMap;
/// use haft_import::{api::ImportOptions, bruno::read};
///
/// let file = "meta {\n  name: Find a pet\n}\n\nget {\n  url: https://pets.example/pets/:id\n}\n";
/// let files = BTreeMap::from([("pet.bru".to_owned(), file.to_owned())]);
/// let import = read(&files, &ImportOptions::default()).unwrap();
/// assert_eq!(import.tools[0].spec.name.as_str(), "Find-a-pet");
/// ```
pub fn read(files: &BTreeMap<String, String>, options: &ImportOptions) -> Result<ApiImport, Problem> {
    options.limits.check_size(files.values().map(String::len).sum())?;
    if files.len() > MAX_FILES {
        let message = format!("the collection has {} files; the limit is {MAX_FILES}", files.len());
        return Err(Problem::new("", "too_large", message));
    }
    let mut collection = Collection { title: "Bruno".to_owned(), ..Collection::default() };
    let (root, title) = root(files);
    if let Some(title) = title {
        collection.title = title;
    }
    let mut auths: BTreeMap<&str, SavedAuth> = BTreeMap::new();
    let mut warnings = Vec::new();
    let mut requests = Vec::new();
    for (path, text) in files {
        let Some(inner) = path.strip_prefix(root).filter(|inner| is_bru(inner)) else { continue };
        let blocks = match bru::parse(path, text) {
            Ok(blocks) => blocks,
            Err(problem) => {
                warnings.push(problem);
                continue;
            }
        };
        let (folder, file) = inner.rsplit_once('/').unwrap_or(("", inner));
        variables(&blocks, folder == "environments", &mut collection.variables);
        if folder == "environments" {
            continue;
        }
        if matches!(file, "collection.bru" | "folder.bru") {
            collection.scripts += usize::from(has_script(&blocks));
            auths.extend(auth(&blocks, "mode").map(|auth| (folder, auth)));
            continue;
        }
        requests.push((folder, blocks, file));
    }
    for (folder, blocks, file) in &requests {
        collection.requests.extend(request(blocks, folder, file, &auths));
    }
    let mut import = requests::import(&collection, options)?;
    warnings.truncate(MAX_WARNINGS);
    import.warnings.extend(warnings);
    Ok(import)
}

fn is_bru(path: &str) -> bool {
    path.get(path.len().saturating_sub(4)..).is_some_and(|end| end.eq_ignore_ascii_case(".bru"))
}

/// Returns the folder with `bruno.json`, and the name in it.
fn root(files: &BTreeMap<String, String>) -> (&str, Option<String>) {
    let is_root = |path: &&String| path.as_str() == "bruno.json" || path.ends_with("/bruno.json");
    let Some(path) = files.keys().filter(is_root).min_by_key(|path| path.len()) else { return ("", None) };
    let settings: Option<Value> = files.get(path).and_then(|text| serde_json::from_str(text).ok());
    let name = settings.as_ref().and_then(|settings| settings.get("name")).and_then(Value::as_str);
    (path.strip_suffix("bruno.json").unwrap_or_default(), name.map(str::to_owned))
}

/// Adds the variables of a file. An environment wins over none; the first of several has the value.
fn variables(blocks: &[Block<'_>], is_environment: bool, out: &mut BTreeMap<String, Variable>) {
    for block in blocks {
        match block.name {
            "vars" | "vars:pre-request" if is_environment || block.name == "vars:pre-request" => {
                for entry in block.entries().into_iter().filter(|entry| !entry.is_disabled) {
                    let variable = out.entry(entry.name).or_default();
                    variable.value =
                        variable.value.take().or(Some(entry.value)).filter(|value| !value.is_empty());
                }
            }
            "vars:secret" => {
                for name in block.names() {
                    out.entry(name).or_default().is_secret = true;
                }
            }
            _ => {}
        }
    }
}

fn has_script(blocks: &[Block<'_>]) -> bool {
    blocks
        .iter()
        .any(|block| (block.name.starts_with("script:") || block.name == "tests") && !block.text().is_empty())
}

fn block<'b, 't>(blocks: &'b [Block<'t>], name: &str) -> Option<&'b Block<'t>> {
    blocks.iter().find(|block| block.name == name)
}

fn request(
    blocks: &[Block<'_>],
    folder: &str,
    file: &str,
    auths: &BTreeMap<&str, SavedAuth>,
) -> Option<SavedRequest> {
    let method = blocks.iter().find(|block| METHODS.contains(&block.name))?;
    let get = |name: &str, key: &str| block(blocks, name).map(|block| block.get(key)).unwrap_or_default();
    let name = get("meta", "name");
    let name = if name.is_empty() { file.trim_end_matches(".bru").to_owned() } else { name };
    let query = block(blocks, "params:query").or_else(|| block(blocks, "query"));
    let mut saved = SavedRequest {
        name,
        folders: folder.split('/').filter(|part| !part.is_empty()).take(20).map(str::to_owned).collect(),
        description: block(blocks, "docs").map(Block::text).unwrap_or_default(),
        method: method.name.to_ascii_uppercase(),
        url: method.get("url"),
        query: query.map(fields).unwrap_or_default(),
        path: block(blocks, "params:path").map(fields).unwrap_or_default(),
        headers: block(blocks, "headers").map(fields).unwrap_or_default(),
        has_script: has_script(blocks),
        ..SavedRequest::default()
    };
    saved.auth = match method.get("auth").as_str() {
        "inherit" => inherited(folder, auths),
        "" | "none" => SavedAuth::Nothing,
        mode => settings(mode, blocks),
    };
    saved.body = body(&method.get("body"), blocks, &mut saved.warnings);
    Some(saved)
}

/// Returns the authentication of the closest folder that sets one.
fn inherited(folder: &str, auths: &BTreeMap<&str, SavedAuth>) -> SavedAuth {
    let mut folder = folder;
    loop {
        if let Some(auth) = auths.get(folder) {
            return auth.clone();
        }
        if folder.is_empty() {
            return SavedAuth::Nothing;
        }
        folder = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
}

/// Returns the authentication of a folder; `None` if it is inherited.
fn auth(blocks: &[Block<'_>], key: &str) -> Option<SavedAuth> {
    match block(blocks, "auth")?.get(key).as_str() {
        "" | "inherit" => None,
        "none" => Some(SavedAuth::Nothing),
        mode => Some(settings(mode, blocks)),
    }
}

fn settings(mode: &str, blocks: &[Block<'_>]) -> SavedAuth {
    let name = format!("auth:{mode}");
    let get = |key: &str| block(blocks, &name).map(|block| block.get(key)).unwrap_or_default();
    match mode {
        "bearer" => SavedAuth::Bearer(get("token")),
        "basic" => SavedAuth::Basic { username: get("username"), password: get("password") },
        "apikey" => SavedAuth::ApiKey {
            name: get("key"),
            value: get("value"),
            in_query: get("placement") == "queryparams",
        },
        "oauth2" if get("grant_type") == "client_credentials" => SavedAuth::ClientCredentials {
            token_url: get("access_token_url"),
            client_id: get("client_id"),
            client_secret: get("client_secret"),
            scope: get("scope"),
        },
        "oauth2" => SavedAuth::Token,
        other => SavedAuth::Unsupported(other.to_owned()),
    }
}

fn fields(block: &Block<'_>) -> Vec<Field> {
    let entries = block.entries().into_iter();
    let fields = entries.map(|entry| Field {
        is_file: entry.value.starts_with("@file("),
        name: entry.name,
        value: entry.value,
        is_disabled: entry.is_disabled,
        ..Field::default()
    });
    fields.collect()
}

fn body(mode: &str, blocks: &[Block<'_>], warnings: &mut Vec<(&'static str, String)>) -> SavedBody {
    let text = |name: &str| block(blocks, name).map(Block::text).unwrap_or_default();
    let list = |name: &str| block(blocks, name).map(fields).unwrap_or_default();
    match mode {
        "" | "none" => SavedBody::Nothing,
        "json" => {
            let text = block(blocks, "body:json").or_else(|| block(blocks, "body")).map(Block::text);
            SavedBody::Text(text.unwrap_or_default(), Some("application/json"))
        }
        "text" => SavedBody::Text(text("body:text"), Some("text/plain; charset=utf-8")),
        "xml" => SavedBody::Text(text("body:xml"), Some("application/xml")),
        "sparql" => SavedBody::Text(text("body:sparql"), Some("application/sparql-query")),
        "formUrlEncoded" | "form-urlencoded" => SavedBody::Form(list("body:form-urlencoded")),
        "multipartForm" | "multipart-form" => SavedBody::Multipart(list("body:multipart-form")),
        "graphql" => SavedBody::Graphql { query: text("body:graphql"), variables: text("body:graphql:vars") },
        "file" => SavedBody::File,
        other => {
            let mode = excerpt(other, 40);
            warnings.push((
                "unsupported_body",
                format!("the request body is omitted: the mode `{mode}` is not supported"),
            ));
            SavedBody::Nothing
        }
    }
}
