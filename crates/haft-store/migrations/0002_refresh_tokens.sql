-- Refresh tokens that authorisation servers gave out in place of the configured ones.
CREATE TABLE refresh_tokens (
    tenant TEXT NOT NULL,
    -- A digest of what the token is asked for with, the configured refresh token included.
    grant_key TEXT NOT NULL,
    -- The credential that holds the configured one: with another value of it, this one is gone.
    credential TEXT NOT NULL,
    -- As in `credentials`; nothing while there is only a turn.
    sealed TEXT,
    -- Until when somebody uses it.
    turn BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, grant_key)
);
CREATE INDEX refresh_tokens_of_credential ON refresh_tokens (tenant, credential);
