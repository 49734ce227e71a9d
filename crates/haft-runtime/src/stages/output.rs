//! Checks what a tool returned against its output schema.

use haft_core::Work;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use serde_json::json;

use crate::pipeline::Call;
use crate::stages::{Next, Stage};

/// Turns a value that does not fit the output schema to a failure.
pub struct Output;

impl Stage for Output {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> Work<'a, Outcome> {
        Box::pin(async move {
            let plan = std::sync::Arc::clone(&call.plan);
            let value = next.run(call).await?;
            match plan.output.check(&value) {
                Ok(()) => Ok(value),
                Err(violations) => {
                    let first = violations.first().map_or("", |violation| violation.message.as_str());
                    let message = format!("the output does not fit the output schema: {first}");
                    Err(CallError::new(ErrorCode::InvalidOutput, message)
                        .with_details(json!({"violations": violations}))
                        .for_model("the tool returned an unexpected result"))
                }
            }
        })
    }
}
