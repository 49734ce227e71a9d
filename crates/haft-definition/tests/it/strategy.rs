//! Every tool definition there can be, as strategies.
#![expect(clippy::unwrap_used, reason = "a strategy that makes an invalid name is a broken test")]

use std::collections::BTreeMap;

use haft_core::artifact::{ArtifactInput, ArtifactRuntime, InputType};
use haft_core::implementation::*;
use haft_core::name::{ToolName, Version};
use haft_core::spec::*;
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Map, Value};

const AWKWARD: [&str; 83] = [
    "",
    " ",
    "yes",
    "No",
    "null",
    "~",
    "true",
    "1.0",
    "0o17",
    "0644",
    "1_000",
    "0x1f",
    ".5",
    "-",
    "---",
    "...",
    " leading",
    "trailing ",
    "a: b",
    "a #b",
    "#c",
    "key:",
    "- item",
    "? q",
    "[x]",
    "{x}",
    "{{name}}",
    "{{if x}}",
    "&a",
    "*a",
    "!t",
    "|",
    ">",
    "%x",
    "@x",
    "`x`",
    "'",
    "\"",
    "it's",
    "say \"hi\"",
    "back\\slash",
    "a\nb",
    "a\n",
    "a\n\n",
    "\na",
    "\n",
    " a\nb",
    "a\n  b\n",
    "a\n \nb",
    "a\n\tb",
    "\ta\nb",
    "a\r\nb",
    "a\rb",
    "---\nx\n---\n",
    "x\n---\ny",
    "\u{0}",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{feff}x",
    "é天🌧",
    "<<",
    "=",
    "1e999",
    "2024-05-14",
    "12:30:45",
    "${NAME}",
    "Bearer ${KEY}",
    "https://a.example/x?y=z#w",
    "a\nb #c\n",
    "+1",
    "1.",
    "infinity",
    "NaN",
    ".inf",
    "0b1",
    "a:",
    "a\u{fffe}b",
    "\u{ffff}",
    "x\n\n\ny",
    "x \ny\n",
    "#!/bin/sh\nexit 0\n",
];

/// Texts that a YAML writer gets wrong, and any others.
pub(crate) fn text() -> BoxedStrategy<String> {
    let awkward = prop::sample::select(&AWKWARD[..]);
    prop_oneof![
        4 => awkward.prop_map(str::to_owned),
        2 => "[ -~]{0,30}",
        2 => "[a-z:#\\-'\" \n\t{}|>]{0,30}",
        1 => any::<String>().prop_map(|text| text.chars().take(40).collect()),
        1 => "[a-z]{600,1200}",
    ]
    .boxed()
}

fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no such number", |x| x.is_finite()).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

fn object() -> BoxedStrategy<Map<String, Value>> {
    vec((text(), json()), 0..4).prop_map(|entries| entries.into_iter().collect()).boxed()
}

/// Schemas as people write them, which fit a `params` list, and any others.
fn schema() -> BoxedStrategy<Value> {
    let kind = prop::sample::select(vec!["string", "integer", "number", "boolean", "array", "object"]);
    let property = (of(kind), of(text()), of(json()), of(vec(json(), 0..3)), any::<bool>()).prop_map(
        |(kind, description, default, values, minimum)| {
            let mut map = Map::new();
            map.extend(kind.map(|kind| ("type".to_owned(), kind.into())));
            map.extend(description.map(|text| ("description".to_owned(), text.into())));
            map.extend(default.map(|default| ("default".to_owned(), default)));
            map.extend(values.map(|values| ("enum".to_owned(), values.into())));
            if minimum {
                map.insert("minimum".to_owned(), 1.into());
            }
            Value::Object(map)
        },
    );
    let plain = vec((text(), property, any::<bool>()), 0..4).prop_map(|entries| {
        let required: Vec<Value> = entries.iter().filter(|e| e.2).map(|e| e.0.clone().into()).collect();
        let properties: Map<String, Value> = entries.into_iter().map(|e| (e.0, e.1)).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        Value::Object(schema)
    });
    prop_oneof![
        1 => Just(Value::Object(Map::new())),
        1 => any::<bool>().prop_map(Value::from),
        4 => plain,
        2 => object().prop_map(Value::from),
    ]
    .boxed()
}

fn texts() -> BoxedStrategy<BTreeMap<String, String>> {
    btree_map(text(), text(), 0..3).boxed()
}

fn accesses() -> BoxedStrategy<BTreeMap<String, FileAccess>> {
    btree_map(text(), prop_oneof![Just(FileAccess::Read), Just(FileAccess::Write)], 0..3).boxed()
}

