//! Chooses the turn that answers a request.

use haft_core::chat::MessageRole;
use regex::Regex;
use serde_json::{Map, Value};

use super::script_file::{Condition, Script, Turn};
use crate::model::request::{ModelMessage, ModelRequest, ToolResult};

/// What a turn can refer to.
pub(super) struct Situation<'r> {
    /// The text of the last message of a person.
    pub(super) user: String,
    /// The last result, if nothing follows it.
    last_result: Option<&'r ToolResult>,
    request: &'r ModelRequest,
}

impl<'r> Situation<'r> {
    pub(super) fn new(request: &'r ModelRequest) -> Self {
        let messages = &request.messages;
        let user = messages.iter().rev().find(|message| message.role == MessageRole::User);
        let last = messages.iter().rev().find(|message| message.role != MessageRole::System);
        let last_result = last.and_then(|message| message.tool_results().last());
        Self { user: user.map(ModelMessage::text).unwrap_or_default(), last_result, request }
    }

    /// Returns the values of templates.
    pub(super) fn values(&self, turn: &Turn) -> Map<String, Value> {
        let mut results = Map::new();
        for result in self.request.messages.iter().flat_map(ModelMessage::tool_results) {
            results.insert(result.name.clone(), parsed(&result.text));
        }
        let mut values = Map::new();
        values.insert("user".to_owned(), Value::String(self.user.clone()));
        if let Some(result) = self.last_result {
            values.insert("result".to_owned(), parsed(&result.text));
        }
        values.insert("results".to_owned(), Value::Object(results));
        let pattern = turn.when.as_ref().and_then(|when| when.user.as_ref());
        values.insert("match".to_owned(), Value::Object(self.groups(pattern)));
        values
    }

    /// Returns the groups of the pattern: by name, and by number.
    fn groups(&self, pattern: Option<&Regex>) -> Map<String, Value> {
        let mut groups = Map::new();
        let Some(pattern) = pattern else { return groups };
        let Some(captures) = pattern.captures(&self.user) else { return groups };
        for (index, name) in pattern.capture_names().enumerate() {
            let Some(found) = captures.get(index) else { continue };
            let text = Value::String(found.as_str().to_owned());
            if let Some(name) = name {
                groups.insert(name.to_owned(), text.clone());
            }
            groups.insert(index.to_string(), text);
        }
        groups
    }

    fn matches(&self, when: &Condition) -> bool {
        let result = self.last_result;
        let has_user = when.user.as_ref();
        has_user.is_none_or(|pattern| result.is_none() && pattern.is_match(&self.user))
            && when.tool.as_ref().is_none_or(|tool| result.is_some_and(|result| result.name == *tool))
            && when
                .result
                .as_ref()
                .is_none_or(|pattern| result.is_some_and(|result| pattern.is_match(&result.text)))
            && when.failed.is_none_or(|failed| result.is_some_and(|result| result.is_error == failed))
            && when
                .offered
                .as_ref()
                .is_none_or(|tool| self.request.tools.iter().any(|offered| offered.name == *tool))
    }
}

/// Returns the value of a result: JSON if it is JSON, else the text.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

impl Script {
    /// Returns the turn for a request: the first one whose `when` matches; else, of the turns without `when`, the one whose
    /// number is the number of answers so far, or the last one.
    pub(super) fn choose(&self, situation: &Situation<'_>) -> Option<&Turn> {
        let matching = |turn: &&Turn| turn.when.as_ref().is_some_and(|when| situation.matches(when));
        if let Some(turn) = self.turns.iter().find(matching) {
            return Some(turn);
        }
        let mut answers = answers(situation.request);
        let mut plain = self.turns.iter().filter(|turn| turn.when.is_none()).peekable();
        while let Some(turn) = plain.next() {
            if answers < turn.repeat || plain.peek().is_none() {
                return Some(turn);
            }
            answers -= turn.repeat;
        }
        None
    }
}

/// Returns how often the model has answered in the conversation.
pub(super) fn answers(request: &ModelRequest) -> usize {
    request.messages.iter().filter(|message| message.role == MessageRole::Assistant).count()
}
