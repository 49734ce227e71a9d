//! The environment variables of the process; only this module reads them.

use std::collections::BTreeMap;

/// The variables of the process. Without `Debug`, because values may be secret.
#[derive(Clone, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Reads the variables of this process; those that are not valid Unicode are ignored.
    pub(crate) fn of_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    /// Returns the value of a variable; an empty one counts as unset.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the names with a prefix.
    pub(crate) fn names_with(&self, prefix: &str) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(move |name| name.starts_with(prefix))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}
