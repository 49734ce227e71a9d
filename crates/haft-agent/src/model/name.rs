//! Which provider follows from the name of a model.

use super::provider::{Provider, ProviderChoice};

/// Prefixes that name a provider even if there is a `base_url`: no server has models of another owner by these names.
const SERVERS: [(&str, Provider); 6] = [
    ("ollama", Provider::Ollama),
    ("lmstudio", Provider::LmStudio),
    ("vllm", Provider::Vllm),
    ("llamacpp", Provider::LlamaCpp),
    ("openrouter", Provider::OpenRouter),
    ("scripted", Provider::Scripted),
];

/// Prefixes that name a provider. With a `base_url` they are part of the name, as on vLLM and OpenRouter.
const OWNERS: [(&str, Provider); 10] = [
    ("openai", Provider::OpenAi),
    ("openai_chat", Provider::OpenAiChat),
    ("anthropic", Provider::Anthropic),
    ("google", Provider::Gemini),
    ("gemini", Provider::Gemini),
    ("groq", Provider::Groq),
    ("mistral", Provider::Mistral),
    ("deepseek", Provider::DeepSeek),
    ("xai", Provider::XAi),
    ("openai_compatible", Provider::OpenAiCompatible),
];

/// Chooses the provider of a name.
pub(super) fn infer(name: &str, has_base_url: bool) -> Option<ProviderChoice> {
    let choice = |provider, name: &str| Some(ProviderChoice { provider, name: name.to_owned() });
    if let Some((prefix, rest)) = name.split_once('/').filter(|(_, rest)| !rest.is_empty()) {
        let of = |table: &[(&str, Provider)]| {
            table.iter().find(|(known, _)| *known == prefix).map(|(_, provider)| *provider)
        };
        if let Some(provider) = of(&SERVERS) {
            return choice(provider, rest);
        }
        if has_base_url {
            return choice(Provider::OpenAiCompatible, name);
        }
        return of(&OWNERS).and_then(|provider| choice(provider, rest));
    }
    match family(name) {
        // Servers that imitate OpenAI have chat completions, and often nothing else.
        Some(Provider::OpenAi) | None if has_base_url => choice(Provider::OpenAiCompatible, name),
        Some(provider) => choice(provider, name),
        None => None,
    }
}

/// Returns the provider whose models have such names.
fn family(name: &str) -> Option<Provider> {
    let lower = name.to_ascii_lowercase();
    let numbered = |prefix: &str| {
        lower.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    Some(match lower.as_str() {
        "scripted" => Provider::Scripted,
        name if name.starts_with("gpt-oss") => return None,
        name if name.starts_with("gpt-") || name.starts_with("chatgpt-") || numbered("o") => Provider::OpenAi,
        name if name.starts_with("claude-") => Provider::Anthropic,
        name if name.starts_with("gemini-") => Provider::Gemini,
        name if name.starts_with("mistral-") || name.starts_with("codestral-") => Provider::Mistral,
        name if name.starts_with("deepseek-") => Provider::DeepSeek,
        name if name.starts_with("grok-") => Provider::XAi,
        _ => return None,
    })
}

/// Returns whether a model of OpenAI reasons before it answers.
pub(super) fn is_openai_reasoning(name: &str) -> bool {
    let digits = |prefix: &str| {
        let rest = name.strip_prefix(prefix)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    digits("o").is_some() || digits("gpt-").is_some_and(|version| version >= 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_of_names() {
        let shown = |explicit: Option<&str>, name: &str, has_base_url: bool| {
            let explicit = explicit.map(|text| Provider::parse(text).unwrap());
            ProviderChoice::new(explicit, name, has_base_url)
                .map_or_else(|| "?".to_owned(), |choice| format!("{} {}", choice.provider, choice.name))
        };
        for (name, alone, with_base_url) in [
            ("gpt-5.2", "openai gpt-5.2", "openai_compatible gpt-5.2"),
            ("o4-mini", "openai o4-mini", "openai_compatible o4-mini"),
            ("olmo-2", "?", "openai_compatible olmo-2"),
            ("gpt-oss:20b", "?", "openai_compatible gpt-oss:20b"),
            ("claude-sonnet-5", "anthropic claude-sonnet-5", "anthropic claude-sonnet-5"),
            ("gemini-3-pro", "gemini gemini-3-pro", "gemini gemini-3-pro"),
            ("llama3.2", "?", "openai_compatible llama3.2"),
            ("ollama/llama3.2", "ollama llama3.2", "ollama llama3.2"),
            ("openai/gpt-oss-20b", "openai gpt-oss-20b", "openai_compatible openai/gpt-oss-20b"),
            ("anthropic/claude-opus", "anthropic claude-opus", "openai_compatible anthropic/claude-opus"),
            (
                "openrouter/anthropic/claude-opus",
                "openrouter anthropic/claude-opus",
                "openrouter anthropic/claude-opus",
            ),
            ("meta-llama/Llama-4", "?", "openai_compatible meta-llama/Llama-4"),
            ("scripted", "scripted scripted", "scripted scripted"),
            ("scripted/demo", "scripted demo", "scripted demo"),
        ] {
            assert_eq!(shown(None, name, false), alone, "{name}");
            assert_eq!(shown(None, name, true), with_base_url, "{name}");
        }
        assert_eq!(shown(Some("openai_chat"), "claude-x", false), "openai_chat claude-x");
        assert_eq!(shown(Some("ollama"), "ollama/llama3.2", false), "ollama llama3.2");
        assert_eq!(shown(Some("openrouter"), "openai/gpt-5", false), "openrouter openai/gpt-5");
    }

    #[test]
    fn names_in_settings_and_json_agree() {
        for provider in Provider::ALL {
            assert_eq!(serde_json::to_value(provider).unwrap(), provider.as_str());
            assert_eq!(Provider::parse(provider.as_str()), Some(provider));
        }
    }

    #[test]
    fn reasoning_models_of_openai() {
        let names = ["o1", "o4-mini", "gpt-5", "gpt-5.2-mini", "gpt-4o", "gpt-4.1", "olmo", "chatgpt-4o"];
        assert_eq!(names.map(is_openai_reasoning), [true, true, true, true, false, false, false, false]);
    }
}
