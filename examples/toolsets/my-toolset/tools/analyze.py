"""Analyzes data files."""

import csv
import json
import statistics
from pathlib import Path


def run(workspace: Path, filename: str) -> dict:
    """Returns the number of rows, and statistics of every column, of a CSV or JSON file."""
    rows = read_rows(Path(workspace) / filename)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [analyze_column(name, [row.get(name) for row in rows]) for name in names]
    return {
        "summary": f"Analyzed {len(rows)} rows with {len(columns)} columns",
        "filename": filename,
        "stats": {"rows": len(rows), "columns": len(columns)},
        "columns": columns,
    }


def read_rows(path: Path) -> list:
    if path.suffix.lower() == ".json":
        data = json.loads(path.read_text(encoding="utf-8"))
        rows = data if isinstance(data, list) else [data]
        return [row if isinstance(row, dict) else {"value": row} for row in rows]
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, restkey="(more)"))


def analyze_column(name: str, values: list) -> dict:
    present = [value for value in values if value not in (None, "")]
    numbers = [number for number in map(to_number, present) if number is not None]
    column = {
        "name": name,
        "count": len(present),
        "missing": len(values) - len(present),
        "distinct": len({json.dumps(value, sort_keys=True, default=str) for value in present}),
        "type": "number" if present and len(numbers) == len(present) else "text",
    }
    if column["type"] == "number":
        column.update(
            min=min(numbers),
            max=max(numbers),
            mean=round(statistics.fmean(numbers), 6),
            median=statistics.median(numbers),
        )
    return column


def to_number(value):
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    # NaN and infinity are not JSON.
    return number if abs(number) != float("inf") and number == number else None
