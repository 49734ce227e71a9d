-- The token with which the login was approved that this token comes from. It is revoked with that one.
ALTER TABLE tokens ADD COLUMN parent TEXT;
CREATE INDEX tokens_of_parent ON tokens (parent);
