//! Collects a bounded number of problems.

use haft_core::problem::{Problem, excerpt};

/// The maximum number of problems of one package: a hostile one could have millions.
pub(crate) const MAX_PROBLEMS: usize = 50;

/// The maximum length of a path in a message, in characters.
pub(crate) const MAX_SHOWN: usize = 120;

/// A bounded list of problems.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    list: Vec<Problem>,
    left_out: usize,
}

impl Problems {
    /// Adds a problem, or counts it if the list is full.
    pub(crate) fn push(&mut self, problem: Problem) {
        if self.list.len() < MAX_PROBLEMS {
            self.list.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns whether the list is full, so that there is no point in further checks.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MAX_PROBLEMS
    }

    /// Returns the value if there are no problems.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Vec<Problem>> {
        if self.list.is_empty() { Ok(value) } else { Err(self.into_list()) }
    }

    /// Returns the first problems of many.
    pub(crate) fn bounded(all: impl IntoIterator<Item = Problem>) -> Vec<Problem> {
        let mut problems = Self::default();
        all.into_iter().for_each(|problem| problems.push(problem));
        problems.into_list()
    }

    fn into_list(mut self) -> Vec<Problem> {
        if self.left_out > 0 {
            let message = format!("{} more problems are not listed", self.left_out);
            self.list.push(Problem::new("", "more_problems", message));
        }
        self.list
    }
}

/// Creates a problem of one file.
pub(crate) fn of_file(path: &str, code: &str, message: impl Into<String>) -> Problem {
    Problem::new(excerpt(path, MAX_SHOWN), code, message)
}
