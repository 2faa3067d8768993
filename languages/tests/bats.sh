# Runs test files with bats and reports in TAP. Arguments: the report, then the files.
report=$1
shift
if ! command -v bats > /dev/null; then
    echo '{"missing": true}' > "$report"
    exit 3
fi
bats --tap "$@" | tee "$report"
exit "${PIPESTATUS[0]}"
