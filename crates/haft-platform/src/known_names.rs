//! The names of things that definitions refer to, as this node knows them.

use std::collections::HashMap;

use arc_swap::ArcSwap;
use haft_core::name::TenantId;

/// The names of one kind of thing, by tenant: ids and slugs, each with a number.
#[derive(Default)]
pub struct KnownNames {
    current: ArcSwap<Names>,
}

#[derive(Default)]
struct Names {
    /// The state of the counter in the store; `None` before the first reading.
    counter: Option<i64>,
    by_tenant: HashMap<TenantId, HashMap<String, u32>>,
}

impl KnownNames {
    /// Returns the counter that the names belong to.
    pub fn counter(&self) -> Option<i64> {
        self.current.load().counter
    }

    /// Replaces all names.
    pub fn replace(&self, counter: i64, names: impl Iterator<Item = (TenantId, String, u32)>) {
        let mut by_tenant: HashMap<TenantId, HashMap<String, u32>> = HashMap::new();
        for (tenant, name, number) in names {
            by_tenant.entry(tenant).or_default().insert(name, number);
        }
        self.current.store(std::sync::Arc::new(Names { counter: Some(counter), by_tenant }));
    }

    /// Returns the number of a name that a tenant has.
    pub fn find(&self, tenant: &TenantId, name: &str) -> Option<u32> {
        self.current.load().by_tenant.get(tenant)?.get(name).copied()
    }
}
