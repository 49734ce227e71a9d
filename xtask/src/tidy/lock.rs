//! The budget for packages: every dependency is built by everyone, for ever.

use super::finding::Finding;

/// The most packages that `Cargo.lock` may name.
const BUDGET: usize = 660;

/// Checks the text of `Cargo.lock`.
pub(crate) fn check(text: &str) -> Option<Finding> {
    let packages = text.lines().filter(|line| *line == "[[package]]").count();
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
    fn the_budget_is_counted_in_packages() {
        assert_eq!(check(&"[[package]]\nname = \"x\"\n".repeat(BUDGET)), None);
        let finding = check(&"[[package]]\n".repeat(BUDGET + 1)).unwrap();
        assert_eq!(finding.rule, "661 packages; the budget is 660");
    }
}