fn millis() -> BoxedStrategy<u64> {
    prop_oneof![0u64..100_000, (0u64..4000).prop_map(|s| s * 1000), any::<u64>()].boxed()
}

fn request() -> BoxedStrategy<HttpRequest> {
    let response = of(prop::sample::select(vec![ResponseEncoding::Json, ResponseEncoding::Text]));
    // A body of `null` and no body are the same thing to every form.
    let body = of(json().prop_filter("null is no body", |body| !body.is_null()));
    let styles = btree_map(text(), prop::sample::select(ParamStyle::ALL.to_vec()), 0..3);
    let text_styles = btree_map(text(), prop::sample::select(TextStyle::ALL.to_vec()), 0..3);
    let spelled = (styles, text_styles, vec(text(), 0..3), any::<bool>(), vec(text(), 0..3));
    (text(), text(), object(), spelled, texts(), body, vec(any::<u16>(), 0..3), response, of(text()))
        .prop_map(|(method, url, query, spelled, headers, body, success_codes, response, extract)| {
            let (styles, text_styles, allow_reserved, optional_body, files) = spelled;
            HttpRequest {
                method,
                url,
                query,
                styles,
                text_styles,
                allow_reserved,
                headers,
                body,
                files,
                optional_body,
                success_codes,
                response,
                extract,
            }
        })
        .boxed()
}

fn auth() -> BoxedStrategy<Auth> {
    let location = prop::sample::select(vec![ApiKeyLocation::Header, ApiKeyLocation::Query]);
    prop_oneof![
        text().prop_map(|token| Auth::Bearer { token }),
        (text(), text()).prop_map(|(username, password)| Auth::Basic { username, password }),
        (text(), text(), location).prop_map(|(name, value, location)| Auth::ApiKey { name, value, location }),
        (text(), text(), text(), text(), text(), of(text())).prop_map(
            |(key, header, prefix, encoding, sign, timestamp_header)| Auth::Hmac(HmacAuth {
                key,
                algorithm: "sha512".to_owned(),
                header,
                prefix,
                encoding,
                sign,
                timestamp_header,
            })
        ),
        (text(), text(), text(), of(text()), vec(text(), 0..3), of(text())).prop_map(
            |(token_url, client_id, client_secret, refresh_token, scopes, audience)| Auth::Oauth2(OAuth2 {
                token_url,
                client_id,
                client_secret,
                refresh_token,
                scopes,
                audience,
            })
        ),
    ]
    .boxed()
}

fn http() -> BoxedStrategy<Implementation> {
    let steps = vec((text(), request()).prop_map(|(name, request)| HttpStep { name, request }), 0..3);
    let mode = prop::sample::select(vec![ErrorMode::Fail, ErrorMode::Empty]);
    let notation = prop::sample::select(vec![Notation::Dollar, Notation::Braces]);
    (request(), steps, of(millis()), mode, of(auth()), notation)
        .prop_map(|(request, steps, timeout_ms, error_mode, auth, templates)| {
            Implementation::Http(Box::new(Http { request, steps, timeout_ms, error_mode, auth, templates }))
        })
        .boxed()
}

fn exec_program() -> BoxedStrategy<ExecProgram> {
    prop_oneof![text().prop_map(ExecProgram::Command), vec(text(), 0..4).prop_map(ExecProgram::Argv)].boxed()
}

fn output() -> BoxedStrategy<OutputFormat> {
    prop::sample::select(OutputFormat::ALL.map(|(_, format)| format).to_vec()).boxed()
}

fn lines() -> BoxedStrategy<Vec<String>> {
    prop::collection::vec(text(), 0..3).boxed()
}

fn hints() -> impl Strategy<Value = ToolHints> {
    (of(any::<bool>()), of(any::<bool>()), of(any::<bool>()))
        .prop_map(|(destructive, idempotent, open_world)| ToolHints { destructive, idempotent, open_world })
}

fn artifact_runtime() -> BoxedStrategy<ArtifactRuntime> {
    prop::sample::select(ArtifactRuntime::ALL.map(|(_, runtime)| runtime).to_vec()).boxed()
}

fn artifact_input() -> BoxedStrategy<ArtifactInput> {
    let kind = prop::sample::select(InputType::ALL.map(|(_, kind)| kind).to_vec());
    (text(), kind, any::<bool>(), of(no_null()), text())
        .prop_map(|(name, kind, required, default, description)| ArtifactInput {
            name,
            kind,
            required,
            default,
            description,
        })
        .boxed()
}

