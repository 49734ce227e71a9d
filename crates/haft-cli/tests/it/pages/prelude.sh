# Runs before the commands of a page, in the same shell.
unset BASH_ENV
set -eu -o pipefail
cd "$WORK"

# The line of the command that runs; a page's script has the lines of the page. A trap at the exit is in line 1.
page_line=0
trap '[ "$LINENO" -eq 1 ] || page_line=$LINENO' DEBUG
trap 'finish $?' EXIT

finish() {
    trap - DEBUG EXIT
    set +e
    [ "$1" -eq 0 ] || printf '%s:%s: exit status %s\n' "$PAGE" "$page_line" "$1" >&2
    # What the page leaves running.
    jobs -p | xargs -r kill 2>/dev/null
    wait
    exit "$1"
}

# Waits until a command succeeds: haft loads files within a second.
await() {
    local try
    for try in {1..80}; do
        ! "$@" >/dev/null 2>&1 || return 0
        command sleep 0.1
    done
    "$@"
}

# Twice as long: the machine of a test is busier than that of a reader.
sleep() {
    command sleep "$1" "$1"
}

# A request that the server rejects fails.
curl() {
    case " $* " in
        *' -sf '* | *' -sSf '*) command curl "$@" ;;
        *) command curl --fail-with-body --max-time 30 "$@" ;;
    esac
}

# A folder with changes is valid.
plan() {
    haft diff "$1" >&2 || [ $? -eq 11 ]
}

# save SOURCE NAME: saves a file of the page under its name and checks it as its kind allows. A subshell, so that a failure
# is one of the line in the page.
save() (
    set -e
    source=$1 name=$2 target=${2/#'~'/$HOME}
    mkdir -p "$(dirname "$target")"
    case $name in
        */haft.toml)
            # In a home folder of its own, which no database opens: only the configuration is checked.
            home=$(mktemp -d)
            cp "$source" "$home/haft.toml"
            HAFT_DATABASE_URL=postgres://127.0.0.1:9/none haft --home "$home" --json doctor >"$home/report" 2>/dev/null || true
            python3 - "$home/report" >&2 <<'EOF'
import json, sys
checks = [check for check in json.load(open(sys.argv[1]))["checks"] if check["name"] == "configuration"]
print(checks)
sys.exit(not checks or any(check["state"] == "failed" for check in checks))
EOF
            exit
            ;;
        '~/.haft/'*)
            # As a folder to apply, which checks every kind.
            folder=$(mktemp -d)/${name#'~/.haft/'}
            mkdir -p "$(dirname "$folder")"
            cp "$source" "$folder"
            plan "${folder%"${name#'~/.haft/'}"}"
            ;;
        *.py) python3 -c 'import ast, sys; ast.parse(sys.stdin.read())' <"$source" ;;
    esac
    cp "$source" "$target"
    case $name in
        '~/.haft/skills/'*.py) ;;
        '~/.haft/skills/'*)
            tool=$(sed -nE 's/^ *"?(name|slug)"?: *"?([^",]*).*/\2/p' "$target" | head -1)
            bundle=${name#'~/.haft/skills/'}
            haft tool validate "$target" >&2
            await haft tool show "${bundle%%/*}:$tool"
            ;;
        '~/.haft/agents/'*)
            grep -Eq '^(agents|members):' "$target" || await haft agent show "$(basename "$target" .yaml)"
            ;;
        platform/*) plan platform ;;
        # `inspect` needs the other files of the package: it is for the commands of the page.
        word-tools/toolset.yaml | *.py | *.html) ;;
        */toolset.yaml) haft toolset inspect "$(dirname "$target")" >&2 ;;
        policy*.yaml) haft policy test "$target" >&2 ;;
        *)
            if grep -q '^openapi:' "$target"; then
                haft import openapi "$target" --dry-run >&2
            elif grep -q 'implementation' "$target"; then
                haft tool validate "$target" >&2
            else
                python3 -m json.tool "$target" >/dev/null
            fi
            ;;
    esac
)
