"""Teaches schemathesis the media types of script files, whose bodies are text, and of packages."""

import schemathesis

schemathesis.serializer.alias("application/x-haft-skill", "text/plain")
schemathesis.serializer.alias("application/zip", "application/octet-stream")
