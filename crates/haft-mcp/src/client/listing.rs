//! The tools that a server lists.

use std::time::Duration;

use haft_core::mcp::{ListedTool, MAX_TOOLS};
use haft_core::problem::excerpt;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;
use tokio::time::timeout;

/// How long the whole list may take.
const LISTS_WITHIN: Duration = Duration::from_mins(2);
/// The most pages that are read: a server may say for ever that there is another one.
const MAX_PAGES: usize = 1000;

/// What a server lists.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) tools: Vec<ListedTool>,
    /// What is no tool, and why.
    pub(super) refused: Vec<String>,
}

/// Reads the whole list, as far as it is bounded. One page may take so long.
pub(super) async fn read(peer: &Peer<RoleClient>, page_within: Duration) -> Result<Listing, ServiceError> {
    let late = |timeout| move |_| ServiceError::Timeout { timeout };
    let pages = async {
        let mut listing = Listing::default();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ListToolsRequest { params: Some(params), ..ListToolsRequest::default() };
            // Not the peer's own list, which may be an old one.
            let sent = peer.send_request(ClientRequest::ListToolsRequest(request));
            let answer = timeout(page_within, sent).await.map_err(late(page_within))??;
            let next = listing.take(answer)?;
            // The same page again would be so for ever.
            let seen = listing.tools.len() + listing.refused.len();
            if next.is_none() || next == cursor || seen > MAX_TOOLS {
                break;
            }
            cursor = next;
        }
        Ok(listing)
    };
    timeout(LISTS_WITHIN, pages).await.unwrap_or_else(|error| Err(late(LISTS_WITHIN)(error)))
}

impl Listing {
    /// Takes one page; returns where the next one begins.
    fn take(&mut self, answer: ServerResult) -> Result<Option<String>, ServiceError> {
        match answer {
            ServerResult::ListToolsResult(page) => {
                self.tools.extend(page.tools.into_iter().map(listed));
                Ok(page.next_cursor)
            }
            // Some entry is no tool, which makes the page something else to rmcp.
            ServerResult::CustomResult(page) => self.one_by_one(&page.0),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    fn one_by_one(&mut self, page: &Value) -> Result<Option<String>, ServiceError> {
        let entries = page.get("tools").and_then(Value::as_array).ok_or(ServiceError::UnexpectedResponse)?;
        for entry in entries {
            match serde_json::from_value::<Tool>(entry.clone()) {
                Ok(tool) => self.tools.push(listed(tool)),
                Err(error) => {
                    let name = entry.get("name").and_then(Value::as_str).unwrap_or("(without a name)");
                    self.refused.push(format!(
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
        title: tool.title.or_else(|| hints.and_then(|hints| hints.title.clone())),
        name: tool.name.into_owned(),
        description: tool.description.map(std::borrow::Cow::into_owned).unwrap_or_default(),
        input_schema: Value::Object((*tool.input_schema).clone()),
        output_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
    }
}
