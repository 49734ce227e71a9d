//! Answers by a script.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use haft_template::{EscapeContext, RenderError, Template, Values};
use serde_json::{Map, Value};

use super::choose::{Situation, answers};
use super::script_file::{Script, ScriptedArguments, ScriptedFailure, Turn};
use crate::model::answer::Answer;
use crate::model::error::{Failure, ModelError, ModelErrorKind};
use crate::model::event::{ModelEvent, Usage};
use crate::model::request::{ModelMessage, ModelRequest};
use crate::model::stream::{EventSource, EventStream, Model, failed, stream_of};

/// How many characters a token has on average.
const CHARACTERS_PER_TOKEN: usize = 4;

/// A model that answers by a script.
pub struct Scripted {
    name: String,
    script: Arc<Script>,
}

impl Scripted {
    /// Creates a model with this name.
    pub fn new(name: impl Into<String>, script: Arc<Script>) -> Self {
        Self { name: name.into(), script }
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, request: &ModelRequest) -> EventStream {
        match play(&self.script, request, &self.name) {
            Ok(performance) => stream_of(performance),
            Err(failure) => failed(failure.of_model(&self.name, &[])),
        }
    }
}

/// Prepares all events of a turn.
fn play(script: &Script, request: &ModelRequest, model: &str) -> Result<Performance, Failure> {
    let situation = Situation::new(request);
    let Some(turn) = script.choose(&situation) else {
        let detail = format!("the last message is `{}`", haft_core::problem::excerpt(&situation.user, 100));
        return Err(Failure::new(ModelErrorKind::NoScriptedTurn, detail));
    };
    let values = situation.values(turn);
    let rendered = Rendered::new(turn, &values)?;
    let mut answer = Answer::default();
    words(&rendered.reasoning).for_each(|word| answer.reasoning(word));
    answer.reasoning_end(None);
    words(&rendered.text).for_each(|word| answer.text(word));
    if let Some(image) = &turn.image {
        answer.image(image.clone());
    }
    for (index, (tool, id, arguments)) in rendered.calls.iter().enumerate() {
        // The number of the answer makes ids unique within a conversation.
        let default = format!("call_{}_{index}", answers(request));
        answer.whole_call(Some(id.as_deref().unwrap_or(&default)), tool, arguments, None)?;
    }
    if turn.error.is_none() {
        answer.usage(turn.usage.unwrap_or_else(|| estimate(request, &rendered)));
        if let Some(reason) = turn.finish {
            answer.reason(reason);
        }
        answer.finish()?;
    }
    let mut events = VecDeque::new();
    if answer.has_events() {
        events.push_back(ModelEvent::Start { model: model.to_owned() });
    }
    while let Some(event) = answer.pop() {
        events.push_back(event);
    }
    let failure = turn.error.clone();
    Ok(Performance { model: model.to_owned(), events, failure, delay: turn.delay, pace: turn.pace })
}

/// What a turn says, with its templates filled in.
struct Rendered {
    reasoning: String,
    text: String,
    calls: Vec<(String, Option<String>, Value)>,
}

impl Rendered {
    fn new(turn: &Turn, values: &Map<String, Value>) -> Result<Self, Failure> {
        let (steps, secrets) = (Map::new(), BTreeMap::new());
        let values = Values { args: values, steps: &steps, secrets: &secrets, version: "" };
        let text = |template: Option<&Template>| match template {
            Some(template) => template.render(EscapeContext::Text, &values).map(|rendered| rendered.text),
            None => Ok(String::new()),
        };
        let mut calls = Vec::with_capacity(turn.calls.len());
        for call in &turn.calls {
            let arguments = match &call.arguments {
                ScriptedArguments::Raw(raw) => Value::String(raw.clone()),
                ScriptedArguments::Values(template) => {
                    template.render(&values).map_err(|error| unrendered(&error))?.0.unwrap_or_default()
                }
            };
            calls.push((call.tool.clone(), call.id.clone(), arguments));
        }
        let fail = |error: RenderError| unrendered(&error);
        Ok(Self {
            reasoning: text(turn.reasoning.as_ref()).map_err(fail)?,
            text: text(turn.text.as_ref()).map_err(fail)?,
            calls,
        })
    }
}

fn unrendered(error: &RenderError) -> Failure {
    Failure::new(ModelErrorKind::NoScriptedTurn, format!("failed to fill in a template: {error}"))
}

/// Splits a text into words with the blanks after them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

/// Estimates the tokens of a request and its answer.
fn estimate(request: &ModelRequest, rendered: &Rendered) -> Usage {
    let tokens = |characters: usize| (characters / CHARACTERS_PER_TOKEN).max(1) as u64;
    let input: usize = request.messages.iter().map(|message| message.text().len()).sum();
    let results = request.messages.iter().flat_map(ModelMessage::tool_results);
    let results: usize = results.map(|result| result.text.len()).sum();
    let calls: usize =
        rendered.calls.iter().map(|(name, _, value)| name.len() + value.to_string().len()).sum();
    let system = request.system.as_ref().map_or(0, String::len);
    Usage {
        input: tokens(system + input + results),
        output: tokens(rendered.text.len() + rendered.reasoning.len() + calls),
        cached: 0,
        cache_written: 0,
        reasoning: tokens(rendered.reasoning.len()) * u64::from(!rendered.reasoning.is_empty()),
    }
}

/// The prepared events of a turn, with their pace.
struct Performance {
    model: String,
    events: VecDeque<ModelEvent>,
    failure: Option<ScriptedFailure>,
    delay: Duration,
    pace: Duration,
}

impl EventSource for Performance {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        let delay = std::mem::take(&mut self.delay);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let Some(event) = self.events.pop_front() else {
            let ScriptedFailure { kind, message } = self.failure.take()?;
            return Some(Err(ModelError::new(kind, self.model.clone(), message)));
        };
        let is_word = matches!(event, ModelEvent::TextDelta { .. } | ModelEvent::ReasoningDelta { .. });
        if is_word && !self.pace.is_zero() {
            tokio::time::sleep(self.pace).await;
        }
        Some(Ok(event))
    }
}
