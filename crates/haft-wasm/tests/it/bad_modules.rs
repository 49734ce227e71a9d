//! What is not a module, or not one that can be a tool: said when the tool is saved.

use haft_core::implementation::Implementation;

use crate::harness::{Tool, command, component, executor};

fn check(tool: &Tool) -> String {
    tool.problems().join("\n")
}

#[test]
fn bytes_that_are_no_module_are_refused() {
    let whole = wat::parse_str(component("", "")).unwrap();
    insta::assert_snapshot!(check(&Tool::of_bytes(b"")), @r"`implementation.base64`: not a WebAssembly binary: it does not start with `\0asm` (empty) (invalid_module)");
    insta::assert_snapshot!(check(&Tool::of_bytes(b"hello")), @r"`implementation.base64`: not a WebAssembly binary: it does not start with `\0asm` (invalid_module)");
    insta::assert_snapshot!(check(&Tool::of_bytes(b" (module)")), @r"`implementation.base64`: not a WebAssembly binary: it does not start with `\0asm` (text format; convert it with `wasm-tools parse`) (invalid_module)");
    insta::assert_snapshot!(check(&Tool::of_bytes(b"\x7fELF\x02\x01")), @r"`implementation.base64`: not a WebAssembly binary: it does not start with `\0asm` (native executable; build it for `wasm32-wasip2`) (invalid_module)");
    insta::assert_snapshot!(check(&Tool::of_bytes(b"\0asm\x09\0\0\0")), @"`implementation.base64`: damaged or truncated at byte 4: unknown binary version:        0x9 (invalid_module)");
    insta::assert_snapshot!(check(&Tool::of_bytes(&whole[..40])), @"`implementation.base64`: damaged or truncated at byte 40: unexpected end-of-file (invalid_module)");
    let mut wrong = Tool::of_bytes(b"");
    if let Implementation::Wasm(wasm) = &mut wrong.spec.implementation {
        wasm.base64 = Some("AGFz*bQ".to_owned());
    }
    insta::assert_snapshot!(check(&wrong), @"`implementation.base64`: not valid base64: Invalid symbol 42, offset 4. (invalid_module)");
}

#[test]
fn every_cut_of_a_module_is_an_error_and_never_a_crash() {
    let executor = executor();
    let whole = wat::parse_str(command("", "", "(call $exit (i32.const 0))")).unwrap();
    let accepted = (0..whole.len())
        .filter(|length| Tool::of_bytes(&whole[..*length]).on(&executor).problems().is_empty())
        .count();
    // Without its last section, which holds the names of functions, it is whole too.
    assert_eq!(accepted, 1);
    for place in 8..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 0xff;
        // Either way: what matters is that it comes back.
        let _ = Tool::of_bytes(&changed).on(&executor).problems();
    }
}

#[test]
fn code_that_is_not_valid_is_refused() {
    let invalid = "(module (func (export \"_start\") (i32.add (i32.const 1))))";
    insta::assert_snapshot!(check(&Tool::of(invalid)), @"`implementation.base64`: invalid module: failed to compile: wasm[0]::function[0]: WebAssembly translation error: Invalid input WebAssembly code at offset 37: type mismatch: expected i32 but nothing on stack (invalid_module)");
}

#[test]
fn modules_that_are_no_command_are_refused() {
    insta::assert_snapshot!(check(&Tool::of("(module)")), @"`implementation.function`: not a WASI command: the core module exports no function `_start` without arguments; it exports nothing (unknown_function)");
    insta::assert_snapshot!(check(&Tool::of("(module (func (export \"_start\") (param i32)))")), @"`implementation.function`: not a WASI command: the core module exports no function `_start` without arguments; it exports `_start` (unknown_function)");
    insta::assert_snapshot!(check(&Tool::of("(module (func (export \"_start\")))").function("add")), @"`implementation.function`: cannot call `add`: a core module runs as a WASI command (`_start`); build a component for typed functions, or remove `function` (unknown_function)");
}

#[test]
fn imports_that_nobody_offers_are_refused() {
    let module = r#"(module (import "env" "system" (func (param i32))) (func (export "_start")))"#;
    insta::assert_snapshot!(check(&Tool::of(module)), @"`implementation`: unsupported import: unknown import: `env::system` has not been defined (unknown_import)");
    let component = r#"(component (import "test:host/shell" (instance (export "run" (func)))) (core module $m (func (export "f"))) (core instance $i (instantiate $m)) (func (export "run") (canon lift (core func $i "f"))))"#;
    insta::assert_snapshot!(check(&Tool::of(component)), @"`implementation`: unsupported import: component imports instance `test:host/shell`, but a matching implementation was not found in the linker: instance export `run` has the wrong type: function implementation is missing (unknown_import)");
}

#[test]
fn limits_are_checked_before_compilation() {
    let long = format!("(module (func (export \"_start\") {}))", "(drop (i32.const 1))".repeat(200_000));
    insta::assert_snapshot!(check(&Tool::of(&long)), @"`implementation.base64`: function size limit (524288 bytes) exceeded: 600002 bytes (invalid_module)");
    let mut deep = String::new();
    for _ in 0..12 {
        deep.push_str("(component ");
    }
    deep.push_str(&")".repeat(12));
    insta::assert_snapshot!(check(&Tool::of(&deep)), @"`implementation.base64`: component nesting limit (8) exceeded (invalid_module)");
}
