"""Run with `python3 -m unittest discover tests` in the folder of the toolset."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.words import count_words  # noqa: E402


class CountWords(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.workspace = Path(folder.name)

    def test_counts_lines_and_words(self):
        (self.workspace / "poem.txt").write_text("A rose is\na rose\n", encoding="utf-8")
        result = count_words(self.workspace, filename="poem.txt", top=1)
        self.assertEqual(
            result,
            {"filename": "poem.txt", "lines": 2, "words": 5, "top": [{"word": "a", "count": 2}]},
        )

    def test_a_missing_file_is_an_error(self):
        with self.assertRaises(FileNotFoundError):
            count_words(self.workspace, filename="missing.txt")


if __name__ == "__main__":
    unittest.main()
