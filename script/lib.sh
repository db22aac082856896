# shellcheck shell=bash
# What the scripts share; sourced, with the shell in the repository's root afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '== %s\n' "$*"; }

# Says which preset this machine can build, and why, in $preset and $preset_why. WARPWRIGHT_PRESET
# overrules it (for a build without the GPU side on a machine that has nvcc).
choose_preset() {
  local nvcc version
  nvcc=$(command -v nvcc || true)
  if [[ -z $nvcc && -x /usr/local/cuda/bin/nvcc ]]; then
    nvcc=/usr/local/cuda/bin/nvcc
  fi
  preset=${WARPWRIGHT_PRESET:-}
  if [[ -n $preset ]]; then
    preset_why="WARPWRIGHT_PRESET says so"
  elif [[ -z $nvcc ]]; then
    preset=model
    preset_why="there is no nvcc here, so the GPU side is left out"
  else
    version=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    if ((${version:-0} >= 13)); then
      preset=cuda
      preset_why="$nvcc is there"
    else
      preset=model
      preset_why="$nvcc is older than 13.0, so the GPU side is left out"
    fi
  fi
  if [[ -n $nvcc ]]; then
    export CUDACXX=${CUDACXX:-$nvcc}
  fi
}

# Libraries that `script/on_gpu pack` packed elsewhere, where they came along: CMake looks there too.
take_libraries() {
  [[ -f .gpu/libraries.tgz ]] || return 0
  mkdir -p .gpu/libraries
  tar -xzf .gpu/libraries.tgz -C .gpu/libraries
  local usr=$PWD/.gpu/libraries/usr
  export CMAKE_PREFIX_PATH=$usr:$usr/share/cmake:$usr/lib/x86_64-linux-gnu/cmake
}

# The seed of this run, as a number: what script/test samples it draws by it.
run_seed() {
  local commit
  commit=$(git rev-parse HEAD 2>/dev/null | cut -c1-8 | grep . || echo 0)
  echo "${WARPWRIGHT_SEED:-$((16#$commit))}"
}

has_gpu() { nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }

# build KERNELS [TARGET...]: configures build/ for these kernels (WARPWRIGHT_KERNELS) and builds the
# targets, by default all. $preset says how; $device_part, which kernels the GPU side gets, where not
# all (WARPWRIGHT_DEVICE_PART).
build() {
  local kernels=$1 fresh=() targets=() old log
  shift
  (($# == 0)) || targets=(--target "$@")
  say "building into build/ with the preset \"$preset\": $preset_why"
  # A build tree that was made for another place (a copied or moved checkout) cannot be reused.
  old=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' build/CMakeCache.txt 2>/dev/null || true)
  if [[ -n $old && $old != "$PWD" ]]; then
    fresh=(--fresh)
  fi
  mkdir -p build
  log=build/configure.log
  if ! cmake --preset "$preset" "-DWARPWRIGHT_KERNELS=$kernels" \
    "-DWARPWRIGHT_DEVICE_PART=${device_part:-}" "${fresh[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  # On a terminal ninja keeps this on one line.
  NINJA_STATUS='   %f of %t steps, %es: ' cmake --build --preset "$preset" "${targets[@]}"
}

# part NAME [BUDGET] COMMAND...: runs a part of a script, and says how long it took. BUDGET is the
# processor time that it may take, in seconds; what takes more is in $over_budget afterwards. It
# fails nothing: machines are noisy.
over_budget=()
part() {
  local name=$1 budget= status=0 measured wall user system TIMEFORMAT='%0R %0U %0S'
  shift
  if [[ $1 =~ ^[0-9]+$ ]]; then
    budget=$1
    shift
  fi
  measured=$(mktemp)
  { time "$@" 2>&3; } 3>&2 2>"$measured" || status=$?
  read -r wall user system <"$measured"
  rm -f "$measured"
  local spent="$((user + system)) s of processor time"
  say "$name: $wall s, $spent${budget:+ (budget: $budget s)}$( ((status == 0)) || printf ', FAILED')"
  ((user + system <= ${budget:-user + system})) || over_budget+=("$name: $spent, and its budget is $budget s")
  return "$status"
}

# The last words of a script: what took more processor time than its budget.
say_over_budget() {
  local each
  for each in "${over_budget[@]}"; do say "over budget: $each"; done
}

# project_files ENDING...: every source file that git knows or would take; where this is no git
# checkout (an unpacked archive), every one outside the build folders.
project_files() {
  local file
  if ! git ls-files --cached --others --exclude-standard --deduplicate -- "${@/#/*.}" 2>/dev/null
  then
    local names=()
    for file in "$@"; do names+=(-o -name "*.$file"); done
    find . -path './build*' -prune -o -type f \( "${names[@]:1}" \) -print
  fi | while read -r file; do  # git still knows files that were just removed
    [[ ! -f $file ]] || printf '%s\n' "$file"
  done
}
