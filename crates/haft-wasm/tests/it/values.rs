//! Every value of every type comes back as it went in.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::harness::{Tool, echo, executor, run};

/// A type of the component model.
#[derive(Debug, Clone)]
enum Ty {
    Plain(&'static str),
    List(Box<Ty>),
    Option(Box<Ty>),
    Tuple(Vec<Ty>),
    Record(Vec<Ty>),
    Variant(Vec<Option<Ty>>),
    Result(Option<Box<Ty>>, Option<Box<Ty>>),
    Enum(usize),
    Flags(usize),
}

const PLAIN: [&str; 13] =
    ["bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "float32", "float64", "char", "string"];

fn any_type() -> impl Strategy<Value = Ty> {
    let leaf = prop_oneof![
        4 => proptest::sample::select(&PLAIN).prop_map(Ty::Plain),
        1 => (1..40_usize).prop_map(Ty::Enum),
        1 => (1..32_usize).prop_map(Ty::Flags),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed.clone().prop_map(Ty::List),
            boxed.clone().prop_map(Ty::Option),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Ty::Tuple),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Ty::Record),
            proptest::collection::vec(proptest::option::of(inner), 1..4).prop_map(Ty::Variant),
            (proptest::option::of(boxed.clone()), proptest::option::of(boxed))
                .prop_map(|(ok, err)| Ty::Result(ok, err)),
        ]
    })
}

/// Writes a type; those that need a name are defined and exported first.
fn write(ty: &Ty, definitions: &mut Vec<String>) -> String {
    let mut named = |definition: String| {
        let number = definitions.len();
        definitions.push(format!(
            "(type $d{number} {definition}) (export $t{number} \"type-{number}\" (type $d{number}))"
        ));
        format!("$t{number}")
    };
    let labels = |count: usize, word: &str| {
        (0..count).map(|n| format!("\"{word}-{n}\"")).collect::<Vec<_>>().join(" ")
    };
    match ty {
        Ty::Plain(name) => (*name).to_owned(),
        Ty::Enum(count) => named(format!("(enum {})", labels(*count, "name"))),
        Ty::Flags(count) => named(format!("(flags {})", labels(*count, "flag"))),
        Ty::List(inner) => format!("(list {})", write(inner, definitions)),
        Ty::Option(inner) => format!("(option {})", write(inner, definitions)),
        Ty::Tuple(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| write(part, definitions)).collect();
            format!("(tuple {})", parts.join(" "))
        }
        Ty::Record(parts) => {
            let fields: Vec<_> = parts
                .iter()
                .enumerate()
                .map(|(n, part)| format!("(field \"field-{n}\" {})", write(part, definitions)))
                .collect();
            let number = definitions.len();
            definitions.push(format!(
                "(type $d{number} (record {})) (export $t{number} \"type-{number}\" (type $d{number}))",
                fields.join(" ")
            ));
            format!("$t{number}")
        }
        Ty::Variant(parts) => {
            let cases: Vec<_> = parts
                .iter()
                .enumerate()
                .map(|(n, part)| {
                    let payload = part.as_ref().map(|part| write(part, definitions)).unwrap_or_default();
                    format!("(case \"case-{n}\" {payload})")
                })
                .collect();
            let number = definitions.len();
            definitions.push(format!(
                "(type $d{number} (variant {})) (export $t{number} \"type-{number}\" (type $d{number}))",
                cases.join(" ")
            ));
            format!("$t{number}")
        }
        Ty::Result(ok, err) => {
            let ok = ok.as_ref().map(|ok| write(ok, definitions)).unwrap_or_default();
            let err =
                err.as_ref().map(|err| format!("(error {})", write(err, definitions))).unwrap_or_default();
            format!("(result {ok} {err})")
        }
    }
}

