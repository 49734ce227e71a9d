//! Errors of the attribute `#[tool]`.
#![allow(unused_variables, reason = "only the errors matter")]

use haft::{Args, Context, tool};

#[tool]
fn undescribed() {}

/// Has an unknown option.
#[tool(cached)]
fn option() {}

/// Has an invalid timeout.
#[tool(timeout = "soon")]
fn timeout() {}

/// Has an invalid name.
#[tool(name = "a b")]
fn named() {}

/// Is generic.
#[tool]
fn generic<T>(value: T) {}

/// Has a lifetime.
#[tool]
fn lifetime<'a>(text: &'a str) {}

/// Takes `impl Trait`.
#[tool]
fn many(value: impl Into<String>) {}

/// Destructures a parameter.
#[tool]
fn pattern((left, right): (u8, u8)) {}

/// Takes a mutable reference.
#[tool]
fn change(text: &mut String) {}

/// Takes a static reference.
#[tool]
fn forever(text: Option<&'static str>) {}

/// Is unsafe.
#[tool]
unsafe fn not_safe() {}

/// Is extern.
#[tool]
extern "C" fn for_c() {}

/// Is const.
#[tool]
const fn constant() {}

/// Has an unknown option of an argument.
#[tool]
fn argument(#[arg(min = 1)] number: u8) {}

/// Has a default outside its range.
#[tool]
fn range(#[arg(range = 1..=50, default = 100)] limit: u8) {}

/// Has a further argument besides all arguments.
#[tool]
fn more(context: &Context, all: Args<String>, more: u8) {}

/// Returns a future.
#[tool]
fn future() -> impl Future<Output = u8> {
    async { 1 }
}

/// Is not a function.
#[tool]
struct NoFunction;

fn main() {
    // The rejected function and its type exist, so that their uses cause no further errors.
    undescribed();
    let _ = undescribed::tool();
}
