-- Built-in bundles and tools are global: they belong to no tenant, and every tenant sees them. `*` is not the id of a
-- tenant.
UPDATE bundles SET tenant = '*' WHERE kind = 'built_in';
UPDATE tools SET tenant = '*' WHERE built_in = 1;
