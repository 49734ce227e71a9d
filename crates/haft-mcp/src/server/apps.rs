//! MCP Apps: the pages of tools with an `html` renderer, for clients that show them.
//!
//! A page reads `window.__TOOL_DATA__` when it loads. A client sends the result of a call by messages, after the page has
//! loaded. So the resource is a small program (`apps.js`) that waits for the result, and then writes the page.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::bundle::BundleKind;
use haft_core::encode::percent_encode_into;
use haft_core::name::BundleSlug;
use haft_core::render::{RenderContext, RenderPlan, select};
use haft_core::spec::{Renderer, ToolSpec};
use haft_runtime::registry::{Snapshot, ToolOffer};
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, MetaObject, Resource, ResourceContents};
use serde_json::{Map, Value, json};

use super::client_context::ClientContext;
use super::handler::McpServer;
use super::media_type::media_type;
use super::packages::protocol_error;
use super::page_assets;

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The media type of pages.
pub(super) const MEDIA_TYPE: &str = "text/html;profile=mcp-app";
/// The scheme of the addresses of pages.
pub(super) const SCHEME: &str = "ui://";
/// The metadata of a result with the data of its page, where they differ from the value.
pub(super) const DATA: &str = "haft/data";

/// The largest page, and the most bytes of its assets.
const MAX_PAGE: usize = 2 << 20;
const MAX_ASSETS: usize = 8 << 20;
/// The program that waits for the result.
const LOADER: &str = include_str!("apps.js");
/// What a page may do: run its own scripts. It connects to nobody.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      font-src data:; media-src data:; base-uri 'none'; form-action 'none'";

/// The page of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AppPage {
    bundle: BundleSlug,
    /// The path in the package.
    path: String,
}

impl AppPage {
    /// Returns the page that shows the results of a tool; `None` if it has none, or a different one for each call.
    fn of(bundle: &BundleSlug, spec: &ToolSpec) -> Option<Self> {
        let path = html_renderer(spec)?.config.get("artifact")?.as_str()?;
        let path = path.trim_start_matches("./");
        let is_fixed = !path.is_empty() && !path.contains('$');
        is_fixed.then(|| Self { bundle: bundle.clone(), path: path.to_owned() })
    }

    pub(super) fn uri(&self) -> String {
        let mut uri = String::from(SCHEME);
        percent_encode_into(self.bundle.as_str(), &mut uri);
        for segment in self.path.split('/') {
            uri.push('/');
            percent_encode_into(segment, &mut uri);
        }
        uri
    }

    /// Writes the page as it is listed.
    pub(super) fn resource(&self, title: &str) -> Resource {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        Resource::new(self.uri(), name)
            .with_title(title)
            .with_description("Shows the results of a tool")
            .with_mime_type(MEDIA_TYPE)
            .with_meta(resource_meta())
    }
}

/// Returns the renderer of a tool, if it is `html`.
fn html_renderer(spec: &ToolSpec) -> Option<&Renderer> {
    select(&spec.renderers).filter(|renderer| renderer.renderer == "html")
}

/// Returns whether a client shows pages.
pub(super) fn shows_pages(capabilities: &ClientCapabilities) -> bool {
    let settings = capabilities.extensions.as_ref().and_then(|extensions| extensions.get(EXTENSION));
    let types = settings.and_then(|settings| settings.get("mimeTypes")).and_then(Value::as_array);
    types.is_some_and(|types| types.iter().any(|kind| kind.as_str() == Some(MEDIA_TYPE)))
}

/// Returns the page of a tool in a list.
pub(super) fn page_of(snapshot: &Snapshot, offer: &ToolOffer<'_>) -> Option<AppPage> {
    let tool = &offer.entry.tool;
    let is_toolset = snapshot.bundle(tool.bundle_id).is_some_and(|bundle| bundle.kind == BundleKind::Toolset);
    AppPage::of(&tool.bundle, &offer.spec).filter(|_| is_toolset)
}

