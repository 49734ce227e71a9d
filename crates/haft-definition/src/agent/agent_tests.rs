use haft_core::agent::{AgentBudget, AgentDefinition, AgentModel, Supervision, ToolExecution};
use haft_core::name::AgentSlug;
use haft_core::problem::join;
use serde_json::json;

use super::*;

fn one(text: &str) -> ReadAgent {
    let mut agents = read(text, "file").unwrap_or_else(|problems| panic!("{}", join(&problems)));
    assert_eq!(agents.len(), 1);
    agents.pop().unwrap()
}

fn errors(text: &str) -> String {
    join(&read(text, "file").unwrap_err())
}

fn agent(slug: &str, model: &str) -> AgentDefinition {
    AgentDefinition::new(AgentSlug::new(slug).unwrap(), AgentModel::new(model))
}

#[test]
fn the_reporter_of_the_yaml_form_is_read() {
    let text = "\
agents:
  reporter:
    model: claude-sonnet-4-20250514
    system: You compile and email daily summaries.
    tools:
      - send_email
";
    let mut expected = agent("reporter", "claude-sonnet-4-20250514");
    expected.instructions = "You compile and email daily summaries.".to_owned();
    expected.tools = vec!["send_email".to_owned()];
    let found = one(text);
    assert_eq!((found.definition, found.warnings), (expected, Vec::new()));
}

#[test]
fn a_member_of_a_team_is_read() {
    let text = "\
# team.yaml
members:
  - name: Gary
    role: Developer
    skills:  # Tool whitelist
      - read_file
      - write_file
      - exec
";
    let mut expected = agent("gary", DEFAULT_MODEL);
    expected.name = "Gary".to_owned();
    expected.description = "Developer".to_owned();
    expected.instructions = "You are Gary. Your role: Developer.".to_owned();
    expected.tools = ["read_file", "write_file", "exec"].map(str::to_owned).to_vec();
    let found = one(text);
    assert_eq!((found.definition, found.warnings), (expected, Vec::new()));
}

#[test]
fn a_team_shares_its_model() {
    let text = "\
name: Newsroom
model: {name: llama3.2, provider: ollama, base_url: 'http://localhost:11434'}
supervision: {attempts: 2, backoff: 1s}
agents:
  Chief Editor: {prompt: Decide.}
  writer:
    model: gpt-5
    system: Write.
";
    let agents = read(text, "newsroom").unwrap();
    let [editor, writer] = agents.as_slice() else { panic!("{agents:?}") };
    assert_eq!(editor.definition.slug.as_str(), "chief-editor");
    assert_eq!(editor.definition.name, "Chief Editor");
    assert_eq!(editor.definition.model.provider.as_deref(), Some("ollama"));
    assert_eq!(editor.definition.supervision, Some(Supervision { attempts: 2, backoff_ms: 1000 }));
    assert_eq!(writer.definition.model, AgentModel::new("gpt-5"));
}

