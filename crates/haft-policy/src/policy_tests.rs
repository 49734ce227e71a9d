//! Decisions, lists, explanations and examples of whole rule sets.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::Timestamp;
use haft_core::callable::{CallableKind, CallableResource};
use haft_core::id::{BundleId, TokenId, ToolId};
use haft_core::name::{AgentSlug, BundleSlug, TenantId};
use haft_core::policy::{Decision, Effect, PolicyRules};
use haft_core::principal::Principal;
use haft_core::token::Role;
use haft_core::tool::{Source, Status, Tool, Usage};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{CallAncestors, Policy, PolicyHandle, PolicyRequest};

fn rules(value: Value) -> PolicyRules {
    PolicyRules::read(&[("rules".to_owned(), value)].into_iter().collect()).unwrap()
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

/// Compiles rules of the platform and of the tenant `acme`.
fn policy(platform: Value, acme: Value) -> Policy {
    Policy::compile(&rules(platform), &[(tenant("acme"), rules(acme))]).unwrap()
}

fn problems(acme: Value) -> String {
    let error = Policy::compile(&PolicyRules::default(), &[(tenant("acme"), rules(acme))]).err().unwrap();
    error.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn tool(bundle: &str, name: &str, tags: &[&str]) -> Tool {
    let spec = json!({
        "name": name, "version": "1.0.0", "description": "", "tags": tags,
        "implementation": {"type": "function", "function": "echo"},
    });
    Tool {
        id: ToolId(Uuid::nil()),
        tenant: tenant("acme"),
        bundle_id: BundleId(Uuid::nil()),
        bundle: BundleSlug::new(bundle).unwrap(),
        spec: Arc::new(serde_json::from_value(spec).unwrap()),
        revision: 1,
        published: None,
        status: Status::Draft,
        enabled: true,
        built_in: false,
        fault: None,
        source: Source::User,
        path: None,
        usage: Usage::default(),
        created_at: Timestamp::UNIX_EPOCH,
        modified_at: Timestamp::UNIX_EPOCH,
        published_at: None,
        lifecycle: haft_core::lifecycle::Lifecycle::default(),
    }
}

fn caller() -> Principal {
    Principal::new(tenant("acme"), "ci", Role::Caller)
}

fn decide(policy: &Policy, tool: &Tool, args: &Value) -> (Effect, Option<String>) {
    let principal = caller();
    let request = PolicyRequest {
        principal: &principal,
        subject: tool.into(),
        surface: "rest",
        agent: None,
        args,
        above: CallAncestors::default(),
    };
    let decision = policy.decide(&request);
    assert_eq!(policy.explain(&request).decision, decision, "an explanation says what happens");
    (decision.effect, decision.rule.map(|rule| rule.to_string()))
}

#[test]
fn deny_wins_then_approve_then_allow() {
    let policy = policy(
        json!([{"name": "no-exec", "match": {"tools": ["exec"]}, "effect": "deny"}]),
        json!([
            {"name": "all", "effect": "allow"},
            {"name": "ask", "match": {"tools": ["bank:*"]}, "effect": "approve"},
            {"name": "ask-again", "match": {"tools": ["pay"]}, "effect": "approve"},
            {"name": "exec-ok", "match": {"tools": ["exec"]}, "effect": "allow"},
            {"name": "never", "match": {"tools": ["tag:danger*"]}, "effect": "deny", "reason": "too risky"},
        ]),
    );
    for (tool, expected) in [
        (tool("web", "fetch", &[]), (Effect::Allow, "all")),
        (tool("bank", "pay", &[]), (Effect::Approve, "ask")),
        (tool("bank", "pay", &["dangerous"]), (Effect::Deny, "never")),
        (tool("shop", "pay", &[]), (Effect::Approve, "ask-again")),
        (tool("builtin", "exec", &[]), (Effect::Deny, "platform:no-exec")),
    ] {
        let (effect, rule) = decide(&policy, &tool, &json!({}));
        assert_eq!((effect, rule.as_deref()), (expected.0, Some(expected.1)), "{}", tool.qualified());
    }
    let empty = Policy::default();
    assert!(empty.is_empty() && !policy.is_empty());
    assert_eq!(decide(&empty, &tool("web", "fetch", &[]), &json!({})), (Effect::Allow, None));
}

#[test]
fn every_field_of_match_must_match() {
    let id: TokenId = "018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap();
    let principal = Principal { token: Some(id), ..caller() };
    let tool = tool("bank", "pay", &["money"]);
    let effect = |matching: Value, agent: Option<&str>| {
        let policy = policy(json!([{"name": "r", "match": matching, "effect": "deny"}]), json!([]));
        let request = PolicyRequest {
            principal: &principal,
            subject: (&tool).into(),
            surface: "mcp",
            agent,
            args: &Value::Null,
            above: CallAncestors::default(),
        };
        policy.decide(&request).effect == Effect::Deny
    };
    for (matching, expected) in [
        (json!({}), true),
        (
            json!({"tenants": ["ac*"], "roles": ["caller"], "tokens": ["ci"], "tools": ["pay"], "tags": ["mon*"], "surfaces": ["mcp"]}),
            true,
        ),
        (json!({"tenants": ["other"], "tools": ["pay"]}), false),
        (json!({"roles": ["admin", "editor"]}), false),
        (json!({"tokens": ["018faf50-*"]}), true),
        (json!({"tokens": ["other"]}), false),
        (json!({"tools": ["web:pay", "bank:payment"]}), false),
        (json!({"tools": ["*:p*y"]}), true),
        (json!({"tags": ["x"]}), false),
        (json!({"surfaces": ["rest"]}), false),
        (json!({"agents": ["*"]}), false),
    ] {
        assert_eq!(effect(matching.clone(), None), expected, "{matching}");
    }
    assert!(effect(json!({"agents": ["help*"]}), Some("helper")));
}

#[test]
fn a_condition_that_fails_does_not_let_a_call_pass() {
    let rule = |effect: &str| {
        policy(json!([]), json!([{"name": "r", "effect": effect, "when": "args.amount > 100"}]))
    };
    let pay = tool("bank", "pay", &[]);
    for (effect, expected) in [("deny", Effect::Deny), ("approve", Effect::Approve)] {
        let policy = rule(effect);
        for args in
            [json!({}), json!({"amount": "many"}), json!({"amount": 200}), json!({"x": "x".repeat(70_000)})]
        {
            assert_eq!(decide(&policy, &pay, &args), (expected, Some("r".to_owned())), "{args:.20}");
        }
        assert_eq!(decide(&policy, &pay, &json!({"amount": 1})), (Effect::Allow, None));
    }
    let allow = rule("allow");
    for args in [json!({}), json!({"amount": "many"}), json!({"x": "x".repeat(70_000)})] {
        assert_eq!(decide(&allow, &pay, &args), (Effect::Allow, None), "{args:.20}");
    }
    assert_eq!(decide(&allow, &pay, &json!({"amount": 200})), (Effect::Allow, Some("r".to_owned())));
    assert!(!Decision::no_match().is_explicit_allow());
}

#[test]
fn an_explanation_says_why_each_rule_matches_or_not() {
    let policy = policy(
        json!([{"name": "tenant", "match": {"tenants": ["secret-tenant"]}, "effect": "deny"}]),
        json!([
            {"name": "role", "match": {"roles": ["admin"]}, "effect": "deny"},
            {"name": "tool", "match": {"tools": ["web:*"]}, "effect": "deny"},
            {"name": "tag", "match": {"tags": ["web"]}, "effect": "deny"},
            {"name": "agent", "match": {"agents": ["*"]}, "effect": "deny"},
            {"name": "small", "when": "args.amount < 100", "effect": "allow"},
            {"name": "missing", "when": "args.currency == 'EUR'", "effect": "allow"},
            {"name": "large", "when": "args.amount >= 100", "effect": "approve"},
            {"name": "currency", "when": "args.currency == 'USD'", "effect": "approve"},
            {"name": "any", "effect": "allow"},
        ]),
    );
    let (principal, tool, args) = (caller(), tool("bank", "pay", &["money"]), json!({"amount": 500}));
    let request = PolicyRequest {
        principal: &principal,
        subject: (&tool).into(),
        surface: "rest",
        agent: None,
        args: &args,
        above: CallAncestors::default(),
    };
    let explained = policy.explain(&request);
    let lines: Vec<String> =
        explained.considered.iter().map(|one| format!("{} {}: {}", one.rule, one.matched, one.why)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
        platform:tenant false: `match.tenants` does not match the tenant `acme`
        role false: `match.roles` does not match the role `caller`
        tool false: `match.tools` does not match the tool `bank:pay`
        tag false: `match.tags` does not match the tags `money`
        agent false: `match.agents` does not match a call outside of an agent
        small false: `when` is false
        missing false: `when` failed: `currency` is missing; for effect `allow` this counts as no match
        large true: `match` matches and `when` is true
        currency true: `when` failed: `currency` is missing; for effect `approve` this counts as a match
        any true: `match` matches
        ");
    assert_eq!(
        (explained.decision.effect, explained.decision.rule.as_deref()),
        (Effect::Approve, Some("large"))
    );
}

#[test]
fn lists_hide_what_is_denied_whatever_the_arguments() {
    let (pay, read) = (tool("bank", "pay", &[]), tool("bank", "read", &[]));
    let check = |rule: Value| {
        let mut rule = rule;
        rule["name"] = json!("r");
        let policy = policy(json!([]), json!([rule]));
        [&pay, &read].map(|tool| policy.certain_denial(&caller(), tool, "rest", &[]).is_none())
    };
    for (rule, expected) in [
        (json!({"match": {"tools": ["pay"]}, "effect": "deny"}), [false, true]),
        (json!({"match": {"tools": ["pay"]}, "effect": "approve"}), [true, true]),
        (json!({"match": {"tools": ["pay"]}, "when": "args.amount > 1", "effect": "deny"}), [true, true]),
        (
            json!({"when": "tool.name == 'pay' && principal.role == 'caller'", "effect": "deny"}),
            [false, true],
        ),
        (json!({"when": "tool.nme == 'pay'", "effect": "deny"}), [false, false]),
        (json!({"match": {"agents": ["*"]}, "effect": "deny"}), [true, true]),
        (json!({"match": {"surfaces": ["mcp"]}, "effect": "deny"}), [true, true]),
        (json!({"effect": "deny"}), [false, false]),
    ] {
        assert_eq!(check(rule.clone()), expected, "{rule}");
    }
}

#[test]
fn a_rule_set_that_fails_its_examples_is_rejected_with_every_problem() {
    let failing = json!([
        {
            "name": "large", "match": {"tools": ["bank:pay"]}, "when": "args.amount > 100", "effect": "deny",
            "examples": [
                {"tool": "bank:pay", "args": {"amount": 200}, "expect": "match"},
                {"tool": "bank:pay", "args": {"amount": 5}, "expect": "match"},
                {"tool": "bank:pay", "expect": "no_match"},
                {"tool": "shop:pay", "args": {"amount": 200}, "expect": "match"},
            ],
        },
        {
            "name": "mine", "match": {"tenants": ["acme"], "roles": ["caller"], "surfaces": ["rest"]}, "effect": "allow",
            "examples": [
                {"tool": "x", "expect": "match"},
                {"tool": "x", "tenant": "other", "expect": "no_match"},
                {"tool": "x", "role": "admin", "expect": "no_match"},
                {"tool": "x", "surface": "mcp", "expect": "match"},
            ],
        },
    ]);
    insta::assert_snapshot!(problems(failing), @r"
        `rules[0].examples[1]`: rule `large`, example 2: expected `match`, got `no_match`: `when` is false
        `rules[0].examples[2]`: rule `large`, example 3: expected `no_match`, got `match`: `when` failed: `amount` is missing; for effect `deny` this counts as a match
        `rules[0].examples[3]`: rule `large`, example 4: expected `match`, got `no_match`: `match.tools` does not match the tool `shop:pay`
        `rules[1].examples[3]`: rule `mine`, example 4: expected `match`, got `no_match`: `match.surfaces` does not match the surface `mcp`
        ");
    let invalid = json!([
        {"name": "a", "when": "args.", "effect": "deny"},
        {"name": "b", "when": "args.x > 1", "effect": "deny"},
        {"name": "c", "when": "foo", "effect": "deny"},
    ]);
    insta::assert_snapshot!(problems(invalid), @r"
        `rules[0].when`: rule `a`: syntax error at line 1, column 6: unexpected `.`
        `rules[2].when`: rule `c`: unknown variable `foo`; expected `args`, `tool`, `principal`, `surface`
        ");
    let bad = rules(json!([{"name": "a", "when": "foo", "effect": "deny"}]));
    let error = Policy::compile(
        &PolicyRules::default(),
        &[(tenant("one"), PolicyRules::default()), (tenant("two"), bad)],
    );
    let error = error.err().unwrap().to_string();
    assert!(
        error.starts_with("invalid policy: `rules[0].when`: tenant `two`: rule `a`: unknown variable"),
        "{error}"
    );
}

#[test]
fn approvers_belong_to_a_rule() {
    let policy = policy(
        json!([{"name": "r", "effect": "approve", "approvers": {"roles": ["admin"]}}]),
        json!([{"name": "r", "effect": "approve", "approvers": {"tokens": ["boss"]}}, {"name": "s", "effect": "approve"}]),
    );
    let of = |rule: &str| policy.approvers(&tenant("acme"), rule).cloned();
    assert_eq!(of("r").unwrap().tokens, Some(vec!["boss".to_owned()]));
    assert_eq!(of("platform:r").unwrap().roles, Some(vec!["admin".to_owned()]));
    assert_eq!((of("s"), of("t")), (None, None));
}

#[test]
fn many_rules_about_other_tools_cost_little() {
    let rule = |number: usize| json!({"name": format!("r{number}"), "match": {"tools": [format!("tool-{number}")]}, "when": "args.x > 1", "effect": "deny"});
    let policy = policy(json!([]), (0..200).map(rule).collect());
    let (principal, tool, args) = (caller(), tool("bank", "pay", &[]), json!({}));
    let request = PolicyRequest {
        principal: &principal,
        subject: (&tool).into(),
        surface: "rest",
        agent: None,
        args: &args,
        above: CallAncestors::default(),
    };
    let start = Instant::now();
    for _ in 0..10_000 {
        assert_eq!(policy.decide(&request), Decision::no_match());
    }
    // Unoptimised and on a busy machine; each of them would take over 100 µs if all rules were looked at.
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
}

#[test]
fn a_handle_serves_the_newest_policy() {
    let handle = PolicyHandle::default();
    assert!(handle.load().is_empty());
    handle.replace(policy(json!([{"name": "r", "effect": "deny"}]), json!([])));
    assert!(!handle.load().is_empty());
    let pay = tool("bank", "pay", &[]);
    assert_eq!(decide(&handle.load(), &pay, &json!({})).0, Effect::Deny);
}

#[test]
fn rules_that_restrict_hold_for_what_is_done_on_behalf_of_others() {
    let slugs = |names: &[&str]| names.iter().map(|name| AgentSlug::new(name).unwrap()).collect::<Vec<_>>();
    let surfaces = |names: &[&'static str]| names.iter().map(|name| Cow::Borrowed(*name)).collect::<Vec<_>>();
    let (principal, pay) = (caller(), tool("bank", "pay", &[]));
    for (rule, surface, above, agents, restricted, allowed) in [
        // The direct caller.
        (json!({"surfaces": ["steps"]}), "steps", &["mcp"][..], &[][..], true, true),
        // The root, and what is between.
        (json!({"surfaces": ["mcp"]}), "steps", &["mcp"], &[], true, false),
        (json!({"surfaces": ["agent"]}), "steps", &["rest", "agent"], &[], true, false),
        (json!({"surfaces": ["mcp"]}), "steps", &["rest"], &[], false, false),
        (json!({"surfaces": ["mcp"]}), "mcp", &[], &[], true, true),
        // The command line is a client of the REST API.
        (json!({"surfaces": ["rest"]}), "steps", &["cli"], &[], true, false),
        (json!({"surfaces": ["rest"]}), "cli", &[], &[], true, true),
        // What a client says about itself restricts and never allows.
        (json!({"surfaces": ["cli"]}), "cli", &[], &[], true, false),
        (json!({"surfaces": ["cli"]}), "steps", &["cli"], &[], true, false),
        (json!({"surfaces": ["cli"]}), "rest", &[], &[], false, false),
        // Any agent of the chain; the last one is the one that calls.
        (json!({"agents": ["a"]}), "agent", &["rest"], &["a", "b"], true, false),
        (json!({"agents": ["b"]}), "agent", &["rest"], &["a", "b"], true, true),
        (json!({"agents": ["c"]}), "agent", &["rest"], &["a", "b"], false, false),
        // Every field must match, each somewhere in the chain.
        (json!({"agents": ["a"], "surfaces": ["rest"]}), "agent", &["rest"], &["a", "b"], true, false),
        (json!({"agents": ["a"], "surfaces": ["mcp"]}), "agent", &["rest"], &["a", "b"], false, false),
        (json!({"agents": ["a"], "tools": ["read"]}), "agent", &["rest"], &["a", "b"], false, false),
    ] {
        let (above, agents) = (surfaces(above), slugs(agents));
        let (agent, agents) =
            agents.split_last().map_or((None, &[][..]), |(last, above)| (Some(last), above));
        let request = PolicyRequest {
            principal: &principal,
            subject: (&pay).into(),
            surface,
            agent: agent.map(AgentSlug::as_str),
            args: &Value::Null,
            above: CallAncestors { surfaces: &above, agents },
        };
        for (effect, expected) in [("deny", restricted), ("approve", restricted), ("allow", allowed)] {
            let policy = policy(json!([]), json!([{"name": "r", "match": rule, "effect": effect}]));
            let decision = policy.decide(&request);
            assert_eq!(decision.rule.is_some(), expected, "{effect} {rule} {surface} {above:?} {agents:?}");
            assert_eq!(policy.explain(&request).decision, decision);
        }
    }
}

#[test]
fn a_condition_about_the_surface_sees_every_surface_above() {
    let above = [Cow::Borrowed("mcp")];
    let (principal, pay, args) = (caller(), tool("bank", "pay", &[]), json!({"amount": 5}));
    for (when, effect, expected) in [
        ("surface == 'mcp'", "deny", Effect::Deny),
        ("surface == 'mcp' && args.amount > 9", "deny", Effect::Allow),
        ("surface == 'ws'", "deny", Effect::Allow),
        ("surface == 'mcp'", "approve", Effect::Approve),
    ] {
        let policy = policy(json!([]), json!([{"name": "r", "when": when, "effect": effect}]));
        let above = CallAncestors { surfaces: &above, agents: &[] };
        let request = PolicyRequest {
            principal: &principal,
            subject: (&pay).into(),
            surface: "steps",
            agent: None,
            args: &args,
            above,
        };
        assert_eq!(policy.decide(&request).effect, expected, "{when}");
        let explained = policy.explain(&request);
        assert_eq!(explained.decision.effect, expected);
        if expected != Effect::Allow {
            let why = "`match` matches and `when` is true, for the surface `mcp` above the call";
            assert_eq!(explained.considered.first().unwrap().why, why);
        }
    }
}

#[test]
fn a_condition_sees_the_command_line_as_a_client_of_the_rest_api() {
    let (principal, pay, args) = (caller(), tool("bank", "pay", &[]), json!({}));
    for (when, effect, surface, expected) in [
        ("surface == 'rest'", "deny", "cli", true),
        ("surface != 'cli'", "deny", "cli", true),
        ("surface == 'cli'", "deny", "cli", true),
        ("surface == 'rest'", "approve", "cli", true),
        ("surface == 'cli'", "allow", "cli", false),
        ("surface == 'rest'", "allow", "cli", true),
        ("surface == 'cli'", "deny", "rest", false),
    ] {
        let example =
            json!({"tool": "pay", "surface": surface, "expect": if expected { "match" } else { "no_match" }});
        let rule = json!({"name": "r", "when": when, "effect": effect, "examples": [example]});
        let policy = policy(json!([]), json!([rule]));
        let request = PolicyRequest {
            principal: &principal,
            subject: (&pay).into(),
            surface,
            agent: None,
            args: &args,
            above: CallAncestors::default(),
        };
        assert_eq!(policy.decide(&request).rule.is_some(), expected, "{effect} {when} {surface}");
        assert_eq!(policy.explain(&request).decision, policy.decide(&request));
    }
}

#[test]
fn rules_match_agents_and_pipelines_by_their_qualified_names() {
    let resource =
        |kind, slug: &str| CallableResource { kind, id: Uuid::nil(), slug: slug.into(), revision: 1 };
    let planner = resource(CallableKind::Agent, "planner");
    let handbook = resource(CallableKind::Pipeline, "handbook");
    let (principal, args) = (caller(), json!({}));
    // Whether a rule with this effect matches the start of `planner` by an agent `boss`, and a query of `handbook`.
    for (matching, effect, agent, pipeline) in [
        (json!({"tools": ["agents:planner"]}), "deny", true, false),
        (json!({"tools": ["agents:*"]}), "approve", true, false),
        (json!({"tools": ["pipelines:hand*"]}), "deny", false, true),
        // The name of a tool is not that of an agent or a pipeline.
        (json!({"tools": ["planner", "handbook", "tag:*"]}), "deny", false, false),
        (json!({"tools": ["*"]}), "deny", true, true),
        (json!({"tags": ["*"]}), "deny", false, false),
        (json!({"surfaces": ["rest"]}), "deny", true, true),
        // Who calls.
        (json!({"agents": ["boss"]}), "deny", true, true),
        (json!({"agents": ["boss"]}), "approve", true, true),
        // An agent that may do nothing is not started; one whose calls need approval is.
        (json!({"agents": ["planner"]}), "deny", true, false),
        (json!({"agents": ["planner"]}), "approve", false, false),
        (json!({"agents": ["planner"], "tools": ["pay"]}), "deny", false, false),
        (json!({"agents": ["handbook"]}), "deny", false, false),
    ] {
        let policy = policy(json!([]), json!([{"name": "r", "match": matching, "effect": effect}]));
        for (resource, expected) in [(&planner, agent), (&handbook, pipeline)] {
            let request = PolicyRequest {
                principal: &principal,
                subject: resource.into(),
                surface: "rest",
                agent: Some("boss"),
                args: &args,
                above: CallAncestors::default(),
            };
            let decision = policy.decide(&request);
            assert_eq!(decision.rule.is_some(), expected, "{effect} {matching} {}", resource.qualified());
            assert_eq!(policy.explain(&request).decision, decision);
        }
    }
    let by_name = |expect: &str| {
        let example = json!({"tool": "agents:planner", "expect": expect});
        json!([{"name": "r", "match": {"tools": ["planner"]}, "effect": "deny", "examples": [example]}])
    };
    policy(json!([]), by_name("no_match"));
    assert!(problems(by_name("match")).contains("does not match the agent `agents:planner`"));
}

#[test]
fn a_denial_is_certain_if_no_argument_can_change_it() {
    let pay = tool("bank", "pay", &[]);
    let certain = |rule: Value, above: &[Cow<'static, str>]| {
        let policy = policy(json!([]), json!([rule]));
        policy.certain_denial(&caller(), &pay, "steps", above).and_then(|decision| decision.rule)
    };
    let mcp = [Cow::Borrowed("mcp")];
    let by_surface = json!({"name": "r", "match": {"surfaces": ["mcp"]}, "effect": "deny"});
    assert_eq!(certain(by_surface.clone(), &mcp).as_deref(), Some("r"));
    assert_eq!(certain(by_surface, &[]), None);
    let by_args =
        json!({"name": "r", "match": {"surfaces": ["mcp"]}, "when": "args.x > 1", "effect": "deny"});
    assert_eq!(certain(by_args, &mcp), None);
    let by_condition = json!({"name": "r", "when": "principal.role == 'caller'", "effect": "deny"});
    assert_eq!(certain(by_condition, &[]).as_deref(), Some("r"));
    let approval = json!({"name": "r", "match": {"surfaces": ["mcp"]}, "effect": "approve"});
    assert_eq!(certain(approval, &mcp), None);
}
