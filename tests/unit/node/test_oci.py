"""An archive holds images under the names that pods ask for, with programs where pods start them."""

import hashlib
import io
import json
import tarfile

from tools.node import oci


def test_an_archive_holds_all_images_with_their_programs(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).write_bytes(name.encode())
    first, second = tmp_path / "first", tmp_path / "second"
    images = [
        oci.Image("a/one:1", {"first": first}),
        oci.Image("b/two:2", {"app": second, "bin/more": first}),
    ]
    oci.write_images(images, tmp_path / "images.tar")
    files = unpacked((tmp_path / "images.tar").read_bytes())
    assert all(
        hashlib.sha256(data).hexdigest() == name[13:] for name, data in files.items() if name[:5] == "blobs"
    )

    def blob(described):
        return files["blobs/sha256/" + described["digest"].removeprefix("sha256:")]

    found = {}
    for listed in json.loads(files["index.json"])["manifests"]:
        manifest = json.loads(blob(listed))
        (layer,) = manifest["layers"]
        start = json.loads(blob(manifest["config"]))["config"]["Entrypoint"]
        found[listed["annotations"]["io.containerd.image.name"]] = (start, unpacked(blob(layer)))
    assert found == {
        "a/one:1": (["/first"], {"first": b"first"}),
        "b/two:2": (["/app"], {"app": b"second", "bin/more": b"first"}),
    }


def unpacked(archive: bytes) -> dict[str, bytes]:
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for entry in tar:
            if file := tar.extractfile(entry):
                files[entry.name] = file.read()
    return files
