"""Finish the pages that nbdev has put in _proc, before Quarto renders them.

`nbdev_proc_nbs` makes the pages; this script gives each one its chapter number and its
reading time, hides imports, folds tests and makes links between pages relative. The
notebooks themselves stay as they are.
"""

import ast
import json
import os
import re
import sys
import textwrap
from pathlib import Path

import yaml

from privpgd.core.figures import CYCLE

root = Path(__file__).resolve().parent.parent
SITE = "https://privpgd.github.io/privpgd/"
WIDTH = 88  # columns of code that fit the page
TEXTS = ("markdown", "html")  # outputs that readers see as text
PARTS = ("I", "II", "III", "IV", "V", "VI", "VII")


def statements(source):
    "The statements of a cell; None when it is not plain Python (a magic, a shell line)."
    try:
        return ast.parse(source).body
    except SyntaxError:
        return None


def is_import(node):
    return isinstance(node, (ast.Import, ast.ImportFrom))


def is_test(node):
    "An assertion, a call of test_eq and its like, or an error that must be raised."
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.With):
        call = node.items[0].context_expr
    elif isinstance(node, ast.Expr):
        call = node.value
    else:
        return False
    name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
    known = ("test_", "raises", "expect_fail", "refused", "ExceptionExpected")
    return name.split(".")[-1].startswith(known)


def checks(node):
    "Is there a test somewhere in this statement?"
    return any(is_test(part) for part in ast.walk(node))


def prepares(source, body):
    "Ten lines or more that only define what later cells use."
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AugAssign)
    return len(source.splitlines()) >= 10 and all(
        isinstance(node, kinds) or is_import(node) or checks(node) for node in body
    )


def draws(cell):
    "Is a picture among what this cell gives?"
    return any("image/png" in o.get("data", {}) for o in cell.get("outputs", []))


def visible(cell):
    "Does the reader see this cell?"
    source = "".join(cell["source"])
    if cell["cell_type"] == "raw" or not source.strip():
        return False
    if cell["cell_type"] == "markdown":
        return bool(re.sub(r"<!--.*?-->", "", source, flags=re.S).strip())
    hidden = "echo: false" in source and not cell.get("outputs")
    return not hidden and "include: false" not in source


def folded(title, source):
    return f'#| code-fold: true\n#| code-summary: "{title}"\n' + source


def fold(cell, show):
    """Hide a cell of imports, fold a cell whose purpose is a test. `show` says what
    readers see of the other code: "all" of it, all but "helpers" and what draws a
    figure, a "title", or "nothing"."""
    source = "".join(cell["source"])
    if cell["cell_type"] != "code" or re.search(r"^#\| (echo|code-fold)", source, re.M):
        return
    body = statements(source)
    if show == "nothing" or (body and all(map(is_import, body))):
        cell["source"] = "#| echo: false\n" + source
    elif body and checks(body[-1]) and not cell.get("outputs"):
        cell["source"] = folded("Tests", source)
    elif show == "helpers" and body and not cell.get("outputs"):
        if prepares(source, body):
            cell["source"] = folded("Helpers", source)
    elif show == "helpers" and draws(cell) and "#| export" not in source:
        cell["source"] = folded("Code of the figure", source)
    elif show == "title":
        cell["source"] = folded("Code", source)


def spare_signatures(cells):
    """Where the source of a name is shown, its signature and docstring are on the page
    already: of its documentation the heading and the link to the source stay."""
    below = re.compile(r"(\n#{2,6} [^\n]*\n).*", re.S)  # the heading
    for cell, after in zip(cells, cells[1:]):
        documented = "".join(cell["source"]).rstrip().split("\n")[-1]
        shown = 'code-summary: "Exported source"' in "".join(after["source"])
        if not (shown and documented.startswith("show_doc(")):
            continue
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "text/markdown" in data:
                data["text/markdown"] = below.sub(r"\1", "".join(data["text/markdown"]))


