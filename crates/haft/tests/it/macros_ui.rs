//! What the compiler says of functions that cannot be tools.

/// Two files, as each is a program of its own to compile: what the attribute says, and what the compiler says of the
/// code that the attribute writes.
#[test]
#[cfg_attr(
    any(feature = "server", feature = "wasm"),
    ignore = "what the compiler lists depends on the features: `make test` runs it without them"
)]
fn errors_point_at_the_place_and_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
