//! Compiler errors of unsuitable types.
#![allow(unused_variables, reason = "only the errors matter")]

use std::num::Saturating;
use std::rc::Rc;

use haft::{Args, tool};

struct Opaque;

/// Takes a type without `Deserialize`.
#[tool]
fn not_read(value: Opaque) {}

/// Takes a type that can be read, but has no schema.
#[tool]
fn no_schema(value: Saturating<u8>) {}

/// Takes all arguments as a type without `Deserialize`.
#[tool]
fn not_all(args: Args<Opaque>) {}

/// Returns a type without `Serialize`.
#[tool]
async fn not_written() -> Opaque {
    Opaque
}

/// Fails with a type without `Display`.
#[tool]
fn not_told() -> Result<u8, Opaque> {
    Err(Opaque)
}

/// Is not `Send`.
#[tool]
async fn one_thread() -> u8 {
    let value = Rc::new(1);
    std::future::ready(()).await;
    *value
}

fn main() {}
