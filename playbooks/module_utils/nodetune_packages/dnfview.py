"""Query dnf's library for the host as it is, or as if repositories were on it. Installs nothing."""

import contextlib
import os

from ansible.module_utils.nodetune_host.problem import ChangeError

from .dnffiles import OURS, SOURCES, read, repository_files
from .ownfiles import folder_apart
from .question import WRONG_ADDRESS, WRONG_KEY, Question


@contextlib.contextmanager
def view(question):
    """Yield dnf for the host of the question, with the metadata of all repositories."""
    import dnf

    with folder_apart() as folder, dnf.Base() as base:
        _configure(base, question, folder)
        try:
            base.read_all_repos()
            for repo in base.repos.iter_enabled():
                if repo.id.startswith(OURS):
                    repo.skip_if_unavailable = False
                    repo.metadata_expire = 0 if question.repositories is not None else repo.metadata_expire
            base.fill_sack(load_system_repo=True)
        except dnf.exceptions.Error as error:
            raise ChangeError(_repository(error)) from None
        yield base


def _configure(base, question, folder):
    """Write nothing to the host for a query: caches, logs and module state go to `folder`."""
    import dnf

    conf = base.conf
    if os.path.exists(conf.config_file_path):
        conf.read()
    conf.assumeyes = True
    conf.install_weak_deps = False
    conf.plugins = False
    conf.substitutions.update_from_etc("/")
    conf.substitutions["releasever"] = dnf.rpm.detect_releasever("/") or _release()
    if question.repositories is not None:
        conf.cachedir = conf.persistdir = conf.logdir = folder
        conf.reposdir = [_reposdir(question.repositories, folder, conf.reposdir)]


def _release():
    lines = read("/etc/os-release").splitlines()
    found = [line.partition("=")[2].strip('"') for line in lines if line.startswith("VERSION_ID=")]
    return (found or [""])[0].partition(".")[0]


def _reposdir(repositories, folder, hosts):
    """Make a folder with the host's repositories (not those of an earlier provision) and the site's."""
    own = folder + SOURCES
    os.makedirs(own)
    for place in hosts:
        for name in os.listdir(place) if os.path.isdir(place) else []:
            if not name.startswith(OURS):
                os.symlink(os.path.join(place, name), f"{own}/{name}")
    for path, text in repository_files(repositories, folder).items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    return own


def refresh(repositories):
    """Fetch the metadata of the site's repositories on the host."""
    import dnf

    with dnf.Base() as base, folder_apart() as folder:
        _configure(base, Question([]), folder)
        try:
            base.read_all_repos()
            for repo in base.repos.iter_enabled():
                if repo.id.startswith(OURS):
                    repo.metadata_expire = 0
                    repo.load()
        except dnf.exceptions.Error as error:
            raise ChangeError(_repository(error)) from None


def _repository(error):
    text = " ".join(str(error).split()).rstrip(".")
    key = "GPG" in text or "signature" in text.lower()
    return f"{text.replace(OURS, '')}: {WRONG_KEY if key else WRONG_ADDRESS}"
