# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Python tools with pinned versions, in virtual environments under build/.

# venv_setup FOLDER REQUIREMENTS: rebuilt only when the requirements or the interpreter change.
venv_setup() {
  local folder=$1 requirements=$2 key
  key=$({ cat "$requirements"; python3 --version; command -v python3; printf '%s\n' "$PWD"; } | hash_of)
  if [[ $(cat "$folder/.ptero" 2>/dev/null) == "$key" ]]; then
    return
  fi
  say "Installing $(basename "$requirements") into $folder"
  rm -rf "$folder"
  python3 -m venv "$folder" ||
    die 4 "Python cannot make a virtual environment; install python3-venv and run this again."
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" ||
    die 1 "pip cannot install $requirements; see its message above."
  printf '%s\n' "$key" >"$folder/.ptero"
}
