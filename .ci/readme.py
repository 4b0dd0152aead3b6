"""README.md from nbs/index.ipynb, without needing Quarto. `--check` only says whether they agree."""
import sys
from pathlib import Path
import nbformat
from nbconvert import MarkdownExporter

root = Path(__file__).resolve().parent.parent


def readme():
    notebook = nbformat.read(root / "nbs/index.ipynb", as_version=4)
    keep = []
    for cell in notebook.cells:
        lines = cell.source.splitlines()
        if any(line.startswith(("#| hide", "#| default_exp")) for line in lines) or cell.cell_type == "raw": continue
        if cell.cell_type == "code":
            echo = not any(line.replace(" ", "") == "#|echo:false" for line in lines)
            cell.source = "\n".join(line for line in lines if not line.startswith("#|"))
            if not echo: cell.metadata["transient"] = {"remove_source": True}
        keep.append(cell)
    notebook.cells = keep
    body, _ = MarkdownExporter().from_notebook_node(notebook)
    body = body.replace("](images/", "](nbs/images/").replace("](tutorials/", "](nbs/tutorials/").replace("](experiments/", "](nbs/experiments/").replace("](audits/", "](nbs/audits/").replace('src="images/', 'src="nbs/images/')
    return "<!-- made from nbs/index.ipynb by `make readme`: edit there -->\n\n" + body.strip() + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(readme() != (root / "README.md").read_text(encoding="utf-8"))
    (root / "README.md").write_text(readme(), encoding="utf-8")
