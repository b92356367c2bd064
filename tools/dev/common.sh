# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Output, options and small helpers for every part of ./dev.

say() { printf '%s\n' "$*"; }
warn() { printf 'dev: warning: %s\n' "$*" >&2; }

# die STATUS SENTENCE...: 1 a step failed, 2 wrong usage, 3 the user said no, 4 something is missing
die() {
  local status=$1
  shift
  printf 'dev: %s\n' "$*" >&2
  exit "$status"
}

# What Ctrl-C does, whatever the interrupted program makes of it.
interrupted() { die 130 "Interrupted."; }

have() { command -v "$1" >/dev/null 2>&1; }
cores() { nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1; }

hash_of() {  # of standard input
  if have sha256sum; then sha256sum; else shasum -a 256; fi | cut -c1-16
}

# Sets opt_* for the whole script.
parse_options() {
  local command=$1
  shift
  opt_yes=no opt_mode='' opt_mirror=${PTERO_DEBIAN_MIRROR:-} opt_check=no opt_with_tests=no
  while (($#)); do
    case $command:$1 in
      *:--yes | *:-y) opt_yes=yes ;;
      *:--sysroot) opt_mode=sysroot ;;
      *:--system) opt_mode=system ;;
      *:--mirror)
        [[ ${2:-} =~ ^https?://[^[:space:]]+$ ]] ||
          die 2 "--mirror needs the http(s) address of a Debian mirror, not '${2:-}'."
        opt_mirror=${2%/}
        shift
        ;;
      *:-h | *:--help) usage; exit 0 ;;
      format:--check) opt_check=yes ;;
      package:--with-tests) opt_with_tests=yes ;;
      *) die 2 "'$1' is not an option of ./dev $command; ./dev --help lists them." ;;
    esac
    shift
  done
}

# Asks only where somebody can answer. Without a terminal the caller asked for it by running us.
confirm() {
  [[ $opt_yes == yes || ! -t 0 ]] && return 0
  local answer=''
  read -r -p "$1 [y/N] " answer || true
  [[ $answer == [yY] || $answer == [yY][eE][sS] ]]
}
