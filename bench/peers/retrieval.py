"""Ranks documents by bm25s. Reads `{"documents": [[id, text]], "queries": [text], "k": n, "stem": bool}` from standard input
and prints one list of ids per query."""

import json
import sys

import bm25s
import Stemmer


def main() -> None:
    request = json.load(sys.stdin)
    stemmer = Stemmer.Stemmer("english") if request["stem"] else None
    ids = [document for document, _ in request["documents"]]
    texts = [text for _, text in request["documents"]]
    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
    queries = bm25s.tokenize(request["queries"], stopwords="en", stemmer=stemmer, show_progress=False)
    found, _ = retriever.retrieve(queries, corpus=ids, k=request["k"], show_progress=False)
    json.dump([list(row) for row in found.tolist()], sys.stdout)


if __name__ == "__main__":
    main()
