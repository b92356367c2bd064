# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# An apt of our own under build/: its state, cache and configuration are private, so looking
# (what would change?) and fetching leave the machine's apt as it is.

forky_source_name=ptero-forky
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# forky_source MIRROR strict|relaxed
forky_source() {
  printf '%s\n' 'Types: deb' "URIs: $1" 'Suites: forky' 'Components: main' \
    "Signed-By: $debian_keyring"
  # The archive may be a frozen copy. Signatures are checked all the same.
  if [[ $2 == relaxed ]]; then
    printf '%s\n' 'Check-Valid-Until: no'
  fi
}

forky_pin() {
  printf '%s\n' 'Package: *' 'Pin: release n=forky' 'Pin-Priority: 100'
}

# What the machine's own sources offer: "release codename address" a line, without our source.
machine_sources() {
  # shellcheck disable=SC2016  # apt expands these
  apt-get indextargets --format '$(RELEASE) $(CODENAME) $(REPO_URI) $(COMPONENT) $(SOURCESENTRY)' \
    'Created-By: Packages' 2>/dev/null |
    awk -v own="/$forky_source_name.sources:" \
      '$4 == "main" && index($0, own) == 0 { print $1, $2, $3 }' | sort -u
}

# The Debian mirror of this machine: the first http(s) address with a whole suite (not -security).
debian_mirror() {
  if [[ -n $opt_mirror ]]; then
    printf '%s\n' "$opt_mirror"
    return
  fi
  machine_sources | awk '
    $1 ~ /^(bookworm|trixie|forky|duke|sid|oldoldstable|oldstable|stable|testing|unstable)$/ &&
    $3 ~ /^https?:/ { sub(/\/$/, "", $3); print $3; exit }'
}

# private_apt FOLDER FRESH COMMAND...: FRESH=machine looks at this machine's installed packages and
# sources plus forky, FRESH=empty at forky alone as if nothing were installed.
private_apt() {
  local dir=$1 view=$2 arch
  shift 2
  arch=$(dpkg --print-architecture)
  mkdir -p "$dir"/{lists/partial,cache/archives/partial,etc/sources,etc/preferences,log,empty}
  {
    apt-config dump | grep -E '^(Acquire|Dir::Bin|Dir::Etc::trusted)' | grep -v '^Acquire::IndexTargets'
    printf '%s\n' "APT::Architecture \"$arch\";" "APT::Architectures { \"$arch\"; };" \
      'APT::Sandbox::User "root";' 'APT::Install-Recommends "false";' \
      'Acquire::Languages "none";' 'Acquire::GzipIndexes "true";' \
      "Dir::State::lists \"$dir/lists\";" "Dir::Cache \"$dir/cache\";" "Dir::Log \"$dir/log\";" \
      "Dir::Etc::sourceparts \"$dir/etc/sources\";" \
      "Dir::Etc::preferencesparts \"$dir/etc/preferences\";" \
      "Dir::Etc::parts \"$dir/empty\";" 'Dir::Etc::main "/dev/null";'
    if [[ $view == empty ]]; then
      : >"$dir/status"
      printf '%s\n' "Dir::State::status \"$dir/status\";" \
        "Dir::State::extended_states \"$dir/extended_states\";" \
        'Dir::Etc::sourcelist "/dev/null";' 'Dir::Etc::preferences "/dev/null";'
    fi
  } >"$dir/apt.conf"
  LC_ALL=C APT_CONFIG="$dir/apt.conf" "$@"
}

# private_apt_update FOLDER VIEW MIRROR: prints `strict` or `relaxed`, whichever form worked.
private_apt_update() {
  local dir=$1 view=$2 mirror=$3 log=$1/update.log form
  for form in strict relaxed; do
    mkdir -p "$dir/etc/sources"
    forky_source "$mirror" "$form" >"$dir/etc/sources/$forky_source_name.sources"
    private_apt "$dir" "$view" apt-get update >"$log" 2>&1 || true
    if ! forky_expired "$mirror" <"$log"; then
      printf '%s\n' "$form"
      return
    fi
  done
  cat "$log" >&2
  die 1 "apt calls forky's Release file expired even with Check-Valid-Until: no; see above."
}

# Reads apt's messages: does it refuse forky's Release file because of its date?
forky_expired() {
  grep -F "$1/dists/forky/" | grep -qE 'Release file for .* is expired'
}

warn_expired() {
  warn "The Release file of forky at $1 is past its Valid-Until date, so this copy of the archive" \
    "may miss security updates. Signatures are still checked; the date of this one source is not."
}
