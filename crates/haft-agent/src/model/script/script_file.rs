//! A script and its turns.

use std::time::Duration;

use haft_core::problem::{self, Problem};
use haft_template::{Template, ValueTemplate};
use regex::Regex;

use super::parse;
use crate::model::error::ModelErrorKind;
use crate::model::event::{FinishReason, Usage};
use crate::model::image::ImageSource;

/// The script that works without any file.
const DEMO: &str = include_str!("demo.yaml");

/// A parsed script.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) turns: Vec<Turn>,
}

/// A script is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}", problem::join(.problems))]
pub struct ScriptError {
    /// The name of the file.
    pub file: String,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

impl Script {
    /// Parses the text of a script; `file` is its name in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScriptError> {
        parse::parse(text).map_err(|problems| ScriptError { file: file.to_owned(), problems })
    }

    /// Returns the built-in script, which answers without any key.
    pub fn demo() -> Self {
        // The tests parse it.
        Self::parse("demo.yaml", DEMO).unwrap_or(Self { turns: Vec::new() })
    }
}

impl Default for Script {
    fn default() -> Self {
        Self::demo()
    }
}

/// One answer.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) when: Option<Condition>,
    /// How many answers in a row the turn gives.
    pub(super) repeat: usize,
    /// The wait before the answer.
    pub(super) delay: Duration,
    /// The wait between two words.
    pub(super) pace: Duration,
    pub(super) reasoning: Option<Template>,
    pub(super) text: Option<Template>,
    pub(super) image: Option<ImageSource>,
    pub(super) calls: Vec<ScriptedCall>,
    pub(super) usage: Option<Usage>,
    /// The finish reason, unless the answer is complete or has calls.
    pub(super) finish: Option<FinishReason>,
    pub(super) error: Option<ScriptedFailure>,
}

/// When a turn answers. All parts must match.
#[derive(Debug, Clone, Default)]
pub(super) struct Condition {
    /// Matches the last message of a person, if no tool result follows it.
    pub(super) user: Option<Regex>,
    /// The tool whose result is last.
    pub(super) tool: Option<String>,
    /// Matches the last tool result.
    pub(super) result: Option<Regex>,
    /// Whether the last call failed.
    pub(super) failed: Option<bool>,
    /// A tool that the request offers.
    pub(super) offered: Option<String>,
}

/// A call of a turn.
#[derive(Debug, Clone)]
pub(super) struct ScriptedCall {
    pub(super) tool: String,
    pub(super) id: Option<String>,
    pub(super) arguments: ScriptedArguments,
}

/// The arguments of a call.
#[derive(Debug, Clone)]
pub(super) enum ScriptedArguments {
    Values(ValueTemplate),
    /// A text that is sent as it is, to try what happens with invalid JSON.
    Raw(String),
}

/// How a turn fails, after what it says.
#[derive(Debug, Clone)]
pub(super) struct ScriptedFailure {
    pub(super) kind: ModelErrorKind,
    pub(super) message: String,
}
