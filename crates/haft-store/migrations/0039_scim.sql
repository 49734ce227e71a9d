-- What an identity provider says about a member (SCIM).
ALTER TABLE memberships ADD COLUMN user_name TEXT;
-- The user name in lower case.
ALTER TABLE memberships ADD COLUMN user_name_key TEXT;
ALTER TABLE memberships ADD COLUMN external_id TEXT;
ALTER TABLE memberships ADD COLUMN given_name TEXT;
ALTER TABLE memberships ADD COLUMN family_name TEXT;
CREATE UNIQUE INDEX memberships_by_user_name ON memberships (tenant, user_name_key);
CREATE UNIQUE INDEX memberships_by_external_id ON memberships (tenant, external_id);
-- Whether the member has no access to the tenant, whatever its status.
ALTER TABLE memberships ADD COLUMN suspended BIGINT NOT NULL DEFAULT 0;

-- Whether an identity provider manages the group, and its id there.
ALTER TABLE actor_groups ADD COLUMN provisioned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE actor_groups ADD COLUMN external_id TEXT;
CREATE UNIQUE INDEX actor_groups_by_external_id ON actor_groups (tenant, external_id);
