//! The settings of an issuer, from the configuration.

use std::sync::Arc;

use haft_core::actor::Rights;
use haft_core::name::TenantId;
use haft_core::principal::AllowList;
use haft_core::token::Role;
use haft_executors::egress::check_host;
use haft_policy::ClaimCondition;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

/// The most rules of an issuer.
const MAX_RULES: usize = 100;
/// The most entries of a list.
const MAX_ENTRIES: usize = 100;
/// The longest id.
const MAX_ID_BYTES: usize = 40;
/// The longest text of a setting.
const MAX_TEXT_BYTES: usize = 1000;

/// All issuers of the configuration.
#[derive(Debug, Clone, Default)]
pub struct SignOnSettings {
    pub issuers: Vec<IssuerSettings>,
}

/// An issuer.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// Its name in addresses and commands.
    pub id: String,
    /// Its name for people, on the button of the login page.
    pub name: String,
    /// The issuer identifier, exactly as its tokens name it.
    pub issuer: String,
    /// The same as a URL.
    pub url: Url,
    pub client_id: String,
    /// The name of the client secret, without `${` and `}`; `None` for a public client.
    pub client_secret: Option<String>,
    pub scopes: Vec<String>,
    /// The audiences of bearer tokens; without any, tokens of the issuer are no credentials.
    pub audiences: Vec<String>,
    /// The applications that may exchange identity assertions of the issuer for access.
    pub assertion_clients: Vec<String>,
    /// The services for which tools get tokens of the people who log in (RFC 8693): audiences or resources. Without any,
    /// logins are not stored.
    pub token_exchange: Vec<String>,
    /// Whether a person may be found by a verified e-mail address.
    pub link_by_email: bool,
    /// Hosts of the issuer that may be private.
    pub private_hosts: Vec<String>,
    /// Whether a logout ends the session at the issuer, too.
    pub logout: bool,
    /// Whether the claims of the userinfo endpoint are read.
    pub userinfo: bool,
    pub rules: Vec<RuleSettings>,
}

/// What a login gets if its claims satisfy a condition.
#[derive(Debug, Clone)]
pub struct RuleSettings {
    /// The condition as it was written; `None` is always satisfied.
    pub when: Option<(String, Arc<ClaimCondition>)>,
    pub tenant: TenantId,
    pub rights: Rights,
    /// Names of groups of the tenant.
    pub groups: Vec<String>,
    /// A claim whose values are names of groups of the tenant.
    pub groups_claim: Option<String>,
}

/// A table `[[sign_on.issuers]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct IssuerTable {
    id: String,
    name: Option<String>,
    issuer: String,
    client_id: String,
    client_secret: Option<String>,
    scopes: Option<Vec<String>>,
    #[serde(default)]
    audiences: Vec<String>,
    #[serde(default)]
    assertion_clients: Vec<String>,
    #[serde(default)]
    token_exchange: Vec<String>,
    #[serde(default = "enabled")]
    link_by_email: bool,
    #[serde(default)]
    private_hosts: Vec<String>,
    #[serde(default = "enabled")]
    logout: bool,
    #[serde(default = "enabled")]
    userinfo: bool,
    #[serde(default)]
    rules: Vec<RuleTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RuleTable {
    when: Option<String>,
    tenant: Option<String>,
    role: String,
    #[serde(default)]
    elevated: bool,
    tools: Option<Vec<String>>,
    #[serde(default)]
    groups: Vec<String>,
    groups_claim: Option<String>,
}

fn enabled() -> bool {
    true
}

/// Parses an issuer; the error names the field and the fix.
pub fn declared(table: Value) -> Result<IssuerSettings, String> {
    let table: IssuerTable = serde_json::from_value(table).map_err(|error| error.to_string())?;
    let is_id = (1..=MAX_ID_BYTES).contains(&table.id.len())
        && table.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !is_id {
        return Err(format!("`id` must have 1 to {MAX_ID_BYTES} lower-case letters, digits and `-`"));
    }
    let url = issuer_url(&table.issuer)?;
    check_text("client_id", &table.client_id)?;
    let name = table.name.unwrap_or_else(|| table.id.clone());
    check_text("name", &name)?;
    let client_secret = table.client_secret.as_deref().map(secret_reference).transpose()?;
    let mut scopes =
        table.scopes.unwrap_or_else(|| ["openid", "email", "profile"].map(str::to_owned).to_vec());
    check_list("scopes", &scopes)?;
    if scopes.iter().any(|scope| scope.contains(char::is_whitespace)) {
        return Err("`scopes` must be a list of single scopes, e.g. [\"email\", \"groups\"]".to_owned());
    }
    if !scopes.iter().any(|scope| scope == "openid") {
        scopes.insert(0, "openid".to_owned());
    }
    check_list("audiences", &table.audiences)?;
    if table.audiences.contains(&table.client_id) {
        return Err(
            "`audiences` must not contain the `client_id`: ID tokens would be accepted as bearer tokens"
                .to_owned(),
        );
    }
    check_list("assertion_clients", &table.assertion_clients)?;
    check_list("token_exchange", &table.token_exchange)?;
    check_list("private_hosts", &table.private_hosts)?;
    for host in &table.private_hosts {
        check_host(host)
            .map_err(|error| format!("`private_hosts` has an invalid host pattern `{host}`: {error}"))?;
    }
    if table.rules.len() > MAX_RULES {
        return Err(format!("{} `rules`; the limit is {MAX_RULES}", table.rules.len()));
    }
    let rules = table.rules.into_iter().enumerate();
    let rules =
        rules.map(|(index, rule)| rule.parse().map_err(|error| format!("rule {}: {error}", index + 1)));
    Ok(IssuerSettings {
        id: table.id,
        name,
        url,
        issuer: table.issuer,
        client_id: table.client_id,
        client_secret,
        scopes,
        audiences: table.audiences,
        assertion_clients: table.assertion_clients,
        token_exchange: table.token_exchange,
        link_by_email: table.link_by_email,
        private_hosts: table.private_hosts,
        logout: table.logout,
        userinfo: table.userinfo,
        rules: rules.collect::<Result<_, _>>()?,
    })
}