def short_names(signature):
    "Without links, modules and addresses, none of which a reader can use there."
    signature = re.sub(r"\[`([^`]*)`\]\([^)]*\)", r"\1", signature)
    signature = re.sub(r"<[\w.]+ object at 0x\w+>", "…", signature)
    package = r"\b(?:__main__|privpgd|collections|numpy|pathlib|pandas|typing)"
    return re.sub(package + r"(?:\.[a-z_]\w*)*\.(?=[A-Za-z])", "", signature)


def wrapped(text, start="    ", then="    "):
    "Lines of a signature that fit the page; a union stays together."
    lines = textwrap.wrap(
        text.replace(" | ", "\0|\0"),
        WIDTH,
        initial_indent=start,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def fitted_signature(signature):
    "A signature in lines that fit; a long comment stands above its parameter."
    short = short_names(signature)
    lines = short.split("\n")
    if short == signature and max(map(len, lines)) <= WIDTH:
        return signature
    fitted, bare = [], []  # lines, and parameters without a comment
    for number, line in enumerate(lines):
        if line.startswith("    # "):
            continue  # it belongs to the line above
        code, mark, comment = line.partition(" # ")
        for more in lines[number + 1 :]:
            if not more.startswith("    # "):
                break
            comment += " " + more.removeprefix("    # ")
        if line.startswith("    ") and not mark:
            bare.append(code.strip())
            continue
        fitted += wrapped(" ".join(bare)) if bare else []
        bare = []
        if len(code + mark + comment) <= WIDTH:
            fitted.append(code + mark + comment)
        elif code.startswith(")"):
            fitted += [code, *wrapped(comment, "    # ", "    # ")]
        else:
            fitted += [*wrapped(comment, "    # ", "    # "), code]
    return "\n".join(fitted)


def fit_signatures(text):
    "The same documentation with signatures that fit the page."

    def fit(block):
        return block[1] + fitted_signature(block[2]) + block[3]

    return re.sub(r"(```python\n+)((?:def|class) .*?)(\n```)", fit, text, flags=re.S)


def breakable_heads(text):
    "Tables whose long names of columns may break after an underscore."
    text = re.sub(r"(?<=<th>)[^<]*_[^<]*(?=</th>)", under, text)
    heads = r"^\|.*\|$(?=\n\| ?:?-)"
    return re.sub(heads, under, text, flags=re.M)


def under(found):
    return re.sub(r"_(?!<wbr>)", "_<wbr>", found[0])


def row_cells(row):
    "The cells of a row of a table in Markdown."
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]


def read_width(cell):
    "About how many letters a reader sees of a cell, within limits."
    seen = re.sub(r"\]\([^)]*\)|[`*$\[]|\\[a-z]+", "", cell)
    return min(max(len(seen), 6), 48)


def proportioned(text):
    """Tables in Markdown with columns as wide as their cells ask for: pandoc makes the
    columns of a long table as wide as their dashes tell, which are equal otherwise."""

    def fit(found):
        rows = [row_cells(row) for row in found[0].splitlines()]
        if len({len(row) for row in rows}) > 1:
            return found[0]
        columns = zip(*(row for i, row in enumerate(rows) if i != 1))
        widths = [max(map(read_width, column)) for column in columns]
        dashes = (
            re.sub("-+", "-" * n, rule, count=1) for n, rule in zip(widths, rows[1])
        )
        lines = found[0].splitlines()
        lines[1] = "|" + "|".join(dashes) + "|"
        return "\n".join(lines)

    table = r"^\|.*\|\n\|(?: *:?-+:? *\|)+(?:\n\|.*\|)+$"
    return re.sub(table, fit, text, flags=re.M)


def relative_links(text, page):
    "Links to our own site as links between files, so that a preview stays in itself."

    def link(found):
        start, target, anchor, end = found.groups(default="")
        return start + os.path.relpath(target, page.parent) + anchor + end

    where = re.escape(SITE) + r"([\w./-]+)(#[^)\s\"]*)?"
    return re.sub(rf'(\]\(|href="){where}(\)|")', link, text)


def reading_minutes(cells):
    "At 200 words a minute, and thirty lines of the code that is not folded."
    words = sum(
        len("".join(c["source"]).split()) for c in cells if c["cell_type"] == "markdown"
    )
    lines = sum(
        len("".join(c["source"]).splitlines())
        for c in cells
        if c["cell_type"] == "code"
        and not re.search("echo: false|code-fold: true", "".join(c["source"]))
    )
    return max(1, round(words / 200 + lines / 30))


