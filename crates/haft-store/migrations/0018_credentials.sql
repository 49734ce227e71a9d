-- What a credential is for: tools find it by name, or by category, provider and variant.
ALTER TABLE credentials ADD COLUMN category TEXT NOT NULL DEFAULT 'custom';
ALTER TABLE credentials ADD COLUMN provider_key TEXT;
ALTER TABLE credentials ADD COLUMN provider_variant TEXT;
ALTER TABLE credentials ADD COLUMN description TEXT NOT NULL DEFAULT '';
-- JSON: the field names of a structured value, which is a JSON object; NULL for a plain value.
ALTER TABLE credentials ADD COLUMN fields TEXT;
