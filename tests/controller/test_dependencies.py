"""The controller runs where there is nothing but NumPy, safetensors and jaxtyping."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from controllers_for_tests import filter_bundle

from empowerment.controller import Controller, write_bundle

SCRIPT = """
import json, sys, time

REFUSED = "jax jaxlib equinox optax gymnasium matplotlib tyro rich numba onnx scipy threadpoolctl"


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in REFUSED.split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refuse())
begun = time.perf_counter()
import numpy as np
numpy_time = time.perf_counter() - begun
begun = time.perf_counter()
from empowerment import controller
own_time = time.perf_counter() - begun
import empowerment.controller.loop, empowerment.controller.devices, empowerment.controller.export

made = controller.Controller.load(sys.argv[1], engine="numpy")
actions = [made.step(np.full(5, 0.1 * i)).tolist() for i in range(3)]
try:
    import empowerment
    empowerment.Pendulum
    refused = False
except ModuleNotFoundError:
    refused = True
loaded = sorted(set(sys.modules) & set(REFUSED.split()))
print(json.dumps({"actions": actions, "loaded": loaded, "refused": refused,
                  "numpy": numpy_time, "own": own_time}))
"""


def test_it_needs_no_jax(tmp_path: Path):
    bundle = filter_bundle()
    write_bundle(bundle, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(f"import numpy {found['numpy']:.2f} s, then the controller {found['own']:.2f} s")
    assert found["loaded"] == []
    assert found["refused"]
    controller = Controller(bundle, engine="numpy")
    expected = [controller.step(np.full(5, 0.1 * i)) for i in range(3)]
    np.testing.assert_array_equal(np.array(found["actions"], np.float32), expected)
