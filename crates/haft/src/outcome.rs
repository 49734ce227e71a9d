//! Converts the return value of a function into the outcome of a call.

use std::any::Any;
use std::error::Error;
use std::fmt;

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use serde::Serialize;
use serde_json::Value;

/// A return type of a tool: a value, or a `Result` of one.
///
/// Return your own types as `Result<T, E>` or as [`Json<T>`](Json).
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "this function returns `{Self}`",
    note = "wrap it as `haft::Json(value)`, or return a `Result` of it"
)]
pub trait IntoOutcome {
    /// Converts the value into an outcome.
    fn into_outcome(self) -> Outcome;
}

impl<T: Serialize, E: fmt::Display + 'static> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        self.map_err(call_error).and_then(|value| to_value(&value))
    }
}

/// A return value of any serializable type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoOutcome for Json<T> {
    fn into_outcome(self) -> Outcome {
        to_value(&self.0)
    }
}

impl<T: Serialize> IntoOutcome for Vec<T> {
    fn into_outcome(self) -> Outcome {
        to_value(&self)
    }
}

impl<T: Serialize> IntoOutcome for Option<T> {
    fn into_outcome(self) -> Outcome {
        to_value(&self)
    }
}

macro_rules! into_outcome {
    ($($ty:ty)+) => {
        $(impl IntoOutcome for $ty {
            fn into_outcome(self) -> Outcome {
                Ok(Value::from(self))
            }
        })+
    };
}

into_outcome! { String &str bool i8 i16 i32 i64 u8 u16 u32 u64 isize usize f64 }

impl IntoOutcome for f32 {
    fn into_outcome(self) -> Outcome {
        to_value(&self)
    }
}

impl IntoOutcome for Value {
    fn into_outcome(self) -> Outcome {
        Ok(self)
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Ok(Value::Null)
    }
}

/// The error of a tool, which can be marked as retryable.
///
/// `?` converts every [`std::error::Error`] into a `Failure`; [`Failure::from_error`] converts `anyhow::Error` and
/// boxed errors. The model reads the error and its causes.
///
/// ```
/// use haft::Failure;
///
/// fn read_count(text: &str) -> Result<u32, Failure> {
///     let count: u32 = text.trim().parse()?;
///     if count == 0 {
///         return Err(Failure::new("the counter is not ready").retryable());
///     }
///     Ok(count)
/// }
///
/// assert_eq!(read_count("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert!(read_count("0").unwrap_err().is_retryable());
/// ```
pub struct Failure(CallError);

impl Failure {
    /// Creates a failure with this message.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(CallError::new(ErrorCode::ExecutionFailed, message.to_string()))
    }

    /// Converts an error that does not implement [`std::error::Error`] itself, such as `anyhow::Error` or
    /// `Box<dyn Error + …>`, with its causes.
    ///
    /// ```
    /// use haft::Failure;
    ///
    /// fn count(text: &str) -> Result<u32, Failure> {
    ///     let read = || -> Result<u32, Box<dyn std::error::Error + Send + Sync>> { Ok(text.parse()?) };
    ///     read().map_err(Failure::from_error)
    /// }
    /// assert_eq!(count("x").unwrap_err().to_string(), "invalid digit found in string");
    /// ```
    pub fn from_error(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        match error.downcast_ref::<CallError>() {
            Some(call) => Self(call.clone()),
            None => Self::new(with_causes(error.as_ref())),
        }
    }

    /// Marks the failure as temporary, so that haft retries the call.
    #[must_use]
    pub fn retryable(self) -> Self {
        Self(self.0.retryable(true))
    }

    /// Sets the text that the model reads instead of the message.
    #[must_use]
    pub fn for_model(self, text: impl Into<String>) -> Self {
        Self(self.0.for_model(text))
    }

    /// Returns whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }
}

// `Failure` does not implement `Error`: the conversion below would then overlap with `From<T> for T`.
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

fn call_error<E: fmt::Display + 'static>(error: E) -> CallError {
    let any: &dyn Any = &error;
    if let Some(Failure(call)) = any.downcast_ref() {
        return call.clone();
    }
    if let Some(call) = any.downcast_ref::<CallError>() {
        return call.clone();
    }
    // The alternate form of some error types, such as `anyhow::Error`, includes the causes.
    CallError::new(ErrorCode::ExecutionFailed, format!("{error:#}"))
}

pub(crate) fn to_value(value: &impl Serialize) -> Outcome {
    let json = serde_json::to_value(value).map_err(|error| {
        CallError::new(ErrorCode::InvalidOutput, format!("cannot serialize the value as JSON: {error}"))
            .for_model("the tool returned an unexpected result")
    })?;
    if !may_contain_f32(&json) {
        return Ok(json);
    }
    // Through a string: there an `f32` keeps its short form, and no other number changes.
    let text = serde_json::to_string(value);
    Ok(text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(json))
}

/// Returns whether the value contains a number that may be a widened `f32`, with more digits than the original.
fn may_contain_f32(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(is_widened),
        Value::Array(items) => items.iter().any(may_contain_f32),
        Value::Object(map) => map.values().any(may_contain_f32),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "tests whether the number fits an `f32` exactly"
)]
fn is_widened(number: f64) -> bool {
    let narrow = number as f32;
    f64::from(narrow) == number && narrow.to_string().parse::<f64>().is_ok_and(|short| short != number)
}

/// The return value of a `#[tool]` function. Method resolution picks [`ResultKind`] for a `Result` and [`ValueKind`]
/// for everything else. The bounds are on the converters, so that a `Result` with an unsuitable error type is a
/// compile error and not treated as a value.
#[doc(hidden)]
pub struct ReturnValue<T>(pub T);

/// Selects the converter for a `Result`.
#[doc(hidden)]
pub trait ResultKind {
    /// Returns the converter.
    fn converter(&self) -> ResultConverter {
        ResultConverter
    }
}

impl<T, E> ResultKind for ReturnValue<Result<T, E>> {}

/// Selects the converter for any other value.
#[doc(hidden)]
pub trait ValueKind {
    /// Returns the converter.
    fn converter(&self) -> ValueConverter {
        ValueConverter
    }
}

// The extra reference makes method resolution try this implementation second.
impl<T> ValueKind for &ReturnValue<T> {}

/// Converts a `Result` into an outcome.
#[doc(hidden)]
pub struct ResultConverter;

impl ResultConverter {
    /// Converts the result.
    pub fn outcome<T: Serialize, E: fmt::Display + 'static>(self, result: Result<T, E>) -> Outcome {
        result.into_outcome()
    }
}

/// Converts a value into an outcome.
#[doc(hidden)]
pub struct ValueConverter;

impl ValueConverter {
    /// Converts the value.
    pub fn outcome<T: Serialize>(self, value: T) -> Outcome {
        to_value(&value)
    }
}
