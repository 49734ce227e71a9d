//! What `#[tool]` itself refuses.
#![allow(unused_variables, reason = "only the errors matter")]

use haft::{Args, Context, tool};

#[tool]
fn undescribed() {}

/// Has an option that is none.
#[tool(cached)]
fn option() {}

/// Takes too long.
#[tool(timeout = "soon")]
fn timeout() {}

/// Has a name that is none.
#[tool(name = "a b")]
fn named() {}

/// Is generic.
#[tool]
fn generic<T>(value: T) {}

/// Has a lifetime.
#[tool]
fn lifetime<'a>(text: &'a str) {}

/// Takes many types.
#[tool]
fn many(value: impl Into<String>) {}

/// Takes something apart.
#[tool]
fn pattern((left, right): (u8, u8)) {}

/// Changes its argument.
#[tool]
fn change(text: &mut String) {}

/// Keeps its argument for ever.
#[tool]
fn forever(text: Option<&'static str>) {}

/// Is not safe.
#[tool]
unsafe fn not_safe() {}

/// Is for C.
#[tool]
extern "C" fn for_c() {}

/// Is known when the program is compiled.
#[tool]
const fn constant() {}

/// Has an option of an argument that is none.
#[tool]
fn argument(#[arg(min = 1)] number: u8) {}

/// Has a default that is out of its range.
#[tool]
fn range(#[arg(range = 1..=50, default = 100)] limit: u8) {}

/// Has more than all arguments.
#[tool]
fn more(context: &Context, all: Args<String>, more: u8) {}

/// Is a future by hand.
#[tool]
fn future() -> impl Future<Output = u8> {
    async { 1 }
}

/// Is no function.
#[tool]
struct NoFunction;

fn main() {
    // What was refused is there all the same, so that no error follows of it.
    undescribed();
    let _ = undescribed::tool();
}
