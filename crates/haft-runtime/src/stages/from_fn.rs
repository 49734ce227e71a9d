//! Stages from async functions.

use haft_core::BoxFuture;
use haft_core::outcome::Outcome;

use crate::pipeline::Call;
use crate::stages::{Next, Stage};

/// Creates a stage from an async function of a call and the next stages.
///
/// ```
/// use haft_runtime::pipeline::Call;
/// use haft_runtime::stages::{Next, from_fn};
///
/// let stage = from_fn(async |call: &mut Call, next: Next<'_>| {
///     let outcome = next.run(call).await;
///     println!("{} {}", call.tool(), if outcome.is_ok() { "ran" } else { "failed" });
///     outcome
/// });
/// # fn takes(_: impl haft_runtime::stages::Stage) {}
/// # takes(stage);
/// ```
///
/// The argument types must be written out. A closure must not capture anything: see [`from_fn_with`].
pub fn from_fn<F>(function: F) -> FromFn<F>
where
    F: for<'a> StageFn<'a> + Send + Sync,
{
    FromFn(function)
}

/// Creates a stage from an async function with a state.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use haft_runtime::pipeline::Call;
/// use haft_runtime::stages::{Next, from_fn_with};
///
/// let stage = from_fn_with(AtomicU64::new(0), async |count: &AtomicU64, call: &mut Call, next: Next<'_>| {
///     count.fetch_add(1, Ordering::Relaxed);
///     next.run(call).await
/// });
/// # fn takes(_: impl haft_runtime::stages::Stage) {}
/// # takes(stage);
/// ```
pub fn from_fn_with<S, F>(state: S, function: F) -> FromFnWith<S, F>
where
    S: Send + Sync + 'static,
    F: for<'a> StageFnWith<'a, S> + Send + Sync,
{
    FromFnWith(state, function)
}

/// The stage that [`from_fn`] returns.
#[derive(Clone, Copy)]
pub struct FromFn<F>(F);

/// The stage that [`from_fn_with`] returns.
#[derive(Clone, Copy)]
pub struct FromFnWith<S, F>(S, F);

/// An async function that can be a stage.
pub trait StageFn<'a>: Fn(&'a mut Call, Next<'a>) -> Self::Running {
    /// The future that it returns.
    type Running: Future<Output = Outcome> + Send + 'a;
}

impl<'a, F, R> StageFn<'a> for F
where
    F: Fn(&'a mut Call, Next<'a>) -> R,
    R: Future<Output = Outcome> + Send + 'a,
{
    type Running = R;
}

/// An async function with a state that can be a stage.
pub trait StageFnWith<'a, S: 'a>: Fn(&'a S, &'a mut Call, Next<'a>) -> Self::Running {
    /// The future that it returns.
    type Running: Future<Output = Outcome> + Send + 'a;
}

impl<'a, S: 'a, F, R> StageFnWith<'a, S> for F
where
    F: Fn(&'a S, &'a mut Call, Next<'a>) -> R,
    R: Future<Output = Outcome> + Send + 'a,
{
    type Running = R;
}

impl<F> Stage for FromFn<F>
where
    F: for<'a> StageFn<'a> + Send + Sync,
{
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin((self.0)(call, next))
    }
}

impl<S, F> Stage for FromFnWith<S, F>
where
    S: Send + Sync + 'static,
    F: for<'a> StageFnWith<'a, S> + Send + Sync,
{
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin((self.1)(&self.0, call, next))
    }
}
