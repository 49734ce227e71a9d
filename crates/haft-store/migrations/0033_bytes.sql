-- The bytes of chats, of runs and of results outside of the records of their calls.

-- The messages of the chat.
ALTER TABLE chats ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE chats SET bytes = (SELECT CAST(COALESCE(SUM(OCTET_LENGTH(m.body)), 0) AS BIGINT) FROM messages m
    WHERE m.chat_id = chats.id);
CREATE INDEX chats_bytes ON chats (tenant, bytes);

-- The conversation, the steps and the output of the run.
ALTER TABLE runs ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE runs SET bytes = OCTET_LENGTH(input) + COALESCE(OCTET_LENGTH(output), 0)
    + (SELECT CAST(COALESCE(SUM(OCTET_LENGTH(s.step)), 0) AS BIGINT) FROM run_steps s WHERE s.run_id = runs.id);
CREATE INDEX runs_bytes ON runs (tenant, final, chat_id, bytes);

-- The result that is stored apart from the record. Those of earlier versions do not count.
ALTER TABLE calls ADD COLUMN result_bytes BIGINT NOT NULL DEFAULT 0;
