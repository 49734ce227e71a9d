-- When the file of a tool went away. Whoever puts it back in time gets the same tool back: a file that is gone for a
-- moment, as another branch is looked at, must not undo a publication or a switch.
ALTER TABLE tools ADD COLUMN gone_at BIGINT;
