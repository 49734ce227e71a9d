//! `haft policy`.

use serde_json::json;

use crate::harness::{Haft, Run};

const RULES: &str = "\
rules:
  # A second person checks large payments.
  - name: large-payments
    match:
      tools: [pay]
      roles: [caller]
    when: has(args.amount) && args.amount > 100
    effect: approve
    reason: ask Finance
    examples:
      - {tool: pay, args: {amount: 250}, expect: match}
      - {tool: pay, args: {amount: 5}, expect: no_match}
";

const PAY: &str = "\
name: pay
description: Pays
implementation: {type: exec, argv: [echo, '{{amount}}']}
input_schema: {type: object, properties: {amount: {type: integer}}}
";

fn ok(run: &Run) -> String {
    assert_eq!(run.code, 0, "{}", run.shown());
    run.shown()
}

#[test]
fn rules_are_tested_set_shown_and_explained() {
    let haft = Haft::new();
    let _server = haft.serve(&[]);
    let pay = haft.write("pay.yaml", PAY);
    ok(&haft.run(&["tool", "add", &pay]));
    let file = haft.write("policy.yaml", RULES);
    insta::assert_snapshot!(ok(&haft.run(&["policy", "show"])), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    there are no rules: the settings of each tool apply
    ");
    insta::assert_snapshot!(ok(&haft.run(&["policy", "test", &file])), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    1 rule with 2 examples passed; nothing was stored
    ");
    assert_eq!(haft.json(&["policy", "show"]), json!({"rules": []}));
    insta::assert_snapshot!(ok(&haft.run(&["policy", "set", &file])), @r"
    exit code: 0
    ----- stdout
    ----- stderr
    stored 1 rule with 2 examples
    ");
    insta::assert_snapshot!(ok(&haft.run(&["policy", "show"])), @r"
    exit code: 0
    ----- stdout
    NAME            EFFECT   MATCH                      WHEN                                   EXAMPLES
    large-payments  approve  roles: caller; tools: pay  has(args.amount) && args.amount > 100  2
    ----- stderr
    ");
    let explain = ["policy", "explain", "pay", "-a", "amount=250", "--as-role", "caller"];
    insta::assert_snapshot!(ok(&haft.run(&explain)), @r"
    exit code: 0
    ----- stdout
    approve: decided by `large-payments`
    reason: ask Finance

    RULE                 EFFECT   MATCHED  WHY
    built-in:role        deny     no       the role `caller` may call tools
    built-in:allow-list  deny     no       the token has no allow-list
    built-in:state       deny     no       the tool can run in debug mode
    large-payments       approve  yes      `match` matches and `when` is true
    built-in:tool        approve  no       the tool itself requires no approval
    ----- stderr
    ");
    let small = haft.json(&["policy", "explain", "pay", "-a", "amount=5", "--as-role", "caller"]);
    assert_eq!(small.pointer("/effect"), Some(&json!("allow")), "{small}");

    // What is printed as JSON can be set again.
    let shown = haft.json(&["policy", "show"]).to_string();
    let again = haft.run_with(&["policy", "set", "-"], &shown);
    ok(&again);
    let platform = haft.write("platform.json", r#"{"rules": [{"name": "no", "effect": "deny"}]}"#);
    ok(&haft.run(&["policy", "set", &platform, "--platform"]));
    let denied = haft.json(&explain);
    assert_eq!(denied.pointer("/rule"), Some(&json!("platform:no")), "{denied}");
}

#[test]
fn invalid_rules_are_rejected_with_their_lines_also_without_a_server() {
    let haft = Haft::new();
    let wrong = haft.write("wrong.yaml", &RULES.replace("expect: no_match", "expect: match"));
    insta::assert_snapshot!(haft.run(&["policy", "set", &wrong]).shown(), @r"
    exit code: 8
    ----- stdout
    ----- stderr
    error: line 12, column 9: `rules[0].examples[1]`: rule `large-payments`, example 2: expected `match`, got `no_match`: `when` is false
    ");
    let wrong = haft.write("wrong.yaml", &RULES.replace("tools:", "tols:").replace("effect:", "efect:"));
    let shown = haft.run(&["policy", "test", &wrong]).shown();
    for expected in [
        "exit code: 8",
        "error: 3 problems:",
        "line 5, column 7: `rules[0].match.tols`: unknown field; did you mean `tools`?",
        "line 8, column 5: `rules[0].efect`: unknown field; did you mean `effect`?",
        "`rules[0].effect`: missing `effect`",
    ] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    let missing = haft.run(&["policy", "explain", "pya"]);
    assert_ne!(missing.code, 0, "{}", missing.shown());
}
