# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Set-up on a Debian machine as root. Debian 12 and 13 get a forky source with a pin of 100, so
# that only what the project names comes from there; Debian 14 and later have it all already.

# Prints `older` (12, 13) or `current` (14 and later); fails elsewhere. /etc/os-release cannot tell:
# forky's base-files comes along with its libc6. The machine's own sources can.
debian_release() {
  have apt-get && have dpkg-query || return 1
  [[ $(. /etc/os-release && printf '%s' "${ID:-}") == debian ]] || return 1
  machine_sources | awk '
    { name = ($2 == "" || $2 == $3) ? $1 : $2 }
    name ~ /^(forky|duke|sid|testing|unstable)$/ { current = 1 }
    name ~ /^(bookworm|trixie)$/ { older = 1 }
    END { if (current) print "current"; else if (older) print "older"; else exit 1 }'
}

debian_can_install() {
  [[ $(id -u) == 0 ]] && debian_release >/dev/null
}

# debian_missing PACKAGE...: prints those that are not installed.
debian_missing() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      printf '%s\n' "$package"
  done
}

debian_has_all() {
  have dpkg-query && [[ -z $(debian_missing "$@") ]]
}

# debian_packages LEVEL host|forky: that list, one a line.
debian_packages() {
  local -n build_list=$2_packages_build test_list=$2_packages_test
  printf '%s\n' "${build_list[@]}"
  if [[ $1 == test ]]; then
    printf '%s\n' "${test_list[@]}"
  fi
}

