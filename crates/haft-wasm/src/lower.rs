//! Converts JSON arguments to component values.

use std::fmt;

use haft_core::problem::excerpt;
use serde_json::{Map, Number, Value};
use wasmtime::component::Val;

use crate::shape::{Case, Field, Shape, quoted, same_name};

/// A value that does not match its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The location, such as `.points[3].x`.
    path: String,
    message: String,
}

impl Mismatch {
    fn new(message: impl Into<String>) -> Self {
        Self { path: String::new(), message: message.into() }
    }

    /// Prepends a part to the location; called from the inside out.
    fn within(mut self, part: &dyn fmt::Display) -> Self {
        self.path.insert_str(0, &part.to_string());
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "`{}`: {}", self.path.trim_start_matches('.'), self.message)
    }
}

/// Converts the arguments of a call, in the order of the parameters. Other arguments are ignored.
pub(crate) fn arguments(params: &[Field], args: &Map<String, Value>) -> Result<Vec<Val>, Mismatch> {
    params.iter().map(|param| field(param, args)).collect()
}

/// Converts one value.
pub(crate) fn value(shape: &Shape, json: &Value) -> Result<Val, Mismatch> {
    Ok(match shape {
        Shape::Bool => Val::Bool(json.as_bool().ok_or_else(|| expected("a boolean", json))?),
        Shape::S8 => Val::S8(integer(json, "s8", i8::MIN, i8::MAX)?),
        Shape::U8 => Val::U8(integer(json, "u8", u8::MIN, u8::MAX)?),
        Shape::S16 => Val::S16(integer(json, "s16", i16::MIN, i16::MAX)?),
        Shape::U16 => Val::U16(integer(json, "u16", u16::MIN, u16::MAX)?),
        Shape::S32 => Val::S32(integer(json, "s32", i32::MIN, i32::MAX)?),
        Shape::U32 => Val::U32(integer(json, "u32", u32::MIN, u32::MAX)?),
        Shape::S64 => Val::S64(integer(json, "s64", i64::MIN, i64::MAX)?),
        Shape::U64 => Val::U64(integer(json, "u64", u64::MIN, u64::MAX)?),
        Shape::F32 => Val::Float32(float32(json)?),
        Shape::F64 => Val::Float64(float(json)?),
        Shape::Char => Val::Char(character(json)?),
        Shape::String => Val::String(text(json, "a string")?.to_owned()),
        Shape::List(item) => Val::List(items(item, array(json)?)?),
        Shape::Fixed(item, length) => {
            let list = array(json)?;
            counted(list, *length)?;
            Val::FixedLengthList(items(item, list)?)
        }
        Shape::Record(fields) => Val::Record(record(fields, json)?),
        Shape::Tuple(shapes) => Val::Tuple(tuple(shapes, array(json)?)?),
        Shape::Variant(cases) => variant(cases, json)?,
        Shape::Enum(names) => Val::Enum(name_of(names, json)?.to_owned()),
        Shape::Option(inner) => Val::Option(option(inner, json)?),
        Shape::Result(ok, err) => result(ok.as_deref(), err.as_deref(), json)?,
        Shape::Flags(names) => Val::Flags(flags(names, array(json)?)?),
    })
}

fn field(field: &Field, object: &Map<String, Value>) -> Result<Val, Mismatch> {
    let found = object
        .get(&field.name)
        .or_else(|| object.iter().find(|(key, _)| same_name(&field.name, key)).map(|(_, value)| value));
    let within = |error: Mismatch| error.within(&format_args!(".{}", field.name));
    match found {
        Some(json) => value(&field.shape, json).map_err(within),
        None if field.shape.optional() => Ok(Val::Option(None)),
        None => Err(within(Mismatch::new(format!("missing; expected {}", type_text(&field.shape))))),
    }
}

fn record(fields: &[Field], json: &Value) -> Result<Vec<(String, Val)>, Mismatch> {
    let object = json.as_object().ok_or_else(|| expected("an object", json))?;
    let unknown = object.keys().find(|key| !fields.iter().any(|field| same_name(&field.name, key)));
    if let Some(key) = unknown {
        let names = quoted(fields.iter().map(|field| field.name.as_str()));
        return Err(Mismatch::new(format!("unknown field `{}`; expected one of {names}", excerpt(key, 40))));
    }
    fields.iter().map(|part| Ok((part.name.clone(), field(part, object)?))).collect()
}

fn items(item: &Shape, list: &[Value]) -> Result<Vec<Val>, Mismatch> {
    let at = |(index, json)| value(item, json).map_err(|error| error.within(&format_args!("[{index}]")));
    list.iter().enumerate().map(at).collect()
}

fn tuple(shapes: &[Shape], list: &[Value]) -> Result<Vec<Val>, Mismatch> {
    counted(list, shapes.len())?;
    let at = |(index, (shape, json))| {
        value(shape, json).map_err(|error: Mismatch| error.within(&format_args!("[{index}]")))
    };
    shapes.iter().zip(list).enumerate().map(at).collect()
}

fn counted(list: &[Value], length: usize) -> Result<(), Mismatch> {
    if list.len() == length {
        return Ok(());
    }
    Err(Mismatch::new(format!("expected an array of {length}, found {} items", list.len())))
}

/// `null` is none. If the inner type is also optional, some is written `{"some": …}`.
fn option(inner: &Shape, json: &Value) -> Result<Option<Box<Val>>, Mismatch> {
    if json.is_null() {
        return Ok(None);
    }
    if !inner.optional() {
        return value(inner, json).map(|some| Some(Box::new(some)));
    }
    match single(json) {
        Some(("some", some)) => {
            let some = value(inner, some).map_err(|error| error.within(&".some"))?;
            Ok(Some(Box::new(some)))
        }
        _ => Err(expected("`null` or `{\"some\": …}`", json)),
    }
}

