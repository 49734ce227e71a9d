//! Reciprocal rank fusion: one ranking from several whose scores cannot be compared.

use std::collections::HashMap;

/// The constant of reciprocal rank fusion: how little the first ranks differ.
pub const RRF_K: f32 = 60.0;

/// Combines rankings of ids, best first; returns at most `top_k` with their scores. The order of equal scores is that of
/// the ids, so that the same rankings always give the same result.
pub fn fuse(rankings: &[Vec<&str>], top_k: usize) -> Vec<(String, f32)> {
    let mut scores: HashMap<&str, f32> = HashMap::new();
    for ranking in rankings {
        let mut rank = 0.0_f32;
        for id in ranking {
            rank += 1.0;
            *scores.entry(id).or_default() += 1.0 / (RRF_K + rank);
        }
    }
    let mut fused: Vec<(String, f32)> =
        scores.into_iter().map(|(id, score)| (id.to_owned(), score)).collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    fused.truncate(top_k);
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_rankings_have_wins() {
        let fused = fuse(&[vec!["a", "b", "c"], vec!["d", "b"]], 3);
        let ids: Vec<&str> = fused.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["b", "a", "d"]);
        assert!((fused[0].1 - 2.0 / 62.0).abs() < 1e-6);
    }

    #[test]
    fn one_ranking_keeps_its_order() {
        let fused = fuse(&[vec!["z", "a"], vec![]], 10);
        assert_eq!(fused.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["z", "a"]);
        assert_eq!(fuse(&[], 5), []);
    }
}