/// `null` and a missing value are the same thing to every form.
fn no_null() -> BoxedStrategy<Value> {
    json().prop_filter("null is no value", |value| !value.is_null()).boxed()
}

fn condition() -> BoxedStrategy<Condition> {
    let reference = prop::sample::select(vec!["$args.x", "$steps.a.value[0].b", "$item", "$index"]);
    let comparison = prop::sample::select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::AtMost,
        Comparison::Greater,
        Comparison::AtLeast,
        Comparison::In,
        Comparison::Contains,
    ]);
    let operand = prop_oneof![reference.clone().prop_map(Value::from), json()];
    let leaf = prop_oneof![
        reference.prop_map(|reference| Condition::Truthy(reference.to_owned())),
        (operand.clone(), comparison, operand).prop_map(|(left, comparison, right)| Condition::Compare {
            left,
            comparison,
            right
        }),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..3).prop_map(Condition::All),
            vec(inner.clone(), 1..3).prop_map(Condition::Any),
            inner.prop_map(|inner| Condition::Not(Box::new(inner))),
        ]
    })
    .boxed()
}

fn step() -> BoxedStrategy<Step> {
    let on_failure = prop::sample::select(OnFailure::ALL.map(|(_, policy)| policy).to_vec());
    let rules = (of(condition()), of(no_null()), of(any::<u32>()), on_failure, no_null());
    (text(), text(), object(), vec(text(), 0..3), rules)
        .prop_map(|(id, tool, args, after, (when, for_each, max_items, on_failure, fallback))| Step {
            id,
            tool,
            args,
            after,
            when,
            for_each,
            max_items,
            on_failure,
            fallback: (on_failure == OnFailure::Fallback).then_some(fallback),
        })
        .boxed()
}

fn implementation() -> BoxedStrategy<Implementation> {
    let runtime = prop::sample::select(vec![ScriptRuntime::Bash, ScriptRuntime::Python]);
    let encoding = || prop::sample::select(vec![Encoding::Utf8, Encoding::Base64, Encoding::Binary]);
    prop_oneof![
        1 => (text(), texts()).prop_map(|(function, config)| Implementation::Function(Function {
            function,
            config: config.into_iter().map(|(key, value)| (key, value.into())).collect(),
        })),
        4 => http(),
        4 => (runtime, text(), output(), lines()).prop_map(|(runtime, body, output, dependencies)| {
            Implementation::Script(Script { runtime, body, output, dependencies })
        }),
        1 => (of(text()), of(text()), of(text()), texts(), accesses()).prop_map(
            |(file, base64, function, env, files)| {
                Implementation::Wasm(Wasm { file, base64, function, env, files })
            }
        ),
        2 => (exec_program(), texts(), of(text()), output())
            .prop_map(|(program, env, stdin, output)| Implementation::Exec(Exec { program, env, stdin, output })),
        1 => (text(), encoding(), of(text()))
            .prop_map(|(path, encoding, root)| Implementation::FileRead(FileRead { path, encoding, root })),
        1 => (text(), text(), encoding(), of(any::<u32>()), any::<bool>(), of(text())).prop_map(
            |(path, content, encoding, mode, mkdir, root)| Implementation::FileWrite(FileWrite {
                path,
                content,
                encoding,
                mode,
                mkdir,
                root
            })
        ),
        1 => (text(), lines()).prop_map(|(entrypoint, dependencies)| {
            Implementation::Python(Python { entrypoint, package: None, dependencies })
        }),
        1 => (of(text()), of(text()), text(), texts(), hints()).prop_map(
            |(server, server_url, tool_name, headers, hints)| {
                let workspace = server.is_some() && tool_name.len() % 2 == 0;
                Implementation::Mcp(Mcp { server, server_url, tool_name, headers, hints, workspace })
            }
        ),
        1 => (text(), of(text()), object()).prop_map(|(id, artifact_version, config)| {
            Implementation::Artifact(Artifact {
                artifact_id: Some(id),
                artifact_version,
                config,
                ..Artifact::default()
            })
        }),
        1 => (artifact_runtime(), text(), vec(artifact_input(), 0..3)).prop_map(|(runtime, source, inputs)| {
            Implementation::Artifact(Artifact {
                runtime: Some(runtime),
                source: Some(source),
                inputs,
                ..Artifact::default()
            })
        }),
        2 => (vec(step(), 0..3), of(no_null()), of(any::<u32>())).prop_map(|(steps, output, max_parallel)| {
            Implementation::Steps(Steps { steps, output, max_parallel })
        }),
        1 => (of(text()), of(text())).prop_map(|(target_agent_id, target_agent_slug)| {
            Implementation::AgentCall(AgentCall { target_agent_id, target_agent_slug })
        }),
        1 => (text(), object()).prop_map(|(pipeline_id, config)| {
            Implementation::RagRetrieval(RagRetrieval { pipeline_id, config })
        }),
    ]
    .boxed()
}