def sidebar(name):
    "The entries of one tab of the site."
    bars = yaml.safe_load((root / "nbs/sidebar.yml").read_text(encoding="utf-8"))
    return next(b for b in bars["website"]["sidebar"] if b["id"] == name)["contents"]


def pages_of(entries):
    return re.findall(r"[\w./-]+\.ipynb", yaml.dump(entries, sort_keys=False))


def shown_code():
    "What readers see of the code of a page: all of it, unless it is listed here."
    book = dict.fromkeys(pages_of(sidebar("book")), "helpers")
    evidence = dict.fromkeys(pages_of(sidebar("evidence")), "title")
    return book | evidence | dict.fromkeys(pages_of(sidebar("reference")), "nothing")


def chapters():
    "Part and number of each page of the book, in the order of the sidebar."
    found = {}
    for part in sidebar("book"):
        numeral = part["section"].split()[0]
        pages = enumerate(pages_of(part), 1)
        found |= {page: f"{numeral}.{i}" for i, page in pages}
    return found


def opening(name):
    "The text under the title and the subtitle of a notebook; nbdev keeps only these two."
    notebook = json.loads((root / "nbs" / name).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and source.startswith("# "):
            return re.sub(r"^# .*\n+(>.*\n*)*", "", source + "\n").strip()
    return ""


def restore_opening(cells, name):
    "Put the text under the title in front of everything else."
    text = opening(name)
    place = next((i for i, c in enumerate(cells) if visible(c)), len(cells))
    if text:
        cell = dict(cell_type="markdown", id="opening", metadata={}, source=text)
        cells.insert(place, cell)
        cells[place + 1 : place + 1] = opening_picture(cells)


def marked(cell):
    "Is this the figure that a page opens with, although it is made further down?"
    return "#| opening: true" in "".join(cell["source"])


def opening_picture(cells):
    "A copy of the marked figure with its caption, without its code; or nothing."
    for cell in filter(marked, cells):
        lines = "".join(cell["source"]).splitlines()
        options = [
            line for line in lines if line.startswith(("#| fig-cap", "#| fig-alt"))
        ]
        shown = [o for o in cell["outputs"] if "image/png" in o.get("data", {})]
        copy = dict(cell, id="opening-copy", outputs=shown)
        return [copy | dict(source="\n".join(["#| echo: false", *options]))]
    return []


def title_of(name):
    "The title of a notebook, and its subtitle as half a sentence."
    notebook = json.loads((root / "nbs" / name).read_text(encoding="utf-8"))
    texts = ("".join(cell["source"]) for cell in notebook["cells"])
    head = next(text for text in texts if text.startswith("# ")).splitlines()
    subtitle = next((line[1:].strip() for line in head if line.startswith(">")), "")
    return head[0][1:].strip(), subtitle.rstrip(".")


def close_page(cells, name, order):
    "A chapter that does not say what comes next ends with the next chapter."
    if any("## What comes next" in "".join(cell["source"]) for cell in cells):
        return
    place = order.index(name) + 1
    following = order[place] if place < len(order) else "learn/start.ipynb"
    title, subtitle = title_of(following)
    link = f"[{title}]({os.path.relpath(following, Path(name).parent)})"
    text = f"## What comes next\n\n{link}: {subtitle[:1].lower() + subtitle[1:]}."
    cells.append(dict(cell_type="markdown", id="closing", metadata={}, source=text))


def finish(path, numbers, times, show):
    "One page of _proc: its number, its reading time, hidden imports, folded tests."
    name = path.relative_to(root / "_proc").as_posix()
    page = json.loads(path.read_text(encoding="utf-8"))
    cells = page["cells"]
    if all(cell.get("id") != "opening" for cell in cells):
        restore_opening(cells, name)
    if name in numbers:
        close_page(cells, name, list(numbers))
    if show.get(name) not in ("title", "nothing"):
        spare_signatures(cells)
    for cell in cells:
        fold(cell, show.get(name, "all"))
        if cell["cell_type"] == "markdown":
            text = proportioned(relative_links("".join(cell["source"]), Path(name)))
            cell["source"] = text
        for output in cell.get("outputs", []):
            for kind in {"text/markdown", "text/html"} & set(output.get("data", {})):
                text = "".join(output["data"][kind])
                if "show_doc(" in "".join(cell["source"]):
                    text = fit_signatures(text)
                else:
                    text = breakable_heads(proportioned(text))
                output["data"][kind] = relative_links(text, Path(name))
    head = cells[0]
    matter = "".join(head["source"])
    if (
        name in numbers | times
        and head["cell_type"] == "raw"
        and ("subtitle:" not in matter)
    ):
        minutes = reading_minutes(cells)
        unit = "minute" if minutes == 1 else "minutes"
        note = f"{minutes} {unit} to read"
        if number := numbers.get(name):
            note = f"Chapter {number} · {note}"
            matter = matter.replace("---\n", f'---\nchapter: "{number}"\n', 1)
        head["source"] = re.sub(
            r"\n---\s*$", f'\nsubtitle: "{note}"\n---\n', matter.rstrip()
        )
    path.write_text(json.dumps(page, ensure_ascii=False, indent=1), encoding="utf-8")


def prose_first(page):
    first = next((c for c in page["cells"] if visible(c)), None)
    return first is None or first["cell_type"] == "markdown"


def described(source):
    "Does a cell have a caption for its picture, and words for who cannot see it?"
    words = (rf"^#\| fig-{part}: *[\"']?\w" for part in ("cap", "alt"))
    return all(re.search(option, source, re.M) for option in words)


def bare_figures(page):
    "Pictures without a caption or without words for who cannot see them."
    nameless = re.compile(
        r"!\[\s*\]\([^)]*\)(?!\{[^}]*fig-alt=\"\w)|<img(?![^>]*\balt=[\"']\w)[^>]*>"
    )
    for cell in page["cells"]:
        shown = [o.get("data", {}) for o in cell.get("outputs", [])]
        source = "".join(cell["source"])
        made = any({"image/png", "image/svg+xml"} & set(data) for data in shown)
        if made and not described(source):
            yield source.splitlines()[0]
        texts = ["".join(d.get(f"text/{x}", "")) for d in shown for x in TEXTS]
        for text in [*texts, source if cell["cell_type"] == "markdown" else ""]:
            yield from (found[0][:60] for found in nameless.finditer(text))


def blurred_figures(page):
    "Cells whose picture has no more pixels than it is shown with."
    for cell in page["cells"]:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}) and not (
                output.get("metadata", {}).get("image/png")
            ):
                yield "".join(cell["source"]).splitlines()[0]


