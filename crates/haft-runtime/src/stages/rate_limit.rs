//! A stage that limits the rate of calls: of all tools, of each tool, or of each key.

use std::collections::HashMap;

use haft_core::BoxFuture;
use haft_core::limit::LimitName;
use haft_core::outcome::{CallError, ErrorCode, Outcome};

use crate::pipeline::Call;
use crate::rate::{KeyedRateLimit, Rate, RateRejection};
use crate::stages::{Next, Stage, StageError};

/// The default number of keys that are counted at a time.
const MAX_KEYS: usize = 10_000;

/// Limits the rate of calls. Excess calls are rejected with `rate_limited` and a `retry_after`, or wait if
/// [`RateLimit::waiting`] is set.
///
/// The limit holds in every interval of the length of the period, for the calls of this process.
///
/// ```
/// use std::time::Duration;
/// use haft_runtime::rate::Rate;
/// use haft_runtime::stages::RateLimit;
///
/// # fn main() -> Result<(), haft_runtime::stages::StageError> {
/// let tools = RateLimit::per_tool([
///     ("web_search", Rate::every(Duration::from_secs(1))),
///     ("send_email", Rate::per_minute(6).burst(2)),
/// ])?;
/// let callers = RateLimit::keyed(Rate::per_second(5), |call| call.caller().to_owned())?.waiting(100);
/// # drop((tools, callers));
/// let error = RateLimit::global(Rate::per_second(0)).err().map(|error| error.to_string());
/// let expected = "`RateLimit`: a rate of 0 calls rejects every call; use 1 or more, or leave the tool out of the set";
/// assert_eq!(error.as_deref(), Some(expected));
/// # Ok(())
/// # }
/// ```
pub struct RateLimit {
    scope: Scope,
    limit: KeyedRateLimit,
}

type KeyFn = Box<dyn Fn(&Call) -> String + Send + Sync>;

enum Scope {
    All(Rate),
    EachTool(Rate),
    /// By name, with or without the bundle.
    Tools(HashMap<String, Rate>),
    Keyed(Rate, KeyFn),
}

impl RateLimit {
    /// Limits all calls together.
    pub fn global(rate: Rate) -> Result<Self, StageError> {
        Ok(Self::with(Scope::All(rate.checked()?)))
    }

    /// Limits the calls of each tool, all with the same rate.
    pub fn each_tool(rate: Rate) -> Result<Self, StageError> {
        Ok(Self::with(Scope::EachTool(rate.checked()?)))
    }

    /// Limits the calls of some tools, named as `name` or `bundle:name`; other tools are not limited.
    pub fn per_tool<N: Into<String>>(rates: impl IntoIterator<Item = (N, Rate)>) -> Result<Self, StageError> {
        let mut tools = HashMap::new();
        for (name, rate) in rates {
            let tool = name.into();
            match rate.checked() {
                Ok(rate) => drop(tools.insert(tool, rate)),
                Err(error) => return Err(StageError::RateOfTool { tool, error }),
            }
        }
        Ok(Self::with(Scope::Tools(tools)))
    }

    /// Limits the calls of each key, such as a caller, a tenant or an argument.
    pub fn keyed(
        rate: Rate,
        key: impl Fn(&Call) -> String + Send + Sync + 'static,
    ) -> Result<Self, StageError> {
        Ok(Self::with(Scope::Keyed(rate.checked()?, Box::new(key))))
    }

    fn with(scope: Scope) -> Self {
        Self { scope, limit: KeyedRateLimit::new(MAX_KEYS) }
    }

    /// Queues excess calls instead of rejecting them: at most this many of one key, and none beyond its deadline.
    #[must_use]
    pub fn waiting(mut self, max: usize) -> Self {
        self.limit.max_queued = max;
        self
    }

    /// Sets how many keys are counted at a time. Calls of further keys are rejected.
    #[must_use]
    pub fn max_keys(mut self, max: usize) -> Self {
        self.limit.max_keys = max.max(1);
        self
    }

    /// Returns the rate and the key of a call, or `None` if it is not limited.
    fn rate_and_key(&self, call: &Call) -> Option<(Rate, String)> {
        // The same tool in two versions, or in two bundles, is two tools.
        let tool = || call.entry().qualified.to_string();
        match &self.scope {
            Scope::All(rate) => Some((*rate, String::new())),
            Scope::EachTool(rate) => Some((*rate, tool())),
            Scope::Tools(rates) => {
                let bundled = || format!("{}:{}", call.entry().tool.bundle, call.tool());
                let rate = rates.get(call.tool()).or_else(|| rates.get(&bundled()))?;
                Some((*rate, tool()))
            }
            Scope::Keyed(rate, key) => Some((*rate, key(call))),
        }
    }

    fn error(&self, call: &Call, rate: Rate, rejection: RateRejection) -> CallError {
        let wait = match rejection {
            RateRejection::Exceeded(wait) => wait,
            RateRejection::TooManyKeys => {
                let message = format!(
                    "rate limit: {} keys are in use, which is the maximum; retry later",
                    self.limit.max_keys
                );
                return CallError::new(ErrorCode::Overloaded, message);
            }
        };
        match &self.scope {
            Scope::All(_) => rate.exceeded(LimitName::StageRate, "all tools", wait),
            Scope::EachTool(_) | Scope::Tools(_) => call
                .entry()
                .named_error(|tool| rate.exceeded(LimitName::StageRate, &format!("`{tool}`"), wait)),
            // The key is not shown: it may be a secret.
            Scope::Keyed(..) => rate.exceeded(LimitName::StageRate, "this caller", wait),
        }
    }
}

impl Stage for RateLimit {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if let Some((rate, key)) = self.rate_and_key(call) {
                let acquired = self.limit.acquire(key, rate, call.deadline()).await;
                acquired.map_err(|rejection| self.error(call, rate, rejection))?;
            }
            next.run(call).await
        })
    }
}
