"""The command line of bubblewrap, as text."""

from __future__ import annotations

from pathlib import Path

from proctor.adapters.sandbox.argv import Descriptors, build_bwrap_argv, build_outer_argv
from proctor.adapters.sandbox.spec import Limits, Mount, SandboxSpec


def _spec() -> SandboxSpec:
    return SandboxSpec(
        command=("/usr/bin/python3", "-c", "pass"),
        environment={"A": "1"},
        mounts=(Mount.same(Path("/usr")), Mount(Path("/run/x/g.sock"), Path("/run/gateway.sock"))),
        links={"/bin": "usr/bin"},
        hidden=(Path("/usr/lib/own"), Path("/usr/own.pth")),
        limits=Limits(scratch_bytes=1000),
    )


def test_s3_s4_s9_the_whole_command_line() -> None:
    """S3, S4, S9: every namespace, no rights, everything read-only but two bounded places."""
    words = build_bwrap_argv(_spec(), folders=frozenset({Path("/usr/lib/own")}))
    assert " ".join(words) == (
        "--unshare-all --die-with-parent --new-session --clearenv --cap-drop ALL --uid 10001 --gid 10001 "
        "--hostname sandbox --symlink usr/bin /bin --proc /proc --dev /dev --remount-ro /dev "
        "--dev-bind /dev/full /dev/zero "
        "--perms 1777 --size 1000 --tmpfs /dev/shm --perms 1777 --size 1000 --tmpfs /tmp "
        "--ro-bind /usr /usr --ro-bind /run/x/g.sock /run/gateway.sock "
        "--perms 0555 --size 4096 --tmpfs /usr/lib/own --remount-ro /usr/lib/own --ro-bind /dev/null /usr/own.pth "
        "--remount-ro / --setenv A 1 --chdir /tmp -- /usr/bin/python3 -c pass"
    )


def test_no_network_is_ever_shared() -> None:
    """S9: neither form keeps this machine's network, and nothing is bound so that it can be written."""
    for descriptors in (Descriptors(), Descriptors(userns=9, seccomp=4, info=5, block=6)):
        words = build_bwrap_argv(_spec(), descriptors)
        assert "--share-net" not in words
        assert "--bind" not in words
        assert "--unshare-all" in words or {"--unshare-net", "--unshare-pid", "--unshare-ipc"} <= set(words)


def test_descriptors_are_given_by_number() -> None:
    """S5: filter, limits and gate are handed over open."""
    text = " ".join(build_bwrap_argv(_spec(), Descriptors(seccomp=4, info=5, block=6, userns=9), command=("/x",)))
    assert "--seccomp 4 --info-fd 5 --block-fd 6 -- /x" in text
    assert text.startswith("--userns 9 --unshare-ipc --unshare-pid")


def test_the_outer_one_dies_with_its_starter() -> None:
    """M-A5: what root's sandboxes are nested in."""
    assert build_outer_argv("bwrap", 7) == [
        "bwrap", "--unshare-pid", "--die-with-parent", "--dev-bind", "/", "/", "--info-fd", "7", "--",
    ]  # fmt: skip
