//! Imports a schema.

use std::collections::HashSet;

use haft_core::implementation::{Auth, Http, HttpRequest, Implementation, ResponseEncoding};
use haft_core::name::ToolName;
use haft_core::problem::{Problem, excerpt};
use haft_core::schema::Schema as JsonSchema;
use haft_core::spec::{Origin, ToolSpec};
use haft_definition::dialect::{Bounds, read_foreign};
use serde_json::{Map, Value, json};

use super::input::Inputs;
use super::schema::{FieldDef, Schema, is_name};
use super::selection::Selector;
use super::{introspection, sdl};
use crate::api::text::clean_and_cut;
use crate::api::{
    ApiImport, ImportOptions, ImportedOperation, Selectable, SkippedOperation, digests, names, select,
};

/// The maximum size of a description, in bytes.
const MAX_DESCRIPTION: usize = 4000;
/// The maximum number of arguments of one tool.
const MAX_ARGUMENTS: usize = 200;

/// Imports a GraphQL schema: each query and mutation becomes a tool that posts to `base_url`, or to the URL that the schema
/// was fetched from.
///
/// ```
/// use haft_import::{api::ImportOptions, graphql::read};
///
/// let options = ImportOptions { base_url: Some("https://pets.example/graphql".to_owned()), ..Default::default() };
/// let import = read("type Query { pet(id: ID!): Pet } type Pet { id: ID! name: String }", &options).unwrap();
/// assert_eq!(import.tools[0].spec.name.as_str(), "pet");
/// ```
pub fn read(text: &str, options: &ImportOptions) -> Result<ApiImport, Problem> {
    options.limits.check_size(text.len())?;
    let schema = schema(text, options)?;
    let endpoint = endpoint(options)?;
    let host = url::Url::parse(&endpoint).ok().and_then(|url| url.host_str().map(str::to_owned));
    let title = format!("GraphQL {}", host.unwrap_or_default()).trim().to_owned();
    let bundle = options.bundle.clone().unwrap_or_else(|| names::bundle_slug(&title));
    let operations = operations(&schema);
    let selected = select(&operations, options)?;
    let plain: Vec<(String, &str)> = selected
        .iter()
        .map(|operation| (names::plain(operation.id(), operation.kind, ""), operation.key.as_str()))
        .collect();
    let names =
        names::tool_names(&plain).map_err(|error| Problem::new("", "invalid_name", error.to_string()))?;
    let auth = options.auth.as_ref();
    let secrets = auth.map(crate::api::templates::secret_names).unwrap_or_default();
    let context = Context { schema: &schema, endpoint: &endpoint, title: &title, auth, secrets: &secrets };
    let (mut tools, mut skipped, mut total) = (Vec::new(), Vec::new(), 0_usize);
    for (operation, name) in selected.iter().zip(names) {
        match context.tool(operation, name) {
            Ok(tool) => {
                total += tool.spec.input_schema.as_str().len();
                tools.push(tool);
            }
            Err(reason) => skipped.push(SkippedOperation { operation: operation.key.clone(), reason }),
        }
        options.limits.check_schemas(total)?;
    }
    let operations = operations
        .iter()
        .map(|operation| (operation.key.clone(), Some(operation.field.name.clone())))
        .collect();
    Ok(ApiImport { title, version: String::new(), bundle, operations, tools, skipped, warnings: Vec::new() })
}

fn schema(text: &str, options: &ImportOptions) -> Result<Schema, Problem> {
    if !text.trim_start().starts_with('{') {
        return sdl::parse(text);
    }
    let bounds = Bounds { nodes: 2_000_000, bytes: options.limits.bytes.saturating_mul(2) };
    let root = read_foreign(text, bounds)?;
    let schema = root.get("__schema").or_else(|| root.pointer("/data/__schema"));
    let Some(schema) = schema else {
        let reason = root.pointer("/errors/0/message").and_then(Value::as_str);
        let message = match reason {
            Some(reason) => format!("the server rejected the introspection: {}", excerpt(reason, 200)),
            None => "not a GraphQL introspection result: missing `__schema`".to_owned(),
        };
        return Err(Problem::new("__schema", "not_graphql", message));
    };
    introspection::read(schema)
}

/// Returns the URL of the requests.
fn endpoint(options: &ImportOptions) -> Result<String, Problem> {
    if let Some(given) = &options.base_url {
        crate::openapi::check_given(given)?;
    }
    let url = options.base_url.as_deref().or(options.document_url.as_deref());
    url.and_then(crate::openapi::normalize_base).ok_or_else(|| {
        let message = "a schema does not name its server; set the URL of the GraphQL endpoint (`base_url`, `--base-url`)";
        Problem::new("base_url", "no_server", message)
    })
}

/// A field of the query or mutation type.
struct Operation<'s> {
    kind: &'static str,
    field: &'s FieldDef,
    /// `query pets`.
    key: String,
    /// `/query/pets`.
    path: String,
}

impl Selectable for Operation<'_> {
    fn key(&self) -> &str {
        &self.key
    }

    fn id(&self) -> Option<&str> {
        Some(&self.field.name)
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn tags(&self) -> Vec<&str> {
        vec![self.kind]
    }
}

