-- Columns get the names that their meaning has elsewhere.
ALTER TABLE nodes RENAME COLUMN beat TO heartbeat;
ALTER TABLE calls RENAME COLUMN due_at TO not_before;
ALTER TABLE webhook_deliveries RENAME COLUMN due_at TO not_before;