/// Returns the metadata of a tool with a page.
pub(super) fn tool_meta(page: &AppPage) -> MetaObject {
    meta(json!({"resourceUri": page.uri()}))
}

/// Returns the metadata of a page: it needs no other origin.
fn resource_meta() -> MetaObject {
    let none: [&str; 0] = [];
    meta(json!({
        "csp": {"connectDomains": none, "resourceDomains": none, "frameDomains": none, "baseUriDomains": none},
        "prefersBorder": true,
    }))
}

fn meta(ui: Value) -> MetaObject {
    let mut meta = MetaObject::default();
    meta.0.insert("ui".to_owned(), ui);
    meta
}

/// Returns whether the results of a tool are shown by a page.
pub(super) fn has_page(spec: &ToolSpec) -> bool {
    html_renderer(spec).is_some()
}

/// Returns the data of the page of a call, unless they are the value in its result; the client sends them to the page.
/// `whole` is the value if the result has only a part of it.
pub(super) fn page_data(
    spec: &ToolSpec,
    args: &Map<String, Value>,
    value: &Value,
    whole: Option<Value>,
) -> Option<Value> {
    let renderer = html_renderer(spec)?;
    let data = match renderer.config.get("data") {
        None => return whole,
        Some(Value::String(text)) if text == "$return" => return whole,
        Some(data) => data,
    };
    let config = Map::from_iter([("data".to_owned(), data.clone())]);
    let only = Renderer { renderer: renderer.renderer.clone(), priority: 0, config };
    let args = Value::Object(args.clone());
    let (chat_id, workspace, toolset, error, large_result) = (None, None, None, None, None);
    let value = Some(whole.as_ref().unwrap_or(value));
    let context = RenderContext { args: &args, value, error, chat_id, workspace, toolset, large_result };
    RenderPlan::new(&only, context).config.remove("data")
}

impl McpServer {
    /// Returns the pages of the tools that a client sees, each with the title of its first tool.
    pub(super) fn app_pages(&self, client: &ClientContext) -> Vec<(AppPage, String)> {
        if self.shared.settings.packages.is_none() {
            return Vec::new();
        }
        let snapshot = self.shared.registry.snapshot();
        let mut pages: Vec<(AppPage, String)> = Vec::new();
        for offer in client.offers(&snapshot) {
            if let Some(page) = page_of(&snapshot, &offer)
                && pages.iter().all(|(known, _)| *known != page)
            {
                pages.push((page, offer.spec.title().to_owned()));
            }
        }
        pages
    }

    /// Reads the page with an address; `None` if the client sees no tool with it.
    pub(super) async fn read_page(
        &self,
        client: &ClientContext,
        uri: &str,
    ) -> Result<Option<ResourceContents>, ErrorData> {
        let page = self.app_pages(client).into_iter().map(|(page, _)| page).find(|page| page.uri() == uri);
        let (Some(page), Some(source)) = (page, self.shared.settings.packages.as_ref()) else {
            return Ok(None);
        };
        let failed = |error: haft_core::outcome::CallError| protocol_error(&error);
        let Some(package) = source.current(client.tenant(), &page.bundle).await.map_err(failed)? else {
            return Ok(None);
        };
        let read = source.file(client.tenant(), &package, &page.path).await.map_err(failed)?;
        let Some(bytes) = read.filter(|bytes| bytes.len() <= MAX_PAGE) else { return Ok(None) };
        let html = String::from_utf8_lossy(&bytes).into_owned();
        let (mut assets, mut total) = (HashMap::new(), 0);
        for path in page_assets::references(&html) {
            let Some(bytes) = source.file(client.tenant(), &package, &path).await.map_err(failed)? else {
                continue;
            };
            total += bytes.len();
            if total > MAX_ASSETS {
                break;
            }
            assets.insert(path, bytes);
        }
        let html = page_assets::inlined(&html, &assets, data_url);
        let contents = ResourceContents::text(document(&html), uri).with_mime_type(MEDIA_TYPE);
        Ok(Some(contents.with_meta(resource_meta())))
    }
}

