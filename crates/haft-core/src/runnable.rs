//! The one rule that decides whether a tool may run.

use serde::{Deserialize, Serialize};

use crate::outcome::{CallError, ErrorCode};
use crate::spec::Policy;
use crate::tool::Status;

/// In which mode calls run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only published revisions run.
    Production,
    /// The newest revision runs.
    #[default]
    Debug,
}

impl Mode {
    /// Returns the spelling on the wire and in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Production => "production",
            Mode::Debug => "debug",
        }
    }

    /// Reads [`Mode::as_str`].
    pub fn parse(text: &str) -> Option<Mode> {
        [Mode::Production, Mode::Debug].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// Everything that the rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent input of the rule")]
pub struct RunState {
    /// Whether the bundle is switched on.
    pub bundle_enabled: bool,
    /// Whether the tool is switched on.
    pub tool_enabled: bool,
    /// Whether the definition that would run can run.
    pub ready: bool,
    /// Where in its life the tool is.
    pub status: Status,
    /// Who may call it.
    pub policy: Policy,
    /// Whether it has a published revision.
    pub published: bool,
}

/// Why a tool may not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotRunnable {
    /// The bundle is switched off.
    BundleDisabled,
    /// The tool is switched off.
    ToolDisabled,
    /// The status is `disabled`.
    StatusDisabled,
    /// The definition cannot run.
    NotReady,
    /// The policy is `deny`.
    PolicyDenied,
    /// Production mode, and nothing is published.
    NotPublished,
}

impl NotRunnable {
    /// Turns the refusal to the error that a caller gets.
    pub fn to_error(self, tool: &str, fault: Option<&str>) -> CallError {
        let (code, message) = match self {
            NotRunnable::BundleDisabled => {
                (ErrorCode::Disabled, format!("the bundle of `{tool}` is disabled"))
            }
            NotRunnable::ToolDisabled => (ErrorCode::Disabled, format!("`{tool}` is disabled")),
            NotRunnable::StatusDisabled => {
                (ErrorCode::Disabled, format!("the status of `{tool}` is `disabled`"))
            }
            NotRunnable::PolicyDenied => {
                (ErrorCode::PolicyDenied, format!("the policy of `{tool}` is `deny`"))
            }
            NotRunnable::NotPublished => (
                ErrorCode::NotPublished,
                format!("`{tool}` has no published revision; publish it, or call it in debug mode"),
            ),
            NotRunnable::NotReady => {
                let why = fault.unwrap_or("its definition cannot run");
                return CallError::new(ErrorCode::NotReady, format!("`{tool}` is not ready: {why}"))
                    .for_model(format!("`{tool}` is not ready"));
            }
        };
        CallError::new(code, message)
    }
}

/// Decides: bundle enabled, tool enabled, ready, status not disabled, policy not deny,
/// and either debug mode or something published.
pub const fn runnable(standing: RunState, mode: Mode) -> Result<(), NotRunnable> {
    if !standing.bundle_enabled {
        return Err(NotRunnable::BundleDisabled);
    }
    if !standing.tool_enabled {
        return Err(NotRunnable::ToolDisabled);
    }
    if matches!(standing.status, Status::Disabled) {
        return Err(NotRunnable::StatusDisabled);
    }
    if matches!(standing.policy, Policy::Deny) {
        return Err(NotRunnable::PolicyDenied);
    }
    if matches!(mode, Mode::Production) && !standing.published {
        return Err(NotRunnable::NotPublished);
    }
    if !standing.ready {
        return Err(NotRunnable::NotReady);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole table: the rule of the design, written a second time as a plain conjunction.
    #[test]
    fn truth_table() {
        let bools = [false, true];
        let mut rows = 0;
        for (bundle_enabled, tool_enabled, ready, published) in
            bools.into_iter().flat_map(|a| bools.into_iter().map(move |b| (a, b))).flat_map(|(a, b)| {
                bools.into_iter().flat_map(move |c| bools.into_iter().map(move |d| (a, b, c, d)))
            })
        {
            for status in Status::ALL {
                for policy in [Policy::Allow, Policy::Deny, Policy::Elevated] {
                    for mode in [Mode::Production, Mode::Debug] {
                        let standing =
                            RunState { bundle_enabled, tool_enabled, ready, status, policy, published };
                        let expected = bundle_enabled
                            && tool_enabled
                            && ready
                            && status != Status::Disabled
                            && policy != Policy::Deny
                            && (mode == Mode::Debug || published);
                        assert_eq!(runnable(standing, mode).is_ok(), expected, "{standing:?} {mode:?}");
                        rows += 1;
                    }
                }
            }
        }
        assert_eq!(rows, 16 * 4 * 3 * 2);
    }

    #[test]
    fn the_first_reason_is_the_one_a_person_can_act_on() {
        let standing = RunState {
            bundle_enabled: false,
            tool_enabled: false,
            ready: false,
            status: Status::Disabled,
            policy: Policy::Deny,
            published: false,
        };
        assert_eq!(runnable(standing, Mode::Production), Err(NotRunnable::BundleDisabled));
        assert_eq!(
            runnable(
                RunState {
                    bundle_enabled: true,
                    tool_enabled: true,
                    status: Status::Draft,
                    policy: Policy::Allow,
                    ..standing
                },
                Mode::Production
            ),
            Err(NotRunnable::NotPublished)
        );
    }
}