fn operations(schema: &Schema) -> Vec<Operation<'_>> {
    let roots = [("query", &schema.query), ("mutation", &schema.mutation)];
    let mut out = Vec::new();
    for (kind, root) in roots {
        let def = root.as_ref().and_then(|name| schema.types.get(name));
        let mut seen = HashSet::new();
        for field in def.into_iter().flat_map(|def| &def.fields) {
            // Names with two underscores are those of GraphQL itself.
            if !field.name.starts_with("__") && seen.insert(field.name.as_str()) {
                let key = format!("{kind} {}", field.name);
                out.push(Operation { kind, field, key, path: format!("/{kind}/{}", field.name) });
            }
        }
    }
    out
}

/// What all tools of an import share.
struct Context<'s> {
    schema: &'s Schema,
    endpoint: &'s str,
    title: &'s str,
    auth: Option<&'s Auth>,
    secrets: &'s [String],
}

impl Context<'_> {
    fn tool(&self, operation: &Operation<'_>, name: ToolName) -> Result<ImportedOperation, String> {
        let field = operation.field;
        let mut warnings = Vec::new();
        let mut warn = |code: &str, message: String| warnings.push(Problem::new("", code, message));
        if field.arguments.len() > MAX_ARGUMENTS {
            return Err(format!("it has {} arguments; the limit is {MAX_ARGUMENTS}", field.arguments.len()));
        }
        let mut inputs = Inputs::new(self.schema);
        let (mut properties, mut required, mut variables) = (Map::new(), Vec::new(), Map::new());
        for input in &field.arguments {
            // A template would prefer an argument to the secret of that name.
            let taken = self.secrets.contains(&input.name);
            let argument = if taken { format!("argument_{}", input.name) } else { input.name.clone() };
            if input.is_required() {
                required.push(json!(argument));
            }
            properties.insert(argument.clone(), inputs.argument(input));
            variables.insert(input.name.clone(), json!(format!("${{{argument}}}")));
        }
        let definitions = inputs.definitions();
        if inputs.is_cut {
            warn("schema_cut", "the input types are too large; some parts accept any value".to_owned());
        }
        let mut selector = Selector::new(self.schema);
        let selection = selector.select(&field.ty);
        if selector.is_cut {
            let message =
                "the result has more fields than the tool selects; edit `query` in the body to change them";
            warn("selection_cut", message.to_owned());
        }
        let query = query(operation, &selection);
        let body = json!({"query": query, "operationName": field.name, "variables": variables});
        let request = HttpRequest {
            method: "POST".to_owned(),
            url: self.endpoint.to_owned(),
            body: Some(body),
            response: Some(ResponseEncoding::Graphql),
            ..HttpRequest::default()
        };
        let http = Http { request, auth: self.auth.cloned(), ..Http::default() };
        let mut spec = ToolSpec::new(name, Implementation::Http(Box::new(http)));
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if let Value::Object(map) = &mut schema {
            if !required.is_empty() {
                map.insert("required".to_owned(), Value::Array(required));
            }
            if !definitions.is_empty() {
                map.insert("$defs".to_owned(), Value::Object(definitions));
            }
        }
        JsonSchema::compile("input_schema", &schema)
            .map_err(|problems| haft_core::problem::join(&problems))?;
        spec.input_schema = schema.into();
        if field.is_deprecated {
            warn("deprecated", "the operation is deprecated".to_owned());
        }
        if self.describe(operation, &mut spec) {
            warn("description_cut", format!("the description is cut to {MAX_DESCRIPTION} bytes"));
        }
        let server = self.endpoint.to_owned();
        Ok(ImportedOperation { spec, warnings, server, secrets: self.secrets.to_vec() })
    }

    /// Sets the description and origin; returns whether the description was cut.
    fn describe(&self, operation: &Operation<'_>, spec: &mut ToolSpec) -> bool {
        let field = operation.field;
        let deprecated = if field.is_deprecated { "Deprecated. " } else { "" };
        let own = field.description.trim();
        let words =
            if own.is_empty() { format!("`{}` of {}", operation.key, self.title) } else { own.to_owned() };
        let (description, is_cut) = clean_and_cut(&format!("{deprecated}{words}"), MAX_DESCRIPTION);
        spec.description = description;
        operation.kind.clone_into(&mut spec.category);
        spec.tags = vec![operation.kind.to_owned()];
        spec.origin = Some(Origin {
            document: self.title.to_owned(),
            operation: operation.key.clone(),
            operation_id: Some(field.name.clone()),
            digests: digests(spec),
        });
        is_cut
    }
}

/// Writes the query. All names were checked, so that nothing in it is a reference of a template.
fn query(operation: &Operation<'_>, selection: &str) -> String {
    let field = operation.field;
    debug_assert!(is_name(&field.name), "names are checked when a schema is read");
    let declared: Vec<String> =
        field.arguments.iter().map(|input| format!("${}: {}", input.name, input.ty)).collect();
    let passed: Vec<String> =
        field.arguments.iter().map(|input| format!("{}: ${}", input.name, input.name)).collect();
    let list = |items: &[String]| {
        if items.is_empty() { String::new() } else { format!("({})", items.join(", ")) }
    };
    let (kind, name) = (operation.kind, &field.name);
    format!("{kind} {name}{} {{ {name}{}{selection} }}", list(&declared), list(&passed))
}
