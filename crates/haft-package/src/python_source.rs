//! A look at Python source as text: which names a module defines at its top level.
//!
//! It is a check for people, not a parser. It answers [`Defined::Unknown`] where only running the module would tell.

/// Whether a module defines a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defined {
    /// It does, as far as one can see.
    Yes,
    /// It defines it as a plain value, which cannot be called.
    NotCallable,
    /// It does not.
    No,
    /// Only running the module would tell.
    Unknown,
}

/// Ways of defining names that a text does not show.
const DYNAMIC: [&str; 5] = ["import *", "globals()", "__getattr__", "exec(", "setattr("];

/// Statements whose blocks belong to the top level of a module.
const BLOCKS: [&str; 10] =
    ["if", "elif", "else", "try", "except", "finally", "with", "for", "while", "match"];

/// Returns whether a module defines a name at its top level.
pub fn defines(source: &str, name: &str) -> Defined {
    let mut found = Defined::No;
    let mut inside_block = false;
    let mut import_list = false;
    for line in source.lines() {
        let code = line.split('#').next().unwrap_or_default();
        let statement = code.trim();
        if statement.is_empty() {
            continue;
        }
        if import_list {
            import_list = !statement.contains(')');
            if imports(statement.trim_end_matches(')'), name) {
                return Defined::Yes;
            }
            continue;
        }
        let is_top = !code.starts_with([' ', '\t']);
        if is_top {
            let word = statement.split([' ', ':', '(']).next().unwrap_or_default();
            inside_block = BLOCKS.contains(&word);
        }
        if !is_top && !inside_block {
            continue;
        }
        let is_import = statement.starts_with("from ") || statement.starts_with("import ");
        import_list = is_import && statement.contains('(') && !statement.contains(')');
        match definition(statement, name) {
            Defined::Yes => return Defined::Yes,
            Defined::NotCallable => found = Defined::NotCallable,
            Defined::No | Defined::Unknown => {}
        }
    }
    if DYNAMIC.iter().any(|word| source.contains(word)) { Defined::Unknown } else { found }
}

fn definition(statement: &str, name: &str) -> Defined {
    let statement = statement.strip_prefix("async ").unwrap_or(statement).trim_start();
    for keyword in ["def ", "class "] {
        if let Some(rest) = statement.strip_prefix(keyword) {
            let rest = rest.trim_start();
            let defined = rest.get(..word_length(rest)) == Some(name);
            return if defined { Defined::Yes } else { Defined::No };
        }
    }
    if let Some((_, names)) = statement.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) {
        let names = names.trim().trim_start_matches('(').trim_end_matches(')');
        return if imports(names, name) { Defined::Yes } else { Defined::No };
    }
    if let Some(names) = statement.strip_prefix("import ") {
        return if imports(names, name) { Defined::Yes } else { Defined::No };
    }
    assignment(statement, name)
}

/// Returns whether a list such as `a, b as c` binds a name.
fn imports(list: &str, name: &str) -> bool {
    list.split(',').any(|item| {
        let item = item.trim();
        item.rsplit_once(" as ").map_or(item, |(_, bound)| bound.trim()) == name
    })
}

fn assignment(statement: &str, name: &str) -> Defined {
    let Some(rest) = statement.strip_prefix(name) else { return Defined::No };
    if rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.')) {
        return Defined::No;
    }
    // `name = …`, `name: type = …`, `name, other = …`
    let Some((_, value)) = rest.split_once('=').filter(|(_, value)| !value.starts_with('=')) else {
        return Defined::No;
    };
    let value = value.trim();
    let is_literal = value.starts_with(|c: char| c.is_ascii_digit() || "\"'[{-".contains(c))
        || matches!(value, "None" | "True" | "False");
    if is_literal && !rest.trim_start().starts_with(',') { Defined::NotCallable } else { Defined::Yes }
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_at_the_top_level_are_found() {
        for source in [
            "def run(workspace):\n    pass\n",
            "async def run(workspace): ...",
            "def  run (workspace):\n",
            "class run:\n    pass",
            "from .impl import run",
            "from .impl import other, go as run",
            "from .impl import (\n    other,\n    run,  # it\n)\n",
            "import x.y as run",
            "run = make()",
            "run: Callable = make()",
            "run = lambda workspace: {}",
            "run, stop = make()",
            "if True:\n    def run(workspace): pass\nelse:\n    run = None\n",
            "try:\n    from fast import run\nexcept ImportError:\n    from slow import run\n",
            "run = None\nrun = make()\n",
        ] {
            assert_eq!(defines(source, "run"), Defined::Yes, "{source}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for source in [
            "",
            "def runner(workspace): pass",
            "def other():\n    def run(): pass\n",
            "class A:\n    def run(self): pass\n",
            "from run import other",
            "runner = 1",
            "run == 1",
            "# def run(): pass",
            "import os\nx = 1\n",
        ] {
            assert_eq!(defines(source, "run"), Defined::No, "{source}");
        }
        for source in ["run = 5", "run = 'x'", "run = None", "run: dict = {}"] {
            assert_eq!(defines(source, "run"), Defined::NotCallable, "{source}");
        }
        for source in ["from x import *", "def __getattr__(name): ...", "globals()['run'] = f"] {
            assert_eq!(defines(source, "run"), Defined::Unknown, "{source}");
        }
    }
}
