//! So many calls in a time, of all tools, of each tool, or of each caller.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use tokio::sync::Semaphore;

use crate::clock;
use crate::limits::rate_limited;
use crate::pipeline::Call;
use crate::rate::{Rate, Window};
use crate::stages::{Next, Stage, StageError};

/// How many keys are counted at a time where nothing else is said.
const MAX_KEYS: usize = 10_000;

/// Lets through so many calls in a time. What is too much is refused with `rate_limited` and a `retry_after`, or waits
/// where [`RateLimit::waiting`] says so.
///
/// The bound holds in every stretch of the time of the rate, for calls of this process.
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
/// let expected = "`RateLimit`: a rate of 0 calls would let no call through; use 1 or more, or leave the tool out of the set";
/// assert_eq!(error.as_deref(), Some(expected));
/// # Ok(())
/// # }
/// ```
pub struct RateLimit {
    scope: Scope,
    keys: Mutex<Keys>,
    most_keys: usize,
    /// How many calls of one key may wait.
    most_waiting: usize,
}

type KeyOf = Box<dyn Fn(&Call) -> String + Send + Sync>;

enum Scope {
    All(Rate),
    EachTool(Rate),
    /// By name, with or without the bundle.
    Tools(HashMap<String, Rate>),
    Keyed(Rate, KeyOf),
}

#[derive(Default)]
struct Keys {
    counts: HashMap<String, Arc<Count>>,
    /// When keys that count nothing were last looked for.
    swept: Option<Instant>,
}

struct Count {
    rate: Rate,
    window: Window,
    /// Whose turn it is to wait for room; the others wait in a row.
    turn: Semaphore,
    waiting: AtomicUsize,
}

impl RateLimit {
    /// Bounds all calls together.
    pub fn global(rate: Rate) -> Result<Self, StageError> {
        Ok(Self::with(Scope::All(rate.checked()?)))
    }

    /// Bounds the calls of each tool, all with the same rate.
    pub fn each_tool(rate: Rate) -> Result<Self, StageError> {
        Ok(Self::with(Scope::EachTool(rate.checked()?)))
    }

    /// Bounds the calls of some tools, named as `name` or `bundle:name`; others are not bounded.
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

    /// Bounds the calls of each key, such as a caller, a tenant or an argument.
    pub fn keyed(
        rate: Rate,
        key: impl Fn(&Call) -> String + Send + Sync + 'static,
    ) -> Result<Self, StageError> {
        Ok(Self::with(Scope::Keyed(rate.checked()?, Box::new(key))))
    }

    fn with(scope: Scope) -> Self {
        Self { scope, keys: Mutex::default(), most_keys: MAX_KEYS, most_waiting: 0 }
    }

    /// Lets calls wait for room, in the order in which they came, instead of refusing them: at most so many of one
    /// key, and none beyond its deadline.
    #[must_use]
    pub fn waiting(mut self, most: usize) -> Self {
        self.most_waiting = most;
        self
    }

    /// Sets how many keys are counted at a time. A call with one more is refused: to forget a key that still counts
    /// would let through more than was allowed.
    #[must_use]
    pub fn max_keys(mut self, most: usize) -> Self {
        self.most_keys = most.max(1);
        self
    }

    fn count(&self, call: &Call) -> Result<Option<Arc<Count>>, CallError> {
        let (rate, key) = match &self.scope {
            Scope::All(rate) => (*rate, String::new()),
            Scope::EachTool(rate) => (*rate, of_tool(call)),
            Scope::Tools(rates) => match rate_of(rates, call) {
                Some(rate) => (rate, of_tool(call)),
                None => return Ok(None),
            },
            Scope::Keyed(rate, key) => (*rate, key(call)),
        };
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = keys.counts.get(&key) {
            return Ok(Some(Arc::clone(count)));
        }
        keys.make_room(self.most_keys)?;
        let count =
            Count { rate, window: Window::default(), turn: Semaphore::new(1), waiting: AtomicUsize::new(0) };
        Ok(Some(Arc::clone(keys.counts.entry(key).or_insert(Arc::new(count)))))
    }

    /// Names what is bounded, for the text of a refusal.
    fn name<'a>(&self, call: &'a Call) -> &'a str {
        match &self.scope {
            Scope::All(_) => "all tools together",
            Scope::EachTool(_) | Scope::Tools(_) => &call.entry().qualified,
            // The key is the program's own and may be a secret.
            Scope::Keyed(..) => "each caller",
        }
    }
}

/// The same tool in two versions, or under the same name in two bundles, is two tools.
fn of_tool(call: &Call) -> String {
    call.entry().qualified.to_string()
}

fn rate_of(rates: &HashMap<String, Rate>, call: &Call) -> Option<Rate> {
    let bundled = || format!("{}:{}", call.entry().tool.bundle, call.tool());
    rates.get(call.tool()).or_else(|| rates.get(&bundled())).copied()
}

impl Keys {
    fn make_room(&mut self, most: usize) -> Result<(), CallError> {
        if self.counts.len() < most {
            return Ok(());
        }
        let now = clock::now();
        // Not with every call: it looks at all keys.
        if self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= Duration::from_millis(100)) {
            self.swept = Some(now);
            self.counts
                .retain(|_, count| Arc::strong_count(count) > 1 || !count.window.is_empty(count.rate, now));
        }
        if self.counts.len() < most {
            return Ok(());
        }
        let message = format!("the rates of {most} others are being counted; try again later");
        Err(CallError::new(ErrorCode::Overloaded, message))
    }
}

impl Count {
    async fn take(&self, name: &str, deadline: Instant, most: usize) -> Result<(), CallError> {
        let refuse = |wait| rate_limited(name, self.rate, wait);
        // Nobody overtakes those who wait.
        if most == 0 || self.waiting.load(Ordering::Acquire) == 0 {
            match self.window.take(self.rate, clock::now()) {
                Err(wait) if most == 0 => return Err(refuse(wait)),
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
        }
        let _waiting = Waiting::enter(&self.waiting, most).ok_or_else(|| refuse(self.rate.period()))?;
        let turn = tokio::time::timeout_at(deadline.into(), self.turn.acquire()).await;
        let _turn = turn.map_err(|_| refuse(self.rate.period()))?;
        while let Err(wait) = self.window.take(self.rate, clock::now()) {
            // Waiting past the deadline would only replace a clear error by a vague one.
            if clock::now() + wait >= deadline {
                return Err(refuse(wait));
            }
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        // The guard comes first: dropping it takes the count back.
        let guard = Self(count);
        (count.fetch_add(1, Ordering::AcqRel) < most).then_some(guard)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Stage for RateLimit {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if let Some(count) = self.count(call)? {
                let taken = count.take(self.name(call), call.deadline(), self.most_waiting).await;
                taken.map_err(|error| call.entry().for_model(error))?;
            }
            next.run(call).await
        })
    }
}