#[test]
fn every_spelling_means_the_same() {
    let mut expected = agent("helper", "gpt-5");
    expected.name = "Helper".to_owned();
    expected.instructions = "Help.".to_owned();
    expected.tools = vec!["web_search".to_owned(), "docs:*".to_owned()];
    expected.exclude_tools = vec!["docs:delete".to_owned()];
    expected.model.temperature = Some(0.5);
    expected.tool_timeout_ms = Some(30_000);
    expected.budget = AgentBudget { calls: Some(10), tokens: None, time_ms: Some(120_000), cost: Some(0.5) };
    expected.tool_execution = ToolExecution::ParallelSafe;
    for value in [
        json!({"slug": "helper", "name": "Helper", "model": "gpt-5", "temperature": 0.5, "system": "Help.",
            "tools": ["web_search", "docs:*", "!docs:delete"], "tool_timeout": "30s",
            "budget": {"calls": 10, "time": "2m", "cost": 0.5}, "tool_execution": "parallel_safe"}),
        json!({"id": "helper", "displayName": "Helper", "model": {"name": "gpt-5", "temperature": 0.5},
            "prompt": "Help.", "skills": ["web_search", {"name": "docs:*"}], "excludeTools": ["docs:delete"],
            "toolTimeout": 30, "budget": {"max_calls": 10, "timeout": 120, "money": 0.5},
            "tool_execution": "parallel_safe"}),
        json!({"slug": "helper", "name": "Helper", "model": {"model": "gpt-5", "temperature": 0.5},
            "instructions": "Help.", "system": "Help.", "tools": ["web_search", "docs:*"], "exclude": ["!docs:delete"],
            "tool_timeout_ms": 30_000, "budget": {"calls": 10, "time_ms": 120_000, "cost": 0.5},
            "toolExecution": "parallel_safe"}),
    ] {
        let found =
            from_json(value.clone()).unwrap_or_else(|problems| panic!("{value}: {}", join(&problems)));
        assert_eq!((found.definition, found.warnings), (expected.clone(), Vec::new()), "{value}");
    }
}

#[test]
fn the_answer_of_the_api_can_be_sent_back() {
    let mut sent = serde_json::to_value(agent("a", "gpt-5")).unwrap();
    for key in ["revision", "status", "enabled", "ready", "error", "path", "created_at", "published_at"] {
        sent[key] = json!("x");
    }
    sent["id"] = json!("018faf50-b7b6-7a01-9a05-a22a6e0af101");
    let found = from_json(sent).unwrap();
    assert_eq!((found.definition, found.warnings), (agent("a", "gpt-5"), Vec::new()));
}

#[test]
fn slugs_follow_from_the_name_or_the_file() {
    for (text, slug, name) in [
        ("model: m", "file", "file"),
        ("model: m\nname: Research assistant", "file", "Research assistant"),
        ("model: m\nname: research", "research", "research"),
        ("model: m\nname: Research", "file", "Research"),
        ("model: m\nslug: a\nname: b", "a", "b"),
    ] {
        let found = one(text).definition;
        assert_eq!((found.slug.as_str(), found.name.as_str()), (slug, name), "{text}");
    }
    let found = from_json(json!({"name": "Résumé  reader!", "model": "m"})).unwrap();
    assert_eq!(found.definition.slug.as_str(), "résumé-reader");
}

#[test]
fn unknown_keys_are_warnings_with_the_nearest_name() {
    let found = one("model: m\ninstruction: x\ncolor: red\nbudget: {call: 3}\n");
    insta::assert_snapshot!(join(&found.warnings), @"line 4, column 10: `budget.call`: unknown field, ignored; did you mean `calls`?; line 2, column 1: `instruction`: unknown field, ignored; did you mean `instructions`?; line 3, column 1: `color`: unknown field, ignored");
}

