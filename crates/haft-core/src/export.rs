//! Definitions in the forms that models and their clients read.