PALETTE = re.compile(  # by name, by number in the cycle, in grey, and two maps
    r"white|black|k|gr[ae]y|none|C[0-8]|0?\.\d+|book|RdBu(_r)?"
)
COLOURS = ("color", "c", "ec", "fc", "edgecolor", "facecolor", "colors", "cmap")


def spelled_out(node):
    "The texts that an argument may be: itself, items of a list, ways of a choice."
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from (text for item in node.elts for text in spelled_out(item))
    elif isinstance(node, ast.IfExp):
        yield from (*spelled_out(node.body), *spelled_out(node.orelse))


def foreign_colours(page):
    "Colours in calls that draw, by a name that is not one of the book's."
    for cell in page["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or not draws(cell):
            continue
        for node in ast.walk(ast.Module(statements(source) or [], [])):
            if isinstance(node, ast.keyword) and node.arg in COLOURS:
                for given in spelled_out(node.value):
                    if given not in CYCLE and not PALETTE.fullmatch(given):
                        yield f"{node.arg}={given!r}"


def fenced(text):
    "The lines of the code blocks within a text."
    for block in re.findall(r"^```[^\n]*\n(.*?)^```", text, re.M | re.S):
        yield from block.splitlines()


def broken_tables(cell, limit=102, least=3):
    """First lines of printed tables that are too wide, so that their rows break. What
    is printed has smaller letters than code."""
    for output in cell.get("outputs", []):
        plain = output.get("data", {}).get("text/plain", output.get("text", ""))
        if set(output.get("data", {})) > {"text/plain"}:
            continue  # another form is shown
        wide = [x for x in "".join(plain).splitlines() if len(x) > limit]
        aligned = [x for x in wide if len(re.findall(r"\S {2,}\S", x)) >= 3]
        if len(aligned) >= least:
            yield aligned[0]


def faults(path, limit=WIDTH):
    "What is wrong with a finished page, as lines for a terminal."
    page = json.loads(path.read_text(encoding="utf-8"))
    found = []
    if not prose_first(page):
        found.append("its first cell is code, not prose")
    for cell in page["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            long = [
                line
                for line in source.splitlines()
                if len(line) > limit and not line.startswith("#|")
            ]
            found += [f"a line of code is too long: {line[:60]}…" for line in long]
        shown = [o.get("data", {}) for o in cell.get("outputs", [])]
        texts = ["".join(d.get(f"text/{x}", "")) for d in shown for x in TEXTS]
        prose = [source] if cell["cell_type"] == "markdown" else []
        found += [
            f"a line of a code block is too long: {line[:60]}…"
            for line in fenced("\n\n".join(prose + texts))
            if len(line) > limit
        ]
        found += [
            f"a printed table is too wide: {x[:60]}…" for x in broken_tables(cell)
        ]
        if any(re.search(rf'(\]\(|href="){re.escape(SITE)}', x) for x in prose + texts):
            found.append("an absolute link to our own site")
    found += [f"a figure without caption or alt text: {x}" for x in bare_figures(page)]
    found += [
        f"a figure that blurs on fine screens (make outputs): {x}"
        for x in blurred_figures(page)
    ]
    found += [f"a colour that is not the book's: {x}" for x in foreign_colours(page)]
    name = path.relative_to(root / "_proc").as_posix()
    return [f"{name}: {fault}" for fault in found]


def opens_with_picture(notebook):
    "Is a figure marked for the opening, or made there, or a part of its text?"
    cells = notebook["cells"]
    first = next(c for c in cells if "".join(c["source"]).startswith("# "))
    made = any(c.get("id") == "opening-picture" for c in cells[:6])
    return made or any(map(marked, cells)) or "](../images/" in "".join(first["source"])


def says_what_it_teaches(notebook):
    "Do the first cells of text say what a reader learns and needs?"
    texts = ["".join(c["source"]) for c in notebook["cells"][:5]]
    return all(any(f"**You {w}**" in text for text in texts) for w in ("learn", "need"))


def incomplete_chapters(numbers, parts=PARTS[:5], least=3):
    """Chapters that do not say what they teach and need; and those of the first five
    parts that lack a picture at the top, exercises, solutions or a self-check."""
    for name, number in numbers.items():
        notebook = json.loads((root / "nbs" / name).read_text(encoding="utf-8"))
        if not says_what_it_teaches(notebook):
            yield f"{name}: its opening does not say what a reader learns and needs"
        if number.split(".")[0] not in parts:
            continue
        if not opens_with_picture(notebook):
            yield f"{name}: no picture at its top (mark a figure with #| opening: true)"
        by_id = {c.get("id"): "".join(c["source"]) for c in notebook["cells"]}
        text = by_id.get("exercise", "")
        asked = len(re.findall(r"^\d+\. ", text, re.M))
        if asked < least or "*Check yourself:*" not in text or "solution" not in by_id:
            yield f"{name}: it has {asked} exercises, and needs {least}, a check, solutions"


def main():
    pages = sorted((root / "_proc").rglob("*.ipynb"))
    if not pages:
        sys.exit("there are no pages in _proc: run nbdev_proc_nbs first")
    numbers, show = chapters(), shown_code()
    read = [*sidebar("learn")[1:3], *sidebar("evidence")]  # what is not looked up
    times = dict.fromkeys(pages_of(read))
    for path in pages:
        finish(path, numbers, times, show)
    found = [fault for path in pages for fault in faults(path)]
    if found := [*found, *incomplete_chapters(numbers)]:
        sys.exit("\n".join(found))
    print(f"{len(pages)} pages finished, {len(numbers)} of them chapters")


if __name__ == "__main__":
    main()
