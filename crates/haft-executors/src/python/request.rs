//! The request that an interpreter reads.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// What the interpreter does.
pub(super) enum Operation {
    /// Runs the script; `body` is set if values were filled in.
    Script { body: Option<String>, args_file: Option<String> },
    /// Calls the function `module:function`.
    Function { entry: String, kwargs: Map<String, Value> },
    /// Checks the syntax of a script.
    Check { body: String },
}

/// One request. It may contain secrets and therefore has no `Debug`.
pub(super) struct Request {
    pub(super) operation: Operation,
    /// The whole environment.
    pub(super) env: Vec<(String, String)>,
    /// Variables that are too large for the environment of a process.
    pub(super) large: Vec<(String, String)>,
}

impl Request {
    /// Returns the request as JSON; `cpu` is the CPU time limit, if the sandbox does not set it.
    pub(super) fn json(&self, cpu: Option<Duration>) -> Value {
        let map = |pairs: &[(String, String)]| -> Map<String, Value> {
            pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
        };
        let (mut body, mut args_file, mut entry, mut kwargs, mut check) = Default::default();
        match &self.operation {
            Operation::Script { body: text, args_file: args } => {
                (body, args_file) = (text.as_ref(), args.as_ref());
            }
            Operation::Function { entry: name, kwargs: args } => (entry, kwargs) = (Some(name), Some(args)),
            Operation::Check { body: text } => check = Some(text),
        }
        json!({
            "env": map(&self.env), "large": map(&self.large), "cpu": cpu.map(whole_seconds),
            "body": body, "args_file": args_file, "entry": entry, "kwargs": kwargs, "check": check,
        })
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
