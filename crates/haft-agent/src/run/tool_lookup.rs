//! Finds the tool that a model means.

use std::fmt::Write as _;

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::{excerpt, nearest};

use super::host::BoundTool;

/// How many tools an error lists.
const LISTED: usize = 20;

/// Finds a tool by the name that models see, else by `bundle:name@version`, `bundle:name` or `name`, if that is unique.
pub(super) fn find<'t>(tools: &'t [BoundTool], name: &str) -> Result<&'t BoundTool, CallError> {
    let name = name.trim();
    if let Some(tool) = tools.iter().find(|tool| tool.definition.name == name) {
        return Ok(tool);
    }
    let mut named = tools.iter().filter(|tool| is_named(&tool.qualified, name));
    match (named.next(), named.next()) {
        (Some(tool), None) => Ok(tool),
        _ => Err(unknown(tools, name)),
    }
}

fn is_named(qualified: &str, name: &str) -> bool {
    let unversioned = qualified.rsplit_once('@').map_or(qualified, |(unversioned, _)| unversioned);
    let short = unversioned.split_once(':').map_or(unversioned, |(_, short)| short);
    [qualified, unversioned, short].contains(&name)
}

fn unknown(tools: &[BoundTool], name: &str) -> CallError {
    let names = || tools.iter().map(|tool| tool.definition.name.as_str());
    let mut message = format!("there is no tool `{}`", excerpt(name, 80));
    if let Some(near) = nearest(name, names()) {
        message.push_str("; did you mean `");
        message.push_str(near);
        message.push_str("`?");
    }
    if tools.is_empty() {
        message.push_str("; no tools are available: answer without them");
    } else {
        let listed: Vec<_> = names().take(LISTED).map(|name| format!("`{name}`")).collect();
        message.push_str(" Available: ");
        message.push_str(&listed.join(", "));
        if tools.len() > LISTED {
            let _ = write!(message, " and {} more", tools.len() - LISTED);
        }
    }
    CallError::new(ErrorCode::NotFound, message)
}

#[cfg(test)]
mod tests {
    use haft_core::id::ToolId;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::model::ToolDefinition;

    fn tool(name: &str, qualified: &str) -> BoundTool {
        BoundTool {
            definition: ToolDefinition {
                name: name.to_owned(),
                description: String::new(),
                input_schema: json!({}),
            },
            id: ToolId(Uuid::nil()),
            qualified: qualified.to_owned(),
            is_pure: true,
            concurrency_group: "default".to_owned(),
            max_concurrency: 1,
        }
    }

    #[test]
    fn a_tool_is_found_by_its_names() {
        let tools = [
            tool("get_weather", "weather:get@1.0.0"),
            tool("send", "mail:send@1.0.0"),
            tool("send_2", "chat:send@2.0.0"),
        ];
        let found =
            |name: &str| find(&tools, name).map(|tool| tool.qualified.as_str()).map_err(|e| e.message);
        for (name, expected) in [
            ("get_weather", "weather:get@1.0.0"),
            (" get ", "weather:get@1.0.0"),
            ("weather:get", "weather:get@1.0.0"),
            ("weather:get@1.0.0", "weather:get@1.0.0"),
            // The name for models wins over the name of another tool.
            ("send", "mail:send@1.0.0"),
            ("chat:send", "chat:send@2.0.0"),
        ] {
            assert_eq!(found(name).as_deref(), Ok(expected), "{name}");
        }
        assert_eq!(
            found("get_wether").unwrap_err(),
            "there is no tool `get_wether`; did you mean `get_weather`? Available: `get_weather`, `send`, `send_2`"
        );
        assert_eq!(
            find(&[], "x").unwrap_err().message,
            "there is no tool `x`; no tools are available: answer without them"
        );
    }
}
