"""Run the examples in README.md, CONTRIBUTING.md and docs/: each page is one doctest.

pytest's ``--doctest-glob`` reads a closing code fence as expected output, so the fences are blanked
out here first, which keeps the line numbers. Python blocks without prompts are compiled, not run.
"""

import doctest
import re
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^[ ]*(?:```|~~~)")
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def pages() -> list[Path]:
    """The pages that exist, in a fixed order."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
    return [page for page in top if page.exists()] + sorted((ROOT / "docs").rglob("*.md"))


def blocks(lines: list[str]) -> list[tuple[int, str, str]]:
    """The fenced blocks as (line of the first line inside, language, text)."""
    found, start, language = [], None, ""
    for number, line in enumerate(lines):
        if not FENCE.match(line):
            continue
        if start is None:
            start, language = number + 1, line.strip().strip("`~").strip()
        else:
            found.append((start, language, "\n".join(lines[start:number])))
            start = None
    return found


def run(page: Path) -> tuple[int, int]:
    """Failures and attempts of one page."""
    name = str(page.relative_to(ROOT))
    lines = page.read_text(encoding="utf-8").splitlines()
    failed = attempted = 0
    for start, language, text in blocks(lines):
        if language.split(" ")[0] in {"py", "python"} and not text.lstrip().startswith(">>>"):
            attempted += 1
            try:
                compile(text, name, "exec")
            except SyntaxError as error:
                failed += 1
                print(f"{name}:{start + (error.lineno or 1)}: {error.msg}", file=sys.stderr)
    plain = "\n".join("" if FENCE.match(line) else line for line in lines) + "\n"
    test = doctest.DocTestParser().get_doctest(plain, {"__name__": "__main__"}, name, str(page), 0)
    outcome = doctest.DocTestRunner(optionflags=OPTIONS).run(test)
    return failed + outcome.failed, attempted + outcome.attempted


def main() -> int:
    """Run every page; 0 if none failed."""
    warnings.simplefilter("error")
    failed = attempted = 0
    for page in pages():
        bad, all_ = run(page)
        failed, attempted = failed + bad, attempted + all_
    print(f"{len(pages())} pages, {attempted} examples, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
