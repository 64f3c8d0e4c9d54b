"""Output files that are written whole or not at all.

Every report goes through here: the bytes land in a temporary file beside the target, which then takes its name. A
link is followed, and a device or a pipe is written into: either would be lost if a file took its name.
Left out: folders; a caller that wants one makes it.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write ``data`` under ``path``, replacing the file that is there.

    Returns:
        The path.

    Raises:
        OSError: it cannot be written, and names ``path``; the file that stood there before is untouched and nothing is
            left beside it.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(target)), data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None  # not the temporary file, which nobody knows
    return target


def _replace(target: Path, data: bytes) -> None:
    with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())  # a temporary file is private; a report is not
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
