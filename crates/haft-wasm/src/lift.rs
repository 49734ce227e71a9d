//! Converts component values to JSON, in the notation that [`crate::lower`] reads.

use serde_json::{Map, Number, Value, json};
use wasmtime::component::Val;

use crate::shape::Shape;

/// Converts a value. `shape` is needed for nested options.
pub(crate) fn value(shape: &Shape, val: Val) -> Value {
    match (shape, val) {
        (_, Val::Bool(value)) => value.into(),
        (_, Val::S8(value)) => value.into(),
        (_, Val::U8(value)) => value.into(),
        (_, Val::S16(value)) => value.into(),
        (_, Val::U16(value)) => value.into(),
        (_, Val::S32(value)) => value.into(),
        (_, Val::U32(value)) => value.into(),
        (_, Val::S64(value)) => value.into(),
        (_, Val::U64(value)) => value.into(),
        (_, Val::Float32(value)) => float32(value),
        (_, Val::Float64(value)) => float(value),
        (_, Val::Char(value)) => Value::String(value.into()),
        (_, Val::String(value) | Val::Enum(value)) => Value::String(value),
        (Shape::List(item) | Shape::Fixed(item, _), Val::List(list) | Val::FixedLengthList(list)) => {
            list.into_iter().map(|val| value(item, val)).collect()
        }
        (Shape::Tuple(shapes), Val::Tuple(list)) => {
            shapes.iter().zip(list).map(|(shape, val)| value(shape, val)).collect()
        }
        (Shape::Record(fields), Val::Record(list)) => {
            let object: Map<_, _> = fields
                .iter()
                .zip(list)
                .map(|(field, (name, val))| (name, value(&field.shape, val)))
                .collect();
            Value::Object(object)
        }
        (Shape::Variant(cases), Val::Variant(name, payload)) => {
            let shape = cases.iter().find(|case| case.name == name).and_then(|case| case.shape.as_ref());
            tagged(name, shape, payload)
        }
        (Shape::Option(inner), Val::Option(Some(some))) if inner.optional() => {
            json!({"some": value(inner, *some)})
        }
        (Shape::Option(inner), Val::Option(Some(some))) => value(inner, *some),
        (Shape::Result(ok, _), Val::Result(Ok(payload))) => tagged("ok".to_owned(), ok.as_deref(), payload),
        (Shape::Result(_, err), Val::Result(Err(payload))) => {
            tagged("err".to_owned(), err.as_deref(), payload)
        }
        (_, Val::Flags(names)) => names.into(),
        // None of an option. Besides, wasmtime gives values of the function's own type, and no type that JSON lacks comes this far.
        _ => Value::Null,
    }
}

fn tagged(name: String, shape: Option<&Shape>, payload: Option<Box<Val>>) -> Value {
    match (shape, payload) {
        (Some(shape), Some(payload)) => Value::Object(Map::from_iter([(name, value(shape, *payload))])),
        _ => Value::String(name),
    }
}

/// Spells an `f32` with its own digits: widened, 0.1 would show as 0.10000000149011612.
fn float32(number: f32) -> Value {
    match number.to_string().parse::<f64>() {
        Ok(shortest) if number.is_finite() => float(shortest),
        _ => float(number.into()),
    }
}

fn float(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => "NaN".into(),
        None if number > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}
