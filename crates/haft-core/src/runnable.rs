//! The rule that decides whether a tool may run.

use serde::{Deserialize, Serialize};

use crate::outcome::{CallError, ErrorCode};
use crate::spec::Policy;
use crate::tool::Status;

/// The mode in which calls run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = CallMode))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only published revisions run.
    Production,
    /// The newest revision runs.
    #[default]
    Debug,
}

impl Mode {
    /// Returns the name used in JSON and in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Production => "production",
            Mode::Debug => "debug",
        }
    }

    /// Parses the name that [`Mode::as_str`] returns.
    pub fn parse(text: &str) -> Option<Mode> {
        [Mode::Production, Mode::Debug].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// The input of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent input of the rule")]
pub struct RunState {
    /// Whether the bundle is enabled.
    pub bundle_enabled: bool,
    /// Whether the tool is enabled.
    pub tool_enabled: bool,
    /// Whether the definition is ready to run.
    pub ready: bool,
    /// The status of the tool.
    pub status: Status,
    /// The call policy.
    pub policy: Policy,
    /// Whether it has a published revision.
    pub published: bool,
    /// Whether it is deprecated and its removal date has passed.
    pub removed: bool,
}

/// Why a tool may not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotRunnable {
    /// The bundle is disabled.
    BundleDisabled,
    /// The tool is disabled.
    ToolDisabled,
    /// The status is `disabled`.
    StatusDisabled,
    /// The definition is not ready to run.
    NotReady,
    /// The policy is `deny`.
    PolicyDenied,
    /// Production mode, and nothing is published.
    NotPublished,
    /// It is deprecated, and its removal date has passed.
    Removed,
}

impl NotRunnable {
    /// Returns the error for the caller; `detail` is the fault of a tool that is not ready, or why it was removed.
    pub fn to_error(self, tool: &str, detail: Option<&str>) -> CallError {
        let (code, message) = match self {
            NotRunnable::BundleDisabled => {
                (ErrorCode::Disabled, format!("`{tool}` is unavailable: its bundle is disabled"))
            }
            NotRunnable::ToolDisabled => (ErrorCode::Disabled, format!("`{tool}` is disabled")),
            NotRunnable::StatusDisabled => {
                (ErrorCode::Disabled, format!("`{tool}` has the status `disabled`"))
            }
            NotRunnable::PolicyDenied => {
                (ErrorCode::PolicyDenied, format!("calls of `{tool}` are denied by its policy"))
            }
            NotRunnable::NotPublished => (
                ErrorCode::NotPublished,
                format!("`{tool}` has no published revision, and production mode runs nothing else"),
            ),
            NotRunnable::Removed => {
                (ErrorCode::Removed, format!("`{tool}` {}", detail.unwrap_or("was removed")))
            }
            NotRunnable::NotReady => {
                let reason = detail.unwrap_or("its definition is invalid");
                return CallError::new(ErrorCode::NotReady, format!("`{tool}` is not ready: {reason}"))
                    .for_model(format!("`{tool}` is not ready"));
            }
        };
        CallError::new(code, message)
    }
}

/// Allows a call if the bundle and the tool are enabled, the tool is ready, its status is not `disabled`, its policy is
/// not `deny`, its removal date has not passed, and it has a published revision or the mode is debug.
pub const fn runnable(state: RunState, mode: Mode) -> Result<(), NotRunnable> {
    if !state.bundle_enabled {
        return Err(NotRunnable::BundleDisabled);
    }
    if !state.tool_enabled {
        return Err(NotRunnable::ToolDisabled);
    }
    if matches!(state.status, Status::Disabled) {
        return Err(NotRunnable::StatusDisabled);
    }
    if state.removed {
        return Err(NotRunnable::Removed);
    }
    if matches!(state.policy, Policy::Deny) {
        return Err(NotRunnable::PolicyDenied);
    }
    if matches!(mode, Mode::Production) && !state.published {
        return Err(NotRunnable::NotPublished);
    }
    if !state.ready {
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
                    for (mode, removed) in [
                        (Mode::Production, false),
                        (Mode::Debug, false),
                        (Mode::Production, true),
                        (Mode::Debug, true),
                    ] {
                        let state = RunState {
                            bundle_enabled,
                            tool_enabled,
                            ready,
                            status,
                            policy,
                            published,
                            removed,
                        };
                        let expected = bundle_enabled
                            && tool_enabled
                            && ready
                            && status != Status::Disabled
                            && policy != Policy::Deny
                            && !removed
                            && (mode == Mode::Debug || published);
                        assert_eq!(runnable(state, mode).is_ok(), expected, "{state:?} {mode:?}");
                        rows += 1;
                    }
                }
            }
        }
        assert_eq!(rows, 16 * 4 * 3 * 4);
    }

    #[test]
    fn reasons_are_reported_in_order() {
        let state = RunState {
            bundle_enabled: false,
            tool_enabled: false,
            ready: false,
            status: Status::Disabled,
            policy: Policy::Deny,
            published: false,
            removed: false,
        };
        assert_eq!(runnable(state, Mode::Production), Err(NotRunnable::BundleDisabled));
        assert_eq!(
            runnable(
                RunState {
                    bundle_enabled: true,
                    tool_enabled: true,
                    status: Status::Draft,
                    policy: Policy::Allow,
                    ..state
                },
                Mode::Production
            ),
            Err(NotRunnable::NotPublished)
        );
    }
}