debian_install() {
  local level=$1 release mirror='' form='' host forky dir=$PWD/build/setup/apt
  release=$(debian_release)
  # shellcheck disable=SC2046
  mapfile -t host < <(debian_missing $(debian_packages "$level" host))
  # shellcheck disable=SC2046
  mapfile -t forky < <(debian_missing $(debian_packages "$level" forky))
  if [[ $release == current ]]; then
    say "This set-up will install with apt, from this machine's own sources:"
    say "  ${host[*]} ${forky[*]}"
    confirm "Install them?" || die 3 "Nothing was changed."
    debian_repair
    debian_update_current
    debian_apt_install "${host[@]}" "${forky[@]}"
    return
  fi

  mirror=$(debian_mirror)
  [[ -n $mirror ]] ||
    die 4 "No http(s) Debian mirror is in this machine's apt sources; give one with --mirror URL."
  say "Looking at what would change, in an apt state of our own under build/setup..."
  rm -rf "$dir"
  mkdir -p "$dir"/etc/{sources,preferences}
  cp /etc/apt/sources.list.d/*.{sources,list} "$dir/etc/sources/" 2>/dev/null || true
  cp /etc/apt/preferences.d/* "$dir/etc/preferences/" 2>/dev/null || true
  forky_pin >"$dir/etc/preferences/$forky_source_name"
  form=$(private_apt_update "$dir" machine "$mirror")
  if [[ $form == relaxed ]]; then
    warn_expired "$mirror"
  fi
  debian_plan
  confirm "Make these changes?" || die 3 "Nothing was changed."
  debian_apply
  rm -rf "$dir"
}

debian_source_path=/etc/apt/sources.list.d/$forky_source_name.sources
debian_pin_path=/etc/apt/preferences.d/$forky_source_name

# Prints the changes. Uses debian_install's variables.
debian_plan() {
  local simulated=$dir/simulated
  debian_simulate "${host[@]}" >"$simulated" || debian_simulate -t forky "${host[@]}" >"$simulated" ||
    die 1 "apt cannot install ${host[*]}; its messages are above."
  debian_simulate -t forky "${forky[@]}" >>"$simulated" ||
    die 1 "apt cannot install ${forky[*]} from forky; its messages are above."
  say "This set-up will:"
  forky_source "$mirror" "$form" | cmp -s - "$debian_source_path" ||
    say "  write $debian_source_path: forky from $mirror$([[ $form == strict ]] || echo ', Check-Valid-Until: no')"
  forky_pin | cmp -s - "$debian_pin_path" ||
    say "  write $debian_pin_path: forky gets priority 100, so apt upgrade takes nothing from it"
  say "  install for building: ${host[*]:-nothing new}"
  say "  install from forky: ${forky[*]:-nothing new}"
  awk '
    $1 == "Remv" { removed[$2] = 1 }
    $1 == "Inst" { if ($3 ~ /^\[/) upgraded[$2] = 1; else added[$2] = 1 }
    function list(names,   text, name) { for (name in names) text = text " " name; return text }
    function count(names,   n, name) { for (name in names) n++; return n + 0 }
    END {
      print "  with what these need: " count(added) " new packages, " count(upgraded) " upgraded"
      if (count(upgraded)) print "  upgraded:" list(upgraded)
      if (count(removed)) print "  REMOVED, because forky'"'"'s libraries exclude them:" list(removed)
    }' "$simulated" | fold -s -w 100 | sed '2,$s/^\([^ ]\)/      \1/'
}

# debian_simulate [-t forky] PACKAGE...: prints apt's plan; no package is an empty plan.
debian_simulate() {
  [[ -n ${*:1} && ${*: -1} != forky ]] || return 0
  private_apt "$dir" machine apt-get --simulate --no-install-recommends install "$@" \
    2>"$dir/simulate.log" || {
    cat "$dir/update.log" "$dir/simulate.log" >&2
    return 1
  }
}

debian_apply() {
  debian_repair
  forky_source "$mirror" "$form" | debian_write "$debian_source_path"
  forky_pin | debian_write "$debian_pin_path"
  debian_apt update || warn "apt-get update reports errors in this machine's sources; going on."
  if ((${#host[@]})); then
    debian_apt_install "${host[@]}" || debian_apt_install -t forky "${host[@]}" ||
      die 1 "apt cannot install ${host[*]}; its messages are above."
  fi
  if ((${#forky[@]})); then
    debian_apt_install -t forky "${forky[@]}" ||
      die 1 "apt cannot install ${forky[*]} from forky; its messages are above."
  fi
}

debian_write() {
  cat >"$1.ptero-new"
  chmod 644 "$1.ptero-new"
  mv "$1.ptero-new" "$1"
}

# An installation that was killed may have left packages half-way: what was unpacked is configured,
# what was cut while unpacking is installed anew.
debian_repair() {
  local broken log=build/setup/dpkg-repair.log
  [[ -n $(dpkg --audit) ]] || return 0
  say "Finishing an interrupted package installation (dpkg --configure -a)..."
  : >"$log"
  debian_whole "$log" dpkg --configure -a --force-confdef --force-confold || true
  mapfile -t broken < <(dpkg-query -W -f '${db:Status-Eflag} ${binary:Package}\n' |
    awk '$1 == "reinstreq" { print $2 }')
  debian_whole "$log" debian_apt -y --fix-broken --reinstall install "${broken[@]}" || true
  if [[ -n $(dpkg --audit) ]]; then
    cat "$log" >&2
    die 1 "This machine's package database is in a state that dpkg --configure -a and" \
      "apt-get --fix-broken install do not mend (above); mend it and run this again."
  fi
}

# debian_whole LOG COMMAND...: a package installation that Ctrl-C does not stop half-way; set-up ends
# once it is through.
debian_whole() {
  local log=$1 child status=0 stopped=no
  shift
  trap 'stopped=yes; warn "Stopping as soon as no package is half-way..."' INT TERM
  set -m  # a process group of its own, which the terminal's Ctrl-C does not reach
  DEBIAN_FRONTEND=noninteractive "$@" >>"$log" 2>&1 </dev/null &
  child=$!
  set +m
  while true; do
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || break
  done
  trap interrupted INT TERM
  [[ $stopped == no ]] || interrupted
  return "$status"
}

debian_apt() {
  DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# A frozen copy of Debian 14 is as outdated as forky's would be on Debian 12; for this one run its
# date is not checked then, and no file of the machine's changes.
debian_update_current() {
  local log=build/setup/apt-update.log
  debian_apt update >"$log" 2>&1 && return
  if grep -qE 'Release file for .* is expired' "$log"; then
    warn "The Release file of this machine's Debian source is past its Valid-Until date, so this" \
      "copy of the archive may miss security updates. Signatures are still checked."
    debian_apt -o Acquire::Check-Valid-Until=false update >"$log" 2>&1 && return
  fi
  cat "$log" >&2
  warn "apt-get update reports errors; going on with what it has."
}

debian_apt_install() {
  local log=build/setup/apt-install.log
  local options=(-y -o DPkg::Lock::Timeout=120 --no-install-recommends
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold)
  say "apt-get install $*"
  # Downloads take most of the time, and may be stopped.
  if ! debian_apt "${options[@]}" --download-only install "$@" >"$log" 2>&1 ||
    ! debian_whole "$log" debian_apt "${options[@]}" install "$@"; then
    cat "$log" >&2
    return 1
  fi
}
