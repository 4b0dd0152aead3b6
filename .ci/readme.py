"""README.md from nbs/index.ipynb, without needing Quarto. `--check` only says whether
they agree."""

import re
import sys
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter

root = Path(__file__).resolve().parent.parent
pictures = "nbs/images/readme_"


def cells(notebook):
    "The cells a reader sees, without their directives."
    for cell in notebook.cells:
        lines = cell.source.splitlines()
        if cell.cell_type == "raw" or any(
            line.startswith(("#| hide", "#| default_exp")) for line in lines
        ):
            continue
        alt = next(
            (
                line.split(":", 1)[1].strip(' "')
                for line in lines
                if line.startswith("#| fig-alt")
            ),
            "figure",
        )
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.setdefault("metadata", {})["alt"] = alt
        if "#| echo: false" in lines:
            cell.metadata["transient"] = {"remove_source": True}
        if cell.cell_type == "code":
            cell.source = "\n".join(line for line in lines if not line.startswith("#|"))
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("text/html", None)  # tables as plain text
        yield cell


def readme():
    "The text of README.md, and its pictures by name."
    notebook = nbformat.read(root / "nbs/index.ipynb", as_version=4)
    notebook.cells, notebook.metadata["language_info"] = (
        list(cells(notebook)),
        {"name": "python"},
    )
    body, resources = MarkdownExporter().from_notebook_node(notebook)
    alts = [
        output["metadata"]["alt"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    for name, alt in zip(resources.get("outputs", {}), alts):
        body = body.replace(f"![png]({name})", f"![{alt}]({pictures}{name})")
    body = re.sub(r"\n{3,}", "\n\n", body)
    body = re.sub(
        r"\]\((?!http|#|nbs/)([\w/]+\.(?:ipynb|gif|png))\)", r"](nbs/\1)", body
    )
    body = re.sub(r'src="(images/)', r'src="nbs/\1', body)
    text = (
        "<!-- made from nbs/index.ipynb by `make readme`: edit there -->\n\n"
        + body.strip()
        + "\n"
    )
    return text, {
        f"{pictures}{name}": content
        for name, content in resources.get("outputs", {}).items()
    }


if __name__ == "__main__":
    text, images = readme()
    if "--check" in sys.argv:
        same = text == (root / "README.md").read_text(encoding="utf-8")
        sys.exit(
            not (
                same
                and all(
                    (root / n).exists() and (root / n).read_bytes() == c
                    for n, c in images.items()
                )
            )
        )
    for old in root.glob(f"{pictures}*"):
        old.unlink()
    for name, content in images.items():
        (root / name).write_bytes(content)
    (root / "README.md").write_text(text, encoding="utf-8")
