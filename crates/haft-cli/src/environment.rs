//! The environment of the process, read once: the only place of haft that does.

use std::collections::BTreeMap;

/// The variables of the process. It has no `Debug`, because values may be secret.
#[derive(Clone, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Reads the variables of this process; those that are not Unicode are left out.
    pub(crate) fn of_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    /// Returns the value of a variable; an empty one counts as not set.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the names that start with a text.
    pub(crate) fn names_with(&self, start: &str) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(move |name| name.starts_with(start))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}
