//! Checks an answer without calls: it ends the run, or the model is asked to correct it once.

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::run::{AnswerStep, RunStep, StepBody};
use haft_core::schema::{Schema, Violation};
use serde_json::{Value, json};

use super::progress::{MALFORMED_CALL, answers, content_of};
use super::session::{LoopExit, Session};
use crate::model::ContentPart;

/// The message to the model after an empty answer.
const SAID_NOTHING: &str = "Your last answer was empty. Answer the last message, or call a tool.";
/// The message to the model after a malformed call.
const MALFORMED: &str = "Your last tool call was malformed. Call the tool again, with a name from the list of tools and arguments that are one JSON object.";
/// The maximum length of a refusal in an error, in characters.
const REFUSAL_CHARACTERS: usize = 500;
/// The maximum length of a schema in a correction, in characters.
const SCHEMA_CHARACTERS: usize = 8000;

impl Session {
    /// Returns the output of the run, or asks for a correction.
    pub(super) async fn check_answer(&mut self, number: u32) -> Result<Option<Value>, LoopExit> {
        let found = answers(&self.steps).next_back().filter(|(last, _)| *last == number);
        let Some((_, answer)) = found else {
            return Err(
                CallError::internal(format!("step {number} of the run is not its last answer")).into()
            );
        };
        match judge(answer, self.output_schema.as_ref()) {
            Ok(output) => Ok(Some(output)),
            Err(fault) if self.was_corrected(&fault, number) => Err(fault.into_error().into()),
            Err(fault @ (Fault::Filtered | Fault::Refused(_))) => Err(fault.into_error().into()),
            Err(fault) => {
                self.check_stop()?;
                let text = fault.correction(self.definition().output_schema.as_ref());
                self.append(self.start_timer(), vec![StepBody::Correction { text }]).await?;
                Ok(None)
            }
        }
    }

    /// Returns whether the model was asked to correct this before: an empty answer again and again, or an answer that
    /// does not match the schema at any time.
    fn was_corrected(&self, fault: &Fault, number: u32) -> bool {
        let mut corrections = self.steps.iter().filter_map(|step| correction(step).map(|text| (step, text)));
        match fault {
            Fault::Filtered | Fault::Refused(_) => false,
            Fault::Empty | Fault::MalformedCall => {
                let own = fault.correction(None);
                let before = self.steps.iter().rev().skip_while(|step| step.number >= number);
                let mut since = before.take_while(|step| !matches!(step.body, StepBody::Answer(_)));
                since.any(|step| correction(step) == Some(own.as_str()))
            }
            Fault::NotJson(_) | Fault::Invalid(_) => {
                corrections.any(|(_, text)| text != SAID_NOTHING && text != MALFORMED)
            }
        }
    }
}

fn correction(step: &RunStep) -> Option<&str> {
    match &step.body {
        StepBody::Correction { text } => Some(text),
        _ => None,
    }
}

/// What is wrong with an answer.
#[derive(Debug, PartialEq)]
enum Fault {
    Empty,
    /// A call was malformed.
    MalformedCall,
    /// A filter of the provider ended the answer.
    Filtered,
    /// The model refused to answer, with this text.
    Refused(String),
    NotJson(String),
    Invalid(Vec<Violation>),
}

impl Fault {
    fn correction(&self, schema: Option<&Value>) -> String {
        let reason = match self {
            Self::Empty | Self::Filtered | Self::Refused(_) => return SAID_NOTHING.to_owned(),
            Self::MalformedCall => return MALFORMED.to_owned(),
            Self::NotJson(reason) => format!("it is not valid JSON: {reason}"),
            Self::Invalid(violations) => describe(violations),
        };
        let schema = schema.map(|schema| excerpt(&schema.to_string(), SCHEMA_CHARACTERS)).unwrap_or_default();
        format!(
            "Your last answer does not match the required schema: {reason}. Answer again with only the corrected JSON. The schema: {schema}"
        )
    }

