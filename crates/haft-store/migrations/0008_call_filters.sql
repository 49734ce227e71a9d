-- Fields of a call that lists are filtered by; until now only its record had them.
ALTER TABLE calls ADD COLUMN caller TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN error_code TEXT;
ALTER TABLE calls ADD COLUMN chat_id TEXT;
-- Few calls have an error or a chat: the others cost nothing here.
CREATE INDEX calls_with_error ON calls (tenant, error_code, id) WHERE error_code IS NOT NULL;
CREATE INDEX calls_of_chat ON calls (tenant, chat_id, id) WHERE chat_id IS NOT NULL;