/// Every JSON value of a type, in the spelling in which it comes back.
fn values(ty: &Ty) -> BoxedStrategy<Value> {
    match ty {
        Ty::Plain(name) => plain(name),
        Ty::Enum(count) => (0..*count).prop_map(|n| json!(format!("name-{n}"))).boxed(),
        Ty::Flags(count) => {
            let names: Vec<_> = (0..*count).map(|n| format!("flag-{n}")).collect();
            proptest::sample::subsequence(names, 0..=*count).prop_map(|set| json!(set)).boxed()
        }
        Ty::List(inner) => proptest::collection::vec(values(inner), 0..4).prop_map(Value::Array).boxed(),
        Ty::Option(inner) => {
            let nested = matches!(**inner, Ty::Option(_));
            let some = values(inner).prop_map(move |some| if nested { json!({"some": some}) } else { some });
            prop_oneof![Just(Value::Null), some].boxed()
        }
        Ty::Tuple(parts) => parts.iter().map(values).collect::<Vec<_>>().prop_map(Value::Array).boxed(),
        Ty::Record(parts) => parts
            .iter()
            .map(values)
            .collect::<Vec<_>>()
            .prop_map(|parts| {
                let fields = parts.into_iter().enumerate().map(|(n, value)| (format!("field-{n}"), value));
                Value::Object(fields.collect::<Map<_, _>>())
            })
            .boxed(),
        Ty::Variant(parts) => {
            let cases: Vec<_> = parts
                .iter()
                .enumerate()
                .map(|(n, part)| tagged(format!("case-{n}"), part.as_ref()))
                .collect();
            proptest::strategy::Union::new(cases).boxed()
        }
        Ty::Result(ok, err) => {
            prop_oneof![tagged("ok".to_owned(), ok.as_deref()), tagged("err".to_owned(), err.as_deref())]
                .boxed()
        }
    }
}

fn tagged(name: String, payload: Option<&Ty>) -> BoxedStrategy<Value> {
    match payload {
        None => Just(Value::String(name)).boxed(),
        Some(ty) => values(ty).prop_map(move |value| json!({ name.clone(): value })).boxed(),
    }
}

fn plain(name: &str) -> BoxedStrategy<Value> {
    let special = |finite: BoxedStrategy<Value>| {
        prop_oneof![8 => finite, 1 => Just(json!("NaN")), 1 => Just(json!("Infinity")), 1 => Just(json!("-Infinity"))]
            .boxed()
    };
    match name {
        "bool" => any::<bool>().prop_map(Value::from).boxed(),
        "s8" => any::<i8>().prop_map(Value::from).boxed(),
        "u8" => any::<u8>().prop_map(Value::from).boxed(),
        "s16" => any::<i16>().prop_map(Value::from).boxed(),
        "u16" => any::<u16>().prop_map(Value::from).boxed(),
        "s32" => any::<i32>().prop_map(Value::from).boxed(),
        "u32" => any::<u32>().prop_map(Value::from).boxed(),
        "s64" => any::<i64>().prop_map(Value::from).boxed(),
        "u64" => any::<u64>().prop_map(Value::from).boxed(),
        "float32" => special(
            any::<f32>()
                .prop_filter("finite", |n| n.is_finite())
                .prop_map(|n| json!(n.to_string().parse::<f64>().unwrap()))
                .boxed(),
        ),
        "float64" => {
            special(any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| json!(n)).boxed())
        }
        "char" => any::<char>().prop_map(|c| json!(c.to_string())).boxed(),
        _ => any::<String>().prop_map(Value::from).boxed(),
    }
}

#[test]
fn what_goes_in_comes_out() {
    let executor = executor();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cases = any_type().prop_flat_map(|ty| {
        let list = proptest::collection::vec(values(&ty), 0..6);
        (Just(ty), list)
    });
    // Each case compiles a component.
    proptest!(ProptestConfig::with_cases(150), |((ty, list) in cases)| {
        let mut definitions = Vec::new();
        let element = write(&ty, &mut definitions);
        let wat = echo("echo", &definitions.join("\n"), &format!("(list {element})"));
        let prepared = Tool::of(&wat).on(&executor).prepare().unwrap();
        let outcome = runtime.block_on(run(&*prepared, json!({"x": list})));
        prop_assert_eq!(outcome, Ok(Value::Array(list)));
    });
}
