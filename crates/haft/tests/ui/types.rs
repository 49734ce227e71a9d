//! What the compiler says of types that do not fit.
#![allow(unused_variables, reason = "only the errors matter")]

use std::rc::Rc;

use haft::{Args, tool};

struct Opaque;

#[derive(serde::Deserialize)]
struct WithoutSchema;

/// Takes what cannot be read.
#[tool]
fn not_read(value: Opaque) {}

/// Takes what has no schema.
#[tool]
fn no_schema(value: WithoutSchema) {}

/// Takes what cannot be all arguments.
#[tool]
fn not_all(args: Args<Opaque>) {}

/// Returns what cannot be written.
#[tool]
async fn not_written() -> Opaque {
    Opaque
}

/// Fails with what cannot be told.
#[tool]
fn not_told() -> Result<u8, Opaque> {
    Err(Opaque)
}

/// Cannot move between threads.
#[tool]
async fn one_thread() -> u8 {
    let value = Rc::new(1);
    std::future::ready(()).await;
    *value
}

fn main() {}
