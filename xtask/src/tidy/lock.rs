//! The budget for packages: every dependency is built by everyone, for ever.

use super::finding::Finding;

/// The most packages of others that `Cargo.lock` may name. Members of the workspace, which have no source, do not count:
/// splitting a crate adds nothing to build.
const BUDGET: usize = 639;

/// Checks the text of `Cargo.lock`.
pub(crate) fn check(text: &str) -> Option<Finding> {
    let packages = text.lines().filter(|line| line.starts_with("source = ")).count();
    (packages > BUDGET).then(|| Finding {
        file: "Cargo.lock".to_owned(),
        line: 1,
        rule: format!("{packages} packages; the budget is {BUDGET}"),
        remedy: "drop a dependency or a feature (`cargo tree --duplicates`), or raise the budget in a commit of its own",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_counted_in_packages_of_others() {
        let (ours, other) =
            ("[[package]]\nname = \"x\"\n", "[[package]]\nname = \"y\"\nsource = \"registry\"\n");
        assert_eq!(check(&(other.repeat(BUDGET) + ours)), None);
        let finding = check(&other.repeat(BUDGET + 1)).unwrap();
        assert_eq!(finding.rule, "640 packages; the budget is 639");
    }
}
