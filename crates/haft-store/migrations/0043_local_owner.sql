-- How many calls a member may make with all credentials together.
ALTER TABLE memberships ADD COLUMN rate_limit TEXT;

-- The local token and that of the environment belong to one person from now on, who owns what both owned.
UPDATE chats SET owner = 'local' WHERE tenant = 'default' AND owner = 'environment';
UPDATE runs SET principal = 'local' WHERE tenant = 'default' AND principal = 'environment';
UPDATE approvals SET principal = 'local' WHERE tenant = 'default' AND principal = 'environment';
UPDATE approval_grants SET principal = 'local' WHERE tenant = 'default' AND principal = 'environment';

-- What these tokens allowed applications belongs to that person, too.
UPDATE tokens SET actor_id = '68616674-0000-7000-8000-000000000001'
    WHERE actor_id IS NULL AND parent IS NULL AND tenant = 'default' AND hash LIKE 'grant:%';

-- Whose access a change concerned, by its generation; an empty text stands for everybody.
CREATE TABLE access_changes (
    generation BIGINT NOT NULL,
    actor_id TEXT NOT NULL,
    PRIMARY KEY (generation, actor_id)
);
