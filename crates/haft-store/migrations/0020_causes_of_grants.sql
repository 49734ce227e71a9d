-- Which cause a remembered approval covers: the confirmation of a tool does not stand for the approvers of a rule.
-- Approvals that were remembered before are asked for again.
ALTER TABLE approval_grants ADD COLUMN cause TEXT NOT NULL DEFAULT '';
