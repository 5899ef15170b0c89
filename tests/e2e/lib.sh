# shellcheck shell=bash
# tests/e2e/lib.sh: what the run_*.sh scripts share. Each is bash, sources this first, prints TAP and ends with tap_end.
#
#   ok NAME COMMAND...              runs COMMAND; its output is shown when it fails
#   skip NAME REASON                a result that this machine cannot have
#   results NAME COMMAND...         COMMAND prints results of its own: "ok TEXT", "not ok TEXT" and comments "# ..."; that it
#                                   fails, or prints none, is a failure NAME
#   take_core PROGRAM VERSION MODE [ARG...]
#                                   make_core.sh into $CORE (a folder: exe core stdout stderr), once per set of arguments and
#                                   environment, whichever script is first; do not change what stands there. Where no core
#                                   can be taken: prints the reason as a skipped result and returns 1
#   oracle KIND NAME KEY            a figure that the program of $CORE printed: oracle type main.Node count
#   sonde_core COMMAND [ARG...]     sonde core COMMAND on $CORE
#   limited COMMAND...              COMMAND with 10 s (with sanitizers: 60 s) and 4 GB of address space
#   fails TEXT... -- COMMAND...     exit status 1 exactly, nothing on stdout, each TEXT on stderr
#   shows TEXT... -- COMMAND...     exit status 0, each TEXT on stdout
#   member PATH                     of the JSON on stdin: member heap.allocated_objects
#
# $SONDE is the program under test, $WORK a folder that goes away, VERSIONS the Go versions to run. Cores stand in
# $SONDE_E2E_CORES where scripts/test.sh shares them between the scripts, else in $WORK.
set -uo pipefail

E2E=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$E2E/../.." && pwd)
SONDE=${SONDE:-$ROOT/build/sonde}
VERSIONS=${SONDE_GO_VERSIONS:-1.22 1.24 1.27}
WORK=$(mktemp -d "${TMPDIR:-/tmp}/sonde-e2e.XXXXXX")
CORES=${SONDE_E2E_CORES:-$WORK}
CORE=
tap_results=0 tap_failures=0

trap 'rm -rf -- "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

ok() {
	local name=$1 output
	shift
	tap_results=$((tap_results + 1))
	if output=$("$@" 2>&1); then
		echo "ok $tap_results - $name"
	else
		echo "not ok $tap_results - $name"
		sed 's/^/# /' <<<"$output"
		tap_failures=$((tap_failures + 1))
	fi
}

skip() {
	tap_results=$((tap_results + 1))
	echo "ok $tap_results - $1 # SKIP $2"
}

results() {
	local name=$1 line output status=0 n=$tap_results
	shift
	output=$("$@" 2>"$WORK/results.stderr") || status=$?
	while IFS= read -r line; do
		case $line in
		'ok '*)
			tap_results=$((tap_results + 1))
			echo "ok $tap_results - ${line#ok }"
			;;
		'not ok '*)
			tap_results=$((tap_results + 1)) tap_failures=$((tap_failures + 1))
			echo "not ok $tap_results - ${line#not ok }"
			;;
		'' | '#'*) echo "$line" ;;
		*) echo "# $line" ;;
		esac
	done <<<"$output"
	[[ $status -eq 0 && $tap_results -gt $n ]] ||
		ok "$name" eval 'cat "$WORK/results.stderr"; echo "exit status $status"; false'
}

take_core() {
	local status=0 message key lock
	key="$* ${SONDE_BUILD_FLAGS-} ${SONDE_RUN_ENV-} ${GOARCH-}"
	CORE=$CORES/$(tr -c 'a-zA-Z0-9.\n-' _ <<<"${key// /-}")
	exec {lock}>"$CORE.lock"
	flock "$lock"
	if [[ ! -e $CORE/complete ]]; then
		local program=$1 version=$2 mode=$3
		shift 3
		message=$(SONDE_EXE_CACHE=$CORES "$E2E/make_core.sh" "$program" "$version" "$mode" "$CORE" "$@" 2>&1) || status=$?
		[[ $status -ne 0 ]] || : >"$CORE/complete"
		set -- "$program" "$version" "$mode" "$@"
	fi
	exec {lock}>&-
	case $status in
	0) return 0 ;;
	77) skip "core of $key" "${message#*skipped: }" ;;
	*) ok "core of $key" eval 'echo "$message"; false' ;;
	esac
	return 1
}

oracle() {
	awk -v kind="$1" -v name="name=$2" -v key="$3=" '
		$1 == kind && $2 == name {
			for (i = 3; i <= NF; i++)
				if (index($i, key) == 1) {
					print substr($i, length(key) + 1)
					exit
				}
		}' "$CORE/stdout"
}

sonde_core() {
	local command=$1
	shift
	"$SONDE" core "$command" "$CORE/core" --exe "$CORE/exe" "$@"
}

# equal GOT WANT
equal() {
	[[ $1 == "$2" ]] || {
		echo "is \"$1\", want \"$2\""
		return 1
	}
}

limited() {
	if grep -q __asan_init "$SONDE"; then
		timeout -k 1 60 "$@" # its shadow needs more address space than any limit
	else
		(
			ulimit -v 4000000
			exec timeout -k 1 10 "$@"
		)
	fi
}

# expect STATUS FILE TEXT... -- COMMAND...
expect() {
	local want=$1 file=$2 texts=() status=0 text
	shift 2
	while [[ $1 != -- ]]; do
		texts+=("$1")
		shift
	done
	shift
	"$@" >"$WORK/stdout" 2>"$WORK/stderr" || status=$?
	equal "exit status $status" "exit status $want" || {
		tail -n 20 "$WORK/stderr"
		return 1
	}
	for text in "${texts[@]}"; do
		grep -qF -- "$text" "$WORK/$file" || {
			echo "no \"$text\" on $file:"
			head -n 100 "$WORK/$file"
			return 1
		}
	done
}

fails() {
	expect 1 stderr "$@" || return
	[[ ! -s $WORK/stdout ]] || {
		echo "something on stdout:"
		head -n 5 "$WORK/stdout"
		return 1
	}
}

shows() {
	expect 0 stdout "$@"
}

member() {
	python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    value = value[int(key) if isinstance(value, list) else key]
print(value)' "$1"
}

tap_end() {
	echo "1..$tap_results"
	[[ $tap_failures -eq 0 ]]
	exit
}