fn data_url(path: &str, bytes: &[u8]) -> String {
    let kind = media_type(path).unwrap_or("application/octet-stream");
    format!("data:{kind};base64,{}", STANDARD.encode(bytes))
}

/// Writes the document of a page: the program that waits for the result, with the page in it. It is a function, so that
/// its names are free for the page.
fn document(html: &str) -> String {
    let page = script_string(html);
    let loader = LOADER.replace("__VERSION__", env!("CARGO_PKG_VERSION"));
    let loader = loader.replace("\"__DATA__\"", &script_string(DATA));
    format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <script>\n(() => {{\nconst PAGE = {page};\n{loader}}})();\n</script></head><body></body></html>\n"
    )
}

/// Writes a text as a string of JavaScript that cannot end its script element.
fn script_string(text: &str) -> String {
    let json = Value::String(text.to_owned()).to_string();
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(renderers: &Value) -> ToolSpec {
        serde_json::from_value(json!({
            "name": "t", "version": "1.0.0", "description": "d", "renderers": renderers,
            "implementation": {"type": "function", "function": "f"},
        }))
        .unwrap()
    }

    #[test]
    fn the_page_is_that_of_the_winning_renderer() {
        let bundle = BundleSlug::new("b").unwrap();
        let uri = |renderers: Value| AppPage::of(&bundle, &spec(&renderers)).map(|page| page.uri());
        let html = json!({"renderer": "html", "priority": 1, "config": {"artifact": "./artifacts/a b.html"}});
        let code = json!({"renderer": "code", "priority": 5, "config": {"file": "x"}});
        assert_eq!(uri(json!([html])).as_deref(), Some("ui://b/artifacts/a%20b.html"));
        assert_eq!(uri(json!([html, code])), None);
        assert_eq!(uri(json!([{"renderer": "html", "config": {"artifact": "$return.page"}}])), None);
        assert_eq!(uri(json!([])), None);
    }

    #[test]
    fn clients_declare_the_media_type() {
        let check = |capabilities: Value, expected: bool| {
            let parsed: ClientCapabilities = serde_json::from_value(capabilities.clone()).unwrap();
            assert_eq!(shows_pages(&parsed), expected, "{capabilities}");
        };
        check(json!({"extensions": {EXTENSION: {"mimeTypes": ["text/html", MEDIA_TYPE]}}}), true);
        check(json!({"extensions": {EXTENSION: {"mimeTypes": ["text/html"]}}}), false);
        check(json!({"extensions": {EXTENSION: {}}}), false);
        check(json!({}), false);
    }

    #[test]
    fn data_that_differ_from_the_value_travel_beside_it() {
        let args = Map::from_iter([("n".to_owned(), json!(3))]);
        let data = |config: Value, whole: Option<Value>| {
            let spec = spec(&json!([{"renderer": "html", "config": config}]));
            page_data(&spec, &args, &json!({"rows": [1, 2]}), whole)
        };
        let whole = || Some(json!({"rows": [7]}));
        for config in [json!({"artifact": "a.html", "data": "$return"}), json!({"artifact": "a.html"})] {
            assert_eq!(data(config.clone(), None), None);
            assert_eq!(data(config, whole()), whole());
        }
        let config = json!({"artifact": "a.html", "data": {"rows": "$return.rows", "n": "$args.n"}});
        assert_eq!(data(config.clone(), None), Some(json!({"rows": [1, 2], "n": 3})));
        assert_eq!(data(config, whole()), Some(json!({"rows": [7], "n": 3})));
    }

    #[test]
    fn a_page_cannot_leave_the_program_that_loads_it() {
        let hostile = "<html></script><script>alert(1)</script>\u{2028}\u{2029}\"\\";
        let document = document(hostile);
        assert_eq!(document.matches("</script>").count(), 1, "{document}");
        let start = document.find("const PAGE = ").unwrap() + "const PAGE = ".len();
        let end = document[start..].find(";\n").unwrap() + start;
        assert_eq!(serde_json::from_str::<String>(&document[start..end]).unwrap(), hostile);
    }
}