fn execution() -> BoxedStrategy<Execution> {
    let retry =
        of((any::<u32>(), millis()).prop_map(|(attempts, backoff_ms)| Retry { attempts, backoff_ms }));
    let validation = prop::sample::select(vec![Validation::Strict, Validation::Coerce, Validation::None]);
    let limits = (any::<u64>(), prop_oneof![Just(4 * 1024 * 1024), any::<u64>()], of(any::<u32>())).prop_map(
        |(max_request_bytes, max_response_bytes, max_parallel)| Limits {
            max_request_bytes,
            max_response_bytes,
            max_parallel,
        },
    );
    let limits = prop_oneof![Just(Limits::default()), limits];
    let rate = of((any::<u32>(), text()).prop_map(|(calls, per)| RateLimit { calls, per }));
    let group = prop_oneof![Just("default".to_owned()), text()];
    let changed = (any::<bool>(), group, any::<u32>(), of(millis()), retry, validation, limits, rate)
        .prop_map(
            |(
                is_pure,
                concurrency_group,
                max_concurrency,
                timeout_ms,
                retry,
                validation,
                limits,
                rate_limit,
            )| {
                Execution {
                    is_pure,
                    concurrency_group,
                    max_concurrency,
                    timeout_ms,
                    retry,
                    validation,
                    limits,
                    rate_limit,
                }
            },
        );
    let timed = of(millis()).prop_map(|timeout_ms| Execution { timeout_ms, ..Execution::default() });
    prop_oneof![Just(Execution::default()), timed, changed].boxed()
}

/// Any definition at all.
pub(crate) fn spec() -> BoxedStrategy<ToolSpec> {
    let name = prop_oneof!["[a-z][a-z0-9_-]{0,20}", "[0-9]{1,5}", "[a-zé天]{1,5}", Just("null".to_owned())]
        .prop_map(|name| ToolName::new(&format!("t{name}")).unwrap_or_else(|_| ToolName::new("t").unwrap()));
    let version =
        prop_oneof![Just("1.0.0"), Just("1.10"), Just("2"), Just("v2"), Just("2024-05-14"), Just("0644")]
            .prop_map(|version| Version::new(version).unwrap());
    let policy = prop::sample::select(vec![Policy::Allow, Policy::Deny, Policy::Elevated]);
    let renderers = vec(
        (text(), any::<i64>(), object()).prop_map(|(renderer, priority, config)| Renderer {
            renderer,
            priority,
            config,
        }),
        0..3,
    );
    let origin =
        of((text(), text(), of(text()), texts()).prop_map(|(document, operation, operation_id, digests)| {
            Origin { document, operation, operation_id, digests }
        }));
    let words = (name, version, text(), text(), text(), vec(text(), 0..3), origin);
    let rules = (implementation(), schema(), schema(), execution(), policy, any::<[bool; 3]>(), renderers);
    (words, rules)
        .prop_map(|(words, rules)| {
            let (name, version, display_name, description, category, tags, origin) = words;
            let (implementation, input_schema, output_schema, execution, policy, flags, renderers) = rules;
            let [requires_confirmation, sandbox, network] = flags;
            // Reading adds a required `query` to a retrieval tool.
            let input_schema = match implementation {
                Implementation::RagRetrieval(_) => haft_core::retrieval::with_query(Some(input_schema)),
                // Reading adds the arguments of a tool that runs an agent, if it declares none.
                Implementation::AgentCall(_) if input_schema == serde_json::json!({}) => {
                    haft_core::agent::call_input_schema()
                }
                _ => input_schema,
            };
            ToolSpec {
                name,
                version,
                display_name,
                description,
                category,
                tags,
                implementation,
                input_schema: input_schema.into(),
                output_schema: output_schema.into(),
                execution,
                policy,
                requires_confirmation,
                sandbox,
                network,
                image: (sandbox && network).then(|| "python:3.13-slim".to_owned()),
                renderers,
                origin,
            }
        })
        .boxed()
}
