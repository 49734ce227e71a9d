//! Filters over metadata.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::metadata::{self, Metadata, MetadataError, MetadataValue};

/// The maximum nesting of a filter.
const MAX_DEPTH: usize = 16;
/// The maximum number of conditions and values in a filter.
const MAX_CONDITIONS: usize = 1024;

/// A condition on metadata. An array matches if one of its elements does.
///
/// As JSON: `{"equals": {"key": "team", "value": "core"}}`,
/// `{"all": [{"range": {"key": "year", "min": 2020}}, {"not": {"exists": {"key": "draft"}}}]}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Filter {
    /// The key has this value.
    Equals {
        /// The key.
        key: String,
        /// The value: a string, number or boolean.
        value: MetadataValue,
    },
    /// The key has one of these values.
    In {
        /// The key.
        key: String,
        /// The values.
        values: Vec<MetadataValue>,
    },
    /// The key has a number or string between two bounds, both inclusive. Strings compare by bytes, so ISO dates work.
    Range {
        /// The key.
        key: String,
        /// The lower bound, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<MetadataValue>,
        /// The upper bound, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<MetadataValue>,
    },
    /// The key has a value.
    Exists {
        /// The key.
        key: String,
    },
    /// All filters match; an empty list matches everything.
    All(Vec<Filter>),
    /// One of the filters matches; an empty list matches nothing.
    Any(Vec<Filter>),
    /// The filter does not match.
    Not(Box<Filter>),
}

/// A filter that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FilterError {
    /// Nested too deeply.
    #[error("filter is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// Too many conditions.
    #[error("filter has more than {MAX_CONDITIONS} conditions")]
    TooManyConditions,
    /// A range without bounds, with bounds of two types, or with bounds that have no order.
    #[error("range of `{0}` is invalid: set `min`, `max` or both, all numbers or all strings")]
    Range(String),
    /// An invalid key or value.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

impl Filter {
    /// Checks the filter against the limits.
    pub fn check(&self) -> Result<(), FilterError> {
        self.check_within(0, &mut 0)
    }

    fn check_within(&self, depth: usize, conditions: &mut usize) -> Result<(), FilterError> {
        if depth >= MAX_DEPTH {
            return Err(FilterError::TooDeep);
        }
        *conditions += if let Self::In { values, .. } = self { values.len().max(1) } else { 1 };
        if *conditions > MAX_CONDITIONS {
            return Err(FilterError::TooManyConditions);
        }
        match self {
            Self::Equals { key, value } => {
                metadata::check_key(key)?;
                Ok(metadata::check_scalar(key, value)?)
            }
            Self::In { key, values } => {
                metadata::check_key(key)?;
                Ok(values.iter().try_for_each(|value| metadata::check_scalar(key, value))?)
            }
            Self::Range { key, min, max } => {
                metadata::check_key(key)?;
                for bound in min.iter().chain(max) {
                    metadata::check_scalar(key, bound)?;
                }
                match (min, max) {
                    (Some(MetadataValue::Number(_)), None | Some(MetadataValue::Number(_)))
                    | (Some(MetadataValue::String(_)), None | Some(MetadataValue::String(_)))
                    | (None, Some(MetadataValue::Number(_) | MetadataValue::String(_))) => Ok(()),
                    _ => Err(FilterError::Range(key.clone())),
                }
            }
            Self::Exists { key } => Ok(metadata::check_key(key)?),
            Self::All(filters) | Self::Any(filters) => {
                filters.iter().try_for_each(|filter| filter.check_within(depth + 1, conditions))
            }
            Self::Not(filter) => filter.check_within(depth + 1, conditions),
        }
    }

    /// Tells whether metadata matches. The index answers the same question from its terms.
    pub fn matches(&self, metadata: &Metadata) -> bool {
        let scalars = |key: &str| metadata.get(key).map(MetadataValue::scalars).unwrap_or_default();
        match self {
            Self::Equals { key, value } => scalars(key).contains(value),
            Self::In { key, values } => scalars(key).iter().any(|scalar| values.contains(scalar)),
            Self::Range { key, min, max } => scalars(key).iter().any(|scalar| {
                min.as_ref().is_none_or(|min| is_ordered(min, scalar))
                    && max.as_ref().is_none_or(|max| is_ordered(scalar, max))
            }),
            Self::Exists { key } => metadata.contains_key(key),
            Self::All(filters) => filters.iter().all(|filter| filter.matches(metadata)),
            Self::Any(filters) => filters.iter().any(|filter| filter.matches(metadata)),
            Self::Not(filter) => !filter.matches(metadata),
        }
    }
}

/// Tells whether two values of one type are in ascending order.
fn is_ordered(low: &MetadataValue, high: &MetadataValue) -> bool {
    match (low, high) {
        (MetadataValue::Number(low), MetadataValue::Number(high)) => low <= high,
        (MetadataValue::String(low), MetadataValue::String(high)) => low <= high,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(json: &str) -> Filter {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn filters_match_metadata() {
        let metadata: Metadata =
            serde_json::from_str(r#"{"team":"core","year":2026,"tags":["a","b"],"on":"2026-03-01"}"#)
                .unwrap();
        for (json, expected) in [
            (r#"{"equals":{"key":"team","value":"core"}}"#, true),
            (r#"{"equals":{"key":"tags","value":"b"}}"#, true),
            (r#"{"equals":{"key":"year","value":"2026"}}"#, false),
            (r#"{"in":{"key":"year","values":[2025,2026]}}"#, true),
            (r#"{"in":{"key":"year","values":[]}}"#, false),
            (r#"{"range":{"key":"year","min":2026}}"#, true),
            (r#"{"range":{"key":"year","max":2025.5}}"#, false),
            (r#"{"range":{"key":"on","min":"2026-01-01","max":"2026-12-31"}}"#, true),
            (r#"{"range":{"key":"team","min":1}}"#, false),
            (r#"{"exists":{"key":"tags"}}"#, true),
            (r#"{"not":{"exists":{"key":"tags"}}}"#, false),
            (r#"{"all":[]}"#, true),
            (r#"{"any":[]}"#, false),
            (r#"{"any":[{"exists":{"key":"x"}},{"equals":{"key":"team","value":"core"}}]}"#, true),
        ] {
            assert_eq!(filter(json).check(), Ok(()), "{json}");
            assert_eq!(filter(json).matches(&metadata), expected, "{json}");
        }
    }

    #[test]
    fn hostile_filters_are_rejected() {
        let deep = (0..100).fold(filter(r#"{"all":[]}"#), |inner, _| Filter::Not(Box::new(inner)));
        assert_eq!(deep.check(), Err(FilterError::TooDeep));
        let wide = Filter::In { key: "a".into(), values: vec![true.into(); 2000] };
        assert_eq!(wide.check(), Err(FilterError::TooManyConditions));
        for json in [
            r#"{"range":{"key":"a"}}"#,
            r#"{"range":{"key":"a","min":1,"max":"b"}}"#,
            r#"{"range":{"key":"a","min":true}}"#,
        ] {
            assert_eq!(filter(json).check(), Err(FilterError::Range("a".into())), "{json}");
        }
        assert!(serde_json::from_str::<Filter>(r#"{"equals":{"key":"a","valu":1}}"#).is_err());
    }
}
