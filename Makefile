# nodetune: set up and try it, or set up and test it, on a fresh Debian or Ubuntu with Python 3.10 or newer.

VENV := .venv
PYTHON ?= python3
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
APT_UNIT := iperf3 fio prometheus openssh-client gcc libc6-dev make e2fsprogs ethtool iproute2 iputils-ping kmod systemd udev zsh fish strace rt-tests sockperf perftest $(shell cat tests/support/packages/packages.txt)
APT_INTEGRATION := $(APT_UNIT) openssh-server sudo slurmctld slurmd slurm-client munge chromium chromium-driver prometheus-alertmanager ibsim-utils infiniband-diags
APT_MACHINES := $(shell cat tests/machines/packages.txt)
BIN := $(VENV)/bin

# What is compiled once need not be compiled again by each process that a test starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: try test full lint types unit integration machines wheel image controller release docs site apt-full apt-unit apt-integration apt-machines clean

try: $(VENV)/ready  ## audit this machine, and beside it a real GPU node from a bundled fact file
	@echo; echo "== this machine: nodetune audit"; echo
	@$(BIN)/nodetune audit || true
	@echo; echo "== a real node with two H100s, from its saved facts: nodetune audit --facts h100-x2"; echo
	@$(BIN)/nodetune audit --facts h100-x2 || true
	@echo; echo "More to see: $(BIN)/nodetune audit --facts tests/data/synthetic/hgx-h200-untuned.json (a synthetic node with many faults)"

test: $(VENV)/ready-dev apt-unit  ## what a newcomer runs; APT=no installs no Debian packages
	@$(MAKE) --no-print-directory -j 2 --output-sync lint types docs site
	@$(MAKE) --no-print-directory -j 2 unit wheel

full: test apt-integration apt-full  ## everything: all integration tests, the wheel on every Python, virtual machines (ALL=1: all of those)
	$(PYTEST) -m 'slow and not fleet and not alone' $(SLOW)
	$(PYTEST) -m alone -n 0 $(SLOW)
	PYTHON=$(BIN)/python sh .ci/wheel --every-python
	$(BIN)/python -m tests.mutants
	$(BIN)/python -m benchmarks --readme
	@$(MAKE) --no-print-directory machines

lint: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vermin --target=3.6- --no-tips --violations --eval-annotations nodetune/onhost nodetune/probe nodetune/measurements nodetune/remote/pull/deposit.py nodetune/remote/slurm/relay.py
	$(BIN)/vermin --target=3.7- --no-tips --violations --eval-annotations playbooks

types: $(VENV)/ready-dev
	$(BIN)/mypy

docs: $(VENV)/ready-dev
	$(BIN)/python docs/generate.py --check

site: $(VENV)/ready-dev  ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Twice as many at a time as there are CPUs: half of their time tests wait. Without make's own variables: a make in a
# test would look for the job server of this one.
PYTEST = env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(BIN)/python -m pytest -n $$((2 * $$(nproc))) --dist loadgroup --durations=15 --timeout=600

# The files that have slow tests. Each worker collects the tests of all files that it is given: all together take 10 s.
SLOW = tests/integration $$(grep -rl 'mark\.slow' tests/unit tests/doubles --include='test_*.py')

unit: $(VENV)/ready-dev
	$(PYTEST) -m 'not slow and not fleet'

integration: $(VENV)/ready-dev apt-integration  ## tests with a real sshd, Slurm, Ansible, chroots and a browser; the long ones: make full
	$(PYTEST) -m 'slow and not fleet and not alone and not full' $(SLOW)
	$(PYTEST) -m 'alone and not full' -n 0 $(SLOW)

machines: $(VENV)/ready-dev apt-machines  ## tests on virtual machines (root, QEMU): what is not proven for this tree; ALL=1: all
	$(SUDO) $(BIN)/python -m tests.machines.suite $(if $(ALL),--all)

wheel: $(VENV)/ready-dev  ## the wheel, in dist/, and the program run from it
	PYTHON=$(BIN)/python sh .ci/wheel

image: $(VENV)/ready  ## the image in which nodetune runs in a pod; NAME=REGISTRY/nodetune-node:TAG
	@PYTHON=$(abspath $(BIN))/python sh image/build $(NAME)

controller: release  ## the image of a controller, of the last commit; NAME=REGISTRY/nodetune:TAG
	@sh image/controller $(NAME)

release: $(VENV)/ready-dev  ## wheel, sdist, bundle, zipapp, packages, collection, chart, images, SBOM and checksums of the last commit, in dist/; KEY=FILE signs them; MAINTAINER, URL: of the packages
	$(BIN)/python .ci/release.py $(if $(KEY),--key $(KEY)) $(if $(MAINTAINER),--maintainer "$(MAINTAINER)") $(if $(URL),--url "$(URL)")

apt-full: PACKAGES = lintian rpmlint mmdebstrap cloud-init buildah golang-go
apt-unit: PACKAGES = $(APT_UNIT)
apt-integration: PACKAGES = $(APT_INTEGRATION)
apt-machines: PACKAGES = $(APT_MACHINES)
apt-full apt-unit apt-integration apt-machines:
	@APT=$(APT) sh .ci/apt $(PACKAGES)

$(VENV)/ready: pyproject.toml
	@echo "setting up $(VENV) (virtual environment, packages from PyPI)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or newer is needed: make PYTHON=python3.12 …"; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || APT=$(APT) sh .ci/apt python3-venv
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready
	@echo "adding what the tests need, from PyPI"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info

.PHONY: write
write: $(VENV)/ready-dev  ## write what is generated: pages of docs/, the synthetic machines of the tests
	$(BIN)/python docs/generate.py
	$(BIN)/python -m tests.data.synthetic.build --write

.PHONY: pictures
pictures: $(VENV)/ready-dev  ## take the pictures of the HTML page again, with Chromium
	PYTHONPATH=. $(BIN)/python docs/pictures.py

.PHONY: check
check: $(VENV)/ready-dev  ## the checks of one area, in under a minute: make check AREA=memory
	@$(BIN)/python -m tests.area $(AREA)
