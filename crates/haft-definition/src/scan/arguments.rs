//! Arguments that ask for secrets, or for what the model knows beyond its task.

use haft_core::finding::Severity;

use super::fold::fold_name;
use super::report::Report;

/// Names of arguments that ask for a credential.
const CREDENTIALS: [&str; 34] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "private_key",
    "privatekey",
    "api_key",
    "apikey",
    "access_key",
    "secret_key",
    "access_token",
    "auth_token",
    "bearer_token",
    "refresh_token",
    "session_token",
    "api_token",
    "bot_token",
    "credential",
    "credentials",
    "client_secret",
    "mnemonic",
    "seed_phrase",
    "cvv",
    "ssn",
    "card_number",
    "credit_card",
    "ssh_key",
    "authorization",
    "bearer",
    "cookies",
    "session_cookie",
    "otp",
    "recovery_code",
];

/// Names of arguments that ask for the context of the model.
const CONTEXT: [&str; 22] = [
    "system_prompt",
    "conversation",
    "conversation_history",
    "conversation_context",
    "chat_history",
    "chat_context",
    "message_history",
    "previous_messages",
    "full_context",
    "model_context",
    "user_messages",
    "chain_of_thought",
    "tool_list",
    "tools_list",
    "available_tools",
    "tool_names",
    "tool_call_history",
    "previous_tool_calls",
    "assistant_context",
    "session_transcript",
    "llm_context",
    "all_tools",
];

/// Parts of names that ask for a file with secrets of the machine.
const LOCAL_SECRETS: [&str; 10] = [
    "id_rsa",
    "id_ed25519",
    "ssh_private",
    "ssh_rsa",
    "etc_passwd",
    "etc_shadow",
    "env_file_content",
    "dotenv_content",
    "mcp_json",
    "aws_credentials",
];

/// Reports arguments by their names; `arguments` are paths and names.
pub(super) fn scan(report: &mut Report, arguments: &[(String, String)]) {
    for (path, name) in arguments {
        let name = snake_case(name);
        if LOCAL_SECRETS.iter().any(|secret| name.contains(secret)) {
            let message = "an argument that asks for a file with secrets";
            report.add(("arguments.local_secret", Severity::Hard), path, &name, message);
        } else if CREDENTIALS.iter().any(|secret| is_suffix(&name, secret)) {
            let message = "an argument that asks for a credential; the model would have to know it";
            report.add(("arguments.credential", Severity::Soft), path, &name, message);
        } else if CONTEXT.contains(&name.as_str()) {
            let message = "an argument that asks for the conversation or the tools of the model";
            report.add(("arguments.context", Severity::Soft), path, &name, message);
        }
    }
}

fn is_suffix(name: &str, word: &str) -> bool {
    name.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
}

/// Converts `camelCase` and `kebab-case` names.
fn snake_case(name: &str) -> String {
    let mut words = String::with_capacity(name.len());
    let mut after_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && after_lower {
            words.push('_');
        }
        after_lower = c.is_lowercase() || c.is_numeric();
        words.push(if matches!(c, '-' | '.' | ' ') { '_' } else { c });
    }
    fold_name(&words)
}
