-- The last change of several definition files that was committed: if its journal is still in the home folder, its files
-- stay as they are.
CREATE TABLE applies (
    id TEXT PRIMARY KEY
);