impl RuleTable {
    fn parse(self) -> Result<RuleSettings, String> {
        let when = match self.when {
            None => None,
            Some(source) => {
                let condition =
                    ClaimCondition::compile(&source).map_err(|error| format!("`when`: {error}"))?;
                Some((source, Arc::new(condition)))
            }
        };
        let tenant = match self.tenant {
            None => TenantId::default_tenant(),
            Some(text) => text.parse().map_err(|error| format!("`tenant`: {error}"))?,
        };
        let role = Role::parse(&self.role)
            .ok_or("`role` must be `viewer`, `caller`, `editor` or `admin`".to_owned())?;
        let tools = AllowList::try_from(self.tools).map_err(|error| format!("`tools`: {error}"))?;
        check_list("groups", &self.groups)?;
        if let Some(claim) = &self.groups_claim {
            check_text("groups_claim", claim)?;
        }
        let rights = Rights { role, elevated: self.elevated, platform: false, tools };
        Ok(RuleSettings { when, tenant, rights, groups: self.groups, groups_claim: self.groups_claim })
    }
}

/// Parses an issuer identifier: a URL without query and fragment.
fn issuer_url(text: &str) -> Result<Url, String> {
    let invalid = || "`issuer` must be a URL such as `https://login.example.com`, without query".to_owned();
    let url = Url::parse(text).ok().filter(|_| text.len() <= MAX_TEXT_BYTES).ok_or_else(invalid)?;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !is_plain || url.password().is_some() {
        return Err(invalid());
    }
    let is_loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && !is_loopback {
        return Err("`issuer` must use `https`; `http` is for issuers on this machine".to_owned());
    }
    Ok(url)
}

/// Returns the name of a secret.
fn secret_reference(text: &str) -> Result<String, String> {
    let inner = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).map(str::trim);
    let inner = inner.filter(|inner| !inner.is_empty() && inner.len() <= MAX_TEXT_BYTES);
    inner.map(str::to_owned).ok_or_else(|| {
        "`client_secret` must refer to a secret, e.g. `${env:OIDC_SECRET}` or the name of a stored one, `${OIDC_SECRET}`"
            .to_owned()
    })
}

fn check_text(field: &str, text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > MAX_TEXT_BYTES || text.chars().any(char::is_control) {
        return Err(format!("`{field}` must have 1 to {MAX_TEXT_BYTES} bytes, without control characters"));
    }
    Ok(())
}

fn check_list(field: &str, entries: &[String]) -> Result<(), String> {
    if entries.len() > MAX_ENTRIES {
        return Err(format!("`{field}` has {} entries; the limit is {MAX_ENTRIES}", entries.len()));
    }
    entries.iter().try_for_each(|entry| check_text(field, entry))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(field: &str, value: Value) -> Value {
        let mut table = json!({"id": "corp", "issuer": "https://login.example.com", "client_id": "haft"});
        table[field] = value;
        table
    }

    #[test]
    fn the_defaults_accept_no_bearer_tokens() {
        let issuer = declared(with("rules", json!([{"role": "caller"}]))).unwrap();
        assert_eq!(issuer.name, "corp");
        assert_eq!(issuer.scopes, ["openid", "email", "profile"]);
        assert!(issuer.audiences.is_empty() && issuer.assertion_clients.is_empty());
        assert!(issuer.link_by_email && issuer.client_secret.is_none());
        let rule = &issuer.rules[0];
        assert!(rule.when.is_none() && rule.tenant.is_default() && !rule.rights.platform);
        assert!(rule.rights.tools.is_unlimited());
        let issuer = declared(with("client_secret", json!("${env:OIDC_SECRET}"))).unwrap();
        assert_eq!(issuer.client_secret.as_deref(), Some("env:OIDC_SECRET"));
    }

    #[test]
    fn invalid_issuers_name_the_field() {
        for (field, value, expected) in [
            ("id", json!("Corp!"), "`id` must have"),
            ("issuer", json!("login.example.com"), "`issuer` must be a URL"),
            ("issuer", json!("https://a.test/?x=1"), "`issuer` must be a URL"),
            ("issuer", json!("https://ann:pw@a.test"), "`issuer` must be a URL"),
            ("issuer", json!("http://login.example.com"), "`issuer` must use `https`"),
            ("client_id", json!(""), "`client_id` must have"),
            ("client_secret", json!("hunter2"), "`client_secret` must refer to a secret"),
            ("scopes", json!(["openid email"]), "`scopes` must be a list of single scopes"),
            ("audiences", json!(["haft"]), "`audiences` must not contain the `client_id`"),
            ("private_hosts", json!(["a b"]), "`private_hosts` has an invalid host pattern `a b`"),
            ("colour", json!("red"), "unknown field `colour`"),
            ("rules", json!([{"role": "owner"}]), "rule 1: `role` must be"),
            ("rules", json!([{"role": "caller", "platform": true}]), "unknown field `platform`"),
            ("rules", json!([{"role": "caller", "when": "claims.x ="}]), "rule 1: `when`: syntax error"),
            ("rules", json!([{"role": "caller", "tenant": "a b"}]), "rule 1: `tenant`"),
            ("rules", json!([{"role": "caller", "tools": ["a b"]}]), "rule 1: `tools`"),
        ] {
            let error = declared(with(field, value)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
