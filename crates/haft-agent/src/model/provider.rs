//! The providers, and where they are.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::name::infer;

/// Who serves a model. It decides the wire format, the default address, and small differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// OpenAI, by the Responses API.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI, by chat completions.
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// Anthropic, by the Messages API.
    Anthropic,
    /// Google, by the Gemini API.
    Gemini,
    /// Ollama on this machine.
    Ollama,
    /// LM Studio on this machine.
    #[serde(rename = "lmstudio")]
    LmStudio,
    /// vLLM on this machine.
    Vllm,
    /// The server of llama.cpp on this machine.
    #[serde(rename = "llamacpp")]
    LlamaCpp,
    /// OpenRouter.
    #[serde(rename = "openrouter")]
    OpenRouter,
    /// Groq.
    Groq,
    /// Mistral.
    Mistral,
    /// DeepSeek.
    #[serde(rename = "deepseek")]
    DeepSeek,
    /// xAI.
    #[serde(rename = "xai")]
    XAi,
    /// Any server with OpenAI's chat completions, at `base_url`.
    #[serde(rename = "openai_compatible")]
    OpenAiCompatible,
    /// A script instead of a model.
    Scripted,
}

/// The wire format of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireFormat {
    Chat,
    Responses,
    Messages,
    Gemini,
    /// None: nothing is sent.
    Script,
}

impl Provider {
    /// Every provider.
    pub const ALL: [Self; 15] = [
        Self::OpenAi,
        Self::OpenAiChat,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
        Self::LmStudio,
        Self::Vllm,
        Self::LlamaCpp,
        Self::OpenRouter,
        Self::Groq,
        Self::Mistral,
        Self::DeepSeek,
        Self::XAi,
        Self::OpenAiCompatible,
        Self::Scripted,
    ];

    /// Returns the name in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai_chat",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::LmStudio => "lmstudio",
            Self::Vllm => "vllm",
            Self::LlamaCpp => "llamacpp",
            Self::OpenRouter => "openrouter",
            Self::Groq => "groq",
            Self::Mistral => "mistral",
            Self::DeepSeek => "deepseek",
            Self::XAi => "xai",
            Self::OpenAiCompatible => "openai_compatible",
            Self::Scripted => "scripted",
        }
    }

    /// Parses the name in settings.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == text)
    }

    /// Returns the address that is used without a `base_url`.
    pub const fn default_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::OpenAiChat => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::Ollama => Some("http://localhost:11434/v1"),
            Self::LmStudio => Some("http://localhost:1234/v1"),
            Self::Vllm => Some("http://localhost:8000/v1"),
            Self::LlamaCpp => Some("http://localhost:8080/v1"),
            Self::OpenRouter => Some("https://openrouter.ai/api/v1"),
            Self::Groq => Some("https://api.groq.com/openai/v1"),
            Self::Mistral => Some("https://api.mistral.ai/v1"),
            Self::DeepSeek => Some("https://api.deepseek.com/v1"),
            Self::XAi => Some("https://api.x.ai/v1"),
            Self::OpenAiCompatible | Self::Scripted => None,
        }
    }

    /// Returns the command that starts the server of a local provider.
    pub const fn start_command(self) -> Option<&'static str> {
        match self {
            Self::Ollama => Some("ollama serve"),
            Self::LmStudio => Some("lms server start"),
            Self::Vllm => Some("vllm serve MODEL"),
            Self::LlamaCpp => Some("llama-server -m MODEL.gguf"),
            _ => None,
        }
    }

    /// Returns whether the provider answers only with a key.
    pub const fn requires_key(self) -> bool {
        match self {
            Self::OpenAi
            | Self::OpenAiChat
            | Self::Anthropic
            | Self::Gemini
            | Self::OpenRouter
            | Self::Groq
            | Self::Mistral
            | Self::DeepSeek
            | Self::XAi => true,
            Self::Ollama
            | Self::LmStudio
            | Self::Vllm
            | Self::LlamaCpp
            | Self::OpenAiCompatible
            | Self::Scripted => false,
        }
    }

    pub(super) const fn format(self) -> WireFormat {
        match self {
            Self::OpenAi => WireFormat::Responses,
            Self::Anthropic => WireFormat::Messages,
            Self::Gemini => WireFormat::Gemini,
            Self::Scripted => WireFormat::Script,
            Self::OpenAiChat
            | Self::Ollama
            | Self::LmStudio
            | Self::Vllm
            | Self::LlamaCpp
            | Self::OpenRouter
            | Self::Groq
            | Self::Mistral
            | Self::DeepSeek
            | Self::XAi
            | Self::OpenAiCompatible => WireFormat::Chat,
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A provider and the name that the model has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderChoice {
    /// The provider.
    pub provider: Provider,
    /// The name of the model.
    pub name: String,
}

impl ProviderChoice {
    /// Chooses the provider: the explicit one, or the one that follows from the name. `None` if nothing follows.
    pub fn new(explicit: Option<Provider>, name: &str, has_base_url: bool) -> Option<Self> {
        let name = name.trim();
        match explicit {
            Some(provider) => {
                let prefix = name.split_once('/').filter(|(prefix, _)| *prefix == provider.as_str());
                let name = prefix.map_or(name, |(_, rest)| rest);
                Some(Self { provider, name: name.to_owned() })
            }
            None => infer(name, has_base_url),
        }
    }
}
