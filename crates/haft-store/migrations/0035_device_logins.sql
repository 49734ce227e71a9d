-- Logins of command lines that a person approves in a browser. Of both codes only the hash is stored.
CREATE TABLE device_logins (
    hash TEXT PRIMARY KEY,
    user_code_hash TEXT NOT NULL UNIQUE,
    -- The name of the computer, and the network address that started the login.
    device TEXT NOT NULL,
    address TEXT NOT NULL,
    state TEXT NOT NULL,
    -- The token of the person who approved it; the new token gets no more rights than this one has.
    token_hash TEXT,
    created_at BIGINT NOT NULL,
    -- When the command line last asked.
    polled_at BIGINT,
    expires_at BIGINT NOT NULL
);