#[test]
fn errors_name_the_field_and_the_limit() {
    for (text, expected) in [
        (
            "model: m\nmax_iterations: 5000",
            "line 2, column 1: `max_iterations`: expected a number from 1 to 1000, found 5000",
        ),
        ("model: m\nbudget: {time: forever}", "line 2, column 10: `budget.time`: "),
        (
            "model: m\nsupervision: {attempts: 11}",
            "line 2, column 15: `supervision.attempts`: expected a number from 0 to 10, found 11",
        ),
        (
            "model: {temperature: 3, name: m}",
            "line 1, column 9: `model.temperature`: expected a number from 0 to 2",
        ),
        (
            "model: {name: m, api_key: sk-1}",
            "line 1, column 18: `model.api_key`: a definition must not contain a key; store it as a credential and name that in `credential`",
        ),
        (
            "model: {name: m, credential: sk-ant-api03-x1y2z3}",
            "line 1, column 18: `model.credential`: expected the name of a credential, found what seems to be a key; store the key with `haft secret set NAME` and write NAME here",
        ),
        ("model: m\ntools: [a b]", "line 2, column 9: `tools[0]`: invalid rule `a b`"),
        (
            "agents:\n  x: {model: m, tool_timeout: 2h}",
            "line 2, column 17: `agents.x.tool_timeout`: expected a time from 1ms to 10m",
        ),
        (
            "model: m\nsystem: a\nprompt: b",
            "line 3, column 1: `prompt`: conflicts with `system`; remove one of them",
        ),
        ("- model: m\n  slug: a\n- model: m\n  slug: a\n", "two agents have the slug `a`"),
        ("slug: a/b\nmodel: m", "line 1, column 1: `slug`: agent slug `a/b` contains '/'"),
        ("model: [m]", "line 1, column 1: `model`: expected the name of a model or a map, found a list"),
        ("output_schema: {type: strin}\nmodel: m", "line 1, column 17: `output_schema.type`"),
        ("", "the text has no agent"),
        ("agents: {}", "`agents`: the team has no agents"),
        (
            "slug: a\nmodel: m\n---\nslug: b\nmodel: {}\n",
            "line 5, column 1: `model.name`: missing required field",
        ),
    ] {
        let found = errors(text);
        assert!(found.contains(expected.trim_end()), "{text}\n  found    {found}\n  expected {expected}");
    }
}

#[test]
fn a_script_is_a_text_or_its_turns() {
    let found = one("model: {provider: scripted, script: [{text: Hello.}]}").definition.model;
    assert_eq!(found.name, "scripted");
    assert_eq!(found.script.as_deref(), Some("turns:\n  - text: Hello.\n"));
    let found = one("model: {script: {turns: [{when: {user: '\\bx'}, text: Hello.}]}}").definition.model;
    assert_eq!(found.script.as_deref(), Some("turns:\n  - when:\n      user: '\\bx'\n    text: Hello.\n"));
    let found =
        one("model:\n  name: demo\n  provider: scripted\n  script: |\n    - text: Hello.\n").definition.model;
    assert_eq!(found.script.as_deref(), Some("- text: Hello.\n"));
}

#[test]
fn written_definitions_are_read_back() {
    let mut full = agent("full", "claude-sonnet-5");
    full.name = "yes".to_owned();
    full.description = "a: b".to_owned();
    full.model.credential = Some("anthropic".to_owned());
    full.model.script = Some("- text: |\n    Hi\n".to_owned());
    full.fallback = Some(AgentModel::new("1.0"));
    full.instructions = "Line {{one}}\n\n- two #3\n".to_owned();
    full.variables = [("one".to_owned(), json!({"a": [1, null, "no"]}))].into_iter().collect();
    full.tools = vec!["a".to_owned(), "b:*".to_owned(), "*".to_owned()];
    full.exclude_tools = vec!["exec".to_owned()];
    full.tool_execution = ToolExecution::ParallelSafe;
    full.max_iterations = 7;
    full.max_parallel_tools = 2;
    full.tool_timeout_ms = Some(1500);
    full.budget = AgentBudget { calls: Some(0), tokens: Some(1), time_ms: Some(90_000), cost: Some(0.25) };
    full.output_schema = Some(json!({"type": "object", "required": ["x"], "properties": {"x": {}}}));
    full.require_published = true;
    full.supervision = Some(Supervision { attempts: 3, backoff_ms: 0 });
    full.context_window = Some(200_000);
    for definition in [agent("plain", "default"), full] {
        let text = write_yaml(&definition);
        assert_eq!(one(&text), ReadAgent { definition, warnings: Vec::new() }, "{text}");
    }
}

#[test]
fn several_agents_are_not_one() {
    let problems = from_json(json!({"agents": {"a": {"model": "m"}, "b": {"model": "m"}}})).unwrap_err();
    assert_eq!(join(&problems), "expected one agent, found 2; send them one by one");
    assert!(from_json(json!({"agents": {"a": {"model": "m"}}})).is_ok());
}
