//! The cost of tokens, where prices are configured.

use serde::{Deserialize, Serialize};

use super::event::Usage;

/// The prices of a model per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Tokens of the request.
    pub input: f64,
    /// Tokens of the answer.
    pub output: f64,
    /// Tokens that the provider read from its cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Tokens that the provider wrote to its cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<f64>,
    /// The currency of all prices.
    #[serde(default = "default_currency")]
    pub currency: String,
}

fn default_currency() -> String {
    "USD".to_owned()
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The amount.
    pub amount: f64,
    /// The currency.
    pub currency: String,
}

impl Prices {
    /// Creates prices in US dollars.
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output, cached: None, cache_written: None, currency: default_currency() }
    }

    /// Returns the cost of a request.
    pub fn cost(&self, usage: Usage) -> Cost {
        let plain = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
        let amount = tokens(plain) * self.input
            + tokens(usage.cached) * self.cached.unwrap_or(self.input)
            + tokens(usage.cache_written) * self.cache_written.unwrap_or(self.input)
            + tokens(usage.output) * self.output;
        Cost { amount: amount / 1e6, currency: self.currency.clone() }
    }

    /// Returns the first price that is negative or not a number.
    pub(super) fn invalid(&self) -> Option<(&'static str, f64)> {
        let prices = [
            ("input", Some(self.input)),
            ("output", Some(self.output)),
            ("cached", self.cached),
            ("cache_written", self.cache_written),
        ];
        let mut prices = prices.into_iter().filter_map(|(name, price)| Some((name, price?)));
        prices.find(|(_, price)| !price.is_finite() || *price < 0.0)
    }
}

/// Converts a number of tokens; a number that needs more than 32 bits is a fault of the provider.
fn tokens(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_their_own_price() {
        let usage = Usage {
            input: 1_000_000,
            output: 100_000,
            cached: 600_000,
            cache_written: 100_000,
            reasoning: 50,
        };
        let mut prices = Prices::new(3.0, 15.0);
        assert!((prices.cost(usage).amount - 4.5).abs() < 1e-9);
        prices.cached = Some(0.3);
        prices.cache_written = Some(3.75);
        assert!((prices.cost(usage).amount - (0.9 + 0.18 + 0.375 + 1.5)).abs() < 1e-9);
        assert_eq!(prices.cost(usage).currency, "USD");
    }

    #[test]
    fn invalid_prices_are_found() {
        assert_eq!(Prices::new(1.0, 2.0).invalid(), None);
        assert_eq!(Prices::new(1.0, -2.0).invalid(), Some(("output", -2.0)));
        assert_eq!(Prices::new(f64::NAN, 2.0).invalid().map(|found| found.0), Some("input"));
    }
}
