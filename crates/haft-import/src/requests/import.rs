//! Converts saved requests to tools.

use std::collections::HashMap;

use haft_core::implementation::{Http, HttpRequest, Implementation};
use haft_core::name::{BundleSlug, ToolName};
use haft_core::problem::{Problem, excerpt};
use haft_core::redact::is_sensitive_parameter;
use haft_core::schema::Schema;
use haft_core::spec::{Origin, ToolSpec};
use haft_definition::check::MAX_LABEL;

use super::draft::{Draft, TextUse, has_variable};
use super::url::{RequestUrl, UrlError};
use super::{Collection, SavedAuth, SavedRequest, auth, body};
use crate::api::templates::{allow_uploads, secret_names};
use crate::api::text::{clean_and_cut, line};
use crate::api::{
    ApiImport, ImportOptions, ImportedOperation, Selectable, SkippedOperation, digests, names, select,
};

/// The methods of `http` tools.
const METHODS: [&str; 8] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "QUERY"];
/// Headers that the HTTP client sets.
const OWN_HEADERS: [&str; 9] = [
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "postman-token",
];
/// The maximum size of a description, in bytes.
const MAX_DESCRIPTION: usize = 4000;

/// A request with its identity.
struct Entry<'c> {
    request: &'c SavedRequest,
    key: String,
    id: String,
    path: String,
}

impl Selectable for Entry<'_> {
    fn key(&self) -> &str {
        &self.key
    }

    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn tags(&self) -> Vec<&str> {
        self.request.folders.iter().map(String::as_str).collect()
    }
}

/// Imports a collection.
pub(crate) fn import(collection: &Collection, options: &ImportOptions) -> Result<ApiImport, Problem> {
    if let Some(given) = &options.base_url {
        crate::openapi::check_given(given)?;
    }
    let title = Some(line(&collection.title, 120)).filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| "untitled".to_owned());
    let bundle = options.bundle.clone().unwrap_or_else(|| names::bundle_slug(&title));
    let entries = entries(&collection.requests);
    let selected = select(&entries, options)?;
    let plain: Vec<(String, &str)> = selected
        .iter()
        .map(|entry| {
            let name = Some(entry.request.name.as_str());
            (names::plain(name, &entry.request.method.to_ascii_lowercase(), &entry.path), entry.key.as_str())
        })
        .collect();
    let names = names::tool_names(&plain)
        .map_err(|error| Problem::new("paths", "invalid_name", error.to_string()))?;
    let context = Context { collection, options, title: &title, bundle: &bundle };
    let (mut tools, mut skipped, mut total) = (Vec::new(), Vec::new(), 0_usize);
    for (entry, name) in selected.iter().zip(names) {
        match context.tool(entry, name) {
            Ok(tool) => {
                total += tool.spec.input_schema.as_str().len();
                tools.push(tool);
            }
            Err(reason) => skipped.push(SkippedOperation { operation: entry.key.clone(), reason }),
        }
        options.limits.check_schemas(total)?;
    }
    let operations = entries.iter().map(|entry| (entry.key.clone(), Some(entry.id.clone()))).collect();
    let warnings = scripts(collection).into_iter().collect();
    let version = line(&collection.version, 60);
    Ok(ApiImport { title, version, bundle, operations, tools, skipped, warnings })
}

/// Warns of scripts, which are not run.
fn scripts(collection: &Collection) -> Option<Problem> {
    let own = collection.requests.iter().filter(|request| request.has_script).count();
    let count = own + collection.scripts;
    let message = format!(
        "scripts are not run: {count} requests or folders have pre-request scripts or tests; check the tools that \
         depend on them"
    );
    (count > 0).then(|| Problem::new("", "scripts_ignored", message))
}

/// Gives each request a key, `METHOD /path`, and its name if several have the same.
fn entries(requests: &[SavedRequest]) -> Vec<Entry<'_>> {
    let mut uses: HashMap<String, usize> = HashMap::new();
    let mut entries: Vec<Entry<'_>> = requests
        .iter()
        .map(|request| {
            let path = RequestUrl::parse(&request.url, Some("http://server.invalid"), str::to_owned);
            let path = path.map_or_else(|_| request.url.clone(), |url| url.path);
            let path = if path.starts_with('/') { path } else { format!("/{path}") };
            let path = excerpt(&path, 300);
            let key = format!("{} {path}", excerpt(&request.method.to_ascii_uppercase(), 20));
            *uses.entry(key.clone()).or_default() += 1;
            let id = request.folders.iter().chain([&request.name]).map(String::as_str).collect::<Vec<_>>();
            Entry { request, key, id: excerpt(&id.join(" / "), 200), path }
        })
        .collect();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for entry in &mut entries {
        if uses.get(&entry.key).is_some_and(|count| *count > 1) {
            entry.key = format!("{} ({})", entry.key, entry.id);
        }
        let number = numbers.entry(entry.key.clone()).or_default();
        *number += 1;
        if *number > 1 {
            entry.key = format!("{} #{number}", entry.key);
        }
    }
    entries
}

