"""Run notebooks from top to bottom and keep their outputs:
`python .ci/outputs.py nbs/a.ipynb …` (`make outputs NB="nbs/a.ipynb …"`).

Pictures get twice as many pixels as they are shown with, in at most 256 colours.
Cells marked `#| slow` or `#| eval: false` are not run and keep the outputs they have;
`--slow` runs the slow ones, too. A notebook that fails is left as it was.
"""

import base64
import io
import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image


class Runner(NotebookClient):
    "Runs the cells that a reader runs."

    skipped = r"^#\|\s*(slow|eval:\s*false)"

    async def async_execute_cell(self, cell, cell_index, **options):
        if re.search(self.skipped, cell.source, re.M):
            return cell
        return await super().async_execute_cell(cell, cell_index, **options)


def smaller(picture):
    "A picture of a notebook in at most 256 colours, if that makes it smaller."
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        out = io.BytesIO()
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(out, "PNG", optimize=True)
    encoded = base64.b64encode(out.getvalue()).decode() + "\n"
    return min(picture, encoded, key=len)


def keep(path):
    "Run one notebook and write it with its outputs."
    notebook = nbformat.read(path, 4)
    Runner(
        notebook,
        timeout=None,
        kernel_name="python3",
        extra_arguments=["--InlineBackend.figure_formats={'retina'}"],
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "text" in output:  # a warning without the place of its file
                output.text = re.sub(r"(?m)^/\S+\.py:\d+: ", "", output.text)
            data = output.get("data", {})
            if "image/png" in data:
                data["image/png"] = smaller(data["image/png"])
    nbformat.write(notebook, path)


def main():
    os.environ.pop("MPLBACKEND", None)  # the notebook's own
    names = [name for name in sys.argv[1:] if name != "--slow"]
    if "--slow" in sys.argv:
        Runner.skipped = r"^#\|\s*eval:\s*false"
    failed = 0
    for name in names:
        try:
            keep(Path(name))
            print(f"kept: {name}", flush=True)
        except CellExecutionError as error:
            failed += 1
            print(f"failed: {name}\n{str(error)[-2000:]}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