/// A case without a payload is its name, one with a payload is `{"name": payload}`.
fn variant(cases: &[Case], json: &Value) -> Result<Val, Mismatch> {
    let (name, payload) = match (json.as_str(), single(json)) {
        (Some(name), _) => (name, None),
        (None, Some((name, payload))) => (name, Some(payload)),
        _ => return Err(expected("the name of a case, or an object of one case", json)),
    };
    let Some(case) = cases.iter().find(|case| same_name(&case.name, name)) else {
        let names = quoted(cases.iter().map(|case| case.name.as_str()));
        return Err(Mismatch::new(format!("unknown case `{}`; expected one of {names}", excerpt(name, 40))));
    };
    let within = |error: Mismatch| error.within(&format_args!(".{}", case.name));
    let payload = payload_of(case.shape.as_ref(), payload).map_err(within)?;
    Ok(Val::Variant(case.name.clone(), payload))
}

fn result(ok: Option<&Shape>, err: Option<&Shape>, json: &Value) -> Result<Val, Mismatch> {
    let (name, payload) = match (json.as_str(), single(json)) {
        (Some(name), _) => (name, None),
        (None, Some((name, payload))) => (name, Some(payload)),
        _ => ("", None),
    };
    match name {
        "ok" => Ok(Val::Result(Ok(payload_of(ok, payload).map_err(|error| error.within(&".ok"))?))),
        "err" => Ok(Val::Result(Err(payload_of(err, payload).map_err(|error| error.within(&".err"))?))),
        _ => Err(expected("`{\"ok\": …}` or `{\"err\": …}`", json)),
    }
}

fn payload_of(shape: Option<&Shape>, json: Option<&Value>) -> Result<Option<Box<Val>>, Mismatch> {
    match (shape, json) {
        (None, None | Some(Value::Null)) => Ok(None),
        (None, Some(_)) => Err(Mismatch::new("takes no value; use the name alone")),
        (Some(shape), Some(json)) => value(shape, json).map(|payload| Some(Box::new(payload))),
        (Some(shape), None) if shape.optional() => Ok(Some(Box::new(Val::Option(None)))),
        (Some(shape), None) => Err(Mismatch::new(format!("needs a value; expected {}", type_text(shape)))),
    }
}

/// Flags are the array of those that are set.
fn flags(names: &[String], list: &[Value]) -> Result<Vec<String>, Mismatch> {
    let mut set: Vec<String> = Vec::new();
    for (index, json) in list.iter().enumerate() {
        let name =
            name_of(names, json).map_err(|error: Mismatch| error.within(&format_args!("[{index}]")))?;
        if !set.iter().any(|earlier| earlier == name) {
            set.push(name.to_owned());
        }
    }
    Ok(set)
}

fn name_of<'a>(names: &'a [String], json: &Value) -> Result<&'a str, Mismatch> {
    let text = text(json, "a name")?;
    let found = names.iter().find(|name| same_name(name, text));
    found.map(String::as_str).ok_or_else(|| {
        let names = quoted(names.iter().map(String::as_str));
        Mismatch::new(format!("expected one of {names}, found `{}`", excerpt(text, 40)))
    })
}

fn single(json: &Value) -> Option<(&str, &Value)> {
    let object = json.as_object().filter(|object| object.len() == 1)?;
    object.iter().next().map(|(key, value)| (key.as_str(), value))
}

fn integer<T>(json: &Value, name: &str, least: T, most: T) -> Result<T, Mismatch>
where
    T: TryFrom<i128> + fmt::Display + Copy,
{
    let whole = json.as_number().and_then(whole);
    whole
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| expected(&format!("an integer from {least} to {most} (`{name}`)"), json))
}

/// As in JSON Schema, `3.0` is the integer 3.
fn whole(number: &Number) -> Option<i128> {
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    let number = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e20)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and far within the range")]
    Some(number as i128)
}

/// JSON has no NaN and infinities; they are written as strings.
fn float(json: &Value) -> Result<f64, Mismatch> {
    match json {
        Value::Number(number) => number.as_f64().ok_or_else(|| expected("a number", json)),
        Value::String(text) => match text.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(expected("a number", json)),
        },
        _ => Err(expected("a number", json)),
    }
}

fn float32(json: &Value) -> Result<f32, Mismatch> {
    let wide = float(json)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fewer digits are what `f32` means; the range is checked"
    )]
    let narrow = wide as f32;
    if wide.is_finite() && narrow.is_infinite() {
        return Err(expected("a number in the range of `f32`", json));
    }
    Ok(narrow)
}

fn character(json: &Value) -> Result<char, Mismatch> {
    let mut characters = text(json, "a string of one character")?.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Ok(character),
        _ => Err(expected("a string of one character", json)),
    }
}

fn text<'a>(json: &'a Value, what: &str) -> Result<&'a str, Mismatch> {
    json.as_str().ok_or_else(|| expected(what, json))
}

fn array(json: &Value) -> Result<&[Value], Mismatch> {
    json.as_array().map(Vec::as_slice).ok_or_else(|| expected("an array", json))
}

fn type_text(shape: &Shape) -> String {
    format!("`{}`", excerpt(&shape.to_string(), 120))
}

fn expected(what: &str, found: &Value) -> Mismatch {
    let found = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the string \"{}\"", excerpt(text, 40)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Mismatch::new(format!("expected {what}, found {found}"))
}
