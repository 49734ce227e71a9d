-- How many bytes the calls of a tenant take, by the first six digits of their ids, which are 4.7 hours each.
CREATE TABLE ledger_sizes (
    tenant TEXT NOT NULL,
    bucket TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    -- The last call whose body was removed; 'g', which follows every id, where all were.
    trimmed_to TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, bucket)
);
INSERT INTO ledger_sizes (tenant, bucket, bytes)
SELECT tenant, SUBSTR(id, 1, 6), SUM(OCTET_LENGTH(record)) FROM calls GROUP BY tenant, SUBSTR(id, 1, 6);
