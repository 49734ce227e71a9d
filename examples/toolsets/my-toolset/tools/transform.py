"""Transforms data files."""

import json
from pathlib import Path

from tools.analyze import read_rows

TEMPLATES = Path(__file__).resolve().parent.parent / "assets" / "templates"


def run(workspace: Path, input: str, output: str, template: str = "default") -> dict:
    """Writes the rows of a CSV or JSON file to a JSON file, as a template says."""
    settings = read_template(Path(workspace), template)
    rows = [transform(row, settings) for row in read_rows(Path(workspace) / input)]
    rows = [row for row in rows if row or not settings.get("skip_empty_rows")]
    text = json.dumps(rows, indent=settings.get("indent"), ensure_ascii=False, sort_keys=settings.get("sort_keys", False))
    target = Path(workspace) / output
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text + "\n", encoding="utf-8")
    return {"output": output, "rows": len(rows), "template": template}


def read_template(workspace: Path, template: str) -> dict:
    """A template is a file of the workspace, or the name of one that comes with the toolset."""
    own = workspace / template
    path = own if own.is_file() else TEMPLATES / f"{Path(template).name.removesuffix('.json')}.json"
    if not path.is_file():
        known = ", ".join(sorted(path.stem for path in TEMPLATES.glob("*.json")))
        raise ValueError(f"unknown template {template!r}; expected a file of the workspace, or one of: {known}")
    return json.loads(path.read_text(encoding="utf-8"))


def transform(row: dict, settings: dict) -> dict:
    out = {}
    for name, value in row.items():
        if settings.get("trim"):
            name = name.strip()
            value = value.strip() if isinstance(value, str) else value
        name = settings.get("rename", {}).get(name, name)
        if settings.get("lower_case_names"):
            name = name.lower()
        if value in (None, "") and settings.get("drop_empty_values"):
            continue
        out[name] = value
    return out
