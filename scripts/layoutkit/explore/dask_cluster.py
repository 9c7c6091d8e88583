"""A cluster of ``dask.distributed``, found by the address of its scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError, LayoutkitError, MissingProgramError
from layoutkit.explore.cluster_workplace import ClusterWorkplace

if TYPE_CHECKING:
    from layoutkit.explore.jobs import Limits

_CONNECT_S = 15


@dataclass(frozen=True)
class DaskCluster:
    """Workers behind a scheduler. Whoever reaches a scheduler without TLS can run programs on all of its workers.

    Attributes:
        address: ``tcp://HOST:PORT`` or ``tls://HOST:PORT``; ``tcp://``, or with certificates ``tls://``, may be left
            out.
        ca: Certificates that the cluster's are checked against (PEM file); together with the other two or not at all.
        cert: Certificate of this client (PEM file).
        key: Private key of it (PEM file).
        worker_wait_s: For so long jobs wait for a worker that may do them. [s]
    """

    address: str
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    worker_wait_s: float = 60.0

    def __post_init__(self) -> None:
        """Refuse certificates that do not belong together or to the address."""
        given = [name for name in ("ca", "cert", "key") if getattr(self, name)]
        if given and len(given) < 3:
            raise LayoutkitError(f"TLS needs ca, cert and key; got only {' and '.join(given)}")
        scheme, _, rest = self.address.rpartition("://")
        if scheme not in ("", "tcp", "tls") or ":" not in rest:
            raise LayoutkitError(
                f"address {self.address!r} of a scheduler must have the form tcp://HOST:8786 or tls://HOST:8786"
            )
        if scheme == "tls" and not given:
            raise LayoutkitError(f"{self.address} needs the TLS files ca, cert and key")
        if scheme == "tcp" and given:
            raise LayoutkitError(f"{self.address} is not encrypted, but TLS files are given; write tls://{rest}")

    def open(self, limits: Limits) -> ClusterWorkplace:
        """Return the connected cluster.

        Raises:
            FileError: If a TLS file does not exist.
            MissingProgramError: If Dask is not installed here, or no scheduler answers.
        """
        try:
            from distributed import Client, Security
        except ImportError:
            raise MissingProgramError(
                "a cluster needs dask.distributed; install the package with its extra 'explore'"
            ) from None
        scheme, _, rest = self.address.rpartition("://")
        address = f"{scheme or ('tls' if self.ca else 'tcp')}://{rest}"
        options: dict[str, Any] = {}
        if self.ca:
            absent = [each for each in (self.ca, self.cert, self.key) if each and not Path(each).is_file()]
            if absent:
                raise FileError(f"there is no TLS file {', '.join(absent)}", details={"paths": absent})
            files = {"tls_ca_file": self.ca, "tls_client_cert": self.cert, "tls_client_key": self.key}
            options["security"] = Security(require_encryption=True, **files)
        try:
            client = Client(address, timeout=_CONNECT_S, set_as_default=False, **options)
        except (OSError, ValueError, TypeError) as error:  # also what ssl says to files that are no certificates
            why = next(iter(str(error).splitlines()), type(error).__name__)
            raise MissingProgramError(f"no scheduler answers at {address}: {why}") from error
        return ClusterWorkplace(client, limits, self.worker_wait_s)
