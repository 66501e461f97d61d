#!/bin/sh
# install.sh [FOLDER]: installs nodetune from the wheels in this folder, without network, into a virtual environment.
# FOLDER is ~/.local/share/nodetune, or /opt/nodetune for root. PYTHON=python3.12 names another Python.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
if [ "$(id -u)" = 0 ]; then folder=/opt/nodetune; else folder=$HOME/.local/share/nodetune; fi
folder=${1:-$folder}

"$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' || {
  echo "install.sh: $("$python" --version 2>&1): nodetune needs Python 3.10 to 3.14: name one with PYTHON=python3.12 sh $0" >&2
  exit 2
}
[ ! -e "$folder" ] || [ -f "$folder/pyvenv.cfg" ] || {
  echo "install.sh: $folder exists and is no virtual environment: name another folder" >&2
  exit 2
}
"$python" -m venv --clear --without-pip "$folder"
pip=$(echo "$here"/wheels/pip-*.whl)
"$folder/bin/python" "$pip/pip" install --quiet --no-index --find-links "$here/wheels" \
  --disable-pip-version-check --require-hashes -r "$here/constraints.txt"
echo "nodetune is installed: $folder/bin/nodetune audit"
