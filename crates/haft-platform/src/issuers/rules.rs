//! What the rules of an issuer assign to a login. Rules that match are added up per tenant; a condition that fails does
//! not match.

use std::collections::{BTreeMap, BTreeSet};

use haft_core::actor::Rights;
use haft_core::name::TenantId;
use haft_oauth::jwt::Claims;
use serde_json::Value;

use super::settings::{IssuerSettings, RuleSettings};

/// The most values of a claim that are compared with names of groups.
const MAX_CLAIM_VALUES: usize = 1000;

/// Whether a rule matches.
#[derive(Debug, Clone)]
pub struct RuleOutcome {
    /// The rule.
    pub rule: RuleSettings,
    /// Whether it matches; an error says why its condition has no value.
    pub matched: Result<bool, String>,
}

/// What the rules assign in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantAssignment {
    pub tenant: TenantId,
    pub rights: Rights,
    /// Names of groups that must exist.
    pub groups: BTreeSet<String>,
    /// Values of claims; those that are names of groups count.
    pub claimed_groups: BTreeSet<String>,
}

/// Evaluates the rules. Conditions may take time: run it on a thread that may block.
pub fn evaluate(issuer: &IssuerSettings, claims: &Claims) -> Vec<RuleOutcome> {
    let claims = Value::Object(claims.clone());
    let outcome = |rule: &RuleSettings| {
        let matched = rule.when.as_ref().map_or(Ok(true), |(_, condition)| condition.matches(&claims));
        RuleOutcome { rule: rule.clone(), matched }
    };
    issuer.rules.iter().map(outcome).collect()
}

/// Adds up the rules that match, by tenant.
pub fn assignments(outcomes: &[RuleOutcome], claims: &Claims) -> Vec<TenantAssignment> {
    let mut tenants: BTreeMap<TenantId, TenantAssignment> = BTreeMap::new();
    for RuleOutcome { rule, .. } in outcomes.iter().filter(|outcome| outcome.matched == Ok(true)) {
        let claimed = rule.groups_claim.as_deref().map(|claim| values(claims, claim)).unwrap_or_default();
        let assigned = tenants.entry(rule.tenant.clone()).or_insert_with(|| TenantAssignment {
            tenant: rule.tenant.clone(),
            rights: rule.rights.clone(),
            groups: BTreeSet::new(),
            claimed_groups: BTreeSet::new(),
        });
        assigned.rights = assigned.rights.union(&rule.rights);
        assigned.groups.extend(rule.groups.iter().cloned());
        assigned.claimed_groups.extend(claimed);
    }
    tenants.into_values().collect()
}

/// Returns the texts of a claim: one, or a list.
fn values(claims: &Claims, name: &str) -> Vec<String> {
    match claims.get(name) {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => {
            list.iter().take(MAX_CLAIM_VALUES).filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::issuers::declared;

    #[test]
    fn matching_rules_are_added_up_per_tenant() {
        let issuer = declared(json!({
            "id": "corp", "issuer": "https://login.example.com", "client_id": "haft",
            "rules": [
                {"role": "viewer", "tools": ["web:*"], "groups_claim": "groups"},
                {"when": "'ops' in claims.groups", "role": "editor", "tools": ["ops:*"], "groups": ["leads"]},
                {"when": "claims.department == 'it'", "role": "admin", "elevated": true},
                {"when": "'ops' in claims.groups", "tenant": "acme", "role": "caller"},
            ],
        }))
        .unwrap();
        let claims = json!({"groups": ["ops", "dev", 7]}).as_object().unwrap().clone();
        let outcomes = evaluate(&issuer, &claims);
        let matched: Vec<_> = outcomes.iter().map(|outcome| outcome.matched.clone()).collect();
        assert_eq!(matched, [Ok(true), Ok(true), Err("`department` is missing".to_owned()), Ok(true)]);
        let found = assignments(&outcomes, &claims);
        let shown: Vec<_> = found
            .iter()
            .map(|one| {
                (one.tenant.as_str(), one.rights.role.as_str(), one.rights.elevated, one.rights.tools.rules())
            })
            .collect();
        let rules = vec!["web:*".to_owned(), "ops:*".to_owned()];
        assert_eq!(shown, [("acme", "caller", false, None), ("default", "editor", false, Some(rules))]);
        assert_eq!(found[1].groups.iter().collect::<Vec<_>>(), ["leads"]);
        assert_eq!(found[1].claimed_groups.iter().collect::<Vec<_>>(), ["dev", "ops"]);
        assert!(assignments(&[], &claims).is_empty());
    }
}
