//! What a function may return, and how it becomes the outcome of a call.

use std::any::Any;
use std::error::Error;
use std::fmt;

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use serde::Serialize;
use serde_json::Value;

/// What a function may return: a value, or a `Result` of one.
///
/// A type of your own goes through `Result<T, E>` or [`Json`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a tool may return",
    label = "this function returns `{Self}`",
    note = "wrap a value of your own: `haft::Json(value)`, or return a `Result` of it"
)]
pub trait Answer {
    /// Makes the outcome of it.
    fn outcome(self) -> Outcome;
}

impl<T: Serialize, E: fmt::Display + 'static> Answer for Result<T, E> {
    fn outcome(self) -> Outcome {
        self.map_err(failed).and_then(|value| to_value(&value))
    }
}

/// Any value that can be written as JSON, returned as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> Answer for Json<T> {
    fn outcome(self) -> Outcome {
        to_value(&self.0)
    }
}

impl<T: Serialize> Answer for Vec<T> {
    fn outcome(self) -> Outcome {
        to_value(&self)
    }
}

impl<T: Serialize> Answer for Option<T> {
    fn outcome(self) -> Outcome {
        to_value(&self)
    }
}

macro_rules! answers {
    ($($plain:ty)+) => {
        $(impl Answer for $plain {
            fn outcome(self) -> Outcome {
                Ok(Value::from(self))
            }
        })+
    };
}

answers! { String &str bool i8 i16 i32 i64 u8 u16 u32 u64 isize usize f64 }

impl Answer for f32 {
    fn outcome(self) -> Outcome {
        to_value(&self)
    }
}

impl Answer for Value {
    fn outcome(self) -> Outcome {
        Ok(self)
    }
}

impl Answer for () {
    fn outcome(self) -> Outcome {
        Ok(Value::Null)
    }
}

/// Why a function failed, of any error, with the choice of saying that a repetition may help.
///
/// `?` makes one of every [`std::error::Error`], and [`Failure::of`] of those that are none, such as `anyhow::Error` and
/// boxed ones; what the model reads is the error and its causes.
///
/// ```
/// use haft::Failure;
///
/// fn read_count(text: &str) -> Result<u32, Failure> {
///     let count: u32 = text.trim().parse()?;
///     if count == 0 {
///         return Err(Failure::new("nothing was counted yet").retryable());
///     }
///     Ok(count)
/// }
///
/// assert_eq!(read_count("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert!(read_count("0").unwrap_err().is_retryable());
/// ```
pub struct Failure(CallError);

impl Failure {
    /// Makes a failure with this text.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(CallError::new(ErrorCode::ExecutionFailed, message.to_string()))
    }

    /// Makes a failure of an error that is only kept in another one, such as `anyhow::Error` or `Box<dyn Error + …>`, with
    /// its causes.
    ///
    /// ```
    /// use haft::Failure;
    ///
    /// fn count(text: &str) -> Result<u32, Failure> {
    ///     let read = || -> Result<u32, Box<dyn std::error::Error + Send + Sync>> { Ok(text.parse()?) };
    ///     read().map_err(Failure::of)
    /// }
    /// assert_eq!(count("x").unwrap_err().to_string(), "invalid digit found in string");
    /// ```
    pub fn of(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        match error.downcast_ref::<CallError>() {
            Some(call) => Self(call.clone()),
            None => Self::new(with_causes(error.as_ref())),
        }
    }

    /// Says that the same call may succeed later, so that haft tries again.
    #[must_use]
    pub fn retryable(self) -> Self {
        Self(self.0.retryable(true))
    }

    /// Sets what the model reads instead of the message.
    #[must_use]
    pub fn for_model(self, text: impl Into<String>) -> Self {
        Self(self.0.for_model(text))
    }

    /// Tells whether a repetition may help.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }
}

// Not an `Error` itself, or the conversion below could not take every error.
impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        if let Some(call) = (&error as &dyn Any).downcast_ref::<CallError>() {
            return Self(call.clone());
        }
        Self::new(with_causes(&error))
    }
}

fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Many errors repeat their cause in their own text.
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = error.source();
    }
    message
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

fn failed<E: fmt::Display + 'static>(error: E) -> CallError {
    let any: &dyn Any = &error;
    if let Some(Failure(call)) = any.downcast_ref() {
        return call.clone();
    }
    if let Some(call) = any.downcast_ref::<CallError>() {
        return call.clone();
    }
    // The long form of some error types tells the causes too.
    CallError::new(ErrorCode::ExecutionFailed, format!("{error:#}"))
}

pub(crate) fn to_value(value: &impl Serialize) -> Outcome {
    let told = serde_json::to_value(value).map_err(|error| {
        CallError::new(ErrorCode::InvalidOutput, format!("the value cannot be written as JSON: {error}"))
            .for_model("the tool returned an unexpected result")
    })?;
    if !may_have_f32(&told) {
        return Ok(told);
    }
    // By way of a text: there an `f32` is as short as it was written, and no other number changes.
    let text = serde_json::to_string(value);
    Ok(text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(told))
}

/// Tells whether a number may have been an `f32` that has more digits now than it had.
fn may_have_f32(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(is_widened),
        Value::Array(items) => items.iter().any(may_have_f32),
        Value::Object(map) => map.values().any(may_have_f32),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::float_cmp, reason = "exactly what is asked")]
fn is_widened(number: f64) -> bool {
    let narrow = number as f32;
    f64::from(narrow) == number && narrow.to_string().parse::<f64>().is_ok_and(|short| short != number)
}

/// What a function returned, whatever it is. The compiler finds the first of the two kinds that fits; what a kind
/// asks of the type comes after, so that an error is told there and not taken for a value.
#[doc(hidden)]
pub struct Returned<T>(pub T);

/// What may fail.
#[doc(hidden)]
pub trait FailingKind {
    /// Returns how to make an outcome of it.
    fn kind(&self) -> Failing {
        Failing
    }
}

impl<T, E> FailingKind for Returned<Result<T, E>> {}

/// What cannot fail.
#[doc(hidden)]
pub trait PlainKind {
    /// Returns how to make an outcome of it.
    fn kind(&self) -> Plain {
        Plain
    }
}

// One reference more, so that the compiler looks here second.
impl<T> PlainKind for &Returned<T> {}

/// Makes outcomes of results.
#[doc(hidden)]
pub struct Failing;

impl Failing {
    /// Makes the outcome of a result.
    pub fn outcome<T: Serialize, E: fmt::Display + 'static>(self, result: Result<T, E>) -> Outcome {
        result.outcome()
    }
}

/// Makes outcomes of values.
#[doc(hidden)]
pub struct Plain;

impl Plain {
    /// Makes the outcome of a value.
    pub fn outcome<T: Serialize>(self, value: T) -> Outcome {
        to_value(&value)
    }
}
