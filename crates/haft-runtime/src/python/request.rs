//! One call, as the interpreter reads it.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// What a call asks for.
pub(super) enum Wanted {
    /// The script, with its values filled in where it has any.
    Script { body: Option<String>, args_file: Option<String> },
    /// A function by `module:function`, with its arguments.
    Function { entry: String, kwargs: Map<String, Value> },
    /// Whether a body can be compiled.
    Check { body: String },
}

/// One call. It may hold secrets, and has no `Debug` that would show them.
pub(super) struct Request {
    pub(super) wanted: Wanted,
    /// The whole environment.
    pub(super) env: Vec<(String, String)>,
    /// What is too large for the environment of a process.
    pub(super) large: Vec<(String, String)>,
}

impl Request {
    /// Returns the call as JSON; `cpu` is how long it may compute, where the sandbox does not limit that itself.
    pub(super) fn json(&self, cpu: Option<Duration>) -> Value {
        let map = |pairs: &[(String, String)]| -> Map<String, Value> {
            pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
        };
        let (mut body, mut args_file, mut entry, mut kwargs, mut check) = Default::default();
        match &self.wanted {
            Wanted::Script { body: text, args_file: args } => {
                (body, args_file) = (text.as_ref(), args.as_ref());
            }
            Wanted::Function { entry: name, kwargs: args } => (entry, kwargs) = (Some(name), Some(args)),
            Wanted::Check { body: text } => check = Some(text),
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
