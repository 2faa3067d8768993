"""An ordinary user without a control group: this one, or, for the superuser, one without a name whose copy of the programs
lies where everybody may read."""
import os
import pathlib
import shutil
import tempfile

import pytest

import helpers

USER = 12345
PROGRAMS = ("cordon", "cordon-service", "cordon-warden", "libcordon_zygote.so")


def copy_programs(tree):
    """The programs and manifests, as they lie in a build tree."""
    (tree / "build").mkdir()
    for name in PROGRAMS:
        shutil.copy2(os.path.join(os.path.dirname(helpers.CORDON), name), tree / "build" / name)
    shutil.copytree(helpers.REPOSITORY / "languages", tree / "languages")


class Ordinary:
    def __init__(self, tree):
        self.tree, self.home = tree, tree / "home"
        self.home.mkdir()
        self.binary, self.prefix = helpers.CORDON, ()
        if os.getuid() == 0:
            copy_programs(tree)
            self.binary = str(tree / "build" / "cordon")
            self.prefix = ("setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups")
            os.chown(self.home, USER, USER)

    def environment(self, env=None):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("CORDON_", "XDG_")) and name not in ("HOME", "STATE_DIRECTORY")}
        return {**kept, "HOME": str(self.home), **(env or {})}

    def cordon(self, *words, env=None, stdin=b""):
        """`cordon` as that user, with none of the flags that the suite gives to runs."""
        return helpers.cordon(*words, stdin=stdin, prefix=(*self.prefix, "env", "-i", *(f"{k}={v}" for k, v in
                              self.environment(env).items())), binary=self.binary, cwd=self.home)

    def daemon(self, env=None):
        """What support.Daemon takes to start one as that user."""
        data = self.home / "data"
        data.mkdir(mode=0o700, exist_ok=True)
        if os.getuid() == 0:
            os.chown(data, USER, USER)
        unset = [word for name in os.environ if name.startswith("XDG_") for word in ("-u", name)]
        return {"binary": self.binary, "prefix": (*self.prefix, "env", *unset, f"HOME={self.home}"), "data": data,
                "env": env, "optional": ()}


@pytest.fixture
def ordinary():
    with tempfile.TemporaryDirectory(prefix="cordon-ordinary-", dir="/var/tmp") as path:
        os.chmod(path, 0o755)
        user = Ordinary(pathlib.Path(path))
        if user.cordon("run", "-l", "bash", "-c", ":").code == 0:
            pytest.skip("this user has a control group")
        yield user
