"""Teaches schemathesis the media type of script files, whose bodies are text."""

import schemathesis

schemathesis.serializer.alias("application/x-haft-skill", "text/plain")
