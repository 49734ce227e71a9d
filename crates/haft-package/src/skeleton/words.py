"""Tools that work on text files.

Every tool is a function. haft calls it with the folder of the chat as `workspace`, and with the arguments that
`toolset.yaml` declares. It returns a dictionary that can be written as JSON.
"""

import re
from collections import Counter
from pathlib import Path


def count_words(workspace: Path, filename: str, top: int = 5) -> dict:
    text = (Path(workspace) / filename).read_text(encoding="utf-8")
    words = re.findall(r"\w+", text.lower())
    return {
        "filename": filename,
        "lines": len(text.splitlines()),
        "words": len(words),
        "top": [{"word": word, "count": count} for word, count in Counter(words).most_common(top)],
    }
