-- The key that the stored credentials are encrypted with: how often it was rotated, and a known value encrypted with it.
CREATE TABLE vault_key (
    one BIGINT PRIMARY KEY,
    generation BIGINT NOT NULL,
    sealed TEXT NOT NULL,
    modified_at BIGINT NOT NULL
);
