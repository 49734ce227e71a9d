//! Reads the list of tools of a server.

use std::time::Duration;

use haft_core::implementation::ToolHints;
use haft_core::mcp::{ListedTool, MAX_TOOLS};
use haft_core::problem::excerpt;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;
use tokio::time::timeout;

/// The timeout of the complete list.
const LIST_TIMEOUT: Duration = Duration::from_mins(2);
/// How many pages are read, for servers that never stop to announce another one.
const MAX_PAGES: usize = 1000;

/// The tools of a server.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) tools: Vec<ListedTool>,
    /// Entries that are not valid tools, with reasons.
    pub(super) rejected: Vec<String>,
}

/// Reads the list, up to the limits.
pub(super) async fn read(peer: &Peer<RoleClient>, page_timeout: Duration) -> Result<Listing, ServiceError> {
    let timed_out = |timeout| move |_| ServiceError::Timeout { timeout };
    let pages = async {
        let mut listing = Listing::default();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ListToolsRequest { params: Some(params), ..ListToolsRequest::default() };
            // Not `Peer::list_tools`, which may return a cached list.
            let sent = peer.send_request(ClientRequest::ListToolsRequest(request));
            let result = timeout(page_timeout, sent).await.map_err(timed_out(page_timeout))??;
            let next = listing.add_page(result)?;
            // A server that repeats a cursor would repeat it forever.
            let seen = listing.tools.len() + listing.rejected.len();
            if next.is_none() || next == cursor || seen > MAX_TOOLS {
                break;
            }
            cursor = next;
        }
        Ok(listing)
    };
    timeout(LIST_TIMEOUT, pages).await.unwrap_or_else(|error| Err(timed_out(LIST_TIMEOUT)(error)))
}

impl Listing {
    /// Adds a page; returns the cursor of the next one.
    fn add_page(&mut self, result: ServerResult) -> Result<Option<String>, ServiceError> {
        match result {
            ServerResult::ListToolsResult(page) => {
                self.tools.extend(page.tools.into_iter().map(listed));
                Ok(page.next_cursor)
            }
            // rmcp does not recognize a page with an invalid tool.
            ServerResult::CustomResult(page) => self.add_entries(&page.0),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    fn add_entries(&mut self, page: &Value) -> Result<Option<String>, ServiceError> {
        let entries = page.get("tools").and_then(Value::as_array).ok_or(ServiceError::UnexpectedResponse)?;
        for entry in entries {
            match serde_json::from_value::<Tool>(entry.clone()) {
                Ok(tool) => self.tools.push(listed(tool)),
                Err(error) => {
                    let name = entry.get("name").and_then(Value::as_str).unwrap_or("(unnamed)");
                    self.rejected.push(format!(
                        "{}: {}",
                        excerpt(name, 100),
                        excerpt(&error.to_string(), 200)
                    ));
                }
            }
        }
        Ok(page.get("nextCursor").and_then(Value::as_str).map(str::to_owned))
    }
}

fn listed(tool: Tool) -> ListedTool {
    let hints = tool.annotations.as_ref();
    ListedTool {
        read_only: hints.and_then(|hints| hints.read_only_hint).unwrap_or(false),
        hints: ToolHints {
            destructive: hints.and_then(|hints| hints.destructive_hint),
            idempotent: hints.and_then(|hints| hints.idempotent_hint),
            open_world: hints.and_then(|hints| hints.open_world_hint),
        },
        title: tool.title.or_else(|| hints.and_then(|hints| hints.title.clone())),
        name: tool.name.into_owned(),
        description: tool.description.map(std::borrow::Cow::into_owned).unwrap_or_default(),
        input_schema: Value::Object((*tool.input_schema).clone()),
        output_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
    }
}