/// What all requests of an import share.
struct Context<'c> {
    collection: &'c Collection,
    options: &'c ImportOptions,
    title: &'c str,
    bundle: &'c BundleSlug,
}

impl Context<'_> {
    fn tool(&self, entry: &Entry<'_>, name: ToolName) -> Result<ImportedOperation, String> {
        let request = entry.request;
        let method = request.method.to_ascii_uppercase();
        if !METHODS.contains(&method.as_str()) {
            return Err(format!("the method `{}` is not supported", excerpt(&method, 20)));
        }
        let mut draft = Draft::new(&self.collection.variables, self.bundle.as_str());
        for (code, message) in &request.warnings {
            draft.warn(code, message.clone());
        }
        if request.has_script {
            draft.warn("scripts_ignored", "the scripts of the request are not run");
        }
        let url =
            RequestUrl::parse(&request.url, self.options.base_url.as_deref(), |text| draft.expand(text))
                .map_err(|error: UrlError| error.to_string())?;
        let path = url.path_template(request, &mut draft);
        let mut http = HttpRequest { method, url: format!("{}{path}", url.server), ..HttpRequest::default() };
        let auth = match &self.options.auth {
            Some(auth) => {
                draft.secrets.extend(secret_names(auth));
                Some(auth.clone())
            }
            None => auth::convert(&request.auth, &mut draft),
        };
        headers(request, auth.is_some(), &mut http, &mut draft);
        http.query = body::query(&url.query(request), &mut draft);
        body::convert(&request.body, &mut http, &mut draft);
        let mut spec = ToolSpec::new(
            name,
            Implementation::Http(Box::new(Http { request: http, auth, ..Http::default() })),
        );
        let schema = draft.input_schema();
        if let Err(problems) = Schema::compile("input_schema", &schema) {
            return Err(haft_core::problem::join(&problems));
        }
        spec.input_schema = schema.into();
        allow_uploads(&mut spec);
        self.describe(entry, &mut spec, &mut draft);
        Ok(ImportedOperation { spec, warnings: draft.warnings, server: url.server, secrets: draft.secrets })
    }

    fn describe(&self, entry: &Entry<'_>, spec: &mut ToolSpec, draft: &mut Draft<'_>) {
        let request = entry.request;
        let words = [request.name.as_str(), request.description.as_str()];
        let words: Vec<&str> = words.into_iter().map(str::trim).filter(|text| !text.is_empty()).collect();
        let (description, is_cut) = clean_and_cut(&words.join("\n\n"), MAX_DESCRIPTION);
        spec.description = description;
        if spec.description.is_empty() {
            spec.description = format!("`{}` of {}", entry.key, self.title);
        }
        if is_cut {
            draft.warn("description_cut", format!("the description is cut to {MAX_DESCRIPTION} bytes"));
        }
        spec.display_name = Some(line(&request.name, MAX_LABEL))
            .filter(|title| title != spec.name.as_str())
            .unwrap_or_default();
        let mut tags: Vec<String> = Vec::new();
        for tag in request.folders.iter().map(|folder| line(folder, MAX_LABEL)).filter(|tag| !tag.is_empty())
        {
            if tags.len() < haft_definition::check::MAX_ENTRIES && !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        spec.category = tags.first().cloned().unwrap_or_default();
        spec.tags = tags;
        spec.origin = Some(Origin {
            document: self.title.to_owned(),
            operation: entry.key.clone(),
            operation_id: Some(entry.id.clone()),
            digests: digests(spec),
        });
    }
}

/// Adds the headers; credentials become secrets.
fn headers(request: &SavedRequest, has_auth: bool, http: &mut HttpRequest, draft: &mut Draft<'_>) {
    for header in request.headers.iter().filter(|header| !header.is_disabled).take(100) {
        let name = header.name.trim();
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("proxy-") {
            continue;
        }
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let visible = header.value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !plain || !visible {
            draft.warn(
                "invalid_parameter",
                format!("the header `{}` cannot be set and is skipped", excerpt(name, 60)),
            );
            continue;
        }
        if lower == "authorization" && has_auth && !matches!(request.auth, SavedAuth::Nothing) {
            continue;
        }
        if http.headers.keys().any(|known| known.eq_ignore_ascii_case(name)) {
            continue;
        }
        let value = if lower == "authorization" || is_sensitive_parameter(name) {
            match header.value.split_once(' ') {
                // `Bearer …` keeps its scheme.
                Some((scheme, rest))
                    if !has_variable(scheme) && !rest.trim().is_empty() && lower == "authorization" =>
                {
                    format!(
                        "{} {}",
                        crate::api::templates::literal(scheme),
                        auth::credential(rest, name, draft)
                    )
                }
                _ => auth::credential(&header.value, name, draft),
            }
        } else {
            draft.template(&header.value, TextUse::Plain)
        };
        http.headers.insert(name.to_owned(), value);
    }
}
