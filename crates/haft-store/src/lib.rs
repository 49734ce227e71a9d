//! Everything haft keeps: catalog, definition files, ledger, search, secrets.