    fn into_error(self) -> CallError {
        match self {
            Self::Empty => {
                CallError::new(ErrorCode::ModelError, "the model answered nothing, twice in a row")
            }
            Self::MalformedCall => {
                CallError::new(ErrorCode::ModelError, "the model wrote a malformed tool call, twice in a row")
            }
            Self::Filtered => {
                CallError::new(ErrorCode::ModelError, "the content filter of the provider ended the answer")
            }
            Self::Refused(text) if text.trim().is_empty() => {
                CallError::new(ErrorCode::ModelError, "the model refused to answer")
            }
            Self::Refused(text) => CallError::new(
                ErrorCode::ModelError,
                format!("the model refused to answer: {}", excerpt(text.trim(), REFUSAL_CHARACTERS)),
            )
            .for_model("the model of the agent refused to answer"),
            Self::NotJson(reason) => CallError::new(
                ErrorCode::InvalidOutput,
                format!("the answer is not valid JSON, even after a correction: {reason}"),
            ),
            Self::Invalid(violations) => CallError::new(
                ErrorCode::InvalidOutput,
                format!(
                    "the answer does not match `output_schema`, even after a correction: {}",
                    describe(&violations)
                ),
            )
            .with_details(json!({ "violations": violations })),
        }
    }
}

fn describe(violations: &[Violation]) -> String {
    let describe = |violation: &Violation| match violation.path.as_str() {
        "" => violation.message.clone(),
        path => format!("`{path}`: {}", violation.message),
    };
    violations.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// Returns the output that an answer is: its text, or with a schema its value.
fn judge(answer: &AnswerStep, schema: Option<&Schema>) -> Result<Value, Fault> {
    let content = content_of(answer);
    let texts = content.iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    match answer.finish_reason.as_str() {
        "content_filter" => return Err(Fault::Filtered),
        "refusal" => return Err(Fault::Refused(text)),
        MALFORMED_CALL => return Err(Fault::MalformedCall),
        _ => {}
    }
    let has_image = content.iter().any(|part| matches!(part, ContentPart::Image { .. }));
    if text.trim().is_empty() && !has_image {
        return Err(Fault::Empty);
    }
    let Some(schema) = schema else { return Ok(Value::String(text)) };
    let value: Value = serde_json::from_str(without_fence(&text)).map_err(|error| {
        let cut =
            if answer.finish_reason == "length" { " (the maximum number of tokens cut it off)" } else { "" };
        Fault::NotJson(format!("{error}{cut}"))
    })?;
    schema.check(&value).map_err(Fault::Invalid)?;
    Ok(value)
}

/// Returns the text inside a fence, which many models write around JSON.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((label, inner)) if label.trim().chars().all(char::is_alphanumeric) => inner.trim(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use haft_core::run::RunUsage;

    use super::*;

    #[test]
    fn an_answer_is_text_or_a_value_of_the_schema() {
        let schema = Schema::compile("s", &json!({"type": "object", "required": ["n"]})).unwrap();
        let check = |text: &str, finish: &str, schema: Option<&Schema>| {
            let answer = AnswerStep {
                model: "m".to_owned(),
                content: json!([{"type": "text", "text": text}]),
                finish_reason: finish.to_owned(),
                usage: RunUsage::default(),
            };
            judge(&answer, schema).map_err(|fault| fault.into_error().to_string())
        };
        assert_eq!(check("hello", "stop", None), Ok(json!("hello")));
        assert_eq!(check("{\"n\": 1}", "stop", None), Ok(json!("{\"n\": 1}")));
        assert_eq!(check("{\"n\": 1}", "stop", Some(&schema)), Ok(json!({"n": 1})));
        assert_eq!(check("```json\n{\"n\": 1}\n```", "stop", Some(&schema)), Ok(json!({"n": 1})));
        for (text, finish, schema, expected) in [
            (" ", "stop", None, "model_error: the model answered nothing"),
            ("I", "content_filter", None, "model_error: the content filter of the provider"),
            ("I can't.", "refusal", None, "model_error: the model refused to answer: I can't."),
            ("", "refusal", None, "model_error: the model refused to answer"),
            ("", "malformed_call", None, "model_error: the model wrote a malformed tool call"),
            ("{\"n\":", "length", Some(&schema), "cut it off"),
            ("Here: {\"n\": 1}", "stop", Some(&schema), "invalid_output: the answer is not valid JSON"),
            ("{}", "stop", Some(&schema), "even after a correction: missing"),
        ] {
            let error = check(text, finish, schema).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
