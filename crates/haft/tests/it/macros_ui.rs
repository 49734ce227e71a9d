//! Compiler errors of functions that cannot be tools.

/// Compiles two files: one with errors of the attribute, one with compiler errors in the generated code.
#[test]
#[cfg_attr(
    any(feature = "server", feature = "wasm"),
    ignore = "the compiler output depends on the features; `make test` runs this test without them"
)]
fn compiler_errors() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
